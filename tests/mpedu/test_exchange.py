"""The meter and the model clock against closed forms: exactly, since all times are binary."""

from functools import partial

import numpy as np
import pytest
from collective_cases import DRAWN
from hypothesis import given
from hypothesis import strategies as st

from mpedu.cost import collective_s
from mpedu.launch import run_ranks
from mpedu.simulated import Simulated, Wire

LATENCY_S, BYTES_PER_S = 2**-10, 2.0**20
LINK = Wire(LATENCY_S, BYTES_PER_S)
WORLDS = range(1, 9)
ROWS = 24  # of each part of an array that is cut into one per rank
# An operation on `x`, of 8 * p * ROWS bytes, and the bytes that each rank sends, in parts of it.
RINGS = {
    "all_reduce": (lambda c, x: c.all_reduce(x), lambda p: 2 * (p - 1)),
    "reduce_scatter": (lambda c, x: c.reduce_scatter(x), lambda p: p - 1),
    "all_gather": (lambda c, x: c.all_gather(x[:ROWS]), lambda p: p - 1),
    "all_to_all": (lambda c, x: c.all_to_all(x), lambda p: p - 1),
}
LINKS = {"both": LINK, "latency": Wire(LATENCY_S), "bandwidth": Wire(0.0, BYTES_PER_S)}


def on(link, program, n_ranks, **more):
    return run_ranks(program, n_ranks, machine=Simulated(link, **more))


