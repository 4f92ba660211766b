"""Exercises: a check that draws its cases from a seed; its names, points and hints."""

import importlib
import math
import pkgutil
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from autograder import checks
from autograder.diagnosis import Diagnosis, Miss, StudentError, Subject

EVIDENCE = {
    "data": "values computed from secret inputs, compared outside your process",
    "served": "messages, bytes, time and work handed out and counted by the judge",
    "observed": "time and memory read from the operating system by the judge",
    "claimed": "counted beside your code: finds mistakes, proves nothing",
}

Pair = tuple[int, int]
Whole = int  # inside `Draw` the name `int` is the draw itself


class GroupResult(NamedTuple):
    """One unit of partial credit after a run; `diagnosis` is None when it passed."""

    label: str
    points: int
    diagnosis: Diagnosis | None


class Draw:
    """Random cases from a seed, the same for the same seed, and the groups they are judged in.

    `secret` is True in the grader's own run, where a check may draw more and nastier cases.
    `before_group` is called at the start of each group: there the grader replaces a student's
    process that an earlier group has lost.
    """

    def __init__(
        self,
        seed: bytes,
        *,
        secret: bool = False,
        before_group: Callable[[], None] = lambda: None,
    ) -> None:
        self.secret = secret
        self.before_group = before_group
        self.rng = random.Random(seed)
        self.groups: list[GroupResult] = []

    def int(self, low: Whole, high: Whole) -> Whole:
        """A whole number in [low, high]."""
        return self.rng.randint(low, high)

    def pairs(self, n: Whole, most: Pair, always: Sequence[Pair] = ()) -> list[Pair]:
        """The pairs of `always`, then `n` different others from (1, 1) to `most`."""
        others = [(a, b) for a in range(1, most[0] + 1) for b in range(1, most[1] + 1)]
        others = [pair for pair in others if pair not in always]
        return [*always, *self.rng.sample(others, min(n, len(others)))]

    @contextmanager
    def group(self, label: str, points: Whole) -> Iterator[None]:
        """A unit of partial credit: a miss inside costs these points and stops nothing else."""
        self.before_group()
        diagnosis = None
        try:
            yield
        except Miss as miss:
            diagnosis = miss.diagnosis
        except StudentError as error:
            diagnosis = error.diagnosis()
        self.groups.append(GroupResult(label, points, diagnosis))


@dataclass(frozen=True)
class Exercise:
    """One graded cell: what it asks for, what it is worth, and the check that decides."""

    id: str
    title: str
    points: int
    names: tuple[str, ...]
    evidence: str
    withholds: tuple[str, ...]
    hints: tuple[str, ...]
    unit: str
    check: Callable[[Subject, Draw], None]

    def run(self, subject: Subject, draw: Draw) -> list[GroupResult]:
        """The groups of one run; points outside any group belong to the check as a whole."""
        diagnosis = None
        try:
            self.check(subject, draw)
        except Miss as miss:
            diagnosis = miss.diagnosis
        except StudentError as error:
            diagnosis = error.diagnosis()
        rest = self.points - sum(group.points for group in draw.groups)
        if rest < 0:
            raise ValueError(f"exercise {self.id}: its groups hold more than {self.points} points")
        if rest or diagnosis:
            draw.groups.append(GroupResult(self.title, rest, diagnosis))
        return draw.groups


def exercise(
    id: str,
    *,
    title: str,
    points: int,
    names: Sequence[str] | None = None,
    evidence: str = "data",
    withholds: Sequence[str] = (),
    hints: Sequence[str] = (),
) -> Callable[[Callable[[Any, Draw], None]], Exercise]:
    """Decorator that makes an `Exercise` of a check `check(subject, draw)`.

    `names` are the functions the student writes (default: one, called like the exercise);
    `withholds` the package's own names that would answer it, like "mpedu.families.gpipe".
    """
    if evidence not in EVIDENCE:
        raise ValueError(f"evidence={evidence!r} is unknown; choose one of {', '.join(EVIDENCE)}")

    def wrap(check: Callable[[Any, Draw], None]) -> Exercise:
        unit = check.__module__.rpartition("unit_")[2]
        asked = tuple(names or [id])
        return Exercise(
            id, title, points, asked, evidence, tuple(withholds), tuple(hints), unit, check
        )

    return wrap


