"""Wrong rank programs on the simulated machine: each told with its ranks and operation, at once."""

import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch

from mpedu import baton
from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError
from mpedu.simulated import MOST_RANKS, Simulated, Wire

simulated = partial(run_ranks, machine="simulated")
LIMIT_S = 30.0  # nobody comes near it: what waits is told when no rank can go on


@pytest.fixture(autouse=True)
def nothing_is_left():
    threads, out = set(threading.enumerate()), sys.stdout
    yield
    assert set(threading.enumerate()) == threads and sys.stdout is out


def row(*numbers):
    return np.array(numbers, dtype=np.float64)


def told(program, n_ranks=2, **how):
    """What a failing run says."""
    with pytest.raises(RankError) as caught:
        simulated(program, n_ranks, **{"timeout_s": LIMIT_S, **how})
    assert "timeout_s" not in str(caught.value) or "timeout_s" in how
    return str(caught.value)


def by_rank(*parts):
    """A program of which each rank runs its own part."""
    return lambda comm: parts[comm.rank](comm)


def nothing(comm):
    return None


FAULTS = {
    "all send first": (
        lambda c: (c.send(row(1), 1 - c.rank), c.recv(1 - c.rank)),
        2,
        "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0 (no rank can go on):\n"
        "  rank 0 waits in send to rank 1\n  rank 1 waits in send to rank 0",
    ),
    "a ring of receives": (
        lambda c: c.recv((c.rank + 1) % c.size, tag=4, what="the token"),
        3,
        "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 2, rank 2 waits for rank 0 "
        "(no rank can go on):\n  rank 0 waits in recv from rank 1 (the token, tag 4)\n",
    ),
    "a receive from a rank that has finished": (
        by_rank(lambda c: c.recv(1), nothing),
        2,
        "deadlock: rank 0 waits for rank 1, which has finished (no rank can go on):\n"
        "  rank 0 waits in recv from rank 1\n  rank 1 has finished",
    ),
    "a send to a rank that has finished": (
        by_rank(nothing, nothing, lambda c: c.send(row(1), 0)),
        3,
        "rank 2 waits for rank 0, which has finished (no rank can go on):\n"
        "  rank 2 waits in send to rank 0\n  rank 0 has finished\n  rank 1 has finished",
    ),
    "a message that nobody takes": (
        by_rank(lambda c: c.isend(row(1, 2), 1, tag=7), nothing),
        2,
        "rank 1 never received what rank 0 sent it: float64 [2] (tag 7)",
    ),
    "a receive that nobody serves": (
        by_rank(nothing, lambda c: c.irecv(0)),
        2,
        "rank 0 never sent what rank 1 started to receive from it",
    ),
    "two tags": (
        by_rank(lambda c: c.send(row(1), 1, tag=1), lambda c: c.recv(0, tag=2)),
        2,
        "  rank 0 waits in send to rank 1 (tag 1)\n  rank 1 waits in recv from rank 0 (tag 2)",
    ),
    "another shape than expected": (
        by_rank(lambda c: c.send(row(1, 2), 1), lambda c: c.recv(0, np.zeros(3), tag=0)),
        2,
        "rank 1 failed: ValueError: recv on rank 1: rank 0 sends float64 [2], and the array to "
        "receive into is float64 [3]; both ends must give the same dtype and shape",
    ),
    "another dtype than expected": (
        by_rank(
            lambda c: c.send(row(1), 1, tag=5),
            lambda c: c.recv(0, torch.zeros(1, dtype=torch.float32), tag=5),
        ),
        2,
        "recv on rank 1: rank 0 sends float64 [1] (tag 5), and the array to receive into is "
        "float32 [1]",
    ),
    "a collective that one leaves out": (
        by_rank(lambda c: c.all_reduce(row(1)), nothing, lambda c: c.all_reduce(row(1))),
        3,
        "deadlock: rank 0 waits for rank 1, which has finished (no rank can go on):\n"
        "  rank 0 waits in all_reduce\n  rank 2 waits in all_reduce\n  rank 1 has finished",
    ),
    "a collective started by one and waited for by none": (
        by_rank(lambda c: c.all_reduce(row(1), async_op=True), nothing),
        2,
        "rank 0 started all_reduce, and rank 1 never did",
    ),
    "two collectives": (
        by_rank(lambda c: c.all_reduce(row(1)), lambda c: c.barrier()),
        2,
        "rank 1 calls barrier where rank 0 calls all_reduce; "
        "all ranks must call the same collectives in the same order",
    ),
    "a collective beside a message": (
        by_rank(lambda c: c.all_gather(row(1)), lambda c: c.recv(0)),
        2,
        "rank 0 waits for rank 1, rank 1 waits for rank 0 (no rank can go on):\n"
        "  rank 0 waits in all_gather\n  rank 1 waits in recv from rank 0",
    ),
    "two shapes": (
        lambda c: c.all_reduce(np.zeros(3 + (c.rank == 2))),
        3,
        "all_reduce: rank 0 gives float64 [3], rank 2 float64 [4]; all must give the same",
    ),
    "two dtypes": (
        lambda c: c.reduce_scatter(torch.zeros(2, dtype=(torch.float16, torch.bfloat16)[c.rank])),
        2,
        "reduce_scatter: rank 0 gives float16 [2], rank 1 bfloat16 [2]; all must give the same",
    ),
    "two reductions": (
        lambda c: c.all_reduce(row(1), ("sum", "max")[c.rank]),
        2,
        "all_reduce: rank 0 gives op=sum, rank 1 op=max; all must give the same",
    ),
    "two roots": (
        lambda c: c.broadcast(row(1), root=c.rank),
        2,
        "broadcast: rank 0 gives root=0, rank 1 root=1; all must give the same",
    ),
    "two lists of sizes": (
        lambda c: c.reduce_scatter(np.zeros(2), sizes=[[2, 0], [1, 1]][c.rank]),
        2,
        "reduce_scatter: rank 0 gives sizes=(2, 0), rank 1 sizes=(1, 1); all must give the same",
    ),
    "sizes on one rank alone": (
        lambda c: c.all_gather(np.zeros(2), sizes=None if c.rank else [2, 2]),
        2,
        "all_gather: rank 0 gives sizes=(2, 2), rank 1 sizes=None; all must give the same",
    ),
    "rows of two widths": (
        lambda c: c.all_gather(np.zeros((1, 2 + c.rank)), sizes=[1, 1]),
        2,
        "all_gather: rank 0 gives rows of float64 [2], rank 1 rows of float64 [3]",
    ),
    "other rows than expected": (
        lambda c: c.all_to_all(np.zeros(3), [1, 2], [1, 1]),
        2,
        "all_to_all: rank 0 sends 2 rows to rank 1, which expects 1; "
        "send_sizes and recv_sizes must fit",
    ),
    "collectives of two groups in two orders": (
        lambda c: _crossed(c, c.split(0)),
        2,
        "no rank can go on):\n  rank 0 waits in all_reduce\n  rank 1 waits in all_reduce",
    ),
    "a peer of a group": (
        lambda c: c.split(c.rank % 2).recv(1) if c.rank == 1 else c.split(c.rank % 2),
        4,
        "rank 1 waits for rank 3, which has finished (no rank can go on):\n"
        "  rank 1 waits in recv from rank 3\n",
    ),
    "a split that one leaves out": (
        by_rank(lambda c: c.split(0), nothing),
        2,
        "rank 0 waits in split",
    ),
    "an error of one rank": (
        lambda c: c.all_reduce(row(1 // (c.rank - 1))),
        3,
        "rank 1 failed: ZeroDivisionError: ",
    ),
    "the end of the process": (
        lambda c: sys.exit(3) if c.rank else c.recv(1),
        2,
        "rank 1 failed: SystemExit: the program called sys.exit(3); return instead",
    ),
    "an interrupt raised by a rank": (
        lambda c: (_ for _ in ()).throw(KeyboardInterrupt) if c.rank else c.recv(1),
        2,
        "rank 1 failed: KeyboardInterrupt",
    ),
}


def _crossed(comm, other):
    first, second = (comm, other) if comm.rank == 0 else (other, comm)
    first.all_reduce(row(1))
    second.all_reduce(row(1))


@pytest.mark.parametrize("program, n_ranks, text", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_ranks_and_operation(program, n_ranks, text):
    assert text in told(program, n_ranks)


BAD = {
    "a rank that is not": (lambda c: c.send(row(1), 2), "send", "no rank 2; there are 0..1"),
    "the own rank": (lambda c: c.recv(1), "recv", "it named itself"),
    "a negative tag": (lambda c: c.send(row(1), 0, tag=-1), "send", "tag=-1 is no tag"),
    "a list": (lambda c: c.send([1.0], 0), "send", "list is no array; give a NumPy array or"),
    "a number": (
        lambda c: c.all_reduce(1.0),
        "all_reduce",
        "float is no array; give np.array(1.0)",
    ),
    "objects": (lambda c: c.all_gather(np.array([None])), "all_gather", "no array of numbers"),
    "a column": (lambda c: c.send(np.zeros((2, 2))[:, 0], 0), "send", "not contiguous; give x.co"),
    "a tensor that needs a gradient": (
        lambda c: c.send(torch.ones(1, requires_grad=True), 0),
        "send",
        "the tensor needs a gradient, and messages carry none; give x.detach()",
    ),
    "an unknown operation": (
        lambda c: c.all_reduce(row(1), "avg"),
        "all_reduce",
        "op='avg' is unk",
    ),
    "no root": (lambda c: c.broadcast(row(1), 2), "broadcast", "no rank 2; there are 0..1"),
    "a negative color": (lambda c: c.split(-1), "split", "color=-1; give an int >= 0"),
    "too few sizes": (lambda c: c.all_gather(row(1), [1]), "all_gather", "sizes=[1]; give 2 ints"),
    "other sizes than rows": (
        lambda c: c.all_gather(row(1, 2), [2, 1]),
        "all_gather",
        "2 rows given, sizes=[2, 1] says else",
    ),
    "a negative size": (
        lambda c: c.reduce_scatter(row(1), sizes=[2, -1]),
        "reduce_scatter",
        "sizes=[2, -1]; give 2 ints of 0 or more, one per rank",
    ),
    "sizes of other rows": (
        lambda c: c.reduce_scatter(row(1, 2), sizes=[2, 1]),
        "reduce_scatter",
        "sizes=[2, 1] are 3 rows; the array has 2",
    ),
    "rows that do not divide": (
        lambda c: c.all_to_all(row(1, 2, 3)),
        "all_to_all",
        "3 rows do not divide by 2 ranks; give send_sizes",
    ),
    "no rows at all": (
        lambda c: c.reduce_scatter(np.array(1.0)),
        "reduce_scatter",
        "the array has no axis; give at least one row",
    ),
    "work twice": (lambda c: c.compute(1, 2), "compute", "seconds=1, flops=2; give one of them"),
    "no work": (lambda c: c.compute(), "compute", "seconds=None, flops=None; give one of them"),
    "negative work": (lambda c: c.compute(-1.0), "compute", "-1.0 is no amount of work; give 0 or"),
    "work that never ends": (lambda c: c.compute(float("nan")), "compute", "nan is no amount of"),
    "flops of no device": (lambda c: c.compute(flops=1), "compute", "flops need a device; give"),
}


@pytest.mark.parametrize("call, operation, text", BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_on_the_rank_that_gave_it(call, operation, text):
    def program(comm):
        if comm.rank == 1:
            with pytest.raises(ValueError) as caught:
                call(comm)
            assert str(caught.value).startswith(f"{operation} on rank 1: "), caught.value
            assert text in str(caught.value)
            assert "\n" not in str(caught.value)
        return comm.all_reduce(row(1)).tolist()  # nothing was sent: the ranks still fit

    assert simulated(program, 2).results == [[2], [2]]


def test_a_world_of_one_rank_has_nobody_to_send_to():
    assert "send on rank 0: no rank 1; there are 0 alone" in told(lambda c: c.send(row(1), 1), 1)


MACHINES = {
    "ranks that do not fill the nodes": (
        Simulated(node_size=2),
        "3 ranks do not fill nodes of 2; ",
    ),
    "a node of no ranks": (Simulated(node_size=0), "node_size=0 is too small; give node_size >= 1"),
    "a way back in time": (Simulated(Wire(-1.0)), "is no wire; give Wire(latency_s >= 0, bytes_pe"),
    "a wire without bytes": (Simulated(Wire(0.0, 0.0)), "is no wire; give "),
    "no number": (Simulated(between=Wire(float("nan"))), "is no wire; give "),
    "no wire": (Simulated(5), "5 is no wire; give "),
    "another machine": (
        "quantum",
        "machine='quantum' is unknown; give 'processes', 'simulated' or",
    ),
}


@pytest.mark.parametrize("machine, text", MACHINES.values(), ids=MACHINES)
def test_a_machine_that_cannot_be_is_refused(machine, text):
    with pytest.raises(ValueError) as caught:
        run_ranks(nothing, 3, machine=machine)
    assert text in str(caught.value)


@pytest.mark.parametrize("n_ranks", [0, -1, 1.5, True, "2", MOST_RANKS + 1])
def test_a_number_of_ranks_that_cannot_be_is_refused(n_ranks):
    with pytest.raises(ValueError, match="n_ranks="):
        simulated(nothing, n_ranks)


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), True, "1"])
def test_a_limit_that_is_none_is_refused(timeout_s):
    with pytest.raises(
        ValueError, match=r"timeout_s=.* is no limit; give seconds above 0, or None"
    ):
        simulated(nothing, 1, timeout_s=timeout_s)


def test_a_program_that_cannot_travel_is_refused():
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"<lambda> and its arguments cannot be sent to the ranks"):
        simulated(lambda comm: lock, 2)
    with pytest.raises(ValueError, match="5 cannot be called; give a function"):
        simulated(5, 2)


