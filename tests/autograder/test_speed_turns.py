"""Turns behind walls: who stands still meanwhile, what is shared, and what the verdicts are."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import speed_toy as toy

from autograder.checks.speeds import race
from autograder.diagnosis import StudentError
from autograder.exercise import Draw
from autograder.sandbox import Sandbox, build_runtime
from autograder.sandbox.turns import one_core
from autograder.speed import TooNoisy
from autograder.worker.walls import Limits

COUNTER = """
import time
def dispatch(x, *rest):
    return np.array([time.process_time(), time.monotonic()]) + 0 * x[0, 0]
"""
# Says that it is done, and goes on.
GOES_ON = """
from autograder.worker import student
serve = student._Notebook.serve
def on_and_on(self, channel, message):
    serve(self, channel, message)
    while message[0] == "go":
        pass
student._Notebook.serve = on_and_on
def dispatch(x):
    return x
"""
X = (np.zeros((2, 2)),)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(toy.TOY, folder)
    return folder


@pytest.fixture(scope="module")
def sandbox(runtime):
    with Sandbox(runtime, Limits(call_s=10)) as made:
        yield made


@pytest.fixture
def lane(sandbox):
    """Opens turns of a source against the reference, and closes them."""
    opened = []

    def turns(source, example=X, alone=True):
        cells = [("solution", "import numpy as np\n" + source)]
        subject = sandbox.open(cells, ["dispatch"], alone=alone)
        opened.append(subject)
        return subject, subject.observed.turns("dispatch", toy.REFERENCE, example)

    yield turns
    for subject in opened:
        subject.close()


@pytest.mark.parametrize(
    ("source", "scores", "status"),
    [
        (toy.INDEXED, [1, 2], "passed"),
        (toy.PARTLY, [1, 0], "partial"),
        (toy.REFERENCE, [0, 0], "failed"),
    ],
    ids=["indexed", "partly", "reference"],
)
def test_each_speed_gets_its_points(sandbox, source, scores, status):
    verdict = toy.graded(sandbox, source)
    assert [group.score for group in verdict.groups] == scores, verdict.messages
    assert verdict.status == status
    slow = [group for group in verdict.groups if not group.score]
    assert [group.diagnosis for group in slow] == ["slow"] * len(slow)
    assert all("is slower than asked" in group.message for group in slow)


@pytest.mark.parametrize(
    ("source", "score"), [(toy.INDEXED, 3), (toy.REFERENCE, 0)], ids=["indexed", "reference"]
)
def test_at_home_the_verdict_is_the_same(source, score):
    for _ in range(toy.MOST_TRIES):
        try:
            verdict = toy.at_home(source)
            break
        except TooNoisy:
            continue
    assert verdict.score == score
    if not score:
        assert "x the time of the reference" in verdict.messages[0]


def test_the_record_holds_what_was_seen(sandbox):
    cells = [("solution", toy.INDEXED)]
    with sandbox.open(cells, ["dispatch"], alone=True) as subject:
        timed = race(subject, Draw(b"x"), "dispatch", reference=toy.REFERENCE, inputs=toy.inputs)
        timed._round()
        seen = subject.measured["dispatch"]
    assert set(seen) == {
        "times_faster",
        "control",
        "rounds",
        "repetitions",
        "reference_s",
        "cpu_outside_s",
    }


def test_between_its_turns_a_process_does_nothing(lane):
    _, turns = lane(GOES_ON)
    turns.student(X)
    used_s = turns._student._subject._process.stop(10)
    time.sleep(0.3)
    assert turns._student._subject._process.stop(10) == used_s


def test_what_a_process_uses_after_its_answer_is_counted(lane):
    _, turns = lane(GOES_ON)
    lane_of_student = turns._student
    stop = lane_of_student._subject._process.stop
    lane_of_student._subject._process.stop = lambda limit_s: time.sleep(0.3) or stop(limit_s)
    turns.student(X)
    assert turns.cpu_outside_s > 0.02


def test_only_its_own_turns_take_a_process_further(lane):
    _, turns = lane(COUNTER)
    first = turns.student(X).answer.copy()
    time.sleep(0.3)
    second = turns.student(X).answer
    assert second[1] - first[1] >= 0.3
    assert second[0] - first[0] < 0.2


def test_an_answer_that_comes_late_lies_inside_the_interval(lane):
    _, turns = lane("import time\ndef dispatch(x):\n    time.sleep(0.2)\n    return x")
    assert turns.student(X).seconds >= 0.2


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("[1, 2]", np.array([1, 2])),
        ("2.5", np.array(2.5)),
        ("np.float32(2)", np.array(2.0)),
        ("np.arange(6).reshape(2, 3)[:, ::2]", np.array([[0, 2], [3, 5]])),
        ("np.array([1, 2], '>i4')", np.array([1, 2])),
        ("np.zeros((0, 3))", np.zeros((0, 3))),
        ("x", X[0]),
    ],
)
def test_arrays_numbers_and_lists_are_answers(lane, returned, expected):
    _, turns = lane(f"def dispatch(x):\n    return {returned}")
    got = turns.student(X).answer
    assert got.shape == expected.shape
    assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("raise KeyError(3)", "raised", "KeyError: 3"),
        ("raise NotImplementedError", "unwritten", "not written"),
        ("return None", "not_plain", "NoneType"),
        ("return 'text'", "not_plain", "of type str"),
        ("return np.array(['a'])", "not_plain", "dtype <U1"),
        ("return np.zeros(10**7)", "not_plain", "can pass"),
        ("import os; os._exit(3)", "crashed", "exit code 3"),
        ("return np.zeros(10**12)", "out_of_memory", "more memory"),
    ],
)
def test_what_goes_wrong_in_a_turn_is_told_as_in_a_call(lane, body, kind, told):
    _, turns = lane(f"def dispatch(x):\n    {body}")
    with pytest.raises(StudentError, match=told) as error:
        turns.student(X)
    assert error.value.kind == kind


@pytest.mark.parametrize("n", [2, 255])
def test_a_truth_value_that_is_none_is_refused(lane, n):
    # NumPy would compare it wrongly.
    forged = f"""
