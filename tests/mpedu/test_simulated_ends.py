"""How a run on the simulated machine ends where something goes wrong: no thread is left."""

import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from mpedu.launch import run_ranks
from mpedu.ranks.outcome import Interrupted, RankError
from mpedu.simulated import baton

simulated = partial(run_ranks, machine="simulated")
LIMIT_S = 30.0  # nobody comes near it


@pytest.fixture(autouse=True)
def nothing_is_left():
    threads, out = set(threading.enumerate()), sys.stdout
    yield
    assert set(threading.enumerate()) == threads and sys.stdout is out


def row(*numbers):
    return np.array(numbers, dtype=np.float64)


def told(program, n_ranks=2, timeout_s=LIMIT_S):
    """What a failing run says."""
    with pytest.raises(RankError) as caught:
        simulated(program, n_ranks, timeout_s=timeout_s)
    return str(caught.value)


def test_ends_that_are_told_in_a_finally_change_nothing_in_the_report():
    def program(comm):
        try:
            comm.recv(1 - comm.rank)
        finally:
            comm.send(row(1), 1 - comm.rank)
            comm.barrier()

    assert "rank 0 waits in recv from rank 1\n  rank 1 waits in recv from rank 0" in told(program)


def test_a_rank_that_works_for_ever_is_ended_at_the_limit_and_where_it_was_is_told():
    def program(comm):
        if comm.rank == 0:
            comm.recv(1)
        while True:
            pass

    text = told(program, timeout_s=0.3)
    assert text.startswith("not done after 0.3 s (timeout_s):\n  rank 1 is running, at ")
    assert ", in program" in text and "\n  rank 0 waits in recv from rank 1" in text


@pytest.mark.parametrize("is_calling", [True, False])
def test_an_interrupt_ends_all_ranks(is_calling):
    def program(comm):
        if comm.rank == 0:
            comm.recv(1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            comm.compute(seconds=1) if is_calling else time.sleep(0.001)

    with pytest.raises(Interrupted) as caught:
        simulated(program, 2)
    assert str(caught.value).startswith("2 ranks, none left running\n  rank 1 is running, at ")
    assert str(caught.value).endswith("\n  rank 0 waits in recv from rank 1")


def test_an_interrupt_at_any_moment_leaves_no_thread():
    def program(comm):
        while True:
            comm.barrier()

    def interrupt(after_s):
        time.sleep(after_s)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = set(threading.enumerate())
    for n in range(40):
        sender = threading.Thread(target=interrupt, args=(n * 1e-4,))
        with pytest.raises(KeyboardInterrupt):
            sender.start()
            simulated(program, 4, timeout_s=LIMIT_S)
        sender.join()
        assert set(threading.enumerate()) == before


def test_an_interrupt_while_ranks_are_started_leaves_no_thread(monkeypatch):
    sent, wait = [], threading.Event.wait

    def interrupted(event, timeout=None):  # a thread that is started is waited for first
        if not sent:
            sent.append(signal.raise_signal(signal.SIGINT))
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulated(lambda comm: comm.barrier(), 3)
    assert sent


def test_ranks_that_catch_everything_are_ended_all_the_same():
    def program(comm):
        if comm.rank == 1:
            comm.send(row(1), 0)
            raise KeyError("the cause")
        comm.recv(1)
        for _ in range(1000):
            try:
                comm.recv(1)
            except BaseException:
                continue

    assert "rank 1 failed: KeyError: 'the cause'" in told(program)


let_go = threading.Event()


def never_ends(comm):
    if comm.rank == 1:
        comm.recv(2)
        raise KeyError("the cause")
    if comm.rank == 2:
        comm.send(row(1), 1)
        comm.recv(0)
    while not let_go.is_set():
        try:
            comm.recv(1)
        except BaseException:
            try:
                let_go.wait(LIMIT_S)
            except BaseException:
                continue


def test_a_rank_that_nothing_ends_is_given_up_and_told(monkeypatch):
    monkeypatch.setattr(baton, "END_S", 0.1)
    before = set(threading.enumerate())
    try:
        text = told(never_ends, 3)
        left = set(threading.enumerate()) - before
    finally:
        let_go.set()
    assert text.startswith("rank 1 failed: KeyError: 'the cause'")
    assert "rank 0 could not be ended" in text and "rank 2" not in text
    assert [thread.daemon for thread in left] == [True]
    for thread in left:
        thread.join(LIMIT_S)


def test_the_comm_of_a_run_that_is_over_says_so():
    def program(comm):
        request = comm.barrier(async_op=True)
        request.wait()
        return comm, request

    comm, request = simulated(program, 1).results[0]
    for call in (comm.barrier, request.wait, lambda: comm.compute(seconds=1)):
        with pytest.raises(RuntimeError, match="this run is over; a Comm and its requests work"):
            call()
    assert comm.now_s() == 0.0
