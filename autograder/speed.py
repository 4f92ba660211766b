"""How fast a function is: as a ratio to a reference timed in turns with it, never in seconds.

A loaded machine only ever makes a call slower, so the least of many times is the work itself. The
reference runs twice in every repetition: where its two series differ, the machine is too noisy for
a verdict, and nobody gets one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from autograder.diagnosis import Diagnosis, Miss, StudentError
from autograder.worker.timed import Array, Form

ROUNDS = (15, 30, 30)  # repetitions of each; on a machine with other work the least takes longer
QUIET = (0.85, 1.18)  # the reference to itself
# So far above the threshold, or below it, one round decides. Noise in the student's own turns only
# ever makes it look slower, so to fail takes every round unless it is hopeless.
CLEAR, HOPELESS = 1.25, 4.0
_WARM_UPS = 2
_TOLERANCES = {"f2": 1e-2, "f4": 1e-4, "c8": 1e-4}
_SIDES = ("reference", "student", "again")
Inputs = Callable[[np.random.Generator], tuple[Any, ...]]


class TooNoisy(Exception):
    """The machine was too noisy for a verdict: try again."""

    def _render_traceback_(self) -> list[str]:  # in a notebook
        return [str(self)]


class Turn(NamedTuple):
    """One timed call; the answer's memory is used again by the next one of its side."""

    seconds: float
    answer: Array


class Turns(Protocol):
    """A student's function and a reference, each called in its turn."""

    shows_seconds: bool  # whether a message may hold what differs from run to run
    cpu_outside_s: float  # that the student used outside the timed intervals
    measured: dict[str, Any]  # what was seen, for the record of a run

    def quiet(self) -> AbstractContextManager[None]:
        """While no more speed tests run on this machine than it has cores."""

    def reference(self, which: int, arguments: Sequence[Any]) -> Turn:
        """A turn of the reference, the first (0) or the second (1) one."""

    def student(self, arguments: Sequence[Any]) -> Turn:
        """A turn of the student's function; StudentError where it gives no answer."""


def parted(arguments: Sequence[Any]) -> tuple[tuple[Any, ...], list[int], list[Form]]:
    """Arguments without their arrays (None in their places), the places, and the arrays' forms."""
    at = [place for place, one in enumerate(arguments) if isinstance(one, np.ndarray)]
    plain = tuple(None if place in at else one for place, one in enumerate(arguments))
    return plain, at, [(arguments[place].dtype.str, arguments[place].shape) for place in at]


def threshold(wanted: float, unlike: float) -> float:
    """How many times faster than the reference is asked, to tell the speed `wanted` from `unlike`.

    Their geometric mean; ValueError for speeds less than a factor of two apart.
    """
    if not 0 < 2 * unlike <= wanted:
        raise ValueError(
            f"speeds of {unlike:g} and {wanted:g} times the reference cannot be told apart in"
            " grading; let them differ by a factor of 2 or more"
        )
    return math.sqrt(wanted * unlike)