from autograder.worker import timed
def run(self, function):
    timed.array_at(self._memory, self._answer_at, ("|u1", (2,)))[...] = {n}
    return "|b1", (2,)
timed.Timed.run = run
"""
    _, turns = lane(forged + "def dispatch(x):\n    return x")
    with pytest.raises(StudentError) as error:
        turns.student(X)
    assert error.value.kind == "crashed"


def test_a_missing_function_is_told_at_the_first_turn(lane):
    _, turns = lane("y = 3")
    with pytest.raises(StudentError) as error:
        turns.student(X)
    assert error.value.kind == "missing"


def test_a_turn_without_end_is_ended(runtime):
    cells = [("solution", "def dispatch(x):\n    while True: pass")]
    with (
        Sandbox(runtime, Limits(call_s=0.5)) as hasty,
        hasty.open(cells, ["dispatch"], alone=True) as subject,
    ):
        turns = subject.observed.turns("dispatch", toy.REFERENCE, X)
        for _ in range(2):
            with pytest.raises(StudentError) as error:
                turns.student(X)
            assert error.value.kind == "timeout"


def test_a_reference_that_fails_is_a_defect_of_ours(sandbox):
    with sandbox.open([("a", toy.INDEXED)], ["dispatch"], alone=True) as subject:
        turns = subject.observed.turns("dispatch", "def dispatch(x): return 1 / 0", X)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            turns.reference(0, X)


def test_a_reference_that_gets_no_time_is_noise(runtime):
    slow = "import time\ndef dispatch(x):\n    time.sleep(9)"
    with (
        Sandbox(runtime, Limits(call_s=0.5)) as hasty,
        hasty.open([("a", toy.INDEXED)], ["dispatch"], alone=True) as subject,
    ):
        turns = subject.observed.turns("dispatch", slow, X)
        for _ in range(2):
            with pytest.raises(TooNoisy, match="the reference got too little time"):
                turns.reference(0, X)


def test_only_what_is_alone_can_be_timed(lane):
    with pytest.raises(ValueError, match="observed"):
        lane(toy.INDEXED, alone=False)


def test_after_its_turns_a_process_still_answers_calls(lane):
    subject, turns = lane("def dispatch(x):\n    return x + 1")
    turns.student(X)
    assert subject(2) == 3
    assert np.array_equal(turns.student(X).answer, X[0] + 1)


def test_nothing_is_left_of_the_processes_of_a_race(lane):
    subject, turns = lane(toy.INDEXED)
    references = [one._subject._process for one in turns._references]
    subject.close()
    assert all(process.ended for process in references)


# A core of its own

HOLDER = """
import sys, time
from autograder.sandbox.turns import one_core
with one_core(of=sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(name):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, name], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_there_is_one_speed_test_per_core_and_a_dead_one_frees_it():
    name = f"test {os.getpid()}"
    holders = [holder(name) for _ in os.sched_getaffinity(0)]
    try:
        with pytest.raises(TooNoisy, match="no core"), one_core(0.2, name):
            pass
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait(10)
        with one_core(10, name):
            pass
    finally:
        for process in holders:
            process.kill()
            process.wait(10)
            process.stdout.close()


def test_a_core_is_free_again_after_an_error():
    name = f"test error {os.getpid()}"
    for _ in range(2 * len(os.sched_getaffinity(0))):
        with pytest.raises(ZeroDivisionError), one_core(0.0, name):
            raise ZeroDivisionError
