"""Students' code as the subject of a check in this process, and what every unit's tests share.

A unit is given by its number, like "03"; its bank and its checks are found by it.
"""

import importlib
import pkgutil
import re
from contextlib import suppress
from copy import deepcopy
from functools import cache

from autograder import checks
from autograder.diagnosis import Mistake, StudentError
from autograder.exercise import Draw, find_exercise, load_unit, unit_numbers
from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.programs import RanksRun
from autograder.seeds import PUBLIC_SECRET, case_seed
from autograder.withhold import withheld
from mpedu.meter import Meter
from mpedu.simulate import Timeline

UNITS = [load_unit(number) for number in unit_numbers()]
SECRETS = (bytes(range(16)), b"another secret of a class")


def checks_of(number):
    """The package of a unit's checks."""
    return importlib.import_module(f"{checks.__name__}.unit_{number}")


@cache
def bank_of(number):
    """The bank of a unit: its RIGHT, WRONG and CHEATS."""
    return importlib.import_module(f"autograder.bank.unit_{number}")


@cache
def causes_of(number):
    """The ids of the mistakes that a unit's checks know."""
    package = checks_of(number)
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return frozenset(
        mistake.id
        for module in modules
        for known in vars(module).values()
        for mistake in (known if isinstance(known, tuple) else ())
        if isinstance(mistake, Mistake)
    )


def names_of(source):
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    return namespace


def judged(exercise, source, secret=None):
    """The verdict on code that runs while the exercise's answers are withheld."""
    with withheld(exercise.withholds):
        return judge(exercise, LocalSubject(names_of(source), exercise.names), secret)


def first_diagnosis(verdict):
    return next((group.diagnosis for group in verdict.groups if group.diagnosis), "")


def run_check(exercise, subject, secret=False, seed=PUBLIC_SECRET):
    """The groups of one run of an exercise's check."""
    return exercise.run(subject, Draw(case_seed(seed, exercise.unit, exercise.id), secret=secret))


class Asked:
    """A right student of a unit whose calls are noted, functions and rank programs alike.

    `change(answer, args, rng)` spoils the call number `spoiled`; without a number all of them.
    """

    def __init__(self, number, change=None, spoiled=None, rng=None):
        self.names = names_of(bank_of(number).RIGHT[0].source)
        self.subject = LocalSubject(self.names, ())
        self.change, self.spoiled, self.rng = change, spoiled, rng
        self.calls = []

    def __getattr__(self, name):
        return lambda *args: self.answer(name, args)

    def answer(self, name, args):
        self.calls.append((name, args))
        got = getattr(self.subject, name)(*args)
        spoils = self.change and self.spoiled in (None, len(self.calls) - 1)
        return self.change(got, args, self.rng) if spoils else got


class WrongOnce(Asked):
    """Right but for the first call on which the wrong answer differs from the right one."""

    def __init__(self, number, source):
        super().__init__(number)
        self.wrong, self.done = LocalSubject(names_of(source), ()), False

    def answer(self, name, args):
        """Each compared answer has copies of its own: what is served keeps what it was asked."""
        if not self.done:
            right = super().answer(name, deepcopy(args))
            with suppress(StudentError):
                self.done = told(getattr(self.wrong, name)(*deepcopy(args))) != told(right)
                return getattr(self.wrong, name)(*args)
        return super().answer(name, args)


def told(answer):
    """What of an answer can be compared."""
    if not isinstance(answer, RanksRun):
        return repr(answer)
    return repr((answer.results, answer.timeline, answer.contents, answer.unwaited))


class Noted:
    """A student's functions, with every call and what came back."""

    def __init__(self, answer, exercise):
        self.subject = LocalSubject(names_of(answer.source), exercise.names)
        self.calls = []

    def __getattr__(self, name):
        def asked(*args):
            got = getattr(self.subject, name)(*args)
            self.calls.append((args, got))
            return got

        return asked


def messages_with(pattern, exercise_id):
    """Each message to a wrong answer that holds the pattern: the match, and all calls made."""
    exercise = find_exercise(exercise_id)
    for answer in bank_of(exercise.unit).WRONG:
        if exercise_id in answer.expected:
            noted = Noted(answer, exercise)
            for group in run_check(exercise, noted):
                match = re.search(pattern, group.diagnosis.text) if group.diagnosis else None
                if match:
                    yield match, noted.calls


class Strange:
    """Gives the same thing, whatever is asked, on every rank and without a message."""

    def __init__(self, thing):
        self.thing = thing

    def run_ranks(self, name, n_ranks, arguments, machine):
        return RanksRun([self.thing] * n_ranks, Meter(), Timeline([], n_ranks), 0.0, [])

    def __getattr__(self, name):
        return lambda *args: self.thing
