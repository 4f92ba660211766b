"""When a race is decided, for whom, and when for nobody: with a clock that says what it is told."""

import importlib
from contextlib import contextmanager

import numpy as np
import pytest

from autograder.checks.speeds import expect_faster, race
from autograder.diagnosis import Miss, StudentError
from autograder.exercise import Draw
from autograder.local import LocalSubject
from autograder.speed import ROUNDS, Race, TooNoisy, Turn, near, threshold


class FakeTurns:
    """Two references and a student whose calls take as many seconds as they are told.

    `noise(side, n)` is a factor of the call number `n` of a side.
    """

    shows_seconds = False
    cpu_outside_s = 0.5

    def __init__(self, student_s=1.0, noise=lambda side, n: 1.0, answer=lambda x: x + 1):
        self.student_s, self.noise, self.answer = student_s, noise, answer
        self.calls = []
        self.measured = {}
        self.n_quiet = 0
        self.is_quiet = False

    @contextmanager
    def quiet(self):
        self.n_quiet, self.is_quiet = self.n_quiet + 1, True
        yield
        self.is_quiet = False

    def reference(self, which, arguments):
        return self.turn(f"reference {which}", 1.0, arguments[0] + 1)

    def student(self, arguments):
        return self.turn("student", self.student_s, self.answer(arguments[0]))

    def turn(self, side, seconds, answer):
        assert self.is_quiet
        self.calls.append(side)
        return Turn(seconds * self.noise(side, self.calls.count(side)), answer)


def race_of(turns, draw=None, same=None):
    rng = np.random.default_rng(0)
    return Race("f", lambda example: turns, draw or (lambda: (rng.random(3), 7)), same)


def test_the_line_is_the_geometric_mean_of_the_two_speeds():
    assert threshold(8.0, 2.0) == 4.0


@pytest.mark.parametrize("speeds", [(1.9, 1.0), (1.0, 2.0), (2.0, 0.0), (-4.0, -8.0)])
def test_speeds_that_cannot_be_told_apart_are_refused(speeds):
    with pytest.raises(ValueError, match="factor of 2"):
        threshold(*speeds)


@pytest.mark.parametrize(("student_s", "faster"), [(0.2, True), (1.0, False), (9.0, False)])
def test_a_clear_race_takes_one_round(student_s, faster):
    turns = FakeTurns(student_s)
    assert race_of(turns).is_faster(4.0) is faster
    n_calls = turns.calls.count("student")
    assert ROUNDS[0] <= n_calls < sum(ROUNDS[:2])
    assert turns.calls.count("reference 0") == turns.calls.count("reference 1") == n_calls
    assert turns.measured["repetitions"] == ROUNDS[0]


def test_nobody_always_goes_after_the_same_one():
    turns = FakeTurns()
    race_of(turns).is_faster(4.0)
    before = {turns.calls[at - 1] for at, side in enumerate(turns.calls) if side == "reference 1"}
    assert before == {"reference 0", "student"}


@pytest.mark.parametrize(("student_s", "faster"), [(0.26, False), (0.8, False), (0.24, True)])
def test_a_close_race_takes_every_round(student_s, faster):
    turns = FakeTurns(student_s)
    assert race_of(turns).is_faster(4.0) is faster
    assert turns.measured["repetitions"] == sum(ROUNDS)
    assert turns.n_quiet == len(ROUNDS)


def test_what_slows_most_calls_decides_nothing():
    turns = FakeTurns(0.2, noise=lambda side, n: 1.0 if n % 10 == 0 else 30.0)
    race = race_of(turns)
    assert race.is_faster(4.0)
    assert race.times_faster == pytest.approx(5.0)


def test_a_round_in_which_only_the_student_is_disturbed_fails_nobody():
    turns = FakeTurns(0.2, noise=lambda side, n: 2.0 if side == "student" and n < 18 else 1.0)
    assert race_of(turns).is_faster(4.0)
    assert turns.measured["repetitions"] == sum(ROUNDS[:2])


def test_a_round_in_which_one_reference_is_slow_is_repeated():
    turns = FakeTurns(0.2, noise=lambda side, n: 1.5 if side == "reference 0" and n < 18 else 1.0)
    assert race_of(turns).is_faster(4.0)
    assert turns.measured["repetitions"] == sum(ROUNDS[:2])


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_noise_in_every_round_is_nobodys_verdict(factor):
    turns = FakeTurns(0.2, noise=lambda side, n: factor if side == "reference 0" else 1.0)
    with pytest.raises(TooNoisy, match=r"3 rounds .* of itself, .* process used 0.50 s"):
        race_of(turns).is_faster(4.0)


def test_a_second_question_takes_no_more_rounds_than_it_needs():
    turns = FakeTurns(0.2)
    race = race_of(turns)
    assert race.is_faster(1.5) and not race.is_faster(40.0)
    assert turns.measured["repetitions"] == ROUNDS[0]
    race.is_faster(5.0)
    assert turns.measured["repetitions"] == sum(ROUNDS)


@pytest.mark.parametrize(
    ("answer", "told"),
    [(lambda x: x, "other numbers"), (lambda x: x[:2] + 1, "shape (2,), expected (3,)")],
)
def test_a_wrong_answer_ends_the_race_for_every_question(answer, told):
    turns = FakeTurns(0.01, answer=answer)
    race = race_of(turns)
    for _ in range(2):
        with pytest.raises(Miss) as miss:
            race.is_faster(4.0)
        assert miss.value.diagnosis.id == "wrong_when_timed"
        assert told in miss.value.diagnosis.text
    assert turns.calls.count("student") == 1


