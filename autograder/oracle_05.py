"""The truths of unit 05, as `autograder.oracle`: exact, and without anything that is withheld."""

import random
from collections.abc import Container, Sequence
from fractions import Fraction
from itertools import accumulate

from autograder.oracle import Number
from mpedu.schedule import Action, Schedule


def peak(n_stages: int, n_microbatches: int, stage: int) -> int:
    """The most micro-batches that a stage holds at once in 1F1B."""
    return min(n_microbatches, n_stages - stage)


def one_f_one_b(n_stages: int, n_microbatches: int) -> Schedule:
    """1F1B, micro-batches ascending: forwards up to the peak, then each backward makes room."""
    schedule = []
    for stage in range(n_stages):
        ahead = peak(n_stages, n_microbatches, stage)
        actions = [Action("F", stage, m) for m in range(ahead)]
        for m in range(n_microbatches):
            actions.append(Action("B", stage, m))
            if m + ahead < n_microbatches:
                actions.append(Action("F", stage, m + ahead))
        schedule.append(actions)
    return schedule


def in_flight(actions: Sequence[Action]) -> list[int]:
    """Micro-batches that a stage holds after each action of its list."""
    return list(accumulate(1 if action.kind == "F" else -1 for action in actions))


def ready(action: Action, done: Container[Action], n_stages: int) -> bool:
    """Whether all that an action needs is done."""
    kind, stage, m = action
    if kind == "F":
        return stage == 0 or Action("F", stage - 1, m) in done
    if stage < n_stages - 1 and Action("B", stage + 1, m) not in done:
        return False
    return Action("F", stage, m) in done


def all_work(n_stages: int, n_microbatches: int) -> list[Action]:
    """Every forward and backward that a step consists of."""
    pieces = range(n_microbatches)
    return [Action(kind, stage, m) for kind in "FB" for stage in range(n_stages) for m in pieces]


def can_finish(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    """Whether all lists come to their ends, and all work is then done, once."""
    given = [action for actions in schedule for action in actions]
    if sorted(given) != sorted(all_work(n_stages, n_microbatches)):
        return False
    left = [list(reversed(actions)) for actions in schedule]
    done: set[Action] = set()
    while True:
        able = [actions for actions in left if actions and ready(actions[-1], done, n_stages)]
        if not able:
            return not any(left)
        done.update(actions.pop() for actions in able)


def some_order(n_stages: int, n_microbatches: int, rng: random.Random) -> list[Action]:
    """All work in an order in which it can be done, drawn: any micro-batch may go one step on."""
    way = [("F", stage) for stage in range(n_stages)]
    way += [("B", stage) for stage in reversed(range(n_stages))]
    turns = [m for m in range(n_microbatches) for _ in way]
    rng.shuffle(turns)
    at = [0] * n_microbatches
    order = []
    for m in turns:
        order.append(Action(*way[at[m]], m))
        at[m] += 1
    return order


def extra_time_of_latency_s(n_stages: int, n_microbatches: int, latency_s: Number) -> Fraction:
    """Seconds that late messages add to a step of 1F1B at costs 1 and 2; K >= 2 divides M.

    A micro-batch waits for its way up and down once for every K of them, and twice more over the
    inner boundaries while the pipeline fills and drains.
    """
    rounds = Fraction(2 * (n_stages - 1) * n_microbatches, n_stages)
    return Fraction(latency_s) * (rounds + 2 * (n_stages - 2))
