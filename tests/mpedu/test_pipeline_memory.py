from functools import cache
from typing import NamedTuple

import pytest
import torch
from pipelines import SEED, batch_of, engine_for, loss_of, ranges
from watched import Watched

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.keyed import Key
from mpedu.launch import run_ranks
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.schedule import in_flight

FAMILIES = {"naive": naive, "gpipe": gpipe, "one_f_one_b": one_f_one_b}
N_RANKS = 4
CASES = [
    (family, model, n_microbatches)
    for family in FAMILIES
    for model in ("gpt", "mlp")
    for n_microbatches in (3, 8)
    if (model, n_microbatches) != ("mlp", 8)
]
SLACK_BYTES = 1000  # losses and other single numbers


class Look(NamedTuple):
    """What was there after so many actions."""

    held_bytes: int
    live_bytes: int


class Memory(NamedTuple):
    """One rank's step: what each micro-batch's forward leaves when it runs alone, and the looks."""

    own_bytes: list
    input_bytes: int
    output_bytes: int
    looks: list
    held_after: list
    live_after: list
    targets_bytes: int
    peak_in_flight: int


def n_bytes(x):
    return x.numel() * x.element_size()


def alone(model, stage, number, batch, m, n_microbatches):
    """(bytes left for backward, of x, of y) of one forward by itself."""
    inputs, targets = batch
    loss, count = loss_of(model)
    cut = ranges(len(inputs), n_microbatches)[m]
    x = inputs[cut].detach()
    if number > 0:
        width = 12 if model == "gpt" else 6
        x = torch.zeros(*x.shape[:2], width, dtype=torch.float64).requires_grad_()
    with HeldBytes(ignore=[*stage.parameters(), *batch]) as held:
        y = stage(x, Key(SEED, 0, m)) if model == "gpt" else stage(x)
        if number == N_RANKS - 1:
            y = loss(y, targets[cut]) / count(targets)
        return held.live_bytes, n_bytes(x), n_bytes(y)


def measured(comm, family, model, n_microbatches):
    schedule = FAMILIES[family](N_RANKS, n_microbatches)
    schedule[comm.rank] = watched = Watched(schedule[comm.rank])
    engine = engine_for(comm, schedule, model)
    batch = batch_of(model, n_microbatches)
    stage = engine.stages[comm.rank]
    looks, held_after, live_after = [], [], []
    engine.run(batch if comm.rank == 0 else None, SEED)  # makes the gradients
    loss = engine._setup.loss
    held = HeldBytes(ignore=[*stage.parameters(), *batch])

    def loss_without_targets(y, targets):
        held.ignore(targets)
        return loss(y, targets)

    engine._setup = engine._setup._replace(loss=loss_without_targets)
    with held, LiveBytes() as live:
        watched.look = lambda _: looks.append(Look(held.live_bytes, live.live_bytes))
        for step in range(5):
            peak = engine.run(batch if comm.rank == 0 else None, SEED, step).peak_in_flight
            held_after.append(held.live_bytes)
            live_after.append(live.live_bytes)
    ones = [alone(model, stage, comm.rank, batch, m, n_microbatches) for m in range(n_microbatches)]
    own, x, y = zip(*ones, strict=True)
    return Memory(
        list(own),
        max(x),
        max(y),
        looks,
        held_after,
        live_after,
        n_bytes(batch[1]) if comm.rank == N_RANKS - 1 else 0,
        peak,
    )


@cache
def memories(family):
    """By (model, n_microbatches), what each rank measured."""

    def program(comm):
        return {case: measured(comm, *case) for case in CASES if case[0] == family}

    parts = run_ranks(program, N_RANKS, check_messages=False).results
    return {case: [part[case] for part in parts] for case in parts[0]}


def held_microbatches(actions):
    """After each action, the micro-batches whose backward is still to come."""
    held = set()
    for kind, _, microbatch in actions:
        held = held | {microbatch} if kind == "F" else held - {microbatch}
        yield held


def by_rank(case):
    family, _, n_microbatches = case
    schedule = FAMILIES[family](N_RANKS, n_microbatches)
    return zip(schedule, memories(family)[case], strict=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_held_for_backward_is_that_of_the_microbatches_in_flight(case):
    for actions, memory in by_rank(case):
        assert len(set(memory.own_bytes)) > 1  # micro-batches are unequal
        want = [sum(memory.own_bytes[m] for m in held) for held in held_microbatches(actions)]
        assert [look.held_bytes for look in memory.looks] == 5 * want


@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_many_microbatches_are_in_flight_as_the_schedule_says(case):
    family, _, n_microbatches = case
    due = {
        "naive": [1] * N_RANKS,
        "gpipe": [n_microbatches] * N_RANKS,
        "one_f_one_b": [min(n_microbatches, N_RANKS - rank) for rank in range(N_RANKS)],
    }[family]
    assert [memory.peak_in_flight for _, memory in by_rank(case)] == due
    for (actions, memory), n in zip(by_rank(case), due, strict=True):
        largest = sum(sorted(memory.own_bytes)[-n:])
        assert max(look.held_bytes for look in memory.looks) <= largest
        assert max(in_flight(actions)) == n


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_else_alive_is_two_receive_buffers_a_link_and_one_unsent_result(case):
    for rank, (_, memory) in enumerate(by_rank(case)):
        x, y = memory.input_bytes, memory.output_bytes
        forwards, backwards = rank > 0, rank < N_RANKS - 1
        buffers = 2 * x * forwards + 2 * y * backwards
        unsent = max(x * forwards, y * backwards)
        allowed = buffers + unsent + memory.targets_bytes + SLACK_BYTES
        worst = max(look.live_bytes - look.held_bytes for look in memory.looks)
        assert worst <= allowed
        assert min(x, y) > SLACK_BYTES or rank in (0, N_RANKS - 1)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_left_after_a_step_and_nothing_grows(case):
    for _, memory in by_rank(case):
        assert memory.held_after == [0] * 5
        # the last sum over ranks may be let go a little later
        assert max(memory.live_after) <= 100 + memory.targets_bytes
