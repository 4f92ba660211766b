"""The typical mistakes of unit 03's closed forms, and the sentences they draw."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from autograder import oracle
from autograder.checks.values import (
    Formula,
    constant,
    formula_mistake,
    percent,
    rounded,
    shown,
    whole_problem,
    wrong_number,
)
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake

wrong_fraction = wrong_number(oracle.bubble_fraction)
wrong_ratio = wrong_number(oracle.bubble_over_ideal)


def _fraction(id: str, formula: Formula, why: str) -> Mistake:
    return formula_mistake(
        id, [formula], lambda case, got: f"{wrong_fraction(case, got)} {why}", why
    )


def _ratio(id: str, formula: Formula, why: str) -> Mistake:
    return formula_mistake(id, [formula], lambda case, got: f"{wrong_ratio(case, got)} {why}", why)


FRACTION = (
    _fraction(
        "whole_division",
        lambda k, m: 0,
        "It is zero for every case: `//` drops the fraction; use `/`.",
    ),
    _fraction(
        "divided_by_all",
        lambda k, m: Fraction(k - 1, k * m),
        "That is (K-1)/(K M): each device is idle K-1 slots out of M+K-1; K devices idle alike, so "
        "K cancels and M alone is too short.",
    ),
    _fraction(
        "ratio_given",
        lambda k, m: Fraction(k - 1, m),
        "That is (K-1)/M, the ratio to ideal time; asked is the share of total time.",
    ),
    _fraction(
        "one_slot_more",
        lambda k, m: Fraction(k - 1, m + k),
        "That is (K-1)/(M+K): one slot too many in the total.",
    ),
    _fraction(
        "all_stages_idle",
        lambda k, m: Fraction(k, m + k - 1),
        "That is K/(M+K-1): K=1 must give 0.",
    ),
    _fraction(
        "utilisation",
        lambda k, m: Fraction(m, m + k - 1),
        "That is M/(M+K-1), the utilisation; idle is what is left.",
    ),
    constant(lambda case, got: f"{wrong_fraction(case, got)} Yours is the same for every case."),
    rounded(oracle.bubble_fraction, wrong_fraction),
    percent(oracle.bubble_fraction, wrong_fraction),
)
OVER_IDEAL = (
    _ratio(
        "share_given",
        oracle.bubble_fraction,
        "That is (K-1)/(M+K-1), the share of total time; asked is the ratio to ideal time.",
    ),
    _ratio(
        "whole_ratio",
        lambda k, m: (k - 1) // m,
        "Only the whole part is left: `//` drops the fraction; use `/`.",
    ),
    constant(lambda case, got: f"{wrong_ratio(case, got)} Yours is the same for every case."),
    rounded(oracle.bubble_over_ideal, wrong_ratio),
    percent(oracle.bubble_over_ideal, wrong_ratio),
)


_FLOATS = "Floats lie just beside the true numbers: a share equal within 1e-12 counts as reached."


def _met(case: Case) -> bool:
    """Is the bound itself the share of the fewest?"""
    n_stages, bound = case.args
    right = oracle.min_microbatches(n_stages, bound)
    gap = oracle.bubble_fraction(n_stages, right) - Fraction(bound)
    return abs(gap) <= oracle.SHARE_TOLERANCE


def _one_too_many(case: Case, got: int) -> bool:
    return got == oracle.min_microbatches(*case.args) + 1 and _met(case)


def wrong_count(case: Case, got: int) -> str:
    """What came back for one bound, what was expected, and why one of them is not enough."""
    n_stages, bound = case.args
    right = oracle.min_microbatches(n_stages, bound)
    if got < 1:
        why = "a step has at least 1 micro-batch"
    elif _one_too_many(case, got):
        share = oracle.bubble_fraction(n_stages, right)
        why = (
            f"the share of {right} is {shown(share, 17)}, the bound {shown(bound, 17)}, equal "
            "within 1e-12"
        )
    else:
        share = oracle.bubble_fraction(n_stages, min(got, right))
        why = f"the share of {min(got, right)} is {shown(share)}"
    return f"{case} gives {got}, expected {right}: {why}."


def differs_count(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with a number of micro-batches, None where it is the fewest."""
    problem = whole_problem(got)
    if problem:
        return Diagnosis("no_int", f"{case} {problem}", f"{case.name} gives no whole number.")
    if got == oracle.min_microbatches(*case.args):
        return None
    look = "The share must be at most the bound, and with one micro-batch less be above it."
    if _one_too_many(case, got):
        look = _FLOATS
    general = "the number is not the fewest whose share is at most the bound."
    return Diagnosis("differs", f"{wrong_count(case, got)} {look}", general)


class _Count(NamedTuple):
    """One answer to `min_microbatches` beside the truth; `got` is None where it is no int."""

    got: int | None
    right: int
    met: bool  # the bound itself is the share of `right`


def _counts(answers: Answers) -> list[_Count]:
    counts = []
    for case, got in answers:
        whole = None if whole_problem(got) else got
        counts.append(_Count(whole, oracle.min_microbatches(*case.args), _met(case)))
    return counts


def _strictly_below(answers: Answers) -> bool:
    return all(count.got == count.right + count.met for count in _counts(answers))


def _float_noise(answers: Answers) -> bool:
    return all(c.got in (c.right, c.right + c.met) for c in _counts(answers))


def _still_above(answers: Answers) -> bool:
    return all(c.got == max(1, c.right - 1) for c in _counts(answers))


def _search_ends(answers: Answers) -> bool:
    """Right up to some number, and one and the same answer for all cases that need more."""
    counts = _counts(answers)
    wrong = [c for c in counts if c.got != c.right]
    if len({c.right for c in wrong}) < 2 or len({c.got for c in wrong}) > 1:
        return False
    least = min(c.right for c in wrong)
    right = [c.right for c in counts if c.got == c.right]
    same = wrong[0].got is None or wrong[0].got < least
    return same and bool(right) and max(right) < least


def _search_text(case: Case, got: Any) -> str:
    n_stages, bound = case.args
    gives = f"gives {got}" if isinstance(got, int) else "finds none"
    return (
        f"{case} {gives}, expected {oracle.min_microbatches(n_stages, bound)}. Your search ends "
        "too early: the number has no upper limit."
    )


def _count(id: str, matches: Callable[[Answers], bool], why: str) -> Mistake:
    return Mistake(id, matches, lambda case, got: f"{wrong_count(case, got)} {why}", why)


COUNT = (
    _count(
        "strictly_below",
        _strictly_below,
        "At most means <=: a share equal to the bound is allowed.",
    ),
    _count(
        "float_noise",
        _float_noise,
        f"Only bounds that are met exactly go wrong, and there yours is one too many. {_FLOATS}",
    ),
    _count(
        "still_above",
        _still_above,
        "The share of your number is still above the bound: the next one is the first that is not.",
    ),
    Mistake("search_ends", _search_ends, _search_text, "your search ends too early."),
)
