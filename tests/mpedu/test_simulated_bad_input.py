"""What cannot be meant, on the simulated machine: a sentence on the right rank, before anything."""

import threading
from functools import partial

import numpy as np
import pytest
import torch

from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError
from mpedu.simulated import MOST_RANKS, Simulated, Wire

simulated = partial(run_ranks, machine="simulated")


def row(*numbers):
    return np.array(numbers, dtype=np.float64)


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
    with pytest.raises(RankError, match="send on rank 0: no rank 1; rank 0 is alone"):
        simulated(lambda comm: comm.send(row(1), 1), 1)


def test_a_device_of_no_speed_computes_nothing():
    with pytest.raises(RankError, match="compute on rank 0: flops need a device; give"):
        run_ranks(lambda c: c.compute(flops=1), 1, machine=Simulated(flops_per_s=0.0))


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
        run_ranks(print, 3, machine=machine)
    assert text in str(caught.value)


@pytest.mark.parametrize("n_ranks", [0, -1, 1.5, True, "2", MOST_RANKS + 1])
def test_a_number_of_ranks_that_cannot_be_is_refused(n_ranks):
    with pytest.raises(ValueError, match="n_ranks="):
        simulated(print, n_ranks)


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), True, "1"])
def test_a_limit_that_is_none_is_refused(timeout_s):
    with pytest.raises(
        ValueError, match=r"timeout_s=.* is no limit; give seconds above 0, or None"
    ):
        simulated(print, 1, timeout_s=timeout_s)


def test_a_program_that_cannot_travel_is_refused():
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"<lambda> and its arguments cannot be sent to the ranks"):
        simulated(lambda comm: lock, 2)
    with pytest.raises(ValueError, match="5 cannot be called; give a function"):
        simulated(5, 2)
