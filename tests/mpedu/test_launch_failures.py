"""Whatever goes wrong on a rank: who is named, with what, and that the next call works."""

import ctypes
import os
import signal
import sys
import time

import cloudpickle
import pytest
import torch
from endless import wait_for
from failing import caught

from mpedu.distributed import LostPeer
from mpedu.families import one_f_one_b
from mpedu.pipeline import PipelineEngine
from mpedu.ranks.rank import MOST_CHARACTERS

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    def __reduce__(self):
        raise RuntimeError("no way")


def fail_with(error):
    raise error


class Unreadable:
    def __reduce__(self):
        return fail_with, (OSError("no such device"),)


class TestReports:
    def test_a_rank_that_raises_is_named_with_its_line_while_others_wait(self):
        def program(comm):
            if comm.rank == 1:
                raise ValueError("odd")
            wait_for(comm)

        error = caught(program, 3)
        first, second, *others = str(error).splitlines()
        assert first == "rank 1 failed: ValueError: odd"
        assert second.endswith('in program: raise ValueError("odd")')
        assert [line.split(", for")[0] for line in others] == [
            "  rank 0 waits in recv from rank 1",
            "  rank 2 waits in recv from rank 1",
        ]
        assert [f.rank for f in error.failures] == [1]
        assert [w.rank for w in error.waiting] == [0, 2]

    @pytest.mark.parametrize(
        ("die", "told"),
        [
            (lambda: os._exit(7), "its process ended with status 7"),
            (lambda: os._exit(0), "its process ended with status 0"),
            (lambda: os._exit(255), "its process ended with status 255"),
            (lambda: ctypes.string_at(0), "its process was killed by SIGSEGV"),
            (lambda: os.abort(), "its process was killed by SIGABRT"),
            (lambda: os.kill(os.getpid(), 9), "its process was killed by SIGKILL (by somebody"),
        ],
        ids=["exit 7", "exit 0", "exit 255", "segmentation fault", "abort", "kill -9"],
    )
    def test_a_rank_that_dies_is_the_cause_and_lost_connections_its_consequence(self, die, told):
        def program(comm):
            if comm.rank == 1:
                time.sleep(0.05)
                die()
            wait_for(comm)

        error = caught(program, 3)
        assert str(error).startswith(f"rank 1 died: {told}")
        assert [f.is_consequence for f in error.failures] == [False, True, True]
        assert "in consequence: recv from rank 1: connection" in str(error)

    def test_a_fork_server_that_is_killed_is_told_as_that(self):
        def program(comm):
            if comm.rank == 0:
                os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)

        first, *others = str(caught(program)).splitlines()
        assert first[0:5] == "rank " and first[6:] == (
            " died: the fork server, from which ranks are started, was killed "
            "(by somebody, or by the system because memory ran out); call again"
        )
        assert [line[8:] for line in others] in ([], [", then also: the same"])

    def test_a_crash_shows_the_line_it_happened_in(self):
        def program(comm):
            ctypes.string_at(0)

        assert str(caught(program, 1)).endswith("in program: ctypes.string_at(0)")

    def test_a_child_of_a_dead_rank_does_not_hide_its_death(self):
        def program(comm):
            if comm.rank == 1:
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(3)
            wait_for(comm)

        assert str(caught(program)).startswith("rank 1 died: its process ended with status 3")

    def test_a_message_of_another_size_that_nobody_checks_tells_the_rank_it_broke(self, capsys):
        def program(comm):
            if comm.rank == 0:
                comm.send(torch.zeros(8), 1)
            wait_for(comm, 0) if comm.rank == 0 else comm.recv(0, torch.zeros(2))

        text = str(caught(program, check_messages=False))
        assert "SIGABRT" in text and "32 vs 8" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: sys.exit(3), "SystemExit: the program called sys.exit(3); return instead"),
            (lambda: (n for n in []), "its result cannot be sent back (TypeError: cannot pickle"),
            (lambda: Unreadable(), "what it returned cannot be read here (OSError: no such device"),
            (lambda: fail_with(Unspeakable()), "rank 0 failed: Unspeakable: (its text cannot be"),
            (lambda: fail_with(KeyboardInterrupt()), "rank 0 failed: KeyboardInterrupt"),
            (lambda: fail_with(KeyError("a")), "rank 0 failed: KeyError: 'a'"),
            (lambda: fail_with(ValueError("x" * 10**7)), "x" * MOST_CHARACTERS + " ..."),
        ],
        ids=["exit", "unsendable", "unreadable", "unspeakable", "interrupt", "key", "long"],
    )
    def test_whatever_a_program_ends_with_is_told(self, make, text):
        assert text in str(caught(lambda comm: make(), 1))

    def test_notes_of_an_error_are_told_too(self):
        def program(comm):
            error = ValueError("odd")
            error.add_note("try an even number")
            raise error

        assert "ValueError: odd\ntry an even number" in str(caught(program, 1))

    def test_a_loss_that_the_program_made_another_error_of_stays_a_consequence(self):
        def program(comm):
            if comm.rank == 1:
                os._exit(1)
            try:
                wait_for(comm)
            except LostPeer:
                raise OSError("bad weather") from None

        error = caught(program)
        assert [(f.rank, f.is_consequence) for f in error.failures] == [(1, False), (0, True)]

    def test_an_error_inside_the_package_shows_the_callers_line_and_the_innermost(self):
        def program(comm):
            schedule = one_f_one_b(comm.size, 2)
            return PipelineEngine(schedule, comm, {}, loss=None, count=None)

        lines = str(caught(program)).splitlines()
        assert "was given stages []" in lines[0]
        assert lines[1].startswith("  test_launch_failures.py") and "PipelineEngine(" in lines[1]
        assert lines[2].startswith("  engine.py")

    def test_a_failure_is_told_though_a_limit_passes_just_after_it(self):
        def program(comm):
            time.sleep(0.2 * comm.rank)
            if comm.rank == 1:
                raise ValueError("odd")
            wait_for(comm)

        assert str(caught(program, timeout_s=0.3)).startswith("rank 1 failed: ValueError: odd")