class Race:
    """A student's function against a reference, repeated until it is clear who is faster.

    draw: new arguments for every repetition, of the same forms; `same(expected, got)` says whether
    an answer is right (default: near the reference's). What the student's side does wrong ends it,
    and is raised again at every further question.
    """

    def __init__(
        self,
        name: str,
        turns: Callable[[tuple[Any, ...]], Turns],
        draw: Callable[[], tuple[Any, ...]],
        same: Callable[[Array, Array], bool] | None = None,
    ) -> None:
        self.name, self._open, self._draw = name, turns, draw
        self._same = same or near
        self._turns: Turns | None = None
        self._failed: Miss | StudentError | None = None
        self._last: tuple[Any, ...] | None = None
        self._orders = _orders()
        self.n_rounds = 0
        self.seconds: dict[str, list[float]] = {side: [] for side in _SIDES}

    @property
    def times_faster(self) -> float:
        """How many times faster than the reference the student's function is; 1 is as fast."""
        first, student, again = (min(self.seconds[side]) for side in _SIDES)
        return math.sqrt(first * again) / student

    @property
    def control(self) -> float:
        """The reference to itself."""
        return min(self.seconds["reference"]) / min(self.seconds["again"])

    def _noise(self) -> TooNoisy:
        more = ""
        if self._turns is not None and not self._turns.shows_seconds:
            used_s = self._turns.cpu_outside_s
            more = f", and outside its turns the student's process used {used_s:.2f} s of processor"
        return TooNoisy(
            f"The machine is too noisy to time `{self.name}`: in {self.n_rounds} rounds the"
            f" reference took {self.control:.2f}x the time of itself{more}. Try again."
        )

    def _seen(self, turns: Turns) -> dict[str, Any]:
        return {
            "times_faster": round(self.times_faster, 3),
            "control": round(self.control, 3),
            "rounds": self.n_rounds,
            "repetitions": len(self.seconds["student"]),
            "reference_s": round(min(self.seconds["reference"]), 6),
            "cpu_outside_s": round(turns.cpu_outside_s, 3),
        }

    @property
    def shows_seconds(self) -> bool:
        """Whether messages may hold figures that differ from run to run."""
        return self._turns is not None and self._turns.shows_seconds

    def is_faster(self, times: float) -> bool:
        """Whether it is at least so many times faster; TooNoisy where that cannot be told.

        Miss and StudentError where an answer is wrong or missing.
        """
        if self._failed is not None:
            raise self._failed
        try:
            while not self._is_told(times):
                self._round()
        except (Miss, StudentError) as failed:
            self._failed = failed
            raise
        return self.times_faster >= times

    def _is_told(self, times: float) -> bool:
        """Whether what was seen decides."""
        if not self.n_rounds:
            return False
        quiet = QUIET[0] <= self.control <= QUIET[1]
        clear = not 1 / HOPELESS < self.times_faster / times < CLEAR
        last = self.n_rounds == len(ROUNDS)
        if last and not quiet:
            raise self._noise()
        return quiet and (clear or last)

    def _round(self) -> None:
        first = self._drawn()
        if self._turns is None:
            self._turns = self._open(first)
        with self._turns.quiet():
            for _ in range(_WARM_UPS):
                self._repeat(self._drawn())
            for _ in range(ROUNDS[self.n_rounds]):
                for side, seconds in self._repeat(self._drawn()).items():
                    self.seconds[side].append(seconds)
        self.n_rounds += 1
        self._turns.measured |= self._seen(self._turns)

    def _repeat(self, arguments: tuple[Any, ...]) -> dict[str, float]:
        """The seconds of each side on the same arguments; Miss where the answers differ."""
        turns = self._turns
        assert turns is not None
        run: dict[str, Callable[[Sequence[Any]], Turn]] = {
            "reference": partial(turns.reference, 0),
            "student": turns.student,
            "again": partial(turns.reference, 1),
        }
        made = {side: run[side](arguments) for side in next(self._orders)}
        expected = made["reference"].answer
        if not np.isfinite(expected).all():
            raise ValueError(f"the reference of `{self.name}` gives what is not finite")
        if not self._same(expected, made["student"].answer):
            raise Miss(_wrong(self.name, expected, made["student"].answer))
        return {side: turn.seconds for side, turn in made.items()}

    def _drawn(self) -> tuple[Any, ...]:
        """New arguments; ValueError where they have other forms, or values, than they must."""
        drawn, last = self._draw(), self._last
        plain, at, forms = parted(drawn)
        if not at:
            raise ValueError(f"`{self.name}` is timed on arrays; its inputs hold none")
        if last is not None:
            if repr((plain, at, forms)) != repr(parted(last)):
                raise ValueError(f"the inputs of `{self.name}` change their form between calls")
            if all(np.array_equal(drawn[place], last[place]) for place in at):
                raise ValueError(f"the inputs of `{self.name}` are the same in every repetition")
        self._last = drawn
        return drawn


def _orders() -> Iterator[tuple[str, ...]]:
    """Who goes first, second and third, so that nobody always follows the same one."""
    while True:
        for first in range(len(_SIDES)):
            yield _SIDES[first:] + _SIDES[:first]


def near(expected: Array, got: Array) -> bool:
    """Whether an answer has the reference's shape and its numbers but for rounding."""
    if got.shape != expected.shape or not np.isfinite(got).all():
        return False
    # By the reference's precision: an answer of half of it would be no work of equal worth.
    tolerance = _TOLERANCES.get(expected.dtype.str[1:], 1e-9)
    scale = float(np.abs(expected).max(initial=0.0))
    return bool(np.allclose(got, expected, rtol=tolerance, atol=tolerance * scale))


def _wrong(name: str, expected: Array, got: Array) -> Diagnosis:
    why = "other numbers than the reference"
    if got.shape != expected.shape:
        why = f"shape {got.shape}, expected {expected.shape}"
    general = f"`{name}` gives {why} on inputs drawn anew for every timed call."
    return Diagnosis("wrong_when_timed", general, general)
