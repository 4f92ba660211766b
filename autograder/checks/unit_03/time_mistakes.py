"""The typical mistakes of unit 03 with step times, and the sentences they draw."""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

from autograder import oracle
from autograder.checks.values import (
    Number,
    differs_from,
    formula_mistake,
    rounded,
    shown,
    whole_problem,
    wrong_number,
)
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake

wrong_time = wrong_number(oracle.step_time_s)


def differs_time(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the time of a step, None where it is right."""
    k, m, n, s, o = case.args
    n_slots, forward_s = _slots(k, m), Fraction(o) + _useful_s(m, n, s)
    look = (
        f"Compare with yours: {n_slots} slot{'s' * (n_slots > 1)} (M+K-1) with a forward of "
        f"{shown(forward_s)} s and a backward of {shown(2 * forward_s)} s."
    )
    return differs_from(oracle.step_time_s, look, "the time of a step differs.")(case, got)


def _slots(k: int, m: int) -> int:
    return m + k - 1


def _useful_s(m: int, n: int, s: float) -> Fraction:
    return Fraction(n, m) * Fraction(s)


def _time(id: str, why: str, *formulas: Callable[..., Number]) -> Mistake:
    return formula_mistake(id, formulas, lambda case, got: f"{wrong_time(case, got)} {why}", why)


def _of_right(id: str, why: str, part: Callable[[int, int], Number]) -> Mistake:
    """A mistake that takes a part of the right time, of so many stages and micro-batches."""
    return _time(id, why, lambda k, m, *rest: part(k, m) * oracle.step_time_s(k, m, *rest))


def _whole_piece_text(case: Case, got: Any) -> str:
    _, m, n, _, _ = case.args
    return (
        f"{wrong_time(case, got)} b = {n}/{m} = {shown(n / m)} may be a fraction; yours is rounded."
    )


TIME = (
    _time(
        "overhead_once",
        "overhead_s is paid by every micro-batch on every stage, not once per step.",
        *(
            lambda k, m, n, s, o, times=times: 3 * _slots(k, m) * _useful_s(m, n, s) + times * o
            for times in (1, 2, 3)
        ),
    ),
    _time(
        "no_overhead",
        "That is without overhead_s.",
        lambda k, m, n, s, o: 3 * _slots(k, m) * _useful_s(m, n, s),
    ),
    _time(
        "overhead_of_backward",
        "The backward takes twice the whole forward, overhead included.",
        lambda k, m, n, s, o: _slots(k, m) * (o + 3 * _useful_s(m, n, s)),
        lambda k, m, n, s, o: _slots(k, m) * (2 * o + 3 * _useful_s(m, n, s)),
    ),
    _time(
        "overhead_per_sample",
        "overhead_s is paid once for a piece, not once for each of its samples.",
        lambda k, m, n, s, o: 3 * _slots(k, m) * _useful_s(m, n, s + o),
    ),
    _of_right(
        "no_backward",
        "That is a third of it: the backward is missing.",
        lambda k, m: Fraction(1, 3),
    ),
    _of_right(
        "backward_as_forward",
        "That is two thirds of it: a backward takes twice its forward.",
        lambda k, m: Fraction(2, 3),
    ),
    _of_right(
        "slots_m_plus_k",
        "That is M+K slots; the last stage starts K-1 slots late, so there are M+K-1.",
        lambda k, m: Fraction(m + k, _slots(k, m)),
    ),
    _of_right(
        "slots_m",
        "That is M slots; the last stage starts K-1 slots late, so there are M+K-1.",
        lambda k, m: Fraction(m, _slots(k, m)),
    ),
    _of_right(
        "all_stages_added",
        "That is the work of all stages added up; they work side by side, in M+K-1 slots.",
        lambda k, m: Fraction(k * m, _slots(k, m)),
    ),
    _time(
        "size_is_count",
        "A piece holds b = n_samples / n_microbatches samples; you took b = n_microbatches.",
        lambda k, m, n, s, o: 3 * _slots(k, m) * (o + m * s),
    ),
    formula_mistake(
        "whole_piece",
        [
            lambda k, m, n, s, o: 3 * _slots(k, m) * (o + n // m * s),
            lambda k, m, n, s, o: 3 * _slots(k, m) * (o + -(-n // m) * s),
            lambda k, m, n, s, o: 3 * _slots(k, m) * (o + round(n / m) * s),
        ],
        _whole_piece_text,
        "b = n_samples / n_microbatches may be a fraction; yours is rounded.",
    ),
    rounded(oracle.step_time_s, wrong_time),
)


def _no_count(case: Case, got: Any) -> Diagnosis | None:
    problem = whole_problem(got)
    if problem:
        return Diagnosis("no_int", f"{case} {problem}", f"{case.name} gives no whole number.")
    if not 1 <= got <= case.args[1]:
        text = f"{case} gives {got}, which is not in 1..{case.args[1]}."
        return Diagnosis("no_count", text, "the number of micro-batches is not in one..n_samples.")
    return None


def not_smallest_best(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a number that is not best, or not the smaller of two equally good ones."""
    bad = _no_count(case, got)
    if bad:
        return bad
    smallest = oracle.smallest_best(case.args)
    if got == smallest:
        return None
    if not oracle.is_best(case.args, got):
        return slower(case, got, Fraction(1))
    text = (
        f"{case} gives {got}, whose step takes as long as that of {smallest}: of times equal "
        "within 1e-9 relative the smaller number is asked. A bare min over floats can pick either."
    )
    general = "of equally good numbers of micro-batches the smaller is asked."
    return Diagnosis("larger_of_equal", text, general)


def slower(case: Case, got: Any, allowed: Fraction) -> Diagnosis | None:
    """For `examine`: a number of micro-batches whose step takes over `allowed` times the least."""
    bad = _no_count(case, got)
    if bad:
        return bad
    n_stages, n_samples, sample_s, overhead_s = case.args
    best = oracle.best_microbatches(*case.args)
    least_s = oracle.step_time_s(n_stages, best, n_samples, sample_s, overhead_s)
    if oracle.step_time_s(n_stages, got, n_samples, sample_s, overhead_s) <= allowed * least_s:
        return None
    look = "Compare the step times of all numbers from 1 to n_samples."
    general = "another number of micro-batches gives a shorter step."
    return Diagnosis("slower", f"{wrong_best(case, got)} {look}", general)


def wrong_best(case: Case, got: Any) -> str:
    """Two numbers of micro-batches and the step each gives."""
    n_stages, n_samples, sample_s, overhead_s = case.args
    best = oracle.best_microbatches(*case.args)
    given_s, least_s = (
        oracle.step_time_s(n_stages, m, n_samples, sample_s, overhead_s) for m in (got, best)
    )
    return (
        f"{case} gives {got}: a step of {shown(given_s)} s, "
        f"{shown(100 * (given_s / least_s - 1), 3)} % longer than the {shown(least_s)} s of {best}."
    )


def _best(id: str, why: str, *formulas: Callable[..., int]) -> Mistake:
    def matches(answers: Answers) -> bool:
        whole = not any(whole_problem(got) for _, got in answers)
        return whole and any(all(got == f(*c.args) for c, got in answers) for f in formulas)

    return Mistake(id, matches, lambda case, got: f"{wrong_best(case, got)} {why}", why)


def _root(k: int, n: int, s: float, o: float) -> int:
    """The root rounded down, within 1..n; n where there is no overhead."""
    if o == 0:
        return n
    return min(n, max(1, isqrt(int((k - 1) * n * Fraction(s) / Fraction(o)))))


BEST = (
    _best(
        "always_most",
        "It is n_samples every time: the bubble is least there, and overhead is paid most often.",
        lambda k, n, s, o: n,
    ),
    _best(
        "always_4k",
        "It is 4K every time: no rule that ignores the overhead is right on every machine.",
        lambda k, n, s, o: min(n, 4 * k),
    ),
    _best(
        "root_down",
        "It is the root (K-1) N s / o rounded down: compare both neighbours of the root.",
        _root,
    ),
)
