"""Where students' code runs: a fresh process per exercise, forked from a warm parent behind walls.

Which walls a machine can have differs: `RUNGS` names them, best first. On the last, "none",
the same worker runs as a plain process with limits: that helps against accidents only, as it has
all the rights of whoever grades.
"""

from autograder.sandbox.chosen import walls_here
from autograder.sandbox.remote import RemoteSubject
from autograder.sandbox.rungs import (
    NAMESPACES,
    NOT_WALLED,
    PER_EXERCISE,
    RUNGS,
    UNSAFE,
    WALLED,
    SandboxError,
    Walls,
    is_bare,
)
from autograder.sandbox.runtime import build_runtime
from autograder.sandbox.sandbox import PRELOAD, Sandbox
from autograder.worker.walls import Limits

__all__ = [
    "NAMESPACES",
    "NOT_WALLED",
    "PER_EXERCISE",
    "PRELOAD",
    "RUNGS",
    "UNSAFE",
    "WALLED",
    "Limits",
    "RemoteSubject",
    "Sandbox",
    "SandboxError",
    "Walls",
    "build_runtime",
    "is_bare",
    "walls_here",
]
