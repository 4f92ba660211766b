from collections import Counter

from judged import SECRETS, causes_of, judged
from unit_facts import FACTS

from autograder.bank.unit_03 import CHEATS, WRONG
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("03")

EXERCISES = [exercise.id for exercise in UNIT.exercises]
# Causes that any exercise about numbers can name.
SHARED = {"constant", "rounded", "percent"}
# Two kinds of it: no tolerance and one too small; with ratios and with losses.
TWICE = {"float_noise", "exact_floats"}


def test_importing_the_answer_is_told_in_the_notebook():
    cheats = [a for a in CHEATS if a.id.startswith("imports_") and not a.needs_walls]
    assert len(cheats) == 2
    for cheat in cheats:
        verdict = judged(find_exercise("gpipe"), cheat.source)
        assert verdict.score == 0 and "this is the exercise" in verdict.messages[0]


def test_tabulated_public_cases_pass_in_the_notebook_and_nowhere_else():
    (cheat,) = [answer for answer in CHEATS if answer.id == "tabulates_the_public_cases"]
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
    for known in (causes_of("03") - SHARED - TWICE) | FACTS["03"].of_one_answer:
        assert drawn[known] == 1, known
    for known in SHARED | TWICE:
        assert drawn[known] >= 1, known


def test_there_are_several_ways_to_import_and_to_patch():
    assert sum(answer.id.startswith("imports_") for answer in CHEATS) >= 3
    assert sum(answer.id.startswith("patches_") for answer in CHEATS) >= 3
