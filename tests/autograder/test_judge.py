import dataclasses

import pytest

from autograder.diagnosis import (
    Case,
    Diagnosis,
    Miss,
    Mistake,
    StudentError,
    each,
    examine,
    expect_error,
)
from autograder.exercise import Draw, Guess, exercise, find_exercise, find_guess, load_unit
from autograder.judge import judge, without_answer

SECRET = bytes(32)


class Subject:
    """A student's `double`, here."""

    def __init__(self, double):
        self.double = double


def differs(case, got):
    expected = 2 * case.args[0]
    if got == expected:
        return None
    text = f"{case} returns {got}, expected {expected}."
    return Diagnosis("differs", text, "double: a value differs.")


ADDS_TWO = Mistake(
    "adds_two",
    each(lambda case, got: got == case.args[0] + 2),
    lambda case, got: f"{case}: you added 2.",
    "double: you added 2.",
)


@exercise("double", title="Double", points=3, names=["double"])
def double(subject, draw):
    with draw.group("small", points=1):
        examine(subject, [Case("double", (n,)) for n in (0, 1, 3)], differs, [ADDS_TWO])
    with draw.group("drawn", points=2):
        high = 10_000 if draw.secret else 100
        cases = [Case("double", (draw.int(10, high),)) for _ in range(5)]
        examine(subject, cases, differs, [ADDS_TWO])


def test_a_right_answer_gets_every_point_in_public_and_in_secret():
    for secret in (None, SECRET):
        verdict = judge(double, Subject(lambda n: 2 * n), secret)
        assert (verdict.status, verdict.score, verdict.messages) == ("passed", 3, [])


def test_a_cause_is_told_only_if_it_explains_every_answer():
    verdict = judge(double, Subject(lambda n: n + 2))
    assert [group.diagnosis for group in verdict.groups] == ["adds_two", "adds_two"]
    verdict = judge(double, Subject(lambda n: n + 2 if n < 3 else n))
    assert [group.diagnosis for group in verdict.groups] == ["differs", "differs"]


def test_a_failing_group_costs_its_own_points_only():
    verdict = judge(double, Subject(lambda n: 2 * n if n < 10 else 7), SECRET)
    assert (verdict.status, verdict.score) == ("partial", 1)
    assert verdict.messages[0].startswith("double(") and "returns 7" in verdict.messages[0]


def test_tabulated_public_cases_fail_in_secret_and_show_no_secret_case():
    verdict = judge(double, Subject(lambda n: 2 * n if n <= 100 else -1), SECRET)
    assert (verdict.status, verdict.score) == ("partial", 1)
    (message,) = verdict.messages
    assert message == "On other cases than the ones you can see (drawn): double: a value differs."


def test_the_secret_run_draws_from_the_secret():
    seen = {}
    for secret in (SECRET, bytes([1]) * 32):
        calls = seen[secret] = []
        judge(double, Subject(lambda n, calls=calls: calls.append(n) or 2 * n), secret)
    assert seen[SECRET][:8] == seen[bytes([1]) * 32][:8]
    assert seen[SECRET][8:] != seen[bytes([1]) * 32][8:]


@pytest.mark.parametrize(
    "kind, status",
    [
        ("unwritten", "unwritten"),
        ("timeout", "timeout"),
        ("out_of_memory", "out_of_memory"),
        ("crashed", "crashed"),
        ("raised", "failed"),
        ("withheld", "failed"),
    ],
)
def test_an_answer_that_never_comes_has_a_status_of_its_own(kind, status):
    def fails(n):
        raise StudentError(kind, "the reason.")

    verdict = judge(double, Subject(fails), SECRET)
    assert (verdict.status, verdict.score) == (status, 0)
    assert "the reason." in verdict.messages[0]


def test_points_outside_groups_belong_to_the_whole_check():
    @exercise("half", title="Half", points=3)
    def half(subject, draw):
        with draw.group("first", points=1):
            pass
        raise Miss(Diagnosis("whole", "all of it", "all of it"))

    verdict = judge(half, Subject(None))
    assert [(g.label, g.score, g.points) for g in verdict.groups] == [
        ("first", 1, 1),
        ("Half", 0, 2),
    ]


def test_a_check_that_fails_as_a_whole_only_in_secret_loses_no_group_it_earned():
    @exercise("late", title="Late", points=1)
    def late(subject, draw):
        if draw.secret:
            raise Miss(Diagnosis("whole", "a secret case", "a general sentence"))

    verdict = judge(late, Subject(None), SECRET)
    assert verdict.score == 0
    assert verdict.messages == [
        "On other cases than the ones you can see (Late): a general sentence"
    ]


