"""The typical mistakes of unit 01's all-reduce in what it returns, and their sentences."""

from typing import Any

import numpy as np

from autograder.checks.unit_01.ring_mistakes import STUCK, mean, own, own_twice, whole_mean
from autograder.checks.unit_01.rings import (
    Expected,
    gathered,
    n_ranks,
    parts_of,
    result_mistake,
    scattered,
    total,
)
from autograder.diagnosis import Case


def _only_on_0(case: Case, rank: int) -> Any:
    return total(case) if rank == 0 else own(case, rank)


def _tail_as_it_was(case: Case, rank: int) -> Any:
    result = own(case, rank).copy()
    summed = len(result) // n_ranks(case) * n_ranks(case)
    result[:summed] = total(case)[:summed]
    return result


def _tail_cut_off(case: Case, rank: int) -> Any:
    return total(case)[: len(total(case)) // n_ranks(case) * n_ranks(case)]


def _turned(further: int) -> Expected:
    def turned(case: Case, rank: int) -> Any:
        parts, p = parts_of(case, total(case)), n_ranks(case)
        return np.concatenate([parts[(r + further) % p] for r in range(p)])

    return turned


def _gathered_first(case: Case, rank: int) -> Any:
    return own(case, rank) * n_ranks(case)


MEAN = result_mistake(
    "mean",
    [mean, whole_mean],
    "That is p times too small: a sum is asked, not a mean.",
    "the numbers are divided by the number of ranks; a sum is asked.",
)
REDUCE = (
    *STUCK,
    MEAN,
    result_mistake(
        "gathered_first",
        [_gathered_first],
        "That is p times what the rank was given: you gather first and scatter then. Scatter the "
        "sum first, then gather its parts.",
        "each rank returns its own numbers times p: gathered first, then scattered.",
    ),
    result_mistake(
        "not_summed",
        [gathered],
        "These are the arrays of all ranks, one behind the other: gathered, and nothing is added.",
        "the arrays of all ranks stand one behind the other, and nothing is added.",
    ),
    result_mistake(
        "only_on_rank_0",
        [_only_on_0],
        "Rank 0 has the sum, the others keep what they had: that is a reduce.",
        "only rank zero has the sum: that is a reduce.",
    ),
    result_mistake(
        "tail_lost",
        [_tail_as_it_was, _tail_cut_off],
        "The last n mod p elements never travel: parts of n // p do not make up the array.",
        "the last n mod p elements never travel.",
    ),
    result_mistake(
        "part_only",
        [scattered],
        "That is this rank's part of the sum; gather the parts of all.",
        "each rank returns its part of the sum; gather the parts.",
    ),
    result_mistake(
        "parts_turned",
        [_turned(1), _turned(-1)],
        "All parts of the sum are there, each one place off.",
        "the parts of the sum stand one place off.",
    ),
    result_mistake(
        "own_twice",
        [own_twice],
        "The rank's own numbers are in it twice.",
        "each rank's own numbers are in the sum twice.",
    ),
    result_mistake(
        "nothing_added",
        [own],
        "That is what the rank itself was given.",
        "each rank returns what it was given.",
    ),
)
