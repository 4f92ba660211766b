"""The bank of every unit, at home and as the grader judges: right, wrong, and cheats."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache

import pytest
from judged import (
    SECRETS,
    UNITS,
    bank_of,
    causes_of,
    checks_of,
    first_diagnosis,
    judged,
    names_of,
    run_check,
)
from unit_facts import FACTS

from autograder import diagnosis, local
from autograder.checks import causes
from autograder.exercise import find_exercise
from autograder.local import LocalSubject
from autograder.pool import run_tasks
from autograder.worker.walls import Limits

# With the first secret all of the bank is graded behind walls: test_walled_bank.
SECRET = pytest.mark.parametrize("secret", [None, SECRETS[1]], ids=["notebook", "other-secret"])
EXERCISES = [
    pytest.param(unit, exercise.id, id=f"{unit.number}-{exercise.id}")
    for unit in UNITS
    for exercise in unit.exercises
]
UNIT = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.number)
KINDS_OF_CHEATS = ("imports_", "tabulates_", "patches_", "numbers_that_lie")
N_SEEDS = 8
LIMIT_S = 600.0  # for one answer, on a machine that is loaded


def cases(kind, without_walls=False):
    """Each answer of a kind with each exercise that it answers, of every unit."""
    return [
        pytest.param(answer, exercise, id=f"{unit.number}-{answer.id}-{exercise}")
        for unit in UNITS
        for answer in getattr(bank_of(unit.number), kind)
        for exercise in answer.expected
        if not (without_walls and answer.needs_walls)
    ]


def get_its_verdict(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, first_diagnosis(verdict)) == answer.expected[exercise_id]
    return verdict


@pytest.fixture(autouse=True)
def short_limit(monkeypatch, request):
    """What is to be stopped need not run for five seconds first."""
    answer = request.node.callspec.params.get("answer")
    if answer and "timeout" in {cause for _, cause in answer.expected.values()}:
        monkeypatch.setattr(local, "Limits", lambda: Limits(call_s=1.0))


@SECRET
@pytest.mark.parametrize("answer, exercise_id", cases("RIGHT"))
def test_a_right_answer_gets_full_marks(answer, exercise_id, secret):
    verdict = get_its_verdict(answer, exercise_id, secret)
    assert (verdict.status, verdict.score, verdict.messages) == ("passed", verdict.points, [])


@SECRET
@pytest.mark.parametrize("answer, exercise_id", cases("WRONG"))
def test_a_wrong_answer_draws_its_own_diagnosis(answer, exercise_id, secret):
    for message in get_its_verdict(answer, exercise_id, secret).messages:
        assert len(message.splitlines()) <= 12 and len(message) < 600


@pytest.mark.parametrize("answer, exercise_id", cases("CHEATS", without_walls=True))
def test_a_cheat_gets_nothing_in_the_grader(answer, exercise_id):
    assert get_its_verdict(answer, exercise_id, SECRETS[1]).status != "passed"


@contextmanager
def outcomes() -> Iterator[Callable[[tuple[str, str]], list[tuple[int, bool]]]]:
    """What a process of the pool does: the points with each seed, and whether anything is told."""
    for module in (*(checks_of(unit.number) for unit in UNITS), causes):
        # The causes change no score, and take most of the time.
        module.examine = lambda *args: diagnosis.examine(*args[:3])

    def outcome(task):
        exercise, source, found = find_exercise(task[0]), task[1], []
        for number in range(N_SEEDS):
            subject = LocalSubject(names_of(source), exercise.names)
            groups = run_check(exercise, subject, secret=True, seed=bytes([number]) * 16)
            points = sum(group.points for group in groups if not group.diagnosis)
            found.append((points, any(group.diagnosis for group in groups)))
        return found

    yield outcome


def same_with_all_seeds(unit, exercise_id):
    """The answers of an exercise that come to an end, by id, with what they get."""
    bank = bank_of(unit.number)
    answers = [a for a in [*bank.RIGHT, *bank.WRONG] if exercise_id in a.expected]
    return [a for a in answers if a.expected[exercise_id][1] != "timeout"]


@cache
def by_seed(unit):
    """All outcomes of a unit, by exercise and source, made by two processes."""
    tasks = {
        (exercise.id, answer.source): None
        for exercise in unit.exercises
        for answer in same_with_all_seeds(unit, exercise.id)
    }
    with closing(run_tasks(outcomes, (), list(tasks), 2, LIMIT_S)) as made:
        return dict(made)


@pytest.mark.parametrize("unit, exercise_id", EXERCISES)
def test_a_verdict_does_not_hang_on_the_secret(unit, exercise_id):
    answers = same_with_all_seeds(unit, exercise_id)
    assert len(answers) >= 7
    for answer in answers:
        score, cause = answer.expected[exercise_id]
        outcome = by_seed(unit)[exercise_id, answer.source]
        assert outcome == [(score, bool(cause))] * N_SEEDS, answer.id


@UNIT
def test_each_mistake_is_drawn_by_an_entry(unit):
    facts = FACTS[unit.number]
    drawn = {
        cause for answer in bank_of(unit.number).WRONG for _, cause in answer.expected.values()
    }
    assert (causes_of(unit.number) | facts.of_one_answer) - drawn == facts.never_first


@pytest.mark.parametrize(
    "number, exercise_id, least",
    [(number, *one) for number, facts in FACTS.items() for one in facts.least_mistakes.items()],
)
def test_the_bank_holds_many_mistakes_each_with_a_sentence_of_its_own(number, exercise_id, least):
    known = causes_of(number) | FACTS[number].of_one_answer
    expected = [answer.expected.get(exercise_id, (0, "")) for answer in bank_of(number).WRONG]
    assert len({cause for _, cause in expected} & known) >= least


@pytest.mark.parametrize("unit, exercise_id", EXERCISES)
def test_every_exercise_has_right_answers_wrong_ones_and_each_once(unit, exercise_id):
    bank = bank_of(unit.number)
    kinds = Counter()
    for kind in ("RIGHT", "WRONG", "CHEATS"):
        asked = [answer.id for answer in getattr(bank, kind) if exercise_id in answer.expected]
        kinds[kind] = len(asked)
        assert len(set(asked)) == len(asked)
    assert kinds["RIGHT"] >= 2 and kinds["WRONG"] >= 5


@UNIT
def test_the_kinds_of_cheats_are_there(unit):
    served = any(exercise.evidence == "served" for exercise in unit.exercises)
    for start in (*KINDS_OF_CHEATS, *(["passes_by_"] if served else [])):
        assert any(answer.id.startswith(start) for answer in bank_of(unit.number).CHEATS), start
    (cheat,) = [a for a in bank_of(unit.number).CHEATS if a.id == "tabulates_the_public_cases"]
    assert set(cheat.expected) == {exercise.id for exercise in unit.exercises}
