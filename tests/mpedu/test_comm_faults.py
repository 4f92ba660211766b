"""Faults planted in rank programs on processes: who is told, how, and how soon; nobody is left."""

import sys

import cloudpickle
import left_over
import numpy as np
import pytest
import torch

from mpedu.launch import RankError, run_ranks

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
WAIT_S = 0.6
LATE_S = 0.5  # what design allows after the limit


def send_to_rank_9(comm):
    if comm.rank == 0:
        comm.send(np.zeros(1), 9)


def both_receive(comm):
    comm.recv(1 - comm.rank, np.zeros(1), what="a letter")


def both_send(comm):
    comm.send(np.zeros(1), 1 - comm.rank)
    comm.recv(1 - comm.rank)


def other_size(comm):
    if comm.rank == 0:
        comm.send(np.zeros(8), 1, tag=3)
    else:
        comm.recv(0, np.zeros(2), tag=3)


def other_dtype(comm):
    if comm.rank == 0:
        comm.send(np.zeros(5000, dtype=np.float32), 1)
    else:
        comm.recv(0, torch.zeros(5000, dtype=torch.float64))


def bfloat16_into_numpy(comm):
    if comm.rank == 0:
        comm.send(torch.zeros(2, dtype=torch.bfloat16), 1)
    else:
        comm.recv(0, np.zeros(2, dtype=np.float32))


def early_end(comm):
    if comm.rank == 1:
        comm.recv(0)


def by_some_only(comm):
    if comm.rank == 0:
        comm.all_reduce(np.zeros(3))


def collectives_differ(comm):
    if comm.rank == 0:
        comm.all_reduce(np.zeros(3))
    else:
        comm.barrier()


def shapes_differ(comm):
    comm.all_reduce(np.zeros(2 + comm.rank, dtype=np.float32))


def dtypes_differ(comm):
    comm.reduce_scatter(np.zeros(4, dtype=np.float32 if comm.rank else np.float64))


def roots_differ(comm):
    comm.broadcast(np.zeros(1), root=comm.rank)


def operations_differ(comm):
    comm.all_reduce(np.zeros(1), "max" if comm.rank else "sum")


def sizes_differ(comm):
    comm.all_to_all(np.zeros(3), [1, 2], [1, 1] if comm.rank == 0 else [1, 2])


def own_sizes_differ(comm):
    comm.all_to_all(np.zeros(3), [1, 2], [1, 1] if comm.rank == 0 else [2, 1])


def rows_differ(comm):
    comm.all_gather(np.zeros((2, 3 + comm.rank)), sizes=[2, 2])


def never_received(comm):
    if comm.rank == 0:
        comm.isend(np.zeros((2, 3)), 1, tag=5)


def never_served(comm):
    if comm.rank == 1:
        comm.irecv(0, what="the answer")


def never_waited(comm):
    if comm.rank == 0:
        comm.send(np.zeros(1), 1)
    else:
        comm.irecv(0)


def never_joined(comm):
    if comm.rank == 1:
        comm.all_reduce(np.zeros(1), async_op=True)


def sum_never_waited(comm):
    comm.all_reduce(np.zeros(1), async_op=True)


