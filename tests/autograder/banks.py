"""What the tests of every unit's bank share."""

import importlib

import pytest

from autograder.diagnosis import Mistake
from autograder.exercise import Draw
from autograder.seeds import PUBLIC_SECRET, case_seed


def cases(answers):
    """Each answer with each exercise that it answers, as parameters of a test."""
    return [
        pytest.param(answer, exercise, id=f"{answer.id}-{exercise}")
        for answer in answers
        for exercise in answer.expected
    ]


def causes_of(unit, *modules):
    """The ids of the mistakes that these modules of a unit's checks know."""
    names = [f"autograder.checks.unit_{unit}.{module}" for module in modules]
    return {
        mistake.id
        for module in map(importlib.import_module, names)
        for known in vars(module).values()
        for mistake in (known if isinstance(known, tuple) else ())
        if isinstance(mistake, Mistake)
    }


def run_check(exercise, subject, secret=False, seed=PUBLIC_SECRET):
    """The groups of one run of an exercise's check."""
    return exercise.run(subject, Draw(case_seed(seed, exercise.unit, exercise.id), secret=secret))
