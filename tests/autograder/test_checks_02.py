import math
import random
import re
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from asked_02 import CAUSES, UNIT, Asked, run_check
from judged import SECRETS, first_diagnosis, judged, names_of

from autograder import diagnosis, oracle_02
from autograder.bank.unit_02 import WRONG
from autograder.checks import unit_02
from autograder.checks.unit_02 import sealed_runs
from autograder.diagnosis import StudentError
from autograder.exercise import find_exercise, find_guess
from autograder.local import LocalSubject
from mpedu.families import naive
from mpedu.published import ModelConfig, count_parameters, load_model
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline

EXERCISES = pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
# What the formulas of a general sentence may hold; any other digit could be one of a case.
FORMULAS = re.compile(r"K-1|float32|\b(2|4|12|16|34|1)\b")


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_a_wrong_answer_is_caught_without_any_known_mistake(answer, monkeypatch):
    def without_mistakes(subject, cases, differs, mistakes=()):
        return diagnosis.examine(subject, cases, differs)

    monkeypatch.setattr(unit_02, "examine", without_mistakes)
    for exercise_id, (score, _) in answer.expected.items():
        verdict = judged(find_exercise(exercise_id), answer.source)
        assert verdict.score == score
        assert verdict.score == verdict.points or verdict.messages


class WrongOnce:
    """Right but for the first call on which the wrong answer differs from the right one."""

    def __init__(self, source):
        self.right, self.wrong = Asked(), LocalSubject(names_of(source), ())
        self.done = False

    def __getattr__(self, name):
        def answer(*args):
            right = getattr(self.right, name)(*args)
            if self.done:
                return right
            with suppress(StudentError):
                wrong = getattr(self.wrong, name)(*args)
                self.done = repr(wrong) != repr(right)
                return wrong
            return right

        return answer


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_no_cause_is_named_where_it_does_not_explain_every_answer(answer):
    for exercise_id in answer.expected:
        groups = run_check(find_exercise(exercise_id), WrongOnce(answer.source))
        causes = {group.diagnosis.id for group in groups if group.diagnosis}
        assert not causes & CAUSES


BILL = {"parameters": 1, "gradients": 1, "optimiser": 6, "activations": 0}
STRANGE = [
    None,
    True,
    "text",
    "x" * 100_000,
    {},
    (),
    [],
    [[]],
    [None],
    [None] * 4,
    [{}] * 4,
    [BILL] * 4,
    [BILL | {"parameters": math.nan}] * 4,
    [BILL | {"parameters": None}] * 4,
    [BILL | {"more": 1}] * 4,
    [{"parameters": 1e308, "gradients": True, "optimiser": "6", "activations": [0]}] * 4,
    [0] * 100_000,
    math.nan,
    math.inf,
    1e308,
    -1,
    0,
    2**62,
    Fraction(2**62, 7),
    1 + 2j,
    np.array([1.0]),
    Timeline([], 1),
    Costs(),
    Action("F", 0, 0),
    [[Action("F", -1, 2**62)] * 2] * 4,
    [[Action("F", 0, 0)]],
    load_model("llama2-7b"),
]


class Strange:
    """Gives the same thing, whatever is asked."""

    def __init__(self, thing):
        self.thing = thing

    def __getattr__(self, name):
        return lambda *args: self.thing


@pytest.mark.parametrize("thing", STRANGE, ids=lambda thing: type(thing).__name__)
@EXERCISES
def test_a_strange_answer_draws_a_sentence_and_never_an_exception(exercise, thing):
    for secret in (False, True):
        groups = run_check(exercise, Strange(thing), secret)
        assert groups
        for group in groups:
            assert group.diagnosis is not None
            assert len(group.diagnosis.text) < 600 and group.diagnosis.text.count("\n") < 12


@EXERCISES
def test_an_unwritten_answer_is_said_to_be_unwritten(exercise):
    stubs = "\n".join(
        f"def {name}(*args):\n    raise NotImplementedError" for name in exercise.names
    )
    verdict = judged(exercise, stubs, SECRETS[0])
    assert (verdict.status, verdict.score) == ("unwritten", 0)


@EXERCISES
def test_an_answer_that_always_raises_earns_nothing(exercise):
    stubs = "\n".join(f"def {name}(*args):\n    raise ValueError(args)" for name in exercise.names)
    verdict = judged(exercise, stubs)
    assert (verdict.score, first_diagnosis(verdict)) == (0, "raised")


