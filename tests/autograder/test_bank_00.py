from collections import Counter

import pytest
from banks import cases, causes_of, run_check
from judged import SECRETS, first_diagnosis, judged, names_of

from autograder import local
from autograder.bank.unit_00 import CHEATS, RIGHT, WRONG
from autograder.exercise import find_exercise, load_unit
from autograder.local import LocalSubject
from autograder.worker.walls import Limits

UNIT = load_unit("00")
EXERCISES = [exercise.id for exercise in UNIT.exercises]
CAUSES = causes_of("00", "hello_mistakes", "ring_mistakes", "deadlock_mistakes", "blame_mistakes")
LEAST_MISTAKES = {
    "hello": 4,
    "ring_pass": 8,
    "fix_deadlock": 5,
    "fix_deadlock_fast": 5,
    "blame": 10,
}
SECRET = pytest.mark.parametrize(
    "secret", [None, *SECRETS], ids=["notebook", "secret", "other-secret"]
)


@pytest.fixture(autouse=True)
def short_limit(monkeypatch):
    """A loop without end is one of the bank's mistakes; here it need not last five seconds."""
    monkeypatch.setattr(local, "Limits", lambda: Limits(call_s=1.0))


@SECRET
@pytest.mark.parametrize("answer, exercise_id", cases(RIGHT))
def test_a_right_answer_gets_full_marks(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, verdict.messages) == (verdict.points, [])
    assert answer.expected[exercise_id] == (verdict.points, "")


@SECRET
@pytest.mark.parametrize("answer, exercise_id", cases(WRONG))
def test_a_wrong_answer_draws_its_own_diagnosis(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, first_diagnosis(verdict)) == answer.expected[exercise_id]
    for message in verdict.messages:
        assert len(message.splitlines()) <= 12 and len(message) < 600


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_a_verdict_does_not_hang_on_the_secret(exercise_id):
    exercise = find_exercise(exercise_id)
    for answer in [*RIGHT, *WRONG]:
        score, diagnosis = answer.expected.get(exercise_id, (0, "timeout"))
        for number in range(0 if diagnosis == "timeout" else 8):
            subject = LocalSubject(names_of(answer.source), exercise.names)
            groups = run_check(exercise, subject, secret=True, seed=bytes([number]) * 16)
            got = sum(group.points for group in groups if not group.diagnosis)
            assert got == score, (answer.id, number)


@pytest.mark.parametrize(
    "answer, exercise_id", cases(answer for answer in CHEATS if not answer.needs_walls)
)
def test_a_cheat_scores_nothing_in_the_grader(answer, exercise_id):
    for secret in SECRETS:
        verdict = judged(find_exercise(exercise_id), answer.source, secret)
        assert (verdict.score, first_diagnosis(verdict)) == answer.expected[exercise_id]


@pytest.mark.parametrize("exercise_id", ["ring_pass", "ring_pass_fast", "fix_deadlock"])
def test_ranks_share_no_global_of_the_notebook(exercise_id):
    (cheat,) = [answer for answer in CHEATS if answer.id == "passes_by_a_global"]
    assert judged(find_exercise(exercise_id), cheat.source).score == 0


def test_tabulated_public_cases_pass_in_the_notebook_where_messages_are_not_asked_for():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    assert set(cheat.expected) == set(EXERCISES)
    assert judged(find_exercise("blame"), cheat.source).score == 5
    assert judged(find_exercise("hello"), cheat.source).score == 0
    for exercise in UNIT.exercises:
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0


def test_each_mistake_is_drawn_by_an_entry():
    drawn = Counter(cause for answer in WRONG for cause in {d for _, d in answer.expected.values()})
    assert {known for known in CAUSES if not drawn[known]} == set()


@pytest.mark.parametrize("exercise_id", LEAST_MISTAKES)
def test_the_bank_holds_the_mistakes_of_the_outline(exercise_id):
    drawn = {answer.expected[exercise_id][1] for answer in WRONG if exercise_id in answer.expected}
    assert len(drawn & CAUSES) >= LEAST_MISTAKES[exercise_id]


def test_every_answer_is_there_once_and_every_exercise_has_enough():
    answers = [*RIGHT, *WRONG, *CHEATS]
    assert len({answer.id for answer in CHEATS}) == len(CHEATS)
    for exercise_id in EXERCISES:
        of_exercise = [answer for answer in answers if exercise_id in answer.expected]
        assert len({answer.id for answer in of_exercise}) == len(of_exercise)
        assert sum(answer in RIGHT for answer in of_exercise) >= 2
        wrong = [answer.expected[exercise_id] for answer in of_exercise if answer in WRONG]
        assert len({diagnosis for _, diagnosis in wrong if diagnosis}) >= 5


def test_the_kinds_of_cheats_are_there():
    for start in ("imports_", "tabulates_", "patches_", "passes_by_", "numbers_that_lie"):
        assert any(answer.id.startswith(start) for answer in CHEATS)
