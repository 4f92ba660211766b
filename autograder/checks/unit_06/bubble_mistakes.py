"""The typical mistakes of unit 06's `bubble_interleaved`, and the sentences they draw."""

from fractions import Fraction

from autograder import oracle, oracle_06
from autograder.checks.values import (
    Formula,
    constant,
    formula_mistake,
    percent,
    rounded,
    wrong_number,
)
from autograder.diagnosis import Mistake

wrong_bubble = wrong_number(oracle_06.bubble_interleaved)


def _mistake(id: str, formula: Formula, why: str) -> Mistake:
    return formula_mistake(id, [formula], lambda case, got: f"{wrong_bubble(case, got)} {why}", why)


BUBBLE = (
    _mistake(
        "whole_division",
        lambda k, m, v: 0,
        "It is zero for every case: `//` drops the fraction; use `/`.",
    ),
    _mistake(
        "all_divided",
        lambda k, m, v: Fraction(k - 1, v * (m + k - 1)),
        "That is (K-1)/(v(M+K-1)): of makespan and bubble only the bubble shrinks by v, the work "
        "stays. In slots of a chunk: vM of work, K-1 of waiting, vM+K-1 in all.",
    ),
    _mistake(
        "chunks_left_out",
        lambda k, m, v: oracle.bubble_fraction(k, m),
        "That is (K-1)/(M+K-1), without chunks: in slots of a chunk each rank has vM of work.",
    ),
    _mistake(
        "ratio_given",
        lambda k, m, v: Fraction(k - 1, v * m),
        "That is (K-1)/(vM), the ratio to ideal time; asked is the share of total time.",
    ),
    _mistake(
        "more_stages",
        lambda k, m, v: Fraction(v * k - 1, m + v * k - 1),
        "You count vK stages as if each had a rank of its own; a rank waits only until work has "
        "come through K-1 others.",
    ),
    _mistake(
        "utilisation",
        lambda k, m, v: 1 - oracle_06.bubble_interleaved(k, m, v),
        "That is the busy share; idle is what is left of the whole.",
    ),
    _mistake(
        "one_slot_more",
        lambda k, m, v: Fraction(k - 1, v * m + k),
        "That is (K-1)/(vM+K): one slot too many in the total.",
    ),
    constant(lambda case, got: f"{wrong_bubble(case, got)} Yours is the same for every case."),
    rounded(oracle_06.bubble_interleaved, wrong_bubble),
    percent(oracle_06.bubble_interleaved, wrong_bubble),
)