@EXERCISES
def test_the_groups_of_an_exercise_hold_its_points_under_different_names(exercise):
    groups = run_check(exercise, Asked())
    assert sum(group.points for group in groups) == exercise.points
    assert len({group.label for group in groups}) == len(groups)
    assert [g[:2] for g in groups] == [g[:2] for g in run_check(exercise, Asked(), secret=True)]


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_a_general_sentence_shows_nothing_of_a_case(answer):
    for exercise_id in answer.expected:
        exercise = find_exercise(exercise_id)
        for group in run_check(exercise, LocalSubject(names_of(answer.source), exercise.names)):
            if group.diagnosis:
                general = FORMULAS.sub("", group.diagnosis.general)
                assert general and not any(character.isdigit() for character in general), general


@EXERCISES
def test_the_drawn_cases_are_others_for_every_secret(exercise):
    asked = []
    for seed in SECRETS:
        subject = Asked()
        run_check(exercise, subject, secret=True, seed=seed)
        asked.append(set(map(repr, subject.calls)))
    public = Asked()
    run_check(exercise, public)
    known = set(map(repr, public.calls))
    for calls in asked:
        assert len(calls - known) >= len(calls) / 2
    assert len(asked[0] - asked[1]) >= len(asked[0]) / 3


def spoiled(got, args, rng):
    """An answer with one part changed, whatever it is."""
    if isinstance(got, str):
        return rng.choice([cause for cause in sealed_runs.CAUSES if cause != got])
    if isinstance(got, float):
        return got + rng.choice([-1, 1]) * 1e-6
    if isinstance(got, int):
        return got + rng.choice([-1, 1])
    part = rng.choice(got)
    if isinstance(part, dict):
        part[rng.choice([*part])] += rng.choice([-1, 1])
    else:
        del part[rng.randrange(len(part))]
    return got


# Of tied models the parameters are compared; their other parts were seen with the untied ones.
ONLY_PARAMETERS = "tied_embeddings=True"


@EXERCISES
def test_one_part_of_one_answer_changed_is_seen(exercise):
    asked = Asked()
    run_check(exercise, asked)
    rng = random.Random(1)
    for number, (_, args) in enumerate(asked.calls):
        if ONLY_PARAMETERS in repr(args):
            continue
        with suppress(ValueError):  # a call that must raise has no answer to spoil
            asked.names[asked.calls[number][0]](*args)
            groups = run_check(exercise, Asked(spoiled, number, rng))
            assert any(group.diagnosis for group in groups), args


@pytest.mark.parametrize("name", ["llama2-7b", "gpt3-175b"])
@pytest.mark.parametrize("n_stages", [1, 5, 8])
def test_the_ranks_together_hold_the_model_and_a_copy_where_it_is_tied(name, n_stages):
    config = load_model(name)
    copy = config.vocabulary_parameters if config.tied_embeddings and n_stages > 1 else 0
    bills = oracle_02.memory_bill(config, n_stages)
    held = sum(bill["parameters"] for bill in bills)
    assert held == 2 * (count_parameters(config).total + copy)
    states = sum(bill[part] for bill in bills for part in oracle_02.BYTES)
    assert states == 8 * held


def test_the_truths_are_those_of_the_package():
    assert oracle_02.naive(3, 4) == naive(3, 4)
    assert oracle_02.boundary_bytes(2, 3, 4, 2, 3) == 192


def test_models_hold_what_could_be_forgotten():
    for secret in (False, True):
        asked = Asked()
        run_check(find_exercise("memory_bill"), asked, secret)
        valid = [args for _, args in asked.calls if 1 <= args[1] <= args[0].n_layers]
        assert {config.tied_embeddings for config, *_ in valid} == {True, False}
        assert any(config.tied_embeddings and k == 1 for config, k, _ in valid)
        assert any(config.tied_embeddings and k > 1 for config, k, _ in valid)
        assert any(
            not config.tied_embeddings and config.position_parameters for config, *_ in valid
        )
        assert any(config.n_layers % k for config, k, _ in valid)
        assert any(config.n_layers == k for config, k, _ in valid)
        assert all(isinstance(config, ModelConfig) for config, *_ in valid)


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {
        "speedup-4": "1",
        "message-share": "1.5%",
        "training-gb": "107.8",
        "sealed-over": "1",
    }
    for guess in UNIT.guesses:
        assert guess.problem(guess.result()) == ""
        assert guess.problem(-1) and guess.problem(math.nan) and guess.problem(10**400)
    assert find_guess("sealed-over").problem(1.5)


@EXERCISES
def test_hints_are_an_idea_a_neighbouring_case_and_a_skeleton(exercise):
    idea, neighbour, skeleton = exercise.hints
    assert idea.startswith("Idea") and neighbour.startswith("Neighbouring case")
    assert skeleton.startswith("Skeleton") and "..." in skeleton
    for name in exercise.names:
        assert f"def {name}" not in skeleton
