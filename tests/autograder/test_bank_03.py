from collections import Counter
from functools import cache

import pytest
from judged import CAUSES, SECRETS, UNIT, first_diagnosis, judged, names_of, run

from autograder import diagnosis, oracle
from autograder.bank.unit_03 import CHEATS, RIGHT, WRONG
from autograder.checks import unit_03
from autograder.exercise import find_exercise
from autograder.local import LocalSubject

EXERCISES = [exercise.id for exercise in UNIT.exercises]
# Causes that any exercise about numbers can name.
SHARED = {"constant", "rounded", "percent"}
# Two kinds of it: no tolerance and one too small; with ratios and with losses.
TWICE = {"float_noise", "exact_floats"}
# Told without a look at the other answers, since they only say what differs.
OF_ONE_ANSWER = {"gradient_order", "activation_order", "empty_piece", "unknown_name"}
# How many mistakes each of E1 to E6 must know.
LEAST_MISTAKES = {
    "gpipe": 9,
    "idle_share": 6,
    "bubble": 9,
    "step_time": 6,
    "split_batch": 5,
    "cause": 8,
}


def cases(answers):
    return [
        pytest.param(answer, exercise, id=f"{answer.id}-{exercise}")
        for answer in answers
        for exercise in answer.expected
    ]


@pytest.mark.parametrize("secret", [None, *SECRETS], ids=["notebook", "secret", "other-secret"])
@pytest.mark.parametrize("answer, exercise_id", cases(RIGHT))
def test_a_right_answer_gets_full_marks(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, verdict.messages) == (verdict.points, [])
    assert answer.expected[exercise_id] == (verdict.points, "")


@pytest.mark.parametrize("secret", [None, *SECRETS], ids=["notebook", "secret", "other-secret"])
@pytest.mark.parametrize("answer, exercise_id", cases(WRONG))
def test_a_wrong_answer_draws_its_own_diagnosis(answer, exercise_id, secret):
    verdict = judged(find_exercise(exercise_id), answer.source, secret)
    assert (verdict.score, first_diagnosis(verdict)) == answer.expected[exercise_id]
    for message in verdict.messages:
        assert len(message.splitlines()) <= 12 and len(message) < 600


@pytest.mark.parametrize(
    "exercise_id",
    ["idle_share", "bubble", "step_time", "best_microbatches", "split_batch", "cause"],
)
def test_a_verdict_does_not_hang_on_the_secret(exercise_id, monkeypatch):
    # The causes change no score, and take most of the time; truths are asked for again and again.
    monkeypatch.setattr(unit_03, "examine", lambda *args: diagnosis.examine(*args[:3]))
    for name in ("best_microbatches", "min_microbatches", "smallest_best", "step_time_s"):
        monkeypatch.setattr(oracle, name, cache(getattr(oracle, name)))
    monkeypatch.setattr(unit_03, "drawn_runs", cache(unit_03.drawn_runs))
    exercise = find_exercise(exercise_id)
    for answer in [*RIGHT, *WRONG]:
        if exercise_id in answer.expected:
            score, _ = answer.expected[exercise_id]
            for number in range(20):
                subject = LocalSubject(names_of(answer.source), exercise.names)
                groups = run(exercise, subject, secret=True, seed=bytes([number]) * 16)
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
        verdict = judged(find_exercise("gpipe"), cheat.source)
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


def test_each_mistake_is_drawn_by_exactly_one_entry():
    drawn = Counter(cause for answer in WRONG for cause in {d for _, d in answer.expected.values()})
    for known in (CAUSES - SHARED - TWICE) | OF_ONE_ANSWER:
        assert drawn[known] == 1, known
    for known in SHARED | TWICE:
        assert drawn[known] >= 1, known


@pytest.mark.parametrize("exercise_id", LEAST_MISTAKES)
def test_the_bank_holds_the_mistakes_of_the_outline(exercise_id):
    causes = CAUSES | OF_ONE_ANSWER
    drawn = {answer.expected[exercise_id][1] for answer in WRONG if exercise_id in answer.expected}
    assert len(drawn & causes) >= LEAST_MISTAKES[exercise_id]


def test_every_answer_is_there_once_and_every_exercise_has_right_and_general_ones():
    answers = [*RIGHT, *WRONG, *CHEATS]
    assert len({answer.id for answer in answers}) == len(answers)
    general = Counter(
        exercise
        for answer in WRONG
        for exercise, (_, cause) in answer.expected.items()
        if cause not in CAUSES | OF_ONE_ANSWER
    )
    for exercise_id in EXERCISES:
        assert sum(exercise_id in answer.expected for answer in RIGHT) >= 2
        assert general[exercise_id] >= 3


def test_the_four_kinds_of_cheats_are_there():
    for start in ("imports_", "tabulates_", "patches_", "numbers_that_lie"):
        assert any(answer.id.startswith(start) for answer in CHEATS)
    assert sum(answer.id.startswith("imports_") for answer in CHEATS) >= 3
    assert sum(answer.id.startswith("patches_") for answer in CHEATS) >= 3
