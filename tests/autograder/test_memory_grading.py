"""Memory as a grade: the most that one call takes, as a ratio to a reference's."""

import numpy as np
import pytest
import speed_toy as toy

from autograder.checks.speeds import expect_less_memory
from autograder.exercise import Exercise
from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.memory import LEAST_BYTES, Peaks
from autograder.sandbox import Sandbox, build_runtime

# Mean distances of points: all pairs at once, or a row at a time.
ALL_PAIRS = """
import numpy as np

def spread(x):
    return np.abs(x[:, None] - x[None, :]).mean(axis=1)
"""
BY_ROW = """
import numpy as np

def spread(x):
    return np.array([np.abs(row - x).mean() for row in x])
"""
HOARDS = BY_ROW.replace("def spread", "kept = np.ones(12 * 2**20)\n\ndef spread")
FREED = BY_ROW.replace("    return", "    np.ones(12 * 2**20)\n    return")
WRONG = BY_ROW.replace("row - x", "row + x")


def check(subject, draw):
    expect_less_memory(
        subject,
        draw,
        "spread",
        reference=ALL_PAIRS,
        inputs=lambda rng: (rng.standard_normal(3000),),
        wanted=8.0,
    )


EXERCISE = Exercise("spread", "Spread", 2, ("spread",), "observed", (), (), "99", check)
VERDICTS = pytest.mark.parametrize(
    ("source", "score", "diagnosis"),
    [
        (BY_ROW, 2, ""),
        (ALL_PAIRS, 0, "much_memory"),
        (FREED, 0, "much_memory"),
        (WRONG, 0, "wrong_when_observed"),
        ("def spread(x):\n    return 1 / 0", 0, "raised"),
        ("", 0, "missing"),
    ],
    ids=["by row", "all pairs", "freed before the end", "wrong", "raises", "missing"],
)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(toy.TOY._replace(exercises=(EXERCISE,)), folder)
    with Sandbox(folder) as made:
        yield made


def test_the_ratio_is_of_what_was_taken_above_an_idle_process():
    assert Peaks(10 * 2**20, 40 * 2**20).times_less == 4.0


@pytest.mark.parametrize("taken", [0, -(2**20)])
def test_next_to_nothing_is_a_finite_ratio(taken):
    assert Peaks(taken, 40 * 2**20).times_less == 40 * 2**20 / 4096


def test_a_reference_that_takes_too_little_is_refused():
    with pytest.raises(ValueError, match="16 or more"):
        _ = Peaks(1, LEAST_BYTES - 1).times_less


@VERDICTS
def test_each_need_of_memory_gets_its_points(sandbox, source, score, diagnosis):
    verdict = toy.graded(sandbox, source, EXERCISE)
    assert (verdict.score, verdict.groups[0].diagnosis) == (score, diagnosis), verdict.messages


@VERDICTS
def test_at_home_the_verdict_is_the_same(source, score, diagnosis):
    names = {"__name__": "__main__"}
    exec(compile(source, "<your cell>", "exec"), names)
    verdict = judge(EXERCISE, LocalSubject(names, EXERCISE.names))
    assert (verdict.score, verdict.groups[0].diagnosis) == (score, diagnosis), verdict.messages


def test_memory_taken_by_a_cell_counts_too(sandbox):
    verdict = toy.graded(sandbox, HOARDS, EXERCISE)
    assert verdict.groups[0].diagnosis == "much_memory"


def test_the_record_holds_what_was_seen(sandbox):
    with sandbox.open([("solution", BY_ROW)], ["spread"], alone=True) as subject:
        judge(EXERCISE, subject, toy.SECRET)
        seen = subject.measured["spread, memory"]
    assert seen["reference_bytes"] > 8 * seen["student_bytes"]
    assert seen["reference_bytes"] > np.zeros((3000, 3000)).nbytes