class Guess(NamedTuple):
    """A question answered before the result is seen; never scored. `result()` is the true value.

    Answers lie in [least, most], whole numbers where `whole`; a share's `form` ends in "%}".
    """

    id: str
    question: str
    result: Callable[[], float]
    form: str = "{:g}"
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False

    def problem(self, value: object) -> str:
        """What keeps a value from being an answer, in one sentence; "" where nothing does."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{value!r:.40} is not a number; give one, like {5 if self.whole else 0.25}."
        whole = isinstance(value, int) or value.is_integer()
        if self.least <= value <= self.most and (whole or not self.whole):
            return ""
        between = f"between {self.least:g} and {self.most:g}"
        if self.whole:
            return f"A whole number {between} is asked."
        if not self.form.endswith("%}"):
            return f"A number {between} is asked."
        meant = value / 100 if self.most < value <= 100 * self.most else None
        return f"A share lies {between}{'.' if meant is None else f'; did you mean {meant:g}?'}"


class Unit(NamedTuple):
    """One notebook's exercises, in its order, and its guesses."""

    number: str
    slug: str
    exercises: tuple[Exercise, ...]
    guesses: tuple[Guess, ...]

    @property
    def assignment(self) -> str:
        """The nbgrader assignment and folder name, like "03-gpipe"."""
        return f"{self.number}-{self.slug}"

    @property
    def withholds(self) -> list[str]:
        """Every name of the package that computes one of this unit's answers."""
        return sorted({name for exercise in self.exercises for name in exercise.withholds})


def require_few_claims(number: str, exercises: Sequence[Exercise]) -> None:
    """ValueError where over a tenth of a unit's points rests on what a student's process claims."""
    claimed = sum(one.points for one in exercises if one.evidence == "claimed")
    points = sum(one.points for one in exercises)
    if 10 * claimed > points:
        raise ValueError(
            f"unit {number}: {claimed} of {points} points rest on claims of the student's own"
            " process; at most a tenth may"
        )


def unit_numbers() -> list[str]:
    """The numbers of the units that have checks, like ["03"]."""
    return sorted(
        module.name.removeprefix("unit_")
        for module in pkgutil.iter_modules(checks.__path__)
        if module.name.startswith("unit_")
    )


def load_unit(number: str) -> Unit:
    """The unit of that number, like "03"; ValueError listing the known ones."""
    if number not in unit_numbers():
        raise ValueError(f"there is no unit {number!r}; known: {', '.join(unit_numbers())}")
    module = importlib.import_module(f"autograder.checks.unit_{number}")
    exercises = tuple(value for value in vars(module).values() if isinstance(value, Exercise))
    require_few_claims(number, exercises)
    return Unit(number, module.SLUG, exercises, tuple(module.GUESSES))


def find_exercise(name: str) -> Exercise:
    """The exercise of that id, else the first that asks for a function of that name.

    ValueError listing the known ids.
    """
    exercises = [one for number in unit_numbers() for one in load_unit(number).exercises]
    found = [one for one in exercises if one.id == name]
    found += [one for one in exercises if name in one.names]
    if not found:
        known = ", ".join(one.id for one in exercises)
        raise ValueError(f"there is no exercise {name!r}; known: {known}")
    return found[0]


def find_guess(id: str) -> Guess:
    """The guess of that id; ValueError listing the known ones."""
    known = {guess.id: guess for n in unit_numbers() for guess in load_unit(n).guesses}
    if id not in known:
        raise ValueError(f"there is no guess {id!r}; known: {', '.join(known)}")
    return known[id]
