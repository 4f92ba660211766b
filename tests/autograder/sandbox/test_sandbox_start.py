"""A process that fails before any code of the student's runs is the machine's failure, no crash."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sandboxed import LIMITS, descendants, exists, within, works

from autograder.checks.ranks import ranks
from autograder.diagnosis import StudentError
from autograder.sandbox import RUNGS, Sandbox, SandboxError, parent
from autograder.sandbox.parent import FreshParents, StudentProcess

GOOD = ("solution", "def f(): return 1")
MAIN, STUDENT = "__main__.py", "student.py"
IMPORT = "from autograder.worker.student import run_student  # loaded by the warm parent"
# What is changed in a worker's file, into what, and what is told of it.
BREAKS = {
    "a module is missing": (MAIN, IMPORT, IMPORT.replace("student ", "lost "), "No module named "),
    "a wall fails": (MAIN, "os.closerange(4, 2**16)", "raise OSError('no wall')", "no wall"),
    "it raises": (STUDENT, "notebook = _Notebook(limits)", "notebook = lost", "'lost' is not def"),
    "it exits": (STUDENT, "channel.send(HERE)", "os._exit(3)", "it ended first (exit code 3)"),
    "it is killed": (STUDENT, "channel.send(HERE)", "os.kill(os.getpid(), 9)", "(signal SIGKILL)"),
    "it is another": (STUDENT, "channel.send(HERE)", "channel.send(('i',))", "something else"),
    "it hangs": (STUDENT, "channel.send(HERE)", "channel.receive(1000)", "not ready within 1 s"),
}
EXITS = "it exits"


@pytest.fixture(scope="module")
def missing(runtime: Path) -> dict[str, str]:
    """The rungs that cannot be had here, and why."""
    found = {}
    for rung in RUNGS:
        with Sandbox(runtime, LIMITS, rung=rung, preload=()) as sandbox:
            try:
                assert sandbox.rung == rung
            except SandboxError as error:
                found[rung] = str(error)
    return found


@pytest.fixture
def started(
    runtime: Path, missing: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., Sandbox]]:
    """Starts a sandbox on a rung whose workers are broken in one way, or are not."""
    made = []

    def start(rung: str, way: str = "") -> Sandbox:
        if rung in missing:
            pytest.skip(missing[rung])
        folder = shutil.copytree(runtime, tmp_path / str(len(made)))
        if way:
            name, before, after, _ = BREAKS[way]
            path = folder / "autograder/worker" / name
            text = path.read_text(encoding="utf-8")
            assert text.count(before) == 1
            path.write_text(text.replace(before, after), encoding="utf-8")
        sandbox = Sandbox(folder, LIMITS, rung=rung, preload=())
        made.append(sandbox)
        assert sandbox.rung == rung  # what is broken shows only when an exercise starts
        return sandbox

    yield start
    for sandbox in made:
        sandbox.close()


def processes_of(sandbox: Sandbox) -> list[int]:
    warm = sandbox._parent
    one = warm._spare if isinstance(warm, FreshParents) else warm
    return descendants(one._process.pid) if one else []


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("way", BREAKS)
def test_a_broken_worker_is_no_crash_of_the_student(
    started: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch, rung: str, way: str
) -> None:
    monkeypatch.setattr(parent, "_HERE_S", 1.0 if way == "it hangs" else 30.0)
    sandbox = started(rung, way)
    processes = processes_of(sandbox)
    assert any(map(exists, processes))
    with pytest.raises(SandboxError, match=re.escape(BREAKS[way][3])):
        sandbox.open([GOOD], ["f"])
    sandbox.close()
    assert within(10, lambda: not any(map(exists, processes)))


def test_cells_that_fill_the_socket_find_no_worker_either(
    started: Callable[..., Sandbox],
) -> None:
    sandbox = started(RUNGS[-1], EXITS)
    with pytest.raises(SandboxError, match="exit code 3"):
        sandbox.open([("solution", "#" * 2**22)], ["f"])


# What starts another process of an exercise

RESISTS = """
def f(comm):
    if comm.rank == 1: raise ValueError
    try: comm.barrier()
    except BaseException:
        while True: pass
"""


def starts_a_rank(subject: Any) -> None:
    ranks(subject, "f", 2, [()] * 2)


def starts_a_reference(subject: Any) -> None:
    subject.observed.turns("f", "def f(x): return x", (np.ones(2),))


@pytest.fixture(params=["rank", "restart", "reference"])
def another(request: pytest.FixtureRequest) -> Callable[[Sandbox, Sandbox], Any]:
    """Opens an exercise in a good sandbox, then has another process of it start in a second one."""

    def start(good: Sandbox, other: Sandbox) -> Any:
        alone = request.param == "reference"
        source = "def f(x): return x" if alone else RESISTS
        subject: Any = good.open([("solution", source)], ["f"], alone=alone)
        with subject:
            assert not subject.lost
            if request.param == "restart":
                with pytest.raises(StudentError, match="ValueError"):
                    starts_a_rank(subject)
                assert subject._is_stale
            subject._parent = other._parent
            (starts_a_reference if alone else starts_a_rank)(subject)

    return start


@pytest.mark.parametrize("rung", RUNGS)
def test_so_it_is_for_every_process_of_an_exercise(
    started: Callable[..., Sandbox], another: Callable[[Sandbox, Sandbox], Any], rung: str
) -> None:
    good, broken = started(rung), started(rung, EXITS)
    with pytest.raises(SandboxError, match="exit code 3"):
        another(good, broken)
    assert works(good)


def test_but_memory_that_its_other_processes_took_is_the_student_s(
    started: Callable[..., Sandbox],
    another: Callable[[Sandbox, Sandbox], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, broken = started(RUNGS[-1]), started(RUNGS[-1], EXITS)
    monkeypatch.setattr(StudentProcess, "lacked_memory", lambda _: True)
    with pytest.raises(StudentError, match="all its processes have together") as caught:
        another(good, broken)
    assert caught.value.kind == "out_of_memory"
    with pytest.raises(SandboxError, match="exit code 3"):
        broken.open([GOOD], ["f"])


ENDS = {
    "exits": "import os\nos._exit(1)",
    "kills itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "is killed by a child": (
        "import os, signal, time\nif os.fork() == 0: os.kill(os.getppid(), signal.SIGKILL)\n"
        "else: os.abort()"
    ),
    "reads nothing": "import ctypes\nctypes.string_at(0)",
    "closes the connection": "import os, time\nos.close(3)\ntime.sleep(1000)",
    "says that it is there": (
        "import os\nos.write(3, b'\\0\\0\\0\\x08\\x92\\x01\\x91\\xa4here')\nos._exit(1)"
    ),
}


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_a_first_cell_that_ends_its_process_is_a_crash(sandbox: Sandbox, source: str) -> None:
    with sandbox.open([("own", source), GOOD], ["f"]) as subject:
        with pytest.raises(StudentError) as caught:
            subject()
        assert caught.value.kind == "crashed"
        assert subject.lost


@pytest.mark.parametrize("source", [ENDS["exits"], ENDS["kills itself"]])
def test_so_it_is_in_the_process_of_a_rank(sandbox: Sandbox, source: str) -> None:
    with sandbox.open([("solution", "def f(comm): return 1")], ["f"]) as subject:
        assert subject.has_run_cells
        subject._cells = [("own", source), *subject._cells]  # what further ranks run
        with pytest.raises(StudentError, match="rank 1: the process that runs your code") as caught:
            ranks(subject, "f", 2, [()] * 2)
        assert caught.value.kind == "crashed"
