import pytest
from judged import SECRETS, first_diagnosis, judged

from autograder.bank.unit_01 import CHEATS
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("01")
EXERCISES = [exercise.id for exercise in UNIT.exercises]


@pytest.mark.parametrize("answer_id", ["imports_the_patterns", "calls_collectives"])
def test_the_packages_own_collectives_are_no_answer_at_home_either(answer_id):
    (cheat,) = [answer for answer in CHEATS if answer.id == answer_id]
    for exercise_id in cheat.expected:
        verdict = judged(find_exercise(exercise_id), cheat.source)
        assert (verdict.score, first_diagnosis(verdict)) == (0, "collective")


def test_tabulated_public_cases_pass_in_the_notebook_where_bytes_are_not_asked_for():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    assert judged(find_exercise("cost_s"), cheat.source).score == 4
    assert judged(find_exercise("ring_all_reduce"), cheat.source).score == 2
    assert judged(find_exercise("ring_all_gather"), cheat.source).score == 2
    for exercise in UNIT.exercises:
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0 and verdict.status != "passed"
