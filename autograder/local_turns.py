"""A student's function and a reference in turns at home: both in the notebook's process."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from autograder.memory import Peaks
from autograder.speed import Turn
from autograder.worker.timed import plain_array

Call = Callable[[Callable[[], Any]], Any]


class LocalTurns:
    """Turns of a student's function and of the reference of that source."""

    shows_seconds = True
    cpu_outside_s = 0.0

    def __init__(
        self, student: Callable[..., Any], name: str, reference: str, guarded: Call
    ) -> None:
        namespace: dict[str, Any] = {"__name__": "reference"}
        exec(reference, namespace)
        self.measured: dict[str, Any] = {}
        self._student, self._reference, self._guarded = student, namespace[name], guarded

    def quiet(self) -> AbstractContextManager[None]:
        """Nothing: at home nobody else is timed."""
        return nullcontext()

    def reference(self, which: int, arguments: Sequence[Any]) -> Turn:
        """A turn of the reference."""
        return _turn(self._reference, arguments)

    def student(self, arguments: Sequence[Any]) -> Turn:
        """A turn of the student's function; StudentError where it gives no answer."""
        turn: Turn = self._guarded(lambda: _turn(self._student, arguments))
        return turn


class LocalObserved:
    """What functions of a notebook cost. A hint only: its owner can have it say anything.

    `found(name)` is a function of the notebook; `guarded(name, call)` calls and says what goes
    wrong in a student's code.
    """

    def __init__(
        self,
        found: Callable[[str], Callable[..., Any]],
        guarded: Callable[[str, Callable[[], Any]], Any],
    ) -> None:
        self._found, self._guarded = found, guarded

    def turns(self, name: str, reference: str, example: tuple[Any, ...]) -> LocalTurns:
        """The function of that name and the reference of that source."""
        return LocalTurns(self._found(name), name, reference, partial(self._guarded, name))

    def peaks(
        self, name: str, reference: str, arguments: tuple[Any, ...]
    ) -> tuple[Peaks, Any, Any]:
        """Memory of one call of that function and of the reference, and both answers."""
        turns = self.turns(name, reference, arguments)
        most, expected = _traced(lambda: turns.reference(0, arguments).answer)
        used, got = _traced(lambda: turns.student(arguments).answer)
        return Peaks(used, most), expected, got


def _traced(call: Callable[[], Any]) -> tuple[int, Any]:
    """The most bytes of Python's and NumPy's that a call held at a time, and what it gives."""
    tracemalloc.start()
    try:
        answer = call()
        return tracemalloc.get_traced_memory()[1], answer
    finally:
        tracemalloc.stop()


def _turn(function: Callable[..., Any], arguments: Sequence[Any]) -> Turn:
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    with _without_collector():
        start = perf_counter()
        answer = plain_array(function(*given)).copy()
        return Turn(perf_counter() - start, answer)


@contextmanager
def _without_collector() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