def test_a_group_that_a_miss_in_secret_kept_from_being_tried_earns_nothing():
    @exercise("stopped", title="Stopped", points=2, names=["double"])
    def stopped(subject, draw):
        with draw.group("first", points=1):
            pass
        examine(subject, [Case("double", (draw.secret * 7,))], differs)
        with draw.group("second", points=1):
            pass

    verdict = judge(stopped, Subject(lambda n: 0), SECRET)
    assert [(group.label, group.score) for group in verdict.groups] == [
        ("first", 1),
        ("second", 0),
        ("Stopped", 0),
    ]


def test_groups_cannot_hold_more_points_than_the_exercise():
    with pytest.raises(ValueError, match="more than 1 points"):
        judge(dataclasses.replace(double, points=1), Subject(lambda n: 2 * n))


def test_an_exercise_that_was_not_asked_is_not_a_wrong_answer():
    verdict = without_answer(double, "infrastructure", "the sandbox did not start")
    assert (verdict.status, verdict.score, verdict.points) == ("infrastructure", 0, 3)


def test_a_check_without_cases_is_refused():
    with pytest.raises(ValueError, match="cannot fail"):
        examine(Subject(None), [], differs)


def raising(error):
    def double(n):
        raise error

    return Subject(double)


@pytest.mark.parametrize(
    "subject, diagnosis",
    [
        (Subject(lambda n: 0), "no_error"),
        (raising(StudentError("raised", "n=-1 is too small", "TypeError")), "wrong_error"),
        (raising(StudentError("raised", "no", "ValueError")), "wrong_error"),
        (raising(StudentError("timeout", "5 s are over")), "timeout"),
    ],
)
def test_a_promised_error_is_asked_for(subject, diagnosis):
    with pytest.raises(Miss) as miss:
        expect_error(subject, Case("double", (-1,)), -1)
    assert miss.value.diagnosis.id == diagnosis


def test_a_promised_error_that_names_the_value_passes():
    subject = raising(StudentError("raised", "n=-1 is too small", "ValueError"))
    assert expect_error(subject, Case("double", (-1,)), -1) is None


def test_drawn_pairs_are_different_and_hold_the_ones_always_asked():
    pairs = Draw(SECRET).pairs(10, most=(5, 5), always=[(1, 1), (5, 5)])
    assert pairs[:2] == [(1, 1), (5, 5)] and len(set(pairs)) == 12
    assert Draw(SECRET).pairs(10, most=(5, 5), always=[(1, 1), (5, 5)]) == pairs
    assert len(Draw(SECRET).pairs(100, most=(2, 2))) == 4


def test_every_unit_has_its_exercises_with_points_hints_and_known_evidence():
    unit = load_unit("03")
    assert unit.assignment == "03-gpipe"
    assert sum(one.points for one in unit.exercises) == 20
    for one in unit.exercises:
        assert len(one.hints) == 3, one.id
        assert find_exercise(one.id) is one
    for guess in unit.guesses:
        assert find_guess(guess.id) is guess


SHARE = Guess("share", "Which share?", lambda: 0.5, "{:.1%}", least=0, most=1)
COUNT = Guess("count", "How many?", lambda: 3, least=1, most=64, whole=True)


@pytest.mark.parametrize(
    "guess, value, problem",
    [
        (SHARE, 0, ""),
        (SHARE, 0.4, ""),
        (SHARE, 40, "A share lies between 0 and 1; did you mean 0.4?"),
        (SHARE, 27.5, "A share lies between 0 and 1; did you mean 0.275?"),
        (SHARE, -1, "A share lies between 0 and 1."),
        (SHARE, 101, "A share lies between 0 and 1."),
        (SHARE, float("nan"), "A share lies between 0 and 1."),
        (SHARE, None, "None is not a number; give one, like 0.25."),
        (COUNT, True, "True is not a number; give one, like 5."),
        (COUNT, "x" * 100_000, "'xxx"),
        (COUNT, 64, ""),
        (COUNT, 14.0, ""),
        (COUNT, 13.9, "A whole number between 1 and 64 is asked."),
        (COUNT, 0, "A whole number between 1 and 64 is asked."),
        (COUNT, 10**400, "A whole number between 1 and 64 is asked."),
        (COUNT, float("inf"), "A whole number between 1 and 64 is asked."),
        (Guess("any", "How long?", lambda: 1.5, least=1, most=2), 3, "A number between 1 and 2 "),
        (Guess("free", "How long?", lambda: 1.5), -3.5, ""),
    ],
)
def test_a_guess_says_what_keeps_a_value_from_being_an_answer(guess, value, problem):
    said = guess.problem(value)
    assert len(said) < 100
    assert said.startswith(problem) and bool(said) == bool(problem)


@pytest.mark.parametrize("find", [load_unit, find_exercise, find_guess])
def test_an_unknown_id_lists_the_known_ones(find):
    with pytest.raises(ValueError, match="'nope'; known: "):
        find("nope")


def test_unknown_evidence_is_refused():
    with pytest.raises(ValueError, match="evidence='trust'"):
        exercise("x", title="X", points=1, evidence="trust")
