"""Mistakes of unit 01's rings in what a step sends and where what came is put."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from autograder.checks.unit_01.rings import Expected, given, n_ranks, parts_of, result_mistake
from autograder.diagnosis import Answers, Case, Mistake, StudentError

At = Callable[[int, int], int]  # (rank, step) -> part, before it is counted round the ring


def _is_too_many(answers: Answers) -> bool:
    """Does every rank send p times, and a rank alone to itself?"""

    def sends_p_times(case: Case, got: Any) -> bool:
        p = n_ranks(case)
        if isinstance(got, StudentError):
            return p == 1 and "it named itself" in got.message
        return p == 1 or all(got.meter.total(rank).messages == p for rank in range(p))

    return all(sends_p_times(case, got) for case, got in answers)


STEP_TOO_MANY = Mistake(
    "step_too_many",
    _is_too_many,
    lambda case, got: (
        f"{case}: every rank takes as many steps as there are ranks, one too many: p-1 will do, "
        "and a rank alone takes none."
    ),
    "every rank takes as many steps as there are ranks; p-1 will do.",
)


def _sends_none(answers: Answers) -> bool:
    """Does every program of three ranks or more send what it does not have?"""
    several = [got for case, got in answers if n_ranks(case) > 2]
    return bool(several) and all(
        isinstance(got, StudentError)
        and "send on rank" in got.message
        and "NoneType" in got.message
        for got in several
    )


SENDS_NONE = Mistake(
    "sends_none",
    _sends_none,
    lambda case, got: (
        f"{case}: you send a part that has not come yet, or you put it elsewhere when it came. "
        f"({got.message if isinstance(got, StudentError) else 'A None is sent.'})"
    ),
    "a part is sent that has not come yet, or that was put elsewhere when it came.",
)


class _Steps(NamedTuple):
    """Which part each step sends, in which place it adds, to which own part, and whither."""

    sends: At
    place: At
    own: At
    way: int = 1


def _sent(rank: int, step: int) -> int:
    return rank - step - 1


def _place(rank: int, step: int) -> int:
    return rank - step - 2


def _rank(rank: int, step: int) -> int:
    return rank


def _stepped(steps: _Steps) -> Expected:
    """What a reduce-scatter of such steps returns on a rank; NaN where lengths do not fit."""

    def result(case: Case, rank: int) -> Any:
        p = n_ranks(case)
        parts = [parts_of(case, x) for x in given(case)]
        for step in range(p - 1):
            going = [parts[r][steps.sends(r, step) % p] for r in range(p)]
            for r, mine in enumerate(parts):
                came, kept = going[(r - steps.way) % p], mine[steps.own(r, step) % p]
                if came.shape != kept.shape:
                    return np.array([np.nan])
                mine[steps.place(r, step) % p] = kept + came
        return parts[rank][rank]

    return result


MIXED = result_mistake(
    "parts_mixed",
    [
        _stepped(steps)
        for steps in (
            _Steps(_rank, _place, _place),
            _Steps(_rank, _rank, _rank),
            _Steps(_sent, _place, _rank),
            _Steps(_sent, _place, _sent),
            _Steps(lambda r, s: r - s, _place, _place),
            _Steps(_sent, lambda r, s: r - s - 1, lambda r, s: r - s - 1),
            _Steps(lambda r, s: r + s + 1, lambda r, s: r + s + 2, lambda r, s: r + s + 2),
            _Steps(lambda r, s: r + s, lambda r, s: r + s + 1, lambda r, s: r + s + 1),
            _Steps(_sent, _place, _place, way=-1),
        )
    ],
    "Numbers of different parts were added: what your left neighbour sends in a step must be the "
    "part to which you add it in that step. Write both places down for ranks 0 and 1.",
    "numbers of different parts were added: what the left sends must be the part added to.",
)
NOT_PASSED_ON = result_mistake(
    "not_passed_on",
    [_stepped(_Steps(lambda r, s: r + s + 1, lambda r, s: r + s, lambda r, s: r + s))],
    "Only the left neighbour's own numbers were added: the sum is not what goes on in the next "
    "step. Count the parts down from step to step, not up.",
    "a sum is not what goes on in the next step; count the parts down, not up.",
)
