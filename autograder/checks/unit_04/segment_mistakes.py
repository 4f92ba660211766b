"""The typical mistakes of unit 04 with the lengths of segments, and the sentences they draw."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_04
from autograder.checks.values import (
    Formula,
    constant,
    whole_problem,
    wrong_number,
)
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake


def differs_whole(
    truth: Formula, look: str, general: str, text: Callable[[Case, Any], str] | None = None
) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: what is wrong with a whole number, None where it is the truth."""
    sentence = text or wrong_number(truth)

    def differs(case: Case, got: Any) -> Diagnosis | None:
        problem = whole_problem(got)
        if problem:
            return Diagnosis("not_whole", f"{case} {problem}", f"{case.name} gives no int.")
        if got == truth(*case.args):
            return None
        return Diagnosis("differs", f"{sentence(case, got)} {look}", general)

    return differs


def wrong_length(case: Case, got: Any) -> str:
    """What a length costs beside the best one."""
    (n_layers,) = case.args
    best = oracle_04.best_segment_length(n_layers)
    text = f"{wrong_number(oracle_04.best_segment_length)(case, got)} {_units(n_layers, best)}"
    return f"{text}, {_units(n_layers, got)}." if 0 < got <= n_layers else f"{text}."


def _units(n_layers: int, length: int) -> str:
    n_segments = -(-n_layers // length)
    return f"length {length} holds {n_segments} + {length} = {n_segments + length}"


def whole_mistake(
    id: str, formulas: Sequence[Formula], text: Callable[[Case, Any], str], general: str
) -> Mistake:
    """A mistake seen when every answer is an int, and one of the formulas gives them all."""

    def matches(answers: Answers) -> bool:
        return all(not whole_problem(got) for _, got in answers) and any(
            all(got == formula(*case.args) for case, got in answers) for formula in formulas
        )

    return Mistake(id, matches, text, general)


def _mistakes(truth_text: Callable[[Case, Any], str]) -> Callable[..., Mistake]:
    def mistake(id: str, formulas: Sequence[Formula], why: str) -> Mistake:
        return whole_mistake(id, formulas, lambda c, got: f"{truth_text(c, got)} {why}", why)

    return mistake


def _largest_of_equal(n_layers: int) -> int:
    best = oracle_04.best_segment_length(n_layers)
    least = -(-n_layers // best) + best
    return max(length for length in range(1, n_layers + 1) if -(-n_layers // length) + length
               == least)  # fmt: skip


def _segments_of_best(n_layers: int) -> int:
    return -(-n_layers // oracle_04.best_segment_length(n_layers))


def _floored(n_layers: int) -> int:
    """The best length if layers left over needed no segment of their own."""
    return min(range(1, n_layers + 1), key=lambda length: (n_layers // length + length, length))


_length = _mistakes(wrong_length)
LENGTHS = (
    _length(
        "number_of_segments",
        [_segments_of_best, _largest_of_equal],
        "That is the number of segments, or the largest of lengths that hold as much; asked is how "
        "many layers one segment has, the smallest such number.",
    ),
    _length(
        "root_down",
        [math.isqrt],
        "The square root cut down is near, not always best: try the lengths, or look on both "
        "sides of it.",
    ),
    _length(
        "root_up",
        [lambda n: math.isqrt(n - 1) + 1],
        "The square root rounded up is near, not always the smallest of the best: try the lengths.",
    ),
    _length(
        "root_rounded",
        [lambda n: round(math.sqrt(n))],
        "The square root rounded is near, not always the smallest of the best: try the lengths.",
    ),
    _length(
        "floor_of_segments",
        [_floored],
        "Layers left over make a segment too: the number of segments is rounded up.",
    ),
    _length(
        "units_held",
        [lambda n: -(-n // oracle_04.best_segment_length(n)) + oracle_04.best_segment_length(n)],
        "That is what is held with the best length; asked is the length itself.",
    ),
    constant(lambda case, got: f"{wrong_length(case, got)} Yours is the same for every case."),
)

_forwards = _mistakes(wrong_number(oracle_04.recompute_forwards))
_EXTRA = [
    _forwards(
        "first_pass_too",
        [lambda n, s, keep=False: n + oracle_04.recompute_forwards(n, s, keep)],
        "You count the first pass as well; asked are the forwards on top of it.",
    ),
    _forwards(
        "restarts",
        [lambda n, s, keep=False: n * (n - 1) // 2, lambda n, s, keep=False: n * (n + 1) // 2],
        "That is without any checkpoint, from x again for every layer.",
    ),
    _forwards(
        "one_segment_only",
        [lambda n, s, keep=False: -(-n // s), lambda n, s, keep=False: n // s],
        "That is one segment; each of them is run again.",
    ),
]
ALL_AGAIN = (
    *_EXTRA,
    _forwards(
        "inside_only",
        [lambda n, s, keep=False: n - s],
        "You leave out one layer of each segment. What a layer's backward needs was not kept, "
        "so all of them run again.",
    ),
    _forwards(
        "last_left_out",
        [lambda n, s, keep=False: n - n // s, lambda n, s, keep=False: n - -(-n // s)],
        "You leave the last segment out; without keep_last it is run again as well.",
    ),
)
LAST_KEPT = (
    *_EXTRA,
    _forwards(
        "keep_last_ignored",
        [lambda n, s, keep=False: n],
        "With keep_last the last segment's outputs are still there, and it is not run again.",
    ),
    _forwards(
        "longest_kept",
        [lambda n, s, keep=False: n - -(-n // s) if keep else n],
        "The larger segments come first, so the last one is a smaller one.",
    ),
    _forwards(
        "one_layer_kept",
        [lambda n, s, keep=False: n - 1 if keep else n],
        "All the layers of the last segment are kept, not just its last one.",
    ),
)
