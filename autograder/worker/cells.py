"""The cells of a notebook, run in one namespace, each within a time and past its errors."""

import builtins
import linecache
from collections.abc import Sequence
from time import monotonic
from types import ModuleType, TracebackType
from typing import Any

from autograder.worker.limit import TooLong, time_limit
from autograder.worker.trouble import Troubles
from autograder.worker.walls import Limits

_LEAST_S = 0.1  # enough for a cell that only defines something, however long others took
_BUILT_IN = {n: f for n, f in vars(builtins).items() if callable(f) and not n.startswith("_")}


class Cells:
    """Runs cells, of which `failed` then tells each that did not come to its end, and why.

    `stopped` are those of the student's own cells that took too long: which, and at which line.
    """

    def __init__(self, names: dict[str, Any], troubles: Troubles, limits: Limits) -> None:
        self.failed: list[tuple[str, str]] = []  # source of a cell, and what stopped it
        self.stopped: list[tuple[int, int]] = []
        self._names, self._troubles, self._limits = names, troubles, limits
        # Calls need the rest of an exercise's time.
        self._left_s = {True: limits.own_s, False: limits.exercise_s / 2}
        self._kept: dict[str, Any] = {}  # functions and modules that our cells and solutions bind
        self._meant: set[str] = set()  # names of built-in functions that those cells bind

    def run(self, cells: Sequence[tuple[Any, ...]]) -> None:
        """Runs (name, source) and, for the student's own, (name, source, True) in order."""
        for index, (name, source, *own) in enumerate(cells):
            self._run(index, name, source, own == [True])
        for name, value in self._kept.items():
            if not _is_kept(self._names.get(name)):
                self._names[name] = value
        for name in self._names.keys() & _BUILT_IN.keys() - self._meant:
            if not callable(self._names[name]):
                self._names[name] = _BUILT_IN[name]

    def _run(self, index: int, name: str, source: str, own: bool) -> None:
        file_name = f"<{name} {index}>"
        self._troubles.cells[file_name] = name
        lines = source.splitlines(keepends=True)
        linecache.cache[file_name] = (len(source), None, lines, file_name)
        limit_s = max(_LEAST_S, min(self._limits.cell_s, self._left_s[own]))
        before = self._bound()
        start = monotonic()
        try:
            if own and self._left_s[own] < -self._limits.own_s:
                raise TooLong  # a hundred cells have had their least time
            with time_limit(limit_s):
                exec(compile(source, file_name, "exec", dont_inherit=True), self._names)
        except TooLong as error:
            self.failed.append((source, self._too_long(name, limit_s, own)))
            if own:
                self.stopped.append((index, _line_of(error.__traceback__, file_name)))
        except BaseException as error:
            self.failed.append((source, self._troubles.describe(error, name)[0]))
        self._left_s[own] -= monotonic() - start
        self._remember(own, before)

    def _too_long(self, name: str, limit_s: float, own: bool) -> str:
        if limit_s == self._limits.cell_s:
            return f"ran for over {limit_s:g} s ({name})."
        total_s = self._limits.own_s if own else self._limits.exercise_s / 2
        whose = "your own cells" if own else "the cells for your answers"
        return f"was stopped, as {whose} have {total_s:g} s together ({name})."

    def _bound(self) -> dict[str, Any]:
        """The functions and modules by name, and whatever has the name of a built-in function."""
        copy = self._names.copy()  # a thread may go on
        return {n: value for n, value in copy.items() if _is_kept(value) or n in _BUILT_IN}

    def _remember(self, own: bool, before: dict[str, Any]) -> None:
        """Keeps what a later cell may call its result: `bubble = bubble(4, 16)`."""
        bound = {
            name: value
            for name, value in self._bound().items()
            if name not in before or before[name] is not value
        }
        if not own:
            self._meant |= bound.keys() & _BUILT_IN.keys()
        for name, value in bound.items():
            if _is_kept(value) and (not own or name in self._kept):
                self._kept[name] = value


def _is_kept(value: Any) -> bool:
    return callable(value) or isinstance(value, ModuleType)


def _line_of(trace: TracebackType | None, file_name: str) -> int:
    """The line of a cell, at its top, that an exception came through; 1 if it did not."""
    while trace:
        if trace.tb_frame.f_code.co_filename == file_name:
            return trace.tb_lineno
        trace = trace.tb_next
    return 1
