"""Where students' code runs: a fresh process per exercise, forked from a warm parent behind walls.

Where bubblewrap or namespaces are missing, the same worker runs as a plain process with limits,
"not walled": that helps against accidents only, as it has all the rights of whoever grades.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from autograder.sandbox.parent import SandboxError, WarmParent
from autograder.sandbox.remote import RemoteSubject
from autograder.sandbox.runtime import build_runtime
from autograder.worker.walls import Limits

WALLED, NOT_WALLED = "bubblewrap+namespaces", "not walled"
# What the warm parent imports. With "torch" it starts 1-2 s later and opens each exercise about
# 12 ms slower: a fork copies the tables of 150 MB more.
PRELOAD = ("numpy", "fractions", "dataclasses", "random", "statistics", "encodings.idna")

__all__ = ["Limits", "RemoteSubject", "Sandbox", "SandboxError", "Walls", "build_runtime"]


class Walls(NamedTuple):
    """What students' code runs behind, and why if there are no walls."""

    rung: str
    note: str


class Sandbox:
    """Runs exercises in fresh processes forked from one warm parent, replaced now and then.

    `runtime` is a folder made by `build_runtime`; `walled=False` asks for the plain process at
    once, `required=True` for SandboxError rather than a plain process. A context manager. The
    thread that opens the first exercise must outlive the sandbox: the kernel ends the walls with
    the thread that put them up.
    """

    def __init__(
        self,
        runtime: Path,
        limits: Limits | None = None,
        *,
        walled: bool = True,
        required: bool = False,
        preload: Sequence[str] = PRELOAD,
        exercises_per_parent: int = 500,
    ) -> None:
        self._runtime = runtime
        self._required = required
        self.limits = Limits() if limits is None else limits
        self._preload = preload
        self._per_parent = exercises_per_parent
        self._n_opened = 0  # from the present parent
        self._parent: WarmParent | None = None
        self._walls = None if walled else Walls(NOT_WALLED, "no walls were asked for")

    @property
    def walls(self) -> Walls:
        """What students' code runs behind; SandboxError where it cannot run at all."""
        if self._walls is None:
            try:
                self._parent = self._new_parent(walled=True)
                self._walls = Walls(WALLED, "")
            except SandboxError as error:
                if self._required:
                    raise
                self._walls = Walls(NOT_WALLED, str(error))
        return self._walls

    @property
    def rung(self) -> str:
        """The name of what students' code runs behind, as every report shows it."""
        return self.walls.rung

    def open(self, cells: Sequence[tuple[str, str]], names: Sequence[str]) -> RemoteSubject:
        """A fresh process in which `cells` (id, source) have run, to be asked for `names`.

        Whatever is wrong with the cells is told when a function is asked. SandboxError where the
        machine cannot run them.
        """
        try:
            return self._open(cells, names)
        except SandboxError:
            self.close()  # the warm parent had died, or was damaged; a new one may do
            return self._open(cells, names)

    def _open(self, cells: Sequence[tuple[str, str]], names: Sequence[str]) -> RemoteSubject:
        # Walls once found are never given up: a new parent has them or there is none.
        walled = self.walls.rung == WALLED
        if self._parent and (self._n_opened >= self._per_parent or self._parent.ended()):
            self.close()
        if self._parent is None:
            self._parent = self._new_parent(walled=walled)
        self._n_opened += 1
        return RemoteSubject(self._parent, cells, names, self.limits)

    def _new_parent(self, *, walled: bool) -> WarmParent:
        self._n_opened = 0
        return WarmParent(self._runtime, self.limits, self._preload, walled=walled)

    def close(self) -> None:
        """Ends the warm parent and everything started from it."""
        if self._parent is not None:
            self._parent.close()
            self._parent = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
