from judged import SECRETS, judged

from autograder.bank.unit_04 import CHEATS
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("04")


def test_importing_the_answer_is_told_in_the_notebook():
    cheats = [a for a in CHEATS if a.id.startswith("imports_") and not a.needs_walls]
    assert len(cheats) == 2
    for cheat in cheats:
        for exercise_id in cheat.expected:
            verdict = judged(find_exercise(exercise_id), cheat.source)
            assert verdict.score == 0 and "this is the exercise" in verdict.messages[0]


def test_tabulated_public_cases_pass_in_the_notebook_where_nothing_is_served():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    for exercise in UNIT.exercises:
        at_home = judged(exercise, cheat.source).score
        assert at_home == (exercise.points if exercise.evidence == "data" else 0)
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0
        if exercise.evidence == "data":
            # What is said of a secret case shows nothing of it: no digit but in groups' names.
            for group in verdict.groups:
                said = group.message.replace(group.label, "")
                assert not any(character.isdigit() for character in said), said


def test_a_name_said_to_be_dropped_cannot_be_used_again():
    for cheat in (answer for answer in CHEATS if answer.id.startswith("passes_by_")):
        for exercise_id in cheat.expected:
            (message, *_) = judged(find_exercise(exercise_id), cheat.source).messages
            assert "the chain." in message and "cannot take these arguments" in message
