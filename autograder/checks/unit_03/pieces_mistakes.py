"""The typical mistakes of unit 03 with step times and pieces, and the sentences they draw."""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

from autograder import oracle
from autograder.checks.values import (
    Number,
    close,
    formula_mistake,
    number_problem,
    shown,
    whole_problem,
    wrong_number,
)
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, each

Sized = list[tuple[int, Number]]
wrong_time = wrong_number(oracle.step_time_s)


def _slots(k: int, m: int) -> int:
    return m + k - 1


def _useful_s(m: int, n: int, s: float) -> Fraction:
    return Fraction(n, m) * Fraction(s)


def _time(id: str, why: str, *formulas: Callable[..., Number]) -> Mistake:
    return formula_mistake(id, formulas, lambda case, got: f"{wrong_time(case, got)} {why}", why)


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
        "overhead_forward_only",
        "The backward takes twice the whole forward, overhead included.",
        lambda k, m, n, s, o: _slots(k, m) * (o + 3 * _useful_s(m, n, s)),
    ),
    _time(
        "size_is_count",
        "A piece holds b = n_samples / n_microbatches samples; you took b = n_microbatches.",
        lambda k, m, n, s, o: 3 * _slots(k, m) * (o + m * s),
    ),
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


def size_problem(got: Any, n_microbatches: int) -> str:
    """What keeps an answer from being n_microbatches pairs of int and number, "" for nothing."""
    if not isinstance(got, list | tuple):
        return f"gives {shown(got)}; a list of (size, weight) is asked."
    if len(got) != n_microbatches:
        return f"gives {len(got)} pieces for n_microbatches={n_microbatches}."
    for piece, pair in enumerate(got):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return f"gives {shown(pair)} for piece {piece}; a pair (size, weight) is asked."
        problem = whole_problem(pair[0]) or number_problem(pair[1])
        if problem:
            return f"{problem[:-1]} (piece {piece})."
    return ""


def _not_pairs(case: Case, got: Any) -> Diagnosis | None:
    problem = size_problem(got, case.args[1])
    general = "split_batch does not give one pair (size, weight) per micro-batch."
    return Diagnosis("no_pairs", f"{case} {problem}", general) if problem else None


