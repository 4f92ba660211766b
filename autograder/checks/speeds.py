"""Speed in checks: *observed* evidence, as a ratio to a reference timed in turns.

In grading the reference and the student's function have walled processes of their own, and the
clock is the judge's. At home both run in the notebook's process: a verdict there is a hint.
"""

import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from autograder.diagnosis import Diagnosis, Miss, Subject
from autograder.exercise import Draw
from autograder.speed import ROUNDS, Inputs, Race, near, threshold
from autograder.worker.timed import Array

__all__ = ["Race", "expect_faster", "expect_less_memory", "race"]


def race(
    subject: Subject,
    draw: Draw,
    name: str,
    *,
    reference: str | FunctionType,
    inputs: Inputs,
    same: Callable[[Array, Array], bool] | None = None,
) -> Race:
    """The student's function `name` against a reference, for `expect_faster`.

    reference: source that defines a function of that name, or a function of that name in a module
    that imports only what students may. inputs: from a random generator, the arguments of one
    call; arrays of the same shapes with new values each time, anything else always the same. Both
    return an array. same: whether (expected, got) agree; by default but for rounding.
    """
    source, observed = _source(reference), _observed(subject)
    rng = np.random.default_rng(draw.rng.getrandbits(128))
    return Race(
        name,
        lambda example: observed.turns(name, source, example),
        lambda: inputs(rng),
        same,
    )


def expect_faster(race: Race, *, wanted: float, unlike: float = 1.0) -> None:
    """Nothing when the function is as fast as `wanted`, Miss "slow" when it is as slow as `unlike`.

    Both in times the reference's speed, as measured this way, at least a factor of two apart; the
    line is drawn at their geometric mean.
    """
    times = threshold(wanted, unlike)
    if race.is_faster(times):
        return
    asked = (
        f"at least {times:.1f}x as fast as the reference is asked"
        f" (in turns with it, the least of {ROUNDS[0]} times or more)."
    )
    general = f"`{race.name}` is slower than asked: {asked}"
    text = general
    if race.shows_seconds:
        text = (
            f"`{race.name}` takes {1 / race.times_faster:.2g}x the time of the reference; {asked}"
        )
    raise Miss(Diagnosis("slow", text, general))


def expect_less_memory(
    subject: Subject,
    draw: Draw,
    name: str,
    *,
    reference: str | FunctionType,
    inputs: Inputs,
    wanted: float,
    unlike: float = 1.0,
    same: Callable[[Array, Array], bool] = near,
) -> None:
    """Nothing when the function takes so many times less memory than the reference.

    As `race` and `expect_faster`: `wanted` and `unlike` are times less than the reference. Observed
    as the most that a fresh process had after one call, above one that called nothing. The
    student's other cells count too, so let the reference take tens of MiB or more.
    """
    times = threshold(wanted, unlike)
    arguments = inputs(np.random.default_rng(draw.rng.getrandbits(128)))
    peaks, expected, got = _observed(subject).peaks(name, _source(reference), arguments)
    if not same(expected, got):
        why = f"`{name}` gives another answer than the reference where its memory is observed."
        raise Miss(Diagnosis("wrong_when_observed", why, why))
    if peaks.times_less < times:
        general = (
            f"`{name}` takes more memory than asked: at most 1/{times:.1f} of what the reference"
            " takes at its peak is asked."
        )
        raise Miss(Diagnosis("much_memory", general, general))


def _observed(subject: Any) -> Any:
    return subject.observed


def _source(reference: str | FunctionType) -> str:
    if isinstance(reference, str):
        return reference
    return inspect.getsource(sys.modules[reference.__module__])
