"""Whatever goes wrong on a rank: who is named, with what, and that the next call works."""

import ctypes
import os
import sys
import time

import cloudpickle
import pytest
import torch

from mpedu.distributed import LostPeer
from mpedu.families import gpipe, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine
from mpedu.ranks.errors import RankError
from mpedu.ranks.rank import MOST_CHARACTERS

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def caught(program, n_ranks=2, **limits):
    """The error of a run that fails; and after every failure the next call works."""
    with pytest.raises(RankError) as error:
        run_ranks(program, n_ranks, **limits)
    assert run_ranks(lambda comm: comm.rank, 2).results == [0, 1]
    return error.value


def wait_for(comm, peer=1):
    if comm.rank != peer:
        comm.recv(peer, torch.zeros(1))


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
            (lambda: ctypes.string_at(0), "its process was killed by SIGSEGV"),
            (lambda: os.abort(), "its process was killed by SIGABRT"),
            (lambda: os.kill(os.getpid(), 9), "its process was killed by SIGKILL (by somebody"),
        ],
        ids=["exit 7", "exit 0", "segmentation fault", "abort", "kill -9"],
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

    def test_a_message_of_another_size_tells_the_rank_it_broke(self, capsys):
        def program(comm):
            if comm.rank == 0:
                comm.send(torch.zeros(8), 1)
            wait_for(comm, 0) if comm.rank == 0 else comm.recv(0, torch.zeros(2))

        assert "SIGABRT" in str(caught(program)) and "32 vs 8" in capsys.readouterr().out

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
        assert lines[2].startswith("  pipeline.py")

    def test_a_failure_is_told_though_a_limit_passes_just_after_it(self):
        def program(comm):
            time.sleep(0.2 * comm.rank)
            if comm.rank == 1:
                raise ValueError("odd")
            wait_for(comm)

        assert str(caught(program, timeout_s=0.3)).startswith("rank 1 failed: ValueError: odd")


class TestWaits:
    def test_two_ranks_that_both_receive_are_told_as_a_circle_with_their_lines(self):
        def program(comm):
            what = f"activations of F{comm.rank}"
            comm.recv(1 - comm.rank, torch.zeros(1), what=what)

        lines = str(caught(program, wait_s=0.4)).splitlines()
        assert lines[0] == (
            "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0 "
            "(a rank has waited for more than 0.4 s):"
        )
        assert lines[1].startswith("  rank 0 waits in recv from rank 1 (activations of F0), for 0.")
        assert lines[2].startswith("  rank 1 waits in recv from rank 0 (activations of F1), for 0.")
        assert all(line.endswith("torch.zeros(1), what=what)") for line in lines[1:])

    def test_a_circle_of_four_is_told_long_before_the_limit(self, monkeypatch):
        monkeypatch.setattr("mpedu.ranks.deadlock.STILL_S", 0.3)

        def program(comm):
            comm.recv((comm.rank + 1) % 4, torch.zeros(1))

        text = str(caught(program, 4, timeout_s=600))
        assert text.startswith(
            "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 2, rank 2 waits for rank 3, "
            "rank 3 waits for rank 0 (no rank can go on):"
        )

    def test_waiting_for_a_rank_that_has_finished_is_told_as_that(self):
        lines = str(caught(wait_for, 3, wait_s=0.4)).splitlines()
        assert lines[0].startswith("deadlock: rank 0 waits for rank 1, which has finished")
        assert lines[-1] == "  rank 1 has finished"

    def test_a_rank_that_does_not_come_to_a_collective_is_told(self):
        def program(comm):
            if comm.rank < 2:
                comm.all_reduce(torch.zeros(1))
            else:
                comm.recv(0, torch.zeros(1))

        text = str(caught(program, 3, wait_s=0.4))
        assert text.startswith("deadlock: rank 0 waits for rank 2, rank 2 waits for rank 0")

    @pytest.mark.parametrize("limits", [dict(wait_s=0.4), dict(timeout_s=0.4)])
    def test_a_busy_loop_is_told_with_its_line_and_no_deadlock(self, limits):
        def program(comm):
            while comm.rank == 1:
                sum(range(50))
            wait_for(comm)

        text = str(caught(program, **limits))
        assert "deadlock" not in text and "rank 0 waits in recv from rank 1" in text
        assert "rank 1 is running, at test_launch_failures.py line" in text and "in program" in text

    def test_waiting_long_for_a_rank_that_sleeps_is_no_deadlock(self, monkeypatch):
        monkeypatch.setattr("mpedu.ranks.deadlock.STILL_S", 0.1)

        def program(comm):
            if comm.rank == 0:
                time.sleep(0.8)
            comm.barrier()

        run_ranks(program, 2, timeout_s=60)

    @pytest.mark.parametrize("family", [gpipe, one_f_one_b])
    def test_an_engine_that_waits_in_vain_is_told_with_the_micro_batch(self, family):
        def program(comm):
            stages = {comm.rank: lambda x: x * 1.0}
            engine = PipelineEngine(
                family(2, 3), comm, stages, loss=lambda y, t: y.sum(), count=len
            )
            if comm.rank == 1:
                engine.stages[1] = stuck_from(2, comm)
            batch = torch.ones(3, 1, requires_grad=True), torch.ones(3)
            engine.run(batch)

        text = str(caught(program, wait_s=0.6))
        assert "rank 0 waits in recv from rank 1 (gradient " in text
        assert "rank 1 waits in recv from rank 0 (a letter nobody sends, tag 9)" in text
        assert text.startswith("deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0")


def stuck_from(n_calls, comm):
    """A stage that waits for what nobody sends from its `n_calls`-th call on."""
    calls = []

    def stage(x):
        calls.append(1)
        if len(calls) >= n_calls:
            comm.recv(0, torch.zeros(1), tag=9, what="a letter nobody sends")
        return x * 1.0

    return stage