def differs_size(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the sizes, None where they are right."""
    bad = _not_pairs(case, got)
    if bad:
        return bad
    n_samples, n_microbatches = case.args
    sizes = [size for size, _ in got]
    if sizes == oracle.split_sizes(n_samples, n_microbatches):
        return None
    text = f"{case} gives {_sizes(sizes)}: "
    if sum(sizes) != n_samples:
        general = "the sizes do not add up to n_samples."
        return Diagnosis("samples", f"{text}{_sum(sizes, n_samples)}.", general)
    if max(sizes) - min(sizes) > 1:
        general = "the sizes differ by more than one."
        return Diagnosis("uneven", f"{text}they may differ by 1 at most.", general)
    return Diagnosis("size_order", f"{text}larger ones come first.", "larger pieces come first.")


def differs_weight(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the weights of the sizes given, None for nothing."""
    bad = _not_pairs(case, got)
    if bad:
        return bad
    n_samples = case.args[0]
    sizes = [size for size, _ in got]
    if sum(sizes) != n_samples:
        text = f"{case} gives {_sizes(sizes)}: {_sum(sizes, n_samples)}, so no weights can do."
        return Diagnosis("samples", text, "the sizes do not add up to n_samples.")
    for piece, (size, weight) in enumerate(got):
        if not close(weight, Fraction(size, n_samples)):
            text = (
                f"{case}: piece {piece} holds {size} of {n_samples} samples, so its mean counts "
                f"{shown(size / n_samples)}; your weight is {shown(weight)}."
            )
            return Diagnosis("weight", text, "a weight is not the piece's share of the batch.")
    return None


def _sum(sizes: list[int], n_samples: int) -> str:
    return f"together {shown(sum(sizes))} of {n_samples} samples"


def _sizes(sizes: list[int]) -> str:
    some = ",".join(shown(size) for size in sizes[:8])
    return f"sizes {some}{',..' if len(sizes) > 8 else ''}"


def _each_pairs(matches_one: Callable[[int, int, Sized], bool]) -> Callable[[Answers], bool]:
    return each(
        lambda case, got: (
            not size_problem(got, case.args[1]) and matches_one(case.args[0], case.args[1], got)
        )
    )


def _each_whole(matches_one: Callable[[int, Sized], bool]) -> Callable[[Answers], bool]:
    """As `_each_pairs`, of pieces that hold the whole batch."""
    return _each_pairs(lambda n, m, got: sum(size for size, _ in got) == n and matches_one(m, got))


def _dropped_text(case: Case, got: Sized) -> str:
    n_samples, n_microbatches = case.args
    lost = n_samples % n_microbatches
    return (
        f"{case}: {lost} of {n_samples} samples lost: {n_samples} // {n_microbatches} = "
        f"{n_samples // n_microbatches} and the remainder is in no piece."
    )


def _last_text(case: Case, got: Sized) -> str:
    n_samples, n_microbatches = case.args
    even = oracle.split_sizes(n_samples, n_microbatches)
    mine = [size for size, _ in got]
    # Four stages, 1 s forward and 2 s backward per sample: the largest piece fills 3 more slots.
    slow, fast = (3 * (n_samples + 3 * max(sizes)) for sizes in (mine, even))
    return (
        f"{case} gives {_sizes(mine)}: the pipeline waits for the biggest: makespan {slow} "
        f"against {fast} on 4 stages."
    )


def _loss_text(case: Case, got: Sized) -> str:
    """With losses of 1, and 5 in the last piece."""
    n_samples = case.args[0]
    losses = [1] * (len(got) - 1) + [5]
    shares = [Fraction(size, n_samples) for size, _ in got]
    given = sum(Fraction(weight) * loss for (_, weight), loss in zip(got, losses, strict=True))
    right = sum(share * loss for share, loss in zip(shares, losses, strict=True))
    off = abs(float(given) / float(right) - 1)
    return (
        f"{case}, losses 1 and in the last piece 5: loss {shown(given)} instead of "
        f"{shown(right)}: plausible, and {shown(100 * off, 2)} % off, as is the gradient."
        " A piece counts as much as it holds."
    )


def _ones_text(case: Case, got: Sized) -> str:
    n = case.args[1]
    return f"{case}: every weight is 1: loss and gradient {n} times too large, once per piece."


SIZE = (
    Mistake(
        "remainder_dropped",
        _each_pairs(lambda n, m, got: all(size == n // m for size, _ in got)),
        _dropped_text,
        "the samples that remain after whole division are in no piece.",
    ),
    Mistake(
        "remainder_last",
        _each_pairs(lambda n, m, got: [z for z, _ in got] == [n // m] * (m - 1) + [n // m + n % m]),
        _last_text,
        "the last piece takes the whole remainder, and the pipeline waits for the biggest.",
    ),
)
WEIGHT = (
    Mistake(
        "equal_weights",
        _each_whole(lambda m, got: all(close(w, Fraction(1, m)) for _, w in got)),
        _loss_text,
        "equal weights: right only if all pieces have one size.",
    ),
    Mistake(
        "weights_of_one",
        _each_whole(lambda m, got: all(close(w, 1) for _, w in got)),
        _ones_text,
        "every weight is one: the gradient is as many times too large as there are pieces.",
    ),
)


def without_samples(case: Case, got: Any) -> Diagnosis | None:
    """For an answer where an error was due: does it hold pieces without a sample?"""
    if size_problem(got, case.args[1]) or all(size > 0 for size, _ in got):
        return None
    text = (
        f"{case} returns {_sizes([size for size, _ in got])}: a piece without a sample has no "
        "mean; the docstring promises a ValueError."
    )
    return Diagnosis("empty_piece", text, "pieces without a sample must be refused.")
