"""The typical mistakes of unit 01's ring programs in what they return, and their sentences."""

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.checks.programs import among_several, stands_in
from autograder.checks.unit_01.rings import (
    Expected,
    given,
    n_ranks,
    parts_of,
    result_mistake,
    total,
)
from autograder.checks.unit_01.step_mistakes import (
    MIXED,
    NOT_PASSED_ON,
    SENDS_NONE,
    STEP_TOO_MANY,
)
from autograder.diagnosis import Case, Mistake


def _stuck(call: str, text: str, general: str) -> Mistake:
    return Mistake(
        f"all_{'send' if call == 'send' else 'receive'}_first",
        among_several(stands_in(call)),
        lambda case, got: f"{case}: {text}",
        general,
    )


STUCK = (
    _stuck(
        "send",
        "every rank stands in send to its right, and nobody receives. Start the send with `isend`, "
        "receive, then `wait`.",
        "every rank stands in send and nobody receives; start it with isend.",
    ),
    _stuck(
        "recv",
        "every rank stands in recv from its left, and nobody has sent. Start the send with `isend` "
        "before you receive.",
        "every rank stands in recv and nobody has sent.",
    ),
)


def _from_left(case: Case, rank: int, places: Callable[[int], int]) -> Any:
    """Parts as they come round, the one of step s at the place that is said for it."""
    xs, p = given(case), n_ranks(case)
    parts: list[Any] = [None] * p
    for step in range(p):
        parts[places(step) % p] = xs[(rank - step) % p]
    return np.concatenate(parts)


def _as_they_come(case: Case, rank: int) -> Any:
    return _from_left(case, rank, lambda step: step)


def _as_they_come_backwards(case: Case, rank: int) -> Any:
    return _from_left(case, rank, lambda step: -1 - step)


def _own_then_rightwards(case: Case, rank: int) -> Any:
    return _from_left(case, rank, lambda step: -step)


def _mirrored(case: Case, rank: int) -> Any:
    return _from_left(case, rank, lambda step: rank + step)


def _left_everywhere(case: Case, rank: int) -> Any:
    xs, p = given(case), n_ranks(case)
    return np.concatenate([xs[rank] if r == rank else xs[(rank - 1) % p] for r in range(p)])


def _all_but_the_last(case: Case, rank: int) -> Any:
    """Without the part that comes in the last step, the one of the rank to the right."""
    xs, p = given(case), n_ranks(case)
    return np.concatenate([x for r, x in enumerate(xs) if r != (rank + 1) % p or p == 1])


def _zeros_for_the_last(case: Case, rank: int) -> Any:
    xs, p = given(case), n_ranks(case)
    missing = (rank + 1) % p if p > 1 else None
    return np.concatenate([np.zeros_like(x) if r == missing else x for r, x in enumerate(xs)])


def own(case: Case, rank: int) -> Any:
    """What the rank itself was given."""
    return given(case)[rank]


GATHER = (
    *STUCK,
    SENDS_NONE,
    STEP_TOO_MANY,
    result_mistake(
        "as_they_come",
        [_as_they_come, _as_they_come_backwards, _own_then_rightwards],
        "All parts are there, in an order that begins with the own one; the place of a part is "
        "its owner's rank.",
        "the parts stand in the order in which they came, not in order of rank.",
    ),
    result_mistake(
        "mirrored",
        [_mirrored],
        "What comes in step s began s + 1 ranks to the left, and you put it as far to the right.",
        "the parts from the left are put to the right of the own one.",
    ),
    result_mistake(
        "own_part_again",
        [_left_everywhere],
        "Every place holds the part of the left: you send your own part in every step; pass on "
        "what you received last.",
        "each step sends the own part again; pass on what was received last.",
    ),
    result_mistake(
        "step_missing",
        [_all_but_the_last, _zeros_for_the_last],
        "The part of the rank to the right has not come: it has the longest way, p-1 steps.",
        "one part has not come: it takes as many steps as there are other ranks.",
    ),
    result_mistake(
        "own_part_only",
        [own],
        "That is what the rank has itself.",
        "each rank returns its own part only.",
    ),
)


def _part_of(x: Callable[[Case, int], Any], further: int = 0) -> Expected:
    return lambda case, rank: parts_of(case, x(case, rank))[(rank + further) % n_ranks(case)]


def _sum(case: Case, rank: int) -> Any:
    return total(case)


def mean(case: Case, rank: int) -> Any:
    """The sum over the number of ranks."""
    return total(case) / n_ranks(case)


def whole_mean(case: Case, rank: int) -> Any:
    """The same, rounded down."""
    return total(case) // n_ranks(case)


def own_twice(case: Case, rank: int) -> Any:
    """The sum, and once more what the rank itself was given."""
    return total(case) + own(case, rank) if n_ranks(case) > 1 else total(case)


def _right(case: Case, rank: int) -> Any:
    return given(case)[(rank + 1) % n_ranks(case)]


def _cut_short(case: Case, rank: int) -> Any:
    size = len(total(case)) // n_ranks(case)
    return total(case)[rank * size : (rank + 1) * size]


def _rest_in_the_last(case: Case, rank: int) -> Any:
    size, is_last = len(total(case)) // n_ranks(case), rank == n_ranks(case) - 1
    return total(case)[rank * size : None if is_last else (rank + 1) * size]


def _large_parts(case: Case, rank: int) -> Any:
    size = -(-len(total(case)) // n_ranks(case))
    return total(case)[rank * size : (rank + 1) * size]


SCATTER = (
    *STUCK,
    STEP_TOO_MANY,
    result_mistake(
        "one_rank_further",
        [_part_of(_sum, 1), _part_of(_sum, -1)],
        "That is a finished part of the sum, of the rank beside you: your piece sits one rank "
        "further. Which part must a rank send first to receive its own last?",
        "each rank returns the part of its neighbour.",
    ),
    result_mistake(
        "whole_sum",
        [_sum],
        "That is the whole sum; asked is this rank's part of it.",
        "each rank returns the whole sum; asked is its part.",
    ),
    result_mistake(
        "own_numbers",
        [_part_of(own)],
        "These are the rank's own numbers: nothing was added to this part. Is it the one that came "
        "in the last of p-1 steps?",
        "each rank returns its own numbers, to which nothing was added.",
    ),
    result_mistake(
        "nothing_added",
        [_part_of(_right)],
        "These are the numbers of the rank to the right alone: add your own to what you received "
        "before you pass it on.",
        "the numbers of one other rank come back, not a sum.",
    ),
    result_mistake(
        "own_twice",
        [_part_of(own_twice)],
        "The rank's own numbers are in it twice: a part that comes back to its owner needs them "
        "once.",
        "each rank's own numbers are in its part twice.",
    ),
    result_mistake(
        "mean",
        [_part_of(mean), _part_of(whole_mean)],
        "That is p times too small: a sum is asked, not a mean.",
        "the numbers are divided by the number of ranks; a sum is asked.",
    ),
    result_mistake(
        "tail_lost",
        [_cut_short],
        "The last n mod p elements never travel: parts of n // p do not make up the array.",
        "the last n mod p elements never travel.",
    ),
    result_mistake(
        "uneven_parts",
        [_rest_in_the_last, _large_parts],
        "The sums are right and the parts are cut elsewhere: as even as can be, larger ones first, "
        "as `np.array_split` does.",
        "the parts are not as even as can be, larger ones first.",
    ),
    MIXED,
    NOT_PASSED_ON,
)
