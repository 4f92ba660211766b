import pytest
from judged import SECRETS, judged

from autograder.bank.unit_00 import CHEATS
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("00")
EXERCISES = [exercise.id for exercise in UNIT.exercises]


@pytest.mark.parametrize("exercise_id", ["ring_pass", "ring_pass_fast", "fix_deadlock"])
def test_ranks_share_no_global_of_the_notebook(exercise_id):
    (cheat,) = [answer for answer in CHEATS if answer.id == "passes_by_a_global"]
    assert judged(find_exercise(exercise_id), cheat.source).score == 0


def test_tabulated_public_cases_pass_in_the_notebook_where_messages_are_not_asked_for():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    assert judged(find_exercise("blame"), cheat.source).score == 5
    assert judged(find_exercise("hello"), cheat.source).score == 0
    for exercise in UNIT.exercises:
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0
