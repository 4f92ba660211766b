from collections import Counter

import pytest
from banks import cases, causes_of, run_check
from judged import SECRETS, first_diagnosis, judged, names_of

from autograder.bank.unit_01 import CHEATS, RIGHT, WRONG
from autograder.exercise import find_exercise, load_unit
from autograder.local import LocalSubject

UNIT = load_unit("01")
EXERCISES = [exercise.id for exercise in UNIT.exercises]
CAUSES = causes_of(
    "01",
    "ring_mistakes",
    "reduce_mistakes",
    "traffic",
    "cost_mistakes",
    "trees",
    "cause_mistakes",
)
LEAST_MISTAKES = {
    "ring_all_gather": 9,
    "ring_reduce_scatter": 10,
    "ring_all_reduce": 8,
    "ring_all_reduce_fast": 3,
    "cost_s": 14,
    "tree_broadcast": 3,
    "sum_cause": 7,
}
# Told after another one: whoever takes the time of rank 0 sends its bytes, too.
SECOND = {"through_rank_0_clock"}
SECRET = pytest.mark.parametrize(
    "secret", [None, *SECRETS], ids=["notebook", "secret", "other-secret"]
)


@SECRET
@pytest.mark.parametrize("answer, exercise_id", cases(RIGHT))
def test_a_right_answer_gets_full_marks(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, verdict.messages) == (verdict.points, [])
    assert (verdict.status, answer.expected[exercise_id]) == ("passed", (verdict.points, ""))


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
        if exercise_id not in answer.expected:
            continue
        score, diagnosis = answer.expected[exercise_id]
        for number in range(8):
            subject = LocalSubject(names_of(answer.source), exercise.names)
            groups = run_check(exercise, subject, secret=True, seed=bytes([number]) * 16)
            got = sum(group.points for group in groups if not group.diagnosis)
            assert got == score, (answer.id, number)
            assert any(group.diagnosis for group in groups) == bool(diagnosis), (answer.id, number)


@pytest.mark.parametrize(
    "answer, exercise_id", cases(answer for answer in CHEATS if not answer.needs_walls)
)
def test_a_cheat_scores_nothing_in_the_grader(answer, exercise_id):
    for secret in SECRETS:
        verdict = judged(find_exercise(exercise_id), answer.source, secret)
        assert (verdict.score, first_diagnosis(verdict)) == answer.expected[exercise_id]


@pytest.mark.parametrize("answer_id", ["imports_the_patterns", "calls_collectives"])
def test_the_packages_own_collectives_are_no_answer_at_home_either(answer_id):
    (cheat,) = [answer for answer in CHEATS if answer.id == answer_id]
    for exercise_id in cheat.expected:
        verdict = judged(find_exercise(exercise_id), cheat.source)
        assert (verdict.score, first_diagnosis(verdict)) == (0, "collective")


def test_tabulated_public_cases_pass_in_the_notebook_where_bytes_are_not_asked_for():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    assert set(cheat.expected) == set(EXERCISES)
    assert judged(find_exercise("cost_s"), cheat.source).score == 4
    assert judged(find_exercise("ring_all_reduce"), cheat.source).score == 2
    assert judged(find_exercise("ring_all_gather"), cheat.source).score == 2
    for exercise in UNIT.exercises:
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0 and verdict.status != "passed"


def test_each_mistake_is_drawn_by_an_entry():
    drawn = Counter(cause for answer in WRONG for cause in {d for _, d in answer.expected.values()})
    assert {known for known in CAUSES if not drawn[known]} == SECOND


@pytest.mark.parametrize("exercise_id", LEAST_MISTAKES)
def test_the_bank_holds_the_mistakes_of_the_outline(exercise_id):
    drawn = {answer.expected[exercise_id][1] for answer in WRONG if exercise_id in answer.expected}
    assert len(drawn & CAUSES) >= LEAST_MISTAKES[exercise_id]


def test_every_answer_is_there_once_and_every_exercise_has_enough():
    answers = [*RIGHT, *WRONG, *CHEATS]
    assert len({answer.id for answer in answers}) == len(answers)
    for exercise_id in EXERCISES:
        of_exercise = [answer for answer in answers if exercise_id in answer.expected]
        assert sum(answer in RIGHT for answer in of_exercise) >= 2
        wrong = {answer.expected[exercise_id][1] for answer in of_exercise if answer in WRONG}
        assert len(wrong - {""}) >= 5, exercise_id


def test_the_kinds_of_cheats_are_there():
    for start in ("imports_", "tabulates_", "patches_", "passes_by_", "numbers_that_lie"):
        assert any(answer.id.startswith(start) for answer in CHEATS)