AGREE = "all must give the same"
FAULTS = {
    send_to_rank_9: "rank 0 failed: ValueError: send on rank 0: no rank 9; there are 0..1",
    both_receive: "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0",
    both_send: "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0",
    other_size: "rank 1 failed: ValueError: recv on rank 1: rank 0 sends float64 [8] (tag 3), and "
    "the array to receive into is float64 [2]; both ends must give the same dtype and shape",
    other_dtype: "rank 1 failed: ValueError: recv on rank 1: rank 0 sends float32 [5000], and "
    "the array to receive into is float64 [5000]; both ends must give the same dtype and shape",
    bfloat16_into_numpy: "rank 1 failed: ValueError: recv on rank 1: rank 0 sends bfloat16 [2], "
    "and the array to receive into is float32 [2]; both ends must give the same dtype and shape "
    "(NumPy has no bfloat16: receive into a tensor)",
    early_end: "deadlock: rank 1 waits for rank 0, which has finished",
    by_some_only: "deadlock: rank 0 waits for rank 1, which has finished",
    collectives_differ: "rank 1 calls barrier where rank 0 calls all_reduce; all ranks must call "
    "the same collectives in the same order",
    shapes_differ: f"all_reduce: rank 0 gives float32 [2], rank 1 float32 [3]; {AGREE}",
    dtypes_differ: f"reduce_scatter: rank 0 gives float64 [4], rank 1 float32 [4]; {AGREE}",
    roots_differ: f"broadcast: rank 0 gives root=0, rank 1 root=1; {AGREE}",
    operations_differ: f"all_reduce: rank 0 gives op=sum, rank 1 op=max; {AGREE}",
    sizes_differ: "all_to_all: rank 0 sends 2 rows to rank 1, which expects 1; send_sizes and "
    "recv_sizes must fit",
    own_sizes_differ: "all_to_all: rank 1 sends 2 rows to rank 1, which expects 1; send_sizes",
    rows_differ: "all_gather: rank 0 gives rows of float64 [3], rank 1 rows of float64 [4]; "
    + AGREE,
    never_received: "rank 1 never received what rank 0 sent it: float64 [2, 3] (tag 5)",
    never_served: "rank 0 never sent what rank 1 started to receive from it (the answer)",
    never_waited: "rank 1 never waited for what it started to receive from rank 0",
    never_joined: "rank 1 started all_reduce, and rank 0 never did",
    sum_never_waited: "rank 0 never waited for the all_reduce it started",
}


@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.__name__)
def test_a_fault_is_told_with_ranks_and_operation_and_leaves_nobody(program):
    with pytest.raises(RankError) as caught:
        run_ranks(program, 2, wait_s=WAIT_S)
    assert FAULTS[program] in str(caught.value)
    assert all(w.for_s < WAIT_S + LATE_S for w in caught.value.waiting)
    assert left_over.ranks_of_this_process() == []


@pytest.mark.parametrize("n_ranks", [3, 4])
def test_every_rank_is_told_why_a_collective_cannot_be(n_ranks):
    def program(comm):
        told = []
        for x in (np.zeros(2 + (comm.rank == 1)), np.zeros(2)):
            try:
                comm.all_reduce(x)
            except ValueError as error:
                told.append(str(error))
        return told, comm.all_gather(np.array([comm.rank])).tolist()  # and they go on together

    text = "all_reduce: rank 0 gives float64 [2], rank 1 float64 [3]; all must give the same"
    results = run_ranks(program, n_ranks).results
    assert results == [([text], list(range(n_ranks)))] * n_ranks


def test_async_collectives_that_differ_are_told_where_they_are_waited_for():
    def program(comm):
        first = comm.all_reduce(np.zeros(1 + comm.rank), async_op=True)
        second = comm.all_reduce(np.ones(2), async_op=True)
        assert second.wait().tolist() == [2, 2]
        with pytest.raises(ValueError, match=r"rank 0 gives float64 \[1\], rank 1 float64 \[2\]"):
            first.wait()

    run_ranks(program, 2)


def test_after_a_message_that_does_not_fit_the_next_one_arrives():
    def program(comm):
        if comm.rank == 0:
            for size in (3000, 2, 4000):
                comm.send(np.full(size, float(size)), 1)
            return None
        with pytest.raises(ValueError, match="receive into is"):
            comm.recv(0, np.zeros(10))
        with pytest.raises(ValueError, match="receive into is"):
            comm.recv(0, np.zeros(10))
        return comm.recv(0, np.zeros(4000)).sum()

    assert run_ranks(program, 2).results[1] == 4000**2


def test_what_is_left_over_is_not_told_line_by_line_without_end():
    def program(comm):
        if comm.rank:
            for tag in range(40):
                comm.isend(np.zeros(1), 0, tag)

    with pytest.raises(RankError, match=r"and 32 more$"):
        run_ranks(program, 2)


def test_requests_that_nobody_waits_for_but_whose_message_arrives_are_no_fault():
    def program(comm):
        if comm.rank == 0:
            comm.isend(np.arange(3.0), 1)
            comm.isend(np.arange(3000.0), 1)
            return None
        return [len(comm.recv(0)), len(comm.recv(0))]

    assert run_ranks(program, 2).results[1] == [3, 3000]


def test_without_checks_a_receive_needs_an_array():
    def program(comm):
        with pytest.raises(ValueError, match="irecv on rank 0: messages are not checked here, so"):
            comm.recv(1)
        comm.barrier()

    run_ranks(
        lambda comm: program(comm) if comm.rank == 0 else comm.barrier(), 2, check_messages=False
    )
