"""Random numbers of simulated ranks: as if each rank were alone, and the caller's untouched."""

import random
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch

from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError
from mpedu.simulated import rank_state
from mpedu.simulated.rank_state import RankStates

simulated = partial(run_ranks, machine="simulated")


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def drawn(n, meet=lambda: None):
    """Numbers of all generators, one at a time; `gauss` and `randn` keep every second one."""
    numbers = []
    for _ in range(n):
        numbers += [random.random(), random.gauss(0, 1), random.randrange(10**9)]
        meet()
        numbers += [np.random.randn(), np.random.rand(), np.random.randint(10**9)]
        meet()
        numbers += [torch.rand(1).item(), torch.randn(3).sum().item()]
    return numbers


@contextmanager
def the_same_afterwards():
    """Asserts that a run inside leaves the caller's next numbers as they were."""
    seed_all(5)
    drawn(1)  # so that both kept numbers are there
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    expected = drawn(2)
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    yield
    assert drawn(2) == expected


@pytest.fixture(params=["looked at", "always swapped"])
def swapping(request, monkeypatch):
    """Python's own random state, whose memory can be looked at in one implementation only."""
    if request.param == "always swapped":
        monkeypatch.setattr(rank_state.sys.implementation, "name", "another")


@pytest.mark.usefixtures("swapping")
def test_each_rank_draws_as_if_it_were_alone():
    def program(comm):
        seed_all(comm.rank)
        return drawn(3, comm.barrier)

    with the_same_afterwards():
        results = simulated(program, 3).results
    for rank, got in enumerate(results):
        seed_all(rank)
        assert got == drawn(3)


@pytest.mark.usefixtures("swapping")
def test_every_rank_begins_where_the_caller_is():
    with the_same_afterwards():
        results = simulated(lambda comm: drawn(3, comm.barrier), 3).results
        states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        expected = drawn(3)
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
    assert results == [expected] * 3


def test_the_second_number_that_gauss_keeps_is_used_once():
    def program(comm):
        numbers = []
        for _ in range(5):
            numbers.append((random.gauss(0, 1), np.random.standard_normal()))
            comm.barrier()  # when the second was used, that alone has changed
        return numbers

    seed_all(2)
    expected = [(random.gauss(0, 1), np.random.standard_normal()) for _ in range(5)]
    seed_all(2)
    assert simulated(program, 2).results == [expected] * 2


def test_some_ranks_draw_and_others_do_not():
    def program(comm):
        numbers = []
        for step in range(6):
            comm.barrier()
            if (step + comm.rank) % 3 == 0:
                numbers += drawn(1)
        return numbers

    seed_all(1)
    expected = drawn(2)
    seed_all(1)
    assert simulated(program, 3).results == [expected] * 3


def fails(comm):
    drawn(2, comm.barrier)
    if comm.rank == 1:
        raise KeyError(comm.rank)
    comm.barrier()


def waits_for_ever(comm):
    drawn(2, comm.barrier)
    comm.recv(1 - comm.rank)


def works_for_ever(comm):
    drawn(2, comm.barrier)
    while comm.rank:
        drawn(1)


@pytest.mark.parametrize("program", [fails, waits_for_ever, works_for_ever])
def test_the_caller_draws_on_after_a_run_that_failed(program):
    with the_same_afterwards(), pytest.raises(RankError):
        simulated(program, 2, timeout_s=0.3)


def test_a_run_inside_a_rank_leaves_the_numbers_of_that_rank_alone():
    def inner(comm):
        return drawn(1, comm.barrier)

    def outer(comm):
        seed_all(comm.rank)
        before = drawn(1, comm.barrier)
        run_ranks(inner, 2, machine="simulated")
        return before + drawn(1, comm.barrier)

    for rank, got in enumerate(simulated(outer, 2).results):
        seed_all(rank)
        assert got == drawn(2)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox, np.random.SFC64])
def test_another_generator_of_numpy_is_kept_apart_too(bits):
    def program(comm):
        np.random.randn()
        comm.barrier()
        return np.random.randn(), type(np.random.get_bit_generator()).__name__

    kept = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(bits(4))
        results = simulated(program, 2).results
        own = np.random.randn(), np.random.randn()
    finally:
        np.random.set_bit_generator(kept)
    assert results == [(own[1], bits.__name__)] * 2


def test_a_generator_that_a_rank_puts_in_place_stays_its_own():
    def program(comm):
        if comm.rank == 0:
            np.random.set_bit_generator(np.random.PCG64(1))
        comm.barrier()
        return type(np.random.get_bit_generator()).__name__

    kept = type(np.random.get_bit_generator()).__name__
    assert simulated(program, 2).results == ["PCG64", kept]
    assert type(np.random.get_bit_generator()).__name__ == kept


def test_a_generator_registered_by_a_library_is_swapped_too(monkeypatch):
    state = [0]
    own = rank_state.Generator(lambda: state[0], lambda value: state.__setitem__(0, value))
    monkeypatch.setattr(rank_state, "GENERATORS", [*rank_state.GENERATORS, own])
    state[0] = 7
    with RankStates(2) as states:
        state[0] = 10
        states.swap(0, 1)
        assert state[0] == 7
        state[0] = 20
        states.swap(1, 0)
        assert state[0] == 10
        states.swap(0, 1)
        assert state[0] == 20
    assert state[0] == 7
