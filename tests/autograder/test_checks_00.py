import json
import math
import re
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from banks import causes_of, run_check
from judged import SECRETS, first_diagnosis, judged, names_of

from autograder import diagnosis
from autograder.bank.unit_00 import RIGHT, WRONG
from autograder.checks import unit_00
from autograder.diagnosis import StudentError
from autograder.exercise import find_exercise, load_unit
from autograder.local import LocalSubject
from autograder.programs import RanksRun
from mpedu.meter import Meter
from mpedu.schedule import Action
from mpedu.simulate import Timeline

UNIT = load_unit("00")
EXERCISES = pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
CAUSES = causes_of("00", "hello_mistakes", "ring_mistakes", "deadlock_mistakes", "blame_mistakes")
NOTEBOOK = Path(__file__).parents[2] / "notebooks/00-start-here/00-start-here.ipynb"
CELLS = {
    cell["id"]: "".join(cell["source"])
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
}


class Asked:
    """A right student whose calls are noted; `spoil(name, answer)` changes what it gives."""

    def __init__(self, spoil=lambda name, got: got):
        self.subject = LocalSubject(names_of(RIGHT[0].source), ())
        self.spoil, self.calls = spoil, []

    def run_ranks(self, name, n_ranks, arguments, machine):
        self.calls.append((name, n_ranks, repr(arguments), machine))
        return self.spoil(name, self.subject.run_ranks(name, n_ranks, arguments, machine))

    def blame(self, waits):
        self.calls.append(("blame", repr(waits)))
        return self.spoil("blame", self.subject.blame(waits))


# Without those that never answer, of which no known mistake has a part in what is told.
ANSWERED = pytest.mark.parametrize(
    "answer",
    [a for a in WRONG if "timeout" not in {told for _, told in a.expected.values()}],
    ids=lambda answer: answer.id,
)


@ANSWERED
def test_a_wrong_answer_is_caught_without_any_known_mistake(answer, monkeypatch):
    def without_mistakes(subject, cases, differs, mistakes=()):
        return diagnosis.examine(subject, cases, differs)

    monkeypatch.setattr(unit_00, "examine", without_mistakes)
    for exercise_id, (score, _) in answer.expected.items():
        verdict = judged(find_exercise(exercise_id), answer.source)
        assert verdict.score == score
        assert verdict.score == verdict.points or verdict.messages


class WrongOnce(Asked):
    """Right but for the first case on which the wrong answer differs from the right one."""

    def __init__(self, source):
        super().__init__()
        self.wrong, self.done = LocalSubject(names_of(source), ()), False

    def run_ranks(self, *args):
        right = super().run_ranks(*args)
        return right if self.done else self._wrong(right, "run_ranks", *args)

    def blame(self, waits):
        right = super().blame(waits)
        return right if self.done else self._wrong(right, "blame", waits)

    def _wrong(self, right, name, *args):
        wrong = right
        with suppress(StudentError):
            wrong = getattr(self.wrong, name)(*args)
            told = [
                repr((one.results, one.timeline)) if isinstance(one, RanksRun) else repr(one)
                for one in (right, wrong)
            ]
            self.done = told[0] != told[1]
        return wrong


@ANSWERED
def test_no_cause_is_named_where_it_does_not_explain_every_answer(answer):
    for exercise_id in answer.expected:
        groups = run_check(find_exercise(exercise_id), WrongOnce(answer.source))
        causes = {group.diagnosis.id for group in groups if group.diagnosis}
        assert not causes & CAUSES, exercise_id


STRANGE = [
    None,
    True,
    "text",
    "x" * 10_000,
    {},
    (),
    [],
    [[]],
    [None],
    [0] * 10_000,
    math.nan,
    1e308,
    -1,
    2**62,
    Fraction(1, 3),
    np.array(1.0),
    np.zeros((0, 2)),
    np.array(["a"]),
    Action("F", 0, 0),
    ("cycle", None),
    ("cycle", [1.5]),
    ("cycle", [2**62] * 900),
    ("nonsense", [0, 1]),
    (3, [0]),
]


class Strange:
    """Gives the same thing on every rank, whatever is asked, without a message."""

    def __init__(self, thing):
        self.thing = thing

    def run_ranks(self, name, n_ranks, arguments, machine):
        return RanksRun([self.thing] * n_ranks, Meter(), Timeline([], n_ranks), 0.0, [])

    def blame(self, waits):
        return self.thing


