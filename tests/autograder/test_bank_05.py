from judged import SECRETS, judged

from autograder.bank.unit_05 import CHEATS
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("05")


def test_importing_the_answer_is_told_in_the_notebook():
    cheats = [a for a in CHEATS if a.id.startswith("imports_") and not a.needs_walls]
    assert len(cheats) == 6
    for cheat in cheats:
        for exercise_id, (score, diagnosis) in cheat.expected.items():
            verdict = judged(find_exercise(exercise_id), cheat.source)
            assert verdict.score == score < verdict.points
            if diagnosis == "withheld":
                assert "this is the exercise" in verdict.messages[0]


def test_tabulated_public_cases_pass_in_the_notebook_and_nowhere_else():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
    for exercise in UNIT.exercises:
        assert judged(exercise, cheat.source).score == exercise.points
        verdict = judged(exercise, cheat.source, SECRETS[0])
        assert verdict.score == 0 and verdict.status != "passed"
        # What is said of a secret case shows nothing of it: no digit but in the groups' names.
        for group in verdict.groups:
            said = group.message.replace(group.label, "")
            assert not any(character.isdigit() for character in said), said


def test_a_schedule_of_an_earlier_unit_earns_nothing():
    for name, diagnosis in (("naive", "one_at_a_time"), ("gpipe", "all_forwards_first")):
        source = f"from mpedu.families import {name} as one_f_one_b"
        for id in ("one_f_one_b", "one_f_one_b_lean"):
            for secret in SECRETS:
                verdict = judged(find_exercise(id), source, secret)
                assert verdict.score == 0 and verdict.groups[0].diagnosis == diagnosis
