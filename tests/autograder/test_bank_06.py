import pytest
from judged import SECRETS, judged

from autograder.bank.unit_06 import CHEATS
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("06")


@pytest.mark.parametrize(
    "cheat", [a for a in CHEATS if a.id.startswith("imports_") and not a.needs_walls]
)
def test_importing_the_answer_or_its_parts_is_told_in_the_notebook(cheat):
    for exercise_id in cheat.expected:
        verdict = judged(find_exercise(exercise_id), cheat.source)
        assert verdict.score == 0 and "this is the exercise" in verdict.messages[0]


def test_tabulated_public_cases_pass_in_the_notebook_and_nowhere_else():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    for exercise in UNIT.exercises:
        assert judged(exercise, cheat.source).score == exercise.points
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0 and verdict.status != "passed"
        # What is said of a secret case shows nothing of it: no digit but in the groups' names.
        for group in verdict.groups:
            said = group.message.replace(group.label, "").replace("1F1B", "")
            assert not any(character.isdigit() for character in said), said