def test_the_error_holds_the_exception_of_the_rank_and_what_was_recorded():
    def program(comm):
        comm.compute(seconds=1.0)
        comm.barrier()
        if comm.rank == 1:
            try:
                {}["missing"]
            except KeyError as error:
                raise RuntimeError("what it was") from error
        comm.barrier()

    with pytest.raises(RankError, match="rank 1 failed: RuntimeError: what it was") as caught:
        simulated(program, 2)
    error = caught.value
    assert type(error.cause) is RuntimeError and type(error.cause.__cause__) is KeyError
    assert [failed.rank for failed in error.failures] == [1]
    assert "raise RuntimeError" in str(error) and "baton.py" not in str(error)
    assert len([span for span in error.timeline.spans if span.kind == "compute"]) == 2


def test_the_error_of_a_deadlock_holds_who_waits_for_whom():
    with pytest.raises(RankError) as caught:
        simulated(lambda comm: comm.recv((comm.rank + 1) % 3), 3)
    waiting = [(w.rank, w.text, w.peers) for w in caught.value.waiting]
    assert waiting == [(r, f"recv from rank {(r + 1) % 3}", ((r + 1) % 3,)) for r in range(3)]
    assert caught.value.failures == [] and caught.value.cause is None


def test_many_messages_left_over_are_told_in_a_few_lines():
    def program(comm):
        if comm.rank == 0:
            for tag in range(50):
                comm.isend(row(1), 1, tag)

    assert len(told(program).splitlines()) <= 9


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
        if comm.rank == 1:
            comm.recv(0)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            comm.compute(seconds=1) if is_calling else time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        simulated(program, 2)


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
        raise KeyError("the cause")
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
        text = told(never_ends)
        left = set(threading.enumerate()) - before
    finally:
        let_go.set()
    assert text.startswith("rank 1 failed: KeyError: 'the cause'")
    assert "rank 0 could not be ended" in text
    assert all(thread.daemon for thread in left)
    for thread in left:
        thread.join(LIMIT_S)


def test_the_comm_of_a_run_that_is_over_says_so():
    comm, request = simulated(lambda comm: (comm, comm.barrier(async_op=True)), 1).results[0]
    for call in (comm.barrier, request.wait, lambda: comm.compute(seconds=1)):
        with pytest.raises(RuntimeError, match="this run is over; a Comm and its requests work"):
            call()
    assert comm.now_s() == 0.0
