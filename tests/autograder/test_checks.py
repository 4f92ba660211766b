"""What every check of every unit must do, whatever it asks."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from judged import (
    SECRETS,
    UNITS,
    Asked,
    Strange,
    WrongOnce,
    bank_of,
    causes_of,
    checks_of,
    first_diagnosis,
    judged,
    names_of,
    run_check,
)
from unit_facts import FACTS

from autograder import diagnosis
from autograder.checks import causes
from autograder.exercise import find_exercise
from autograder.local import LocalSubject
from mpedu.published import load_model
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline

EXERCISES = pytest.mark.parametrize(
    "exercise",
    [exercise for unit in UNITS for exercise in unit.exercises],
    ids=lambda one: f"{one.unit}-{one.id}",
)
# Without those that never answer, of which no known mistake has a part in what is told.
ANSWERS = pytest.mark.parametrize(
    "number, answer",
    [
        pytest.param(unit.number, answer, id=f"{unit.number}-{answer.id}")
        for unit in UNITS
        for answer in bank_of(unit.number).WRONG
        if "timeout" not in {cause for _, cause in answer.expected.values()}
    ],
)


@ANSWERS
def test_a_wrong_answer_is_caught_without_any_known_mistake(number, answer, monkeypatch):
    for module in (checks_of(number), causes):
        monkeypatch.setattr(module, "examine", lambda *args: diagnosis.examine(*args[:3]))
    for exercise_id, (score, _) in answer.expected.items():
        verdict = judged(find_exercise(exercise_id), answer.source)
        assert verdict.score == score
        assert verdict.status == "passed" or verdict.messages


@ANSWERS
def test_no_cause_is_named_where_it_does_not_explain_every_answer(number, answer):
    for exercise_id in answer.expected:
        groups = run_check(find_exercise(exercise_id), WrongOnce(number, answer.source))
        named = {group.diagnosis.id for group in groups if group.diagnosis}
        assert not named & (causes_of(number) - FACTS[number].of_one_case), exercise_id


@ANSWERS
def test_a_general_sentence_shows_nothing_of_a_case(number, answer):
    for exercise_id in answer.expected:
        exercise = find_exercise(exercise_id)
        for group in run_check(exercise, LocalSubject(names_of(answer.source), exercise.names)):
            if group.diagnosis:
                general = FACTS[number].formulas.sub("", group.diagnosis.general)
                assert general and not re.search(r"\d", general), general


BILL = {"parameters": 1, "gradients": 1, "optimiser": 6, "activations": 0}
STRANGE = [
    None,
    True,
    "text",
    "x" * 100_000,
    {},
    {0: [Action("F", 0, 0)]},
    (),
    [],
    [[]],
    [None],
    [None] * 4,
    [[None]],
    [[["deep"]]],
    [{}] * 4,
    [{1, 2}] * 4,
    [0] * 100_000,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1,
    0,
    2**62,
    Fraction(1, 3),
    Fraction(2**62, 7),
    1 + 2j,
    np.array(1.0),
    np.array([1.0]),
    np.zeros((0, 2)),
    np.array([math.nan] * 6),
    np.array(["a"] * 6),
    np.array([True] * 6),
    np.array([1j] * 6),
    Timeline([], 1),
    Costs(),
    Action("F", 0, 0),
    [[Action("F", 0, 0)]],
    [[Action("F", -1, 2**62)] * 2] * 4,
    [("a", "b")] * 4,
    [(True, 1.0)] * 4,
    [(3, math.nan)] * 4,
    [(2**62, 1e308)] * 4,
    [(3, None), (3, 0.3), (2, 0.2), (2, 0.2)],
    [BILL] * 4,
    [BILL | {"parameters": math.nan}] * 4,
    [BILL | {"parameters": None}] * 4,
    [BILL | {"more": 1}] * 4,
    [{"parameters": 1e308, "gradients": True, "optimiser": "6", "activations": [0]}] * 4,
    load_model("llama2-7b"),
    ("cycle", None),
    ("cycle", [1.5]),
    ("cycle", [2**62] * 900),
    ("nonsense", [0, 1]),
    (3, [0]),
]
THINGS = pytest.mark.parametrize("thing", STRANGE, ids=lambda thing: type(thing).__name__)


def is_readable(told):
    return 0 < len(told.text) < 600 and told.text.count("\n") < 12


@THINGS
@EXERCISES
def test_a_strange_answer_draws_a_sentence_and_never_an_exception(exercise, thing):
    for secret in (False, True):
        told = [group.diagnosis for group in run_check(exercise, Strange(thing), secret)]
        assert any(told) and all(is_readable(one) for one in told if one)
        if exercise.points:
            assert all(told)


@THINGS
@pytest.mark.parametrize(
    "exercise",
    [e for unit in UNITS for e in unit.exercises if e.evidence == "served"],
    ids=lambda one: f"{one.unit}-{one.id}",
)
def test_a_strange_result_after_the_right_messages_draws_a_sentence(exercise, thing):
    def spoil(run, args, rng):
        return run._replace(results=[thing] * len(run.results))

    told = [group.diagnosis for group in run_check(exercise, Asked(exercise.unit, spoil))]
    assert all(is_readable(one) for one in told if one)
    assert any(told) or exercise.id.endswith("_fast")  # there the results are not asked for


def stubs(exercise, body):
    return "\n".join(f"def {name}(*args):\n    raise {body}" for name in exercise.names)


@EXERCISES
def test_an_unwritten_answer_is_said_to_be_unwritten(exercise):
    verdict = judged(exercise, stubs(exercise, "NotImplementedError"), SECRETS[0])
    assert (verdict.status, verdict.score) == ("unwritten", 0)
    assert verdict.messages[0].endswith("is not written yet.")


@EXERCISES
def test_an_answer_that_always_raises_earns_nothing(exercise):
    verdict = judged(exercise, stubs(exercise, "ValueError(args)"))
    assert (verdict.score, first_diagnosis(verdict)) == (0, "raised")


@EXERCISES
def test_the_groups_of_an_exercise_hold_its_points_under_different_names(exercise):
    groups = run_check(exercise, Asked(exercise.unit))
    assert not any(group.diagnosis for group in groups)
    assert sum(group.points for group in groups) == exercise.points
    assert len({group.label for group in groups}) == len(groups)
    secret = run_check(exercise, Asked(exercise.unit), secret=True)
    assert [group[:2] for group in groups] == [group[:2] for group in secret]


@pytest.mark.parametrize(
    "exercise",
    [e for u in UNITS for e in u.exercises if e.id not in FACTS[u.number].same_cases],
    ids=lambda one: f"{one.unit}-{one.id}",
)
def test_the_drawn_cases_are_others_for_every_secret(exercise):
    def asked(secret, **seed):
        subject = Asked(exercise.unit)
        run_check(exercise, subject, secret, **seed)
        return set(map(repr, subject.calls))

    public, drawn = asked(False), [asked(True, seed=seed) for seed in SECRETS]
    for calls in drawn:
        assert len(calls - public) >= len(calls) / 2
    assert len(drawn[0] - drawn[1]) >= len(drawn[0]) / 3


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.number)
def test_a_unit_has_twenty_points_and_those_of_rank_programs_are_served(unit):
    assert sum(exercise.points for exercise in unit.exercises) == 20
    for exercise in unit.exercises:
        asked = Asked(unit.number)
        run_check(exercise, asked)
        is_served = any(name == "run_ranks" for name, _ in asked.calls)
        assert exercise.evidence == ("served" if is_served else "data")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.number)
def test_every_guess_takes_its_result_and_nothing_silly(unit):
    for guess in unit.guesses:
        assert guess.problem(guess.result()) == ""
        for value in (-2, math.nan, 10**400):
            assert guess.problem(value), guess.id


@EXERCISES
def test_hints_are_an_idea_a_neighbouring_case_and_a_skeleton(exercise):
    idea, neighbour, skeleton = exercise.hints
    assert idea.startswith("Idea") and neighbour.startswith("Neighbouring case")
    assert skeleton.startswith("Skeleton") and "..." in skeleton
    for name in exercise.names:
        assert f"def {name}" not in skeleton
