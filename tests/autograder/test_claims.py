"""What a student's process claims of itself decides a tenth of a unit's points at most."""

import sys
from types import ModuleType

import pytest

from autograder import exercise
from autograder.exercise import Exercise, load_unit


def unit_with(monkeypatch, *evidence_and_points):
    """The number of a unit with such exercises."""
    module = ModuleType("autograder.checks.unit_98")
    module.SLUG, module.GUESSES = "toy", ()
    for place, (evidence, points) in enumerate(evidence_and_points):
        name = f"e{place}"
        made = Exercise(name, name, points, (name,), evidence, (), (), "98", lambda s, d: None)
        setattr(module, name, made)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(exercise, "unit_numbers", lambda: ["98"])
    return "98"


@pytest.mark.parametrize("honest", ["data", "served", "observed"])
def test_a_tenth_may_be_claimed(monkeypatch, honest):
    number = unit_with(monkeypatch, (honest, 9), ("claimed", 1))
    assert len(load_unit(number).exercises) == 2


@pytest.mark.parametrize(("proven", "claimed"), [(8, 1), (9, 2), (0, 1)])
def test_a_unit_with_more_claims_is_refused(monkeypatch, proven, claimed):
    number = unit_with(monkeypatch, ("data", proven), ("claimed", claimed))
    with pytest.raises(ValueError, match="at most a tenth"):
        load_unit(number)
