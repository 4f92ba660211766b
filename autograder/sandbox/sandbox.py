"""A sandbox: warm parents for students' processes, behind the best walls there are."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from autograder.sandbox.parent import FreshParents, Parent, WarmParent
from autograder.sandbox.remote import RemoteSubject
from autograder.sandbox.rungs import PER_EXERCISE, RUNGS, Place, SandboxError, Walls
from autograder.worker.walls import Limits

# What the warm parent imports. With "torch" it starts 1-2 s later and opens each exercise about
# 12 ms slower: a fork copies the tables of 150 MB more.
PRELOAD = ("numpy", "fractions", "dataclasses", "random", "statistics", "encodings.idna")
_COST = {PER_EXERCISE: "slow, as every exercise starts an interpreter of its own"}


def _told(missing: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A sentence per reason why some rungs are not to be had."""
    for reason, rungs in missing.items():
        yield f"no {' or '.join(rungs)}: {reason}"


class Sandbox:
    """Runs exercises in fresh processes forked from one warm parent, replaced now and then.

    `runtime` is a folder made by `build_runtime`; `rung` one of RUNGS, which is then what there is
    or SandboxError, or None for the best that this machine has. Of its GPUs only number `gpu` is
    there, if any. A context manager. The thread that opens the first exercise must outlive the
    sandbox: the kernel ends the walls with the thread that put them up.
    """

    def __init__(
        self,
        runtime: Path,
        limits: Limits | None = None,
        *,
        rung: str | None = None,
        preload: Sequence[str] = PRELOAD,
        exercises_per_parent: int = 500,
        gpu: int | None = None,
    ) -> None:
        if rung is not None and rung not in RUNGS:
            raise ValueError(f"there is no rung {rung!r}; choose from {', '.join(RUNGS)}")
        self._runtime, self._gpu = runtime, gpu
        self._wanted = RUNGS if rung is None else (rung,)
        self.limits = Limits() if limits is None else limits
        self._preload = preload
        self._per_parent = exercises_per_parent
        self._n_opened = 0  # from the present parent
        self._parent: Parent | None = None
        self._walls: Walls | None = None

    @property
    def walls(self) -> Walls:
        """What students' code runs behind, tried; SandboxError where it cannot run at all."""
        if self._walls is None:
            self._walls = self._found()
        return self._walls

    def _found(self) -> Walls:
        missing: dict[str, list[str]] = {}  # rungs by the reason
        for rung in self._wanted:
            try:
                self._parent = self._new_parent(rung)
            except SandboxError as error:
                missing.setdefault(str(error), []).append(rung)
            else:
                more = _COST.get(rung), self._parent.note
                return Walls(rung, "; ".join([*_told(missing), *filter(None, more)]))
        raise SandboxError("; ".join(_told(missing)))

    @property
    def rung(self) -> str:
        """The name of what students' code runs behind, as every report shows it."""
        return self.walls.rung

    def open(
        self, cells: Sequence[tuple[Any, ...]], names: Sequence[str], alone: bool = False
    ) -> RemoteSubject:
        """A fresh process in which `cells` (id, source) have run, to be asked for `names`.

        Whatever is wrong with the cells is told when a function is asked. `alone` refuses the
        process all others and threads, so that it can be timed. SandboxError where the machine
        cannot run them.
        """
        try:
            return self._open(cells, names, alone)
        except SandboxError:
            self.close()  # the warm parent had died, or was damaged; a new one may do
            return self._open(cells, names, alone)

    def _open(
        self, cells: Sequence[tuple[Any, ...]], names: Sequence[str], alone: bool
    ) -> RemoteSubject:
        # Walls once found are never given up: a new parent has them or there is none.
        rung = self.walls.rung
        if self._parent and (
            self._n_opened >= self._per_parent or self._parent.ended() or not self._parent.is_free()
        ):
            self.close()
        if self._parent is None:
            self._parent = self._new_parent(rung)
        self._n_opened += 1
        return RemoteSubject(self._parent, cells, names, self.limits, alone=alone, first=True)

    def _new_parent(self, rung: str) -> Parent:
        self._n_opened = 0
        place = Place(rung, self._runtime, 4 * self.limits.file_bytes, self._gpu)
        kind = FreshParents if place.mode == "alone" else WarmParent
        return kind(place, self.limits, self._preload)

    def close(self) -> None:
        """Ends the warm parent and everything started from it."""
        if self._parent is not None:
            self._parent.close()
            self._parent = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