@pytest.mark.parametrize("thing", STRANGE, ids=lambda thing: type(thing).__name__)
@EXERCISES
def test_a_strange_answer_draws_a_sentence_and_never_an_exception(exercise, thing):
    for secret in (False, True):
        for group in run_check(exercise, Strange(thing), secret):
            assert group.diagnosis is not None
            assert len(group.diagnosis.text) < 600 and group.diagnosis.text.count("\n") < 12


@pytest.mark.parametrize("thing", STRANGE, ids=lambda thing: type(thing).__name__)
@pytest.mark.parametrize("exercise_id", ["hello", "ring_pass", "fix_deadlock"])
def test_a_strange_result_after_the_right_messages_draws_a_sentence(exercise_id, thing):
    def spoil(name, run):
        return run._replace(results=[thing] * len(run.results))

    groups = run_check(find_exercise(exercise_id), Asked(spoil))
    assert any(group.diagnosis and len(group.diagnosis.text) < 600 for group in groups)


@EXERCISES
def test_an_unwritten_answer_is_said_to_be_unwritten(exercise):
    (name,) = exercise.names
    verdict = judged(exercise, f"def {name}(*args):\n    raise NotImplementedError", SECRETS[0])
    assert (verdict.status, verdict.score) == ("unwritten", 0)
    assert verdict.messages[0].endswith("is not written yet.")


@EXERCISES
def test_an_answer_that_always_raises_earns_nothing(exercise):
    (name,) = exercise.names
    verdict = judged(exercise, f"def {name}(*args):\n    raise ValueError('no')")
    assert (verdict.score, first_diagnosis(verdict)) == (0, "raised")


@EXERCISES
def test_the_groups_of_an_exercise_hold_its_points_under_different_names(exercise):
    groups = run_check(exercise, Asked())
    assert sum(group.points for group in groups) == exercise.points
    assert len({group.label for group in groups}) == len(groups)
    assert [g[:2] for g in groups] == [g[:2] for g in run_check(exercise, Asked(), secret=True)]


def test_points_are_twenty_and_rest_on_messages_but_for_those_of_blame():
    assert sum(exercise.points for exercise in UNIT.exercises) == 20
    for exercise in UNIT.exercises:
        assert exercise.evidence == ("data" if exercise.id == "blame" else "served")


@ANSWERED
def test_a_general_sentence_shows_nothing_of_a_case(answer):
    for exercise_id in answer.expected:
        exercise = find_exercise(exercise_id)
        subject = LocalSubject(names_of(answer.source), exercise.names)
        for group in run_check(exercise, subject):
            if group.diagnosis:
                general = group.diagnosis.general
                assert general and not re.search(r"\d", general), general


@pytest.mark.parametrize("exercise", UNIT.exercises[1:], ids=lambda one: one.id)
def test_the_drawn_cases_are_others_for_every_secret(exercise):
    asked = []
    for seed in SECRETS:
        subject = Asked()
        run_check(exercise, subject, secret=True, seed=seed)
        asked.append(set(map(repr, subject.calls)))
    public = Asked()
    run_check(exercise, public)
    for calls in asked:
        assert len(calls - set(map(repr, public.calls))) >= len(calls) / 2
    assert len(asked[0] - asked[1]) >= len(asked[0]) / 2


def test_programs_are_asked_on_one_to_eight_ranks():
    for exercise_id in ("hello", "ring_pass", "fix_deadlock"):
        sizes = set()
        for number in range(20):
            subject = Asked()
            run_check(find_exercise(exercise_id), subject, secret=True, seed=bytes([number]) * 16)
            sizes |= {n_ranks for _, n_ranks, *_ in subject.calls}
        assert sizes == set(range(1, 9))


def test_every_guess_takes_its_result():
    for guess in UNIT.guesses:
        assert guess.problem(guess.result()) == ""
        assert guess.problem(-2) and guess.problem(math.nan)


@EXERCISES
def test_hints_are_an_idea_a_neighbouring_case_and_a_skeleton(exercise):
    idea, neighbour, skeleton = exercise.hints
    assert idea.startswith("Idea") and neighbour.startswith("Neighbouring case")
    assert skeleton.startswith("Skeleton") and "..." in skeleton
    assert f"def {exercise.names[0]}" not in skeleton
