"""Ranks that wait in vain, or only long: what is a deadlock, what is not, and who is told."""

import os
import signal
import sys
import threading
import time

import cloudpickle
import pytest
import torch
from endless import wait_for
from failing import caught

from mpedu.families import gpipe, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def stop_and_send(comm):
    """Rank 0 stops rank 1, which waits for it, sends to it and returns."""
    if comm.rank == 1:
        comm.send(torch.tensor([os.getpid()]), 0)
        return comm.recv(0, torch.zeros(1)).item()
    pid = comm.recv(1, torch.tensor([0])).item()
    time.sleep(0.3)
    os.kill(pid, signal.SIGSTOP)
    comm.send(torch.full((1,), 7.0), 1)
    comm.report(pid)


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

    def test_a_message_to_a_stopped_rank_is_no_deadlock(self, monkeypatch):
        """The message lies there, the sender has finished; the rank needs only be let on."""
        monkeypatch.setattr("mpedu.ranks.deadlock.STILL_S", 0.2)

        def let_go_on_later(rank, pid):
            threading.Timer(1.5, os.kill, [pid, signal.SIGCONT]).start()

        run = run_ranks(stop_and_send, 2, on_report=let_go_on_later)
        assert run.results == [None, 7.0]

    def test_a_rank_that_stays_stopped_is_told_as_stopped(self):
        text = str(caught(stop_and_send, wait_s=0.8))
        assert text.startswith("a rank has waited for more than 0.8 s:\n  rank 1 is stopped, by a")
        assert "deadlock" not in text and "rank 1 waits in recv from rank 0" in text

    @pytest.mark.parametrize("limits", [dict(wait_s=0.4), dict(timeout_s=0.4)])
    def test_a_busy_loop_is_told_with_its_line_and_no_deadlock(self, limits):
        def program(comm):
            while comm.rank == 1:
                sum(range(50))
            wait_for(comm)

        text = str(caught(program, **limits))
        assert "deadlock" not in text and "rank 0 waits in recv from rank 1" in text
        assert "rank 1 is running, at test_launch_waits.py line" in text and "in program" in text

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