def test_every_repetitions_answer_counts():
    answers = iter([*[1] * 10, 2, *[1] * 100])
    with pytest.raises(Miss):
        race_of(FakeTurns(0.01, answer=lambda x: x + next(answers))).is_faster(4.0)


def test_an_error_of_the_students_is_told_again():
    def fails(x):
        raise StudentError("raised", "your code raises ValueError: no.")

    race = race_of(FakeTurns(answer=fails))
    for _ in range(2):
        with pytest.raises(StudentError, match="no"):
            race.is_faster(4.0)


def test_a_check_may_say_what_agrees():
    turns = FakeTurns(0.2, answer=lambda x: x - 5)
    race = race_of(turns, same=lambda expected, got: np.allclose(expected, got + 6))
    assert race.is_faster(4.0)


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (lambda: (7,), "hold none"),
        (lambda: (np.zeros(3),), "same in every repetition"),
        (iter([(np.zeros(3),), (np.ones(4),)]).__next__, "change their form"),
        (iter([(np.zeros(3), 7), (np.ones(3), 8)]).__next__, "change their form"),
        (iter([(np.zeros(3),), (np.ones(3, np.float32),)]).__next__, "change their form"),
        (iter([(np.zeros(3),), (np.full(3, np.inf),)]).__next__, "not finite"),
    ],
)
def test_inputs_that_make_no_race_are_a_defect_of_the_check(draw, told):
    with pytest.raises(ValueError, match=told):
        race_of(FakeTurns(), draw).is_faster(4.0)


def test_a_slow_answer_is_told_in_steps_and_never_in_figures_of_this_run():
    with pytest.raises(Miss) as miss:
        expect_faster(race_of(FakeTurns(0.9137)), wanted=8.0, unlike=2.0)
    diagnosis = miss.value.diagnosis
    assert diagnosis.id == "slow"
    assert diagnosis.text == diagnosis.general
    assert diagnosis.text == (
        "`f` is slower than asked: at least 4.0x as fast as the reference is asked"
        " (in turns with it, the least of 15 times or more)."
    )


def test_at_home_a_slow_answer_is_told_with_its_figure():
    turns = FakeTurns(0.9137)
    turns.shows_seconds = True
    with pytest.raises(Miss) as miss:
        expect_faster(race_of(turns), wanted=8.0, unlike=2.0)
    assert miss.value.diagnosis.text.startswith("`f` takes 0.91x the time of the reference; at")
    assert "0.91" not in miss.value.diagnosis.general


def test_what_was_seen_is_for_the_record():
    turns = FakeTurns(0.25)
    race_of(turns).is_faster(1.0)
    assert turns.measured == {
        "times_faster": 4.0,
        "control": 1.0,
        "rounds": 1,
        "repetitions": ROUNDS[0],
        "reference_s": 1.0,
        "cpu_outside_s": 0.5,
    }


@pytest.mark.parametrize(
    ("got", "agrees"),
    [
        (np.array([1.0, 2.0, 3.0]), True),
        (np.array([1.0, 2.0, 3.0]) * (1 + 1e-12), True),
        (np.array([1.0, 2.0, 3.0]).astype(np.float32), True),
        (np.array([1.0, 2.0, 3.0]) * (1 + 1e-7), False),
        (np.array([1, 2, 3]), True),
        (np.array([1.0, 2.0, 3.001]), False),
        (np.array([1.0, 2.0, np.nan]), False),
        (np.array([1.0, 2.0, np.inf]), False),
        (np.array([[1.0, 2.0, 3.0]]), False),
        (np.array([1.0, 2.0]), False),
    ],
)
def test_an_answer_agrees_but_for_rounding(got, agrees):
    assert near(np.array([1.0, 2.0, 3.0]), got) is agrees


@pytest.mark.parametrize(
    ("dtype", "agrees"), [("f8", False), ("f4", True), ("c8", True), ("c16", False), ("i8", False)]
)
def test_rounding_is_that_of_the_reference(dtype, agrees):
    expected = np.array([1, 2, 3], dtype)
    assert near(expected, expected * (1 + 1e-5)) is agrees


def test_at_home_noise_is_told_in_one_sentence():
    turns = FakeTurns(noise=lambda side, n: 1.5 if side == "reference 0" else 1.0)
    turns.shows_seconds = True
    with pytest.raises(TooNoisy) as noise:
        race_of(turns).is_faster(4.0)
    told = "The machine is too noisy to time `f`: in 3 rounds the reference took 1.50x the time of"
    assert noise.value._render_traceback_() == [f"{told} itself. Try again."]


@pytest.mark.parametrize("given", ["source", "function"])
def test_a_reference_is_source_or_a_function_of_a_plain_module(tmp_path, monkeypatch, given):
    source = "import math\n\ndef f(x):\n    return x + math.floor(1.5)\n"
    (tmp_path / "plain_reference.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    function = importlib.import_module("plain_reference").f
    names = {"__name__": "__main__"}
    exec("def f(x): return x + 1", names)
    timed = race(
        LocalSubject(names, ["f"]),
        Draw(b"seed"),
        "f",
        reference=source if given == "source" else function,
        inputs=lambda rng: (rng.random(3),),
    )
    timed._turns = timed._open(timed._drawn())
    assert set(timed._repeat(timed._drawn())) == {"reference", "student", "again"}
