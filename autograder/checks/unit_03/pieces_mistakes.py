"""The typical mistakes of unit 03 with ragged batches, and the sentences they draw."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from autograder import oracle
from autograder.checks.values import Number, close, number_problem, shown, whole_problem
from autograder.diagnosis import (
    Answers,
    Case,
    Diagnosis,
    Miss,
    Mistake,
    Subject,
    ask,
    each,
    expect_error,
)

Sized = list[tuple[int, Number]]


def size_problem(got: Any, n_microbatches: int) -> str:
    """What keeps an answer from being n_microbatches pairs of int and number, "" for nothing."""
    if not isinstance(got, list | tuple):
        return f"gives {shown(got)}; a list of (size, weight) is asked."
    if len(got) != n_microbatches:
        return f"gives {len(got)} pieces for n_microbatches={n_microbatches}."
    for piece, pair in enumerate(got):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return f"gives {shown(pair)} for piece {piece}; a pair (size, weight) is asked."
        if whole_problem(pair[0]) or number_problem(pair[1]):
            return (
                f"gives ({', '.join(map(shown, pair))}) for piece {piece}; a pair is (size, "
                "weight), the size an int and the weight a number."
            )
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


def _swapped(case: Case, got: Any) -> bool:
    """Are the sizes right, and second in every pair but not first?"""
    if not isinstance(got, list | tuple):
        return False
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in got):
        return False
    turned = [pair[::-1] for pair in got]
    return differs_size(case, turned) is None and differs_size(case, got) is not None


def _swapped_text(case: Case, got: Any) -> str:
    weight, size = got[0]
    return (
        f"{case} gives ({shown(weight)}, {shown(size)}) for piece 0: size first, weight second; "
        "yours look swapped."
    )


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


_SWAPPED = Mistake(
    "swapped_pair",
    each(_swapped),
    _swapped_text,
    "size first, weight second; yours look swapped.",
)
SIZE = (
    _SWAPPED,
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
    _SWAPPED,
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


def expect_refusal(subject: Subject, case: Case, *named: object) -> None:
    """As `expect_error`; an answer with empty pieces is told apart."""
    try:
        expect_error(subject, case, *named)
    except Miss as miss:
        if miss.diagnosis.id == "no_error":
            empty = without_samples(case, ask(subject, case))
            if empty:
                raise Miss(empty) from None
        raise
