"""A timed exercise in grading, on every rung: points, record, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import speed_toy as toy
import toy_notebook

from autograder import grader as grading
from autograder.grader import NOISY_TRIES, Grader
from autograder.sandbox import RUNGS, Sandbox, SandboxError, build_runtime
from autograder.speed import TooNoisy
from autograder.submissions.cells import parse_notebook
from autograder.submissions.ingest import Cell, Submission


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(toy.TOY, folder)
    return folder


@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_gives_the_same_verdicts(runtime, rung):
    with Sandbox(runtime, rung=rung) as sandbox:
        try:
            assert sandbox.rung == rung
        except SandboxError as error:
            pytest.skip(str(error))
        slow, fast = (toy.graded(sandbox, source) for source in (toy.REFERENCE, toy.INDEXED))
    assert (slow.score, fast.score) == (0, 3)
    # Not a figure of this run in what is recorded outside the run's own block.
    asked = "is slower than asked: at least {}x as fast as the reference is asked"
    for group, times in zip(slow.groups, ("1.4", "3.9"), strict=True):
        assert asked.format(times) in group.message


def graded(unit, runtime, source):
    """What the grader makes of a submission of that one cell."""
    master = parse_notebook(toy_notebook.notebook())
    with Grader(unit, master, runtime, toy.SECRET) as grader:
        return grader.grade_submission(Submission("", [Cell("solution", source)], []))


def test_what_was_timed_stands_in_the_block_of_the_run(runtime):
    done = graded(toy.TOY, runtime, toy.INDEXED)
    assert (done.status, done.exercises[0].score) == ("graded", 3)
    assert done.exercises[0].evidence == "observed"
    seen = done.runs["dispatch"]["measured"]["dispatch"]
    assert seen["times_faster"] > 1 and seen["repetitions"] >= 15
    assert "times_faster" not in json.dumps(done.exercises)


def test_noise_is_tried_again_and_then_scores_nothing(runtime, monkeypatch):
    monkeypatch.setattr(grading, "_PAUSE_S", 0.0)
    tried = []

    def check(subject, draw):
        tried.append(subject)
        raise TooNoisy("the machine is too noisy to time `dispatch`")

    unit = toy.TOY._replace(exercises=(toy.of_check(check),))
    done = graded(unit, runtime, toy.INDEXED)
    assert len(tried) == NOISY_TRIES
    assert done.status == done.exercises[0].status == "infrastructure"
    assert "too noisy to time `dispatch`" in done.reason


JUDGE = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import speed_toy as toy
from autograder.sandbox import Sandbox
from autograder.worker.walls import children_of
def below(pid):
    return [pid, *(found for child in children_of(pid) for found in below(child))]
with Sandbox(Path(sys.argv[2])) as sandbox:
    subject = sandbox.open([("a", toy.INDEXED)], ["dispatch"], alone=True)
    arguments = toy.inputs(toy.np.random.default_rng(0))
    turns = subject.observed.turns("dispatch", toy.REFERENCE, arguments)
    import os
    print(*below(os.getpid())[1:], flush=True)
    time.sleep(60)
"""


def test_a_judge_that_is_killed_leaves_no_process_standing(runtime):
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, os.path.dirname(__file__), str(runtime)],
        stdout=subprocess.PIPE,
        text=True,
    )
    pids = judge.stdout.readline().split()
    judge.send_signal(signal.SIGKILL)
    judge.wait(10)
    judge.stdout.close()
    assert len(pids) >= 4  # a warm parent and three that stand still
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline, "processes are left"
        time.sleep(0.05)
