"""Wrong rank programs on the simulated machine: each told with its ranks and operation, at once."""

import sys
import threading
from functools import partial

import numpy as np
import pytest
import torch

from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError

simulated = partial(run_ranks, machine="simulated")
LIMIT_S = 30.0  # nobody comes near it: what waits is told when no rank can go on


@pytest.fixture(autouse=True)
def nothing_is_left():
    threads, out = set(threading.enumerate()), sys.stdout
    yield
    assert set(threading.enumerate()) == threads and sys.stdout is out


def row(*numbers):
    return np.array(numbers, dtype=np.float64)


def told(program, n_ranks=2):
    """What a failing run says, at once."""
    with pytest.raises(RankError) as caught:
        simulated(program, n_ranks, timeout_s=LIMIT_S)
    assert "timeout_s" not in str(caught.value)
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
    "other rows than expected between two of three": (
        by_rank(
            lambda c: c.all_to_all(np.zeros(3), [1, 1, 1], [1, 1, 1]),
            lambda c: c.all_to_all(np.zeros(3), [1, 0, 2], [1, 0, 1]),
            lambda c: c.all_to_all(np.zeros(3), [1, 1, 1], [1, 1, 1]),
        ),
        3,
        "all_to_all: rank 1 sends 2 rows to rank 2, which expects 1; ",
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