def at_the_end(call):
    """A program that gives the time at which `call(comm, x)` is over."""

    def program(comm):
        call(comm, np.zeros(comm.size * ROWS))
        return comm.now_s()

    return program


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("name", RINGS)
def test_rings_and_pairs_cost_as_many_steps_of_one_part(name, link):
    call, n_steps = RINGS[name]
    for p in WORLDS:
        run = on(link, at_the_end(call), p)
        step_s = link.latency_s + 8 * ROWS / link.bytes_per_s
        assert run.results == [n_steps(p) * step_s] * p
        n_bytes = 8 * p * ROWS
        assert collective_s(name, n_bytes, p, *link) == pytest.approx(run.results[0], rel=1e-15)
        for rank in range(p):
            count = run.meter.total(rank, name)
            assert count == (1, n_steps(p), n_steps(p) * n_bytes // p, 0, 0)


@given(p=st.integers(1, 8), n=st.integers(0, 1000))
@DRAWN
def test_uneven_parts_add_up_to_the_same_bytes(p, n):
    def program(comm):
        comm.all_reduce(np.zeros(n))
        comm.reduce_scatter(np.zeros(n))

    meter = on(LINK, program, p).meter
    assert meter.total(kind="all_reduce").bytes == 2 * (p - 1) * n * 8
    assert meter.total(kind="reduce_scatter").bytes == (p - 1) * n * 8
    assert meter.total().messages == 3 * p * (p - 1)


def test_an_uneven_ring_takes_as_long_as_its_largest_part_would():
    sizes = [ROWS, 0, 1, 2]

    def program(comm):
        comm.all_gather(np.zeros(sizes[comm.rank]), sizes=sizes)
        return comm.now_s()

    run = on(Wire(0.0, BYTES_PER_S), program, 4)
    largest_s = 8 * ROWS / BYTES_PER_S
    assert max(run.results) == 3 * largest_s  # it is passed on three times
    assert [run.meter.total(rank).bytes for rank in range(4)] == [
        8 * (sum(sizes) - sizes[(rank + 1) % 4]) for rank in range(4)
    ]


@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("p", WORLDS)
def test_a_broadcast_goes_down_a_binomial_tree(p, root):
    root = root % p

    def program(comm):
        comm.broadcast(np.zeros(ROWS), root)
        return comm.now_s()

    n_bits = [((rank - root) % p).bit_count() for rank in range(p)]
    run = on(Wire(LATENCY_S), program, p)
    assert run.results == [bits * LATENCY_S for bits in n_bits]
    # without latency one sends after the other, and twice as many have it after each
    n_rounds = (p - 1).bit_length()
    run = on(Wire(0.0, BYTES_PER_S), program, p)
    assert max(run.results) == n_rounds * 8 * ROWS / BYTES_PER_S
    assert run.meter.total() == (p, p - 1, (p - 1) * 8 * ROWS, 0, 0)
    n_sent = [run.meter.total(rank).messages for rank in range(p)]
    assert n_sent[root] == max(n_sent) == n_rounds
    both_s = collective_s("broadcast", 8 * ROWS, p, *LINK)
    assert max(on(LINK, program, p).results) == both_s


@pytest.mark.parametrize("p", WORLDS)
def test_a_barrier_takes_a_round_per_power_of_two_and_no_bytes(p):
    n_rounds = (p - 1).bit_length()

    def program(comm):
        comm.barrier()
        return comm.now_s()

    run = on(LINK, program, p)
    assert run.results == [n_rounds * LATENCY_S] * p
    assert run.meter.counts == {(rank, "barrier"): (1, n_rounds, 0, 0, 0) for rank in range(p)}


@pytest.mark.parametrize("p", WORLDS)
def test_a_barrier_ends_for_nobody_before_all_have_come(p):
    def program(comm):
        comm.compute(seconds=comm.rank)
        comm.barrier()
        return comm.now_s()

    assert min(on(LINK, program, p).results) >= p - 1


def test_asking_for_the_rows_to_come_is_one_small_all_to_all_more():
    def program(comm):
        comm.all_to_all(np.zeros(4, np.int8), send_sizes=[1, 3])

    meter = on(LINK, program, 2).meter
    assert meter.total(0, "all_to_all") == (2, 2, 8 + 3, 0, 0)
    assert meter.total(1, "all_to_all") == (2, 2, 8 + 1, 0, 0)


# Nodes.


def ring_s(p, n_steps, wire_of, n_bytes):
    """When each rank of a ring is done: as soon as its link is free and its part has come."""
    clock_s = [0.0] * p
    for _ in range(n_steps):
        free_s = [clock_s[r] + n_bytes / wire_of(r).bytes_per_s for r in range(p)]
        there_s = [free_s[r] + wire_of(r).latency_s for r in range(p)]
        clock_s = [max(free_s[r], there_s[r - 1]) for r in range(p)]
    return clock_s


@pytest.mark.parametrize("node_size", [1, 2, 3, 6])
def test_messages_between_nodes_go_over_the_other_wire_and_are_counted_apart(node_size):
    between, p = Wire(2**-4, 2.0**14), 6
    call, n_steps = RINGS["all_reduce"]
    run = on(LINK, at_the_end(call), p, between=between, node_size=node_size)

    def wire_of(rank):
        return LINK if rank // node_size == (rank + 1) % p // node_size else between

    assert run.results == ring_s(p, n_steps(p), wire_of, 8 * ROWS)
    for rank in range(p):
        n_between = n_steps(p) if wire_of(rank) is between else 0
        count = run.meter.total(rank)
        assert count == (1, 2 * (p - 1), 2 * (p - 1) * 8 * ROWS, n_between, n_between * 8 * ROWS)


def test_nodes_without_a_wire_of_their_own_count_alike_and_are_no_slower():
    run = on(LINK, at_the_end(RINGS["all_gather"][0]), 4, node_size=2)
    assert run.results == on(LINK, at_the_end(RINGS["all_gather"][0]), 4).results
    assert [run.meter.total(rank).messages_between for rank in range(4)] == [0, 3, 0, 3]


@pytest.mark.parametrize("pattern", [partial(on, LINK), partial(on, LINK, between=LINK)])
def test_one_rank_sends_nothing_and_takes_no_time(pattern):
    def program(comm):
        x = np.zeros(3)
        for call in (comm.all_reduce, comm.all_gather, comm.reduce_scatter, comm.all_to_all):
            assert call(x).tolist() == [0] * 3
        comm.broadcast(x)
        comm.barrier()
        return comm.now_s()

    run = pattern(program, 1)
    assert run.results == [0.0] and run.meter.total() == (6, 0, 0, 0, 0)
