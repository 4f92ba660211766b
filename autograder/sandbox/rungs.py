"""The rungs: what students' code can run behind, best first, and the command that starts each."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Literal, NamedTuple

from autograder.sandbox.view import PYTHON_INSIDE, RUNTIME_INSIDE, steps

# Their names, as --walls takes them and every report shows them.
WALLED = "bubblewrap"
PER_EXERCISE = "bubblewrap-per-exercise"
NAMESPACES = "namespaces"
NOT_WALLED = "none"
RUNGS = (WALLED, PER_EXERCISE, NAMESPACES, NOT_WALLED)
# What is exported with a grade whose code had no walls.
UNSAFE = "unsafe: the code ran without walls, with all rights of whoever graded"

_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of a set must not differ from run to run
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread: a fork of a process with several can hang, and cannot enter namespaces.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
# What an exercise does for itself: it enters namespaces of its own, or has those of its worker to
# itself, or has nothing but limits.
Mode = Literal["nested", "alone", "plain"]
MODES: Mapping[str, Mode] = {
    WALLED: "nested",
    PER_EXERCISE: "alone",
    NAMESPACES: "nested",
    NOT_WALLED: "plain",
}


class SandboxError(RuntimeError):
    """The machine failed, not the student: no verdict may rest on it."""


class Walls(NamedTuple):
    """What students' code runs behind; why not behind better walls, and what else limits it."""

    rung: str
    note: str


def is_bare(said: str) -> bool:
    """Whether walls, said as a result records them ("name: note"), are none at all."""
    return said.partition(":")[0] == NOT_WALLED


class Place(NamedTuple):
    """Where a worker is started: a rung, the unit's runtime folder, and a GPU or none.

    tmp_bytes: what students may write to /tmp, and to /dev/shm.
    """

    rung: str
    runtime: Path
    tmp_bytes: int
    gpu: int | None = None

    @property
    def mode(self) -> Mode:
        """What each exercise does for itself."""
        return MODES[self.rung]

    @property
    def is_guarded(self) -> bool:
        """Whether a student's code cannot end the process that watches over it."""
        return self.mode == "nested" or (self.mode == "alone" and os.geteuid() == 0)


def command(place: Place) -> tuple[list[str], dict[str, str]]:
    """The words that start Python there, its arguments to follow, and its environment variables.

    Descriptors given to the command are passed on. SandboxError where a program is missing.
    """
    variables = {**_VARIABLES, "PYTHONPATH": str(place.runtime.resolve())}
    if place.gpu is not None:
        variables["CUDA_VISIBLE_DEVICES"] = str(place.gpu)
    if place.rung == NOT_WALLED:
        return [sys.executable], variables
    view = steps(place.runtime, place.tmp_bytes, place.gpu, proc=place.mode == "nested")
    if place.rung == NAMESPACES:
        outer = [sys.executable, "-P", "-s", "-m", "autograder.worker.outer"]
        return [*outer, json.dumps(view), RUNTIME_INSIDE, PYTHON_INSIDE], variables
    program = which("bwrap")
    if program is None:
        raise SandboxError("bubblewrap (the program bwrap) is not installed")
    words = [program, *bubblewrap_options(place.mode), *_options(view), PYTHON_INSIDE]
    return words, {**variables, "PYTHONPATH": RUNTIME_INSIDE}


def bubblewrap_options(mode: Mode) -> list[str]:
    """The options of bwrap that make namespaces and leave the rights that a worker needs."""
    words = ["--die-with-parent", "--new-session"]
    if os.geteuid() != 0:
        return [*words, "--unshare-all"]
    # Root needs no user namespace, in which it would stay root for limits and for files of root:
    # the worker becomes nobody. That takes rights; where the student alone becomes nobody, bounding
    # its rights and ending it do too.
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
    kept = ["SETUID", "SETGID", *(["SETPCAP", "KILL"] if mode == "alone" else [])]
    return [*words, *(word for name in kept for word in ("--cap-add", f"CAP_{name}"))]


def _options(view: Sequence[tuple[str, ...]]) -> list[str]:
    words: list[str] = []
    for kind, *places in view:
        if kind == "scratch":
            words += ["--perms", "1777", "--size", places[1], "--tmpfs", places[0]]
        else:
            words += [f"--{kind}", *places]
    if os.geteuid() == 0 and ("proc", "/proc") in view:
        # Of root, bubblewrap covers all of /proc/sys. The worker needs this part for one purpose,
        # to forbid user namespaces in its own one, and is no longer root by then.
        words += ["--bind-try", "/proc/sys/user", "/proc/sys/user"]
    return [*words, "--chdir", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/"]
