"""The time of an exercise at home: the same limit, in the same words, as in grading."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder import local
from autograder.diagnosis import StudentError
from autograder.exercise import Unit
from autograder.local import LocalSubject
from autograder.sandbox import Sandbox, build_runtime
from autograder.worker.limit import IN_ALL
from autograder.worker.walls import Limits
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire

SHORT = Limits(call_s=2.0, exercise_s=1.0)
SLEEPY = "import time\n\ndef nap(n):\n    time.sleep(n)\n    return n"
RANKED = "import time\n\ndef nap(comm, n):\n    time.sleep(n)\n    return n"


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], LocalSubject]:
    def make(source: str) -> LocalSubject:
        monkeypatch.setattr(local, "Limits", lambda: SHORT)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(source, namespace)
        return LocalSubject(namespace, ["nap"])

    return make


def told(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(StudentError) as raised:
        call()
    return raised.value.kind, raised.value.message


def test_calls_share_the_time_of_an_exercise(at_home: Callable[[str], LocalSubject]) -> None:
    subject = at_home(SLEEPY)
    assert [subject(0.3), subject(0.3)] == [0.3, 0.3]
    kind, message = told(lambda: subject(1.5))  # less than a call may take, but not all calls
    assert kind == "timeout"
    assert message == f"{IN_ALL} (your cell, line 4)."
    start = time.monotonic()
    assert told(lambda: subject(1.5)) == ("timeout", f"{IN_ALL}.")
    assert time.monotonic() - start < 1.0  # refused at once


def test_runs_on_ranks_share_it_too(at_home: Callable[[str], LocalSubject]) -> None:
    subject = at_home(RANKED)
    run = subject.run_ranks("nap", 2, [(0.2,), (0.2,)], Simulated(Wire(1.0)))
    assert run.results == [0.2, 0.2]
    kind, message = told(
        lambda: subject.run_ranks("nap", 2, [(0.9,), (0.9,)], Simulated(Wire(1.0)))
    )
    assert kind == "timeout"
    assert IN_ALL in message


def test_each_check_has_the_time_anew(at_home: Callable[[str], LocalSubject]) -> None:
    for _ in range(2):
        assert at_home(SLEEPY)(0.7) == 0.7


def test_grading_tells_it_in_the_same_words(
    tmp_path: Path, at_home: Callable[[str], LocalSubject]
) -> None:
    build_runtime(Unit("99", "toy", (), ()), tmp_path / "runtime")
    home = at_home(SLEEPY)
    with (
        Sandbox(tmp_path / "runtime", SHORT) as sandbox,
        sandbox.open([("nap", SLEEPY)], ["nap"]) as graded,
    ):
        for subject in (home, graded):
            kind, message = told(lambda subject=subject: [subject(0.3) for _ in range(5)])  # type: ignore[misc]
            assert (kind, message.partition(" (")[0].rstrip(".")) == ("timeout", IN_ALL)
