import re

import pytest
from judged import SECRETS, Asked, judged, run_check

from autograder.bank.unit_03 import WRONG
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("03")


def test_a_miss_that_may_follow_from_another_says_what_to_mend_first():
    source = """
def bubble_fraction(k, m):
    return (k - 1) / m


def bubble_over_ideal(k, m):
    return (k - 1) / m


def min_microbatches(k, share):
    return next(m for m in range(1, 99_999) if bubble_fraction(k, m) <= share)
"""
    verdict = judged(find_exercise("bubble"), source)
    assert [bool(group.score) for group in verdict.groups] == [False, True, False]
    assert verdict.messages[1].endswith("If it calls your bubble_fraction, mend that first.")


STEP_TIME = """
def step_time_s(k, m, n, s, o):
    return {time}


def best_microbatches(k, n, s, o):
    return {best}
"""
SEARCH = "min(range(1, n + 1), key=lambda m: step_time_s(k, m, n, s, o))"
MEND_FIRST = "If it calls your step_time_s, mend that first."


@pytest.mark.parametrize(
    "time, best, mend_first",
    [
        ("3 * m * (o + n / m * s)", SEARCH, True),
        ("no_such_name", SEARCH, True),
        ("3 * (m + k - 1) * (o + n / m * s)", "n", False),
    ],
)
def test_slow_numbers_from_wrong_times_say_to_mend_the_times_first(time, best, mend_first):
    source = STEP_TIME.format(time=time, best=best)
    (message,) = judged(find_exercise("best_microbatches"), source).messages
    assert message.endswith(MEND_FIRST) == mend_first


def test_a_best_number_needs_no_step_time_of_its_own():
    rule = "next(m for m in range(1, n + 1) if m == n or (k - 1) * n * s <= o * m * (m + 1))"
    source = f"def best_microbatches(k, n, s, o):\n    return {rule}\n"
    exercise = find_exercise("best_microbatches")
    assert judged(exercise, source, SECRETS[0]).score == exercise.points
    (message,) = judged(exercise, source.replace("m == n or ", "m > 1 or ")).messages
    assert MEND_FIRST not in message


def test_the_machine_of_the_guess_is_never_asked():
    asked = Asked("03")
    for exercise in UNIT.exercises:
        run_check(exercise, asked)
    machines = [args for name, args in asked.calls if name == "best_microbatches"]
    assert machines and not any(k == 4 and n == 64 and s == o for k, n, s, o in machines)


def test_one_too_many_where_the_bound_is_met_is_told_of_floats_in_every_digit():
    (answer,) = [answer for answer in WRONG if answer.id == "bare_ceil"]
    (message,) = judged(find_exercise("bubble"), answer.source).messages
    assert "0.33333333333333331" in message and "Floats lie just beside" in message


def test_a_schedule_of_one_stage_per_rank_is_told_of_in_stages():
    for answer in WRONG:
        for exercise_id in ("gpipe", "gpipe_fast"):
            if exercise_id in answer.expected:
                for message in judged(find_exercise(exercise_id), answer.source).messages:
                    assert not re.search(r"rank|channel", message), message
