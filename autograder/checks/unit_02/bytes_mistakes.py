"""The typical mistakes of unit 02's `boundary_bytes`, and the sentences they draw."""

from typing import Any

from autograder import oracle_02
from autograder.checks.values import Formula, formula_mistake, whole_problem, wrong_number
from autograder.diagnosis import Case, Diagnosis, Mistake

_wrong = wrong_number(oracle_02.boundary_bytes)


def differs_bytes(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with a number of bytes, None where it is the truth."""
    problem = whole_problem(got)
    if problem:
        return Diagnosis("not_whole", f"{case} {problem}", "boundary_bytes gives no int.")
    if got == oracle_02.boundary_bytes(*case.args):
        return None
    look = "How many numbers has one tensor, how many boundaries does it cross, and which ways?"
    general = "the bytes are not those of all boundaries, both ways."
    return Diagnosis("differs", f"{_wrong(case, got)} {look}", general)


def _mistake(id: str, formula: Formula, why: str) -> Mistake:
    return formula_mistake(id, [formula], lambda case, got: f"{_wrong(case, got)} {why}", why)


BYTES = (
    _mistake(
        "stages_for_boundaries",
        lambda b, s, h, e, k: 2 * k * b * s * h * e,
        "K stages have K-1 boundaries between them.",
    ),
    _mistake(
        "forward_only",
        lambda b, s, h, e, k: (k - 1) * b * s * h * e,
        "Gradients cross every boundary too, and are as large as the activations.",
    ),
    _mistake(
        "one_boundary",
        lambda b, s, h, e, k: 2 * b * s * h * e,
        "That is a single boundary; all of them are asked.",
    ),
    _mistake(
        "elements",
        lambda b, s, h, e, k: 2 * (k - 1) * b * s * h,
        "Those are numbers, not bytes: each takes bytes_per_element.",
    ),
    _mistake(
        "two_bytes_each",
        lambda b, s, h, e, k: 4 * (k - 1) * b * s * h,
        "You take two bytes for every number; use bytes_per_element.",
    ),
    _mistake(
        "bits",
        lambda b, s, h, e, k: 16 * (k - 1) * b * s * h * e,
        "Those are bits; a byte has eight of them, and bytes_per_element counts bytes already.",
    ),
    _mistake(
        "one_sample",
        lambda b, s, h, e, k: 2 * (k - 1) * s * h * e,
        "That is one sample; the whole batch crosses.",
    ),
    _mistake(
        "weights_sent",
        lambda b, s, h, e, k: 2 * (k - 1) * h * h * e,
        "Weights stay where they are; what crosses is one activation per token and column.",
    ),
)
