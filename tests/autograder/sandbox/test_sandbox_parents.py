"""Warm parents and which walls they stand behind."""

import os
import re
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sandboxed import LIMITS, ask, descendants, exists, within, works

from autograder.diagnosis import StudentError
from autograder.sandbox import (
    NAMESPACES,
    NOT_WALLED,
    PER_EXERCISE,
    RUNGS,
    WALLED,
    RemoteSubject,
    Sandbox,
    SandboxError,
    rungs,
    walls_here,
)
from autograder.sandbox.parent import FreshParents, WarmParent

WARM = [rung for rung in RUNGS if rung != PER_EXERCISE]


@pytest.fixture(params=WARM)
def warm(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    """One whose exercises are forked from a warm parent, two from each."""
    with Sandbox(runtime, LIMITS, rung=request.param, exercises_per_parent=2) as sandbox:
        try:
            assert sandbox.rung == request.param
        except SandboxError as error:
            pytest.skip(str(error))
        yield sandbox


def parent_of(sandbox: Sandbox) -> int:
    assert isinstance(sandbox._parent, WarmParent)
    return sandbox._parent._process.pid


def test_a_dead_warm_parent_is_replaced(warm: Sandbox) -> None:
    assert works(warm)
    rung, first = warm.rung, parent_of(warm)
    os.killpg(first, signal.SIGKILL)
    assert works(warm)
    assert (warm.rung, parent_of(warm) == first) == (rung, False)


def test_the_warm_parent_is_replaced_after_its_share(warm: Sandbox) -> None:
    parents = []
    for _ in range(5):
        assert works(warm)
        parents.append(parent_of(warm))
    assert [parents.index(pid) for pid in parents] == [0, 0, 2, 2, 4]


def test_a_closed_sandbox_leaves_no_process(warm: Sandbox) -> None:
    assert works(warm)
    processes = descendants(parent_of(warm))
    assert exists(processes[0])
    warm.close()
    assert within(10, lambda: not any(map(exists, processes)))


def test_where_nesting_is_refused_every_exercise_has_a_worker_of_its_own(runtime: Path) -> None:
    with Sandbox(runtime, LIMITS, rung=PER_EXERCISE) as sandbox:
        try:
            assert "slow" in sandbox.walls.note
        except SandboxError as error:
            pytest.skip(str(error))
        assert isinstance(sandbox._parent, FreshParents)
        workers = []
        for _ in range(3):
            with sandbox.open([("c", "def f(): return 1")], ["f"]) as subject:
                assert subject() == 1
                workers.append(sandbox._parent._busy[-1]._process.pid)
                processes = descendants(workers[-1])
            assert within(10, lambda: not any(map(exists, processes)))  # noqa: B023
        assert len(set(workers)) == 3


# Which rung it is

REFUSES_NESTING = """#!/bin/sh
# bubblewrap as it is where its children may make no namespaces
exec {bwrap} --seccomp 9 "$@" 9<{filter}
"""
NO_NAMESPACES = "raise SystemExit('there are no namespaces for the outer wall')"


@pytest.fixture
def machine(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes this machine one with that bubblewrap, and that outer wall without; its runtime."""

    def make(bwrap: str | None, outer: str | None = None) -> Path:
        path = tmp_path / "bwrap"
        if bwrap is not None:
            path.write_text(bwrap)
            path.chmod(0o755)
        monkeypatch.setattr(rungs, "which", lambda name: str(path) if bwrap else None)
        copy = Path(shutil.copytree(runtime, tmp_path / "runtime"))
        if outer is not None:
            (copy / "autograder" / "worker" / "outer.py").write_text(outer)
        return copy

    return make


def refusing_nesting(folder: Path) -> str:
    """A bubblewrap that has everything it starts refused `unshare`."""
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    steps = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000))
    (folder / "filter").write_bytes(b"".join(struct.pack("=HBBI", *step) for step in steps))
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    return REFUSES_NESTING.format(bwrap=bwrap, filter=folder / "filter")


def test_bubblewrap_and_namespaces_come_first(runtime: Path) -> None:
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    if shutil.which("bwrap") is None or subprocess.run(probe, timeout=60).returncode:
        pytest.skip("bubblewrap is missing, or may not make namespaces on this machine")
    with Sandbox(runtime, LIMITS) as sandbox:
        assert sandbox.rung == WALLED
        assert "no " not in sandbox.walls.note


def test_where_nesting_is_refused_bubblewrap_is_used_per_exercise(
    machine: Callable[..., Path], tmp_path: Path
) -> None:
    with Sandbox(machine(refusing_nesting(tmp_path)), LIMITS) as sandbox:
        assert sandbox.rung == PER_EXERCISE
        assert sandbox.walls.note.startswith(f"no {WALLED}: ")
        assert "unshare: Operation not permitted" in sandbox.walls.note
        assert works(sandbox)


FAILING = [
    (None, "bubblewrap (the program bwrap) is not installed"),
    ("#!/bin/sh\necho bwrap: No permissions to create a new namespace >&2\nexit 1", "bwrap: No"),
    ("#!/bin/sh\nexit 1", "it ended without a word"),
]


@pytest.mark.parametrize("program, why", FAILING)
def test_without_bubblewrap_namespaces_do(
    machine: Callable[..., Path], runtime: Path, program: str | None, why: str
) -> None:
    with Sandbox(runtime, LIMITS, rung=NAMESPACES) as sandbox:
        try:
            assert sandbox.rung
        except SandboxError as error:
            pytest.skip(str(error))
    with Sandbox(machine(program), LIMITS) as sandbox:
        assert sandbox.rung == NAMESPACES
        assert why in sandbox.walls.note
        assert works(sandbox)


@pytest.mark.parametrize("program, why", FAILING)
def test_without_walls_it_says_so_and_why(
    machine: Callable[..., Path], program: str | None, why: str
) -> None:
    with Sandbox(machine(program, NO_NAMESPACES), LIMITS) as sandbox:
        assert sandbox.rung == NOT_WALLED
        assert f"no {WALLED} or {PER_EXERCISE}: " in sandbox.walls.note
        assert why in sandbox.walls.note
        assert "no namespaces: the process for students' code did not start" in sandbox.walls.note
        assert works(sandbox)


@pytest.mark.parametrize("rung", [WALLED, PER_EXERCISE, NAMESPACES])
def test_a_rung_that_is_asked_for_is_had_or_nothing_is(
    machine: Callable[..., Path], rung: str
) -> None:
    runtime = machine("#!/bin/sh\nexit 1\n", NO_NAMESPACES)
    with Sandbox(runtime, LIMITS, rung=rung) as sandbox:
        with pytest.raises(SandboxError, match=f"no {re.escape(rung)}: "):
            sandbox.open([], ["f"])
        with pytest.raises(ValueError, match=r"the walls asked for cannot be had here \(no "):
            walls_here(runtime, rung)


def test_an_unknown_rung_is_refused_with_the_known_ones(runtime: Path) -> None:
    with pytest.raises(ValueError, match=r"no rung 'moat'; choose from bubblewrap, "):
        Sandbox(runtime, rung="moat")


def test_a_class_is_graded_without_walls_only_on_trust(machine: Callable[..., Path]) -> None:
    runtime = machine(None, NO_NAMESPACES)
    with pytest.raises(ValueError, match=r"so nothing was run \(no .*add --trust\.$"):
        walls_here(runtime)
    assert walls_here(runtime, trust=True).rung == NOT_WALLED
    assert walls_here(runtime, NOT_WALLED, trust=True).rung == NOT_WALLED


def test_a_machine_that_runs_nothing_is_no_student_s_fault(tmp_path: Path) -> None:
    package = tmp_path / "autograder"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "worker.py").write_text("raise SystemExit('no autograder here')")
    with Sandbox(tmp_path, LIMITS) as sandbox, pytest.raises(SandboxError, match="autograder"):
        sandbox.open([], ["f"])


def test_a_function_cannot_take_a_name_of_the_subject_s_own(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="output"):
        sandbox.open([], ["output"])


def test_a_closed_subject_says_so(sandbox: Sandbox) -> None:
    subject = sandbox.open([("c", "def f(): return 1")], ["f"])
    assert isinstance(subject, RemoteSubject)
    subject.close()
    subject.close()
    with pytest.raises(ValueError, match="closed"):
        subject()


def test_a_flood_of_cell_errors_is_cut_on_the_judges_side(sandbox: Sandbox) -> None:
    # frames to the judge go through the student's own descriptor: anything can be claimed there
    source = """
import autograder.worker.student as student
student._Notebook.run_cells = lambda self, cells: ["x" * 2000] * 10_000
"""
    cells = [("first", source)]
    with sandbox.open(cells, ["f"]) as subject:
        assert len(subject.cell_errors) <= 50
        assert all(len(text) <= 500 for text in subject.cell_errors)


def test_addresses_which_change_from_run_to_run_are_blotted(sandbox: Sandbox) -> None:
    with pytest.raises(StudentError, match=r"<object object at 0x\.\.\.>"):
        ask(sandbox, "def f(): raise RuntimeError(str(object()))")
