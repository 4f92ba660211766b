from collections import Counter

import pytest
from asked_02 import CAUSES, UNIT, run_check
from banks import cases
from judged import SECRETS, first_diagnosis, judged, names_of

from autograder.bank.unit_02 import CHEATS, RIGHT, WRONG
from autograder.exercise import find_exercise
from autograder.local import LocalSubject

EXERCISES = [exercise.id for exercise in UNIT.exercises]
# Told without a look at the other answers, since they only say what differs.
OF_ONE_ANSWER = {"activation_order", "overlaps", "holds_more", "form", "unknown_name"}
LEAST_MISTAKES = {
    "naive": 8,
    "naive_busy": 3,
    "utilisation": 12,
    "boundary_bytes": 8,
    "memory_bill": 25,
    "bill_cause": 7,
}
SECRET = pytest.mark.parametrize(
    "secret", [None, *SECRETS], ids=["notebook", "secret", "other-secret"]
)


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
        if exercise_id in answer.expected:
            score, _ = answer.expected[exercise_id]
            for number in range(12):
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


def test_importing_the_answer_is_told_in_the_notebook():
    cheats = [a for a in CHEATS if a.id.startswith("imports_") and not a.needs_walls]
    assert len(cheats) == 2
    for cheat in cheats:
        for exercise_id in cheat.expected:
            verdict = judged(find_exercise(exercise_id), cheat.source)
            assert verdict.score == 0 and "this is the exercise" in verdict.messages[0]


def test_tabulated_public_cases_pass_in_the_notebook_and_nowhere_else():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    assert set(cheat.expected) == set(EXERCISES)
    for exercise in UNIT.exercises:
        assert judged(exercise, cheat.source).score == exercise.points
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0
        # What is said of a secret case shows nothing of it: no digit but in the groups' names.
        for group in verdict.groups:
            said = group.message.replace(group.label, "")
            assert not any(character.isdigit() for character in said), said


def test_each_mistake_is_drawn_by_an_entry():
    drawn = Counter(cause for answer in WRONG for cause in {d for _, d in answer.expected.values()})
    assert {known for known in CAUSES | OF_ONE_ANSWER if not drawn[known]} == set()


@pytest.mark.parametrize("exercise_id", LEAST_MISTAKES)
def test_the_bank_holds_many_mistakes_each_with_a_sentence_of_its_own(exercise_id):
    drawn = {answer.expected[exercise_id][1] for answer in WRONG if exercise_id in answer.expected}
    assert len(drawn & (CAUSES | OF_ONE_ANSWER)) >= LEAST_MISTAKES[exercise_id]


def test_every_answer_is_there_once_and_every_exercise_has_right_and_general_ones():
    answers = [*RIGHT, *WRONG, *CHEATS]
    assert len({answer.id for answer in answers}) == len(answers)
    general = Counter(
        exercise
        for answer in WRONG
        for exercise, (_, cause) in answer.expected.items()
        if cause not in CAUSES
    )
    for exercise_id in EXERCISES:
        assert sum(exercise_id in answer.expected for answer in RIGHT) >= 2
        assert general[exercise_id] >= 3


def test_the_kinds_of_cheats_are_there():
    for start in ("imports_", "tabulates_", "patches_", "numbers_that_lie"):
        assert any(answer.id.startswith(start) for answer in CHEATS)
