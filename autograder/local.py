"""The student's answer in the student's own notebook, asked under the same rules as in grading."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from autograder.diagnosis import StudentError
from autograder.local_ranks import run_here
from autograder.local_turns import LocalObserved
from autograder.programs import RanksRun
from autograder.worker.limit import IN_ALL, TooLong, longer_than, time_limit
from autograder.worker.protocol import decode, encode
from autograder.worker.trouble import Trouble, Troubles
from autograder.worker.walls import Limits
from mpedu.simulated import Simulated


class Stopped(KeyboardInterrupt):
    """The stop button, told in one sentence instead of a stack of library frames."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def students_troubles(namespace: Mapping[str, Any]) -> Troubles:
    """Explains exceptions of the functions that a notebook defines."""
    troubles = Troubles()
    for value in namespace.values():
        if isinstance(value, FunctionType) and value.__globals__ is namespace:
            troubles.cells[value.__code__.co_filename] = "your cell"
    return troubles


def place_in(namespace: Mapping[str, Any], error: BaseException) -> tuple[str, int] | None:
    """The student's function and line that an exception passed last, None if it passed none."""
    passed = [
        (frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals is namespace and not frame.f_code.co_name.startswith("<")
    ]
    return passed[-1] if passed else None


def stopped(namespace: Mapping[str, Any], error: KeyboardInterrupt, name: str) -> KeyboardInterrupt:
    """What the stop button gives while `name` runs; the interrupt itself outside a notebook.

    name: "" for ranks of ours; the student's function that was running is named all the same.
    """
    if "get_ipython" not in namespace:
        return error
    place = place_in(namespace, error)
    if not place and not name:
        return Stopped("Stopped by you. The ranks were ended; run the cell again.")
    name = name or (place[0] if place else "")
    where = f" (your cell, line {place[1]})" if place else ""
    return Stopped(f"Stopped: `{name}` was still running{where}; does every loop in it end?")


class LocalSubject:
    """The functions of an exercise among the names of a notebook.

    Arguments and results go through the same plain data as in grading, so that what passes at
    home passes there, and nothing of the check is in the hands of the student's function.
    """

    def __init__(self, namespace: Mapping[str, Any], names: Sequence[str]) -> None:
        self._namespace = namespace
        self._names = names
        self._troubles = students_troubles(namespace)
        self._left_s = Limits().exercise_s

    def __call__(self, *args: Any) -> Any:
        """What the exercise's only function returns."""
        return self._call(self._names[0], args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        return lambda *args: self._call(name, args)

    def run_ranks(
        self,
        name: str,
        n_ranks: int,
        arguments: Sequence[tuple[Any, ...]],
        machine: Simulated,
    ) -> RanksRun:
        """What the rank program of that name gives; see `checks.ranks`."""
        program = self._found(name)
        with self._timed() as (limit_s, longer):
            try:
                return run_here(
                    name, program, n_ranks, arguments, machine, self._troubles, limit_s, longer
                )
            except KeyboardInterrupt as error:
                raise stopped(self._namespace, error, name) from None

    @property
    def observed(self) -> LocalObserved:
        """What the functions cost, as far as a process can see that of itself."""
        return LocalObserved(self._found, self._guarded)

    def _found(self, name: str) -> Callable[..., Any]:
        if name not in self._namespace:
            raise StudentError("missing", f"`{name}` is not defined.")
        function: Callable[..., Any] = self._namespace[name]
        return function

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        function = self._found(name)
        return self._guarded(name, lambda: decode(encode(function(*decode(encode(args))))))

    def _guarded(self, name: str, call: Callable[[], Any]) -> Any:
        """What the call gives; StudentError, in the student's words, for whatever goes wrong."""
        with self._timed() as (limit_s, longer):
            try:
                with time_limit(limit_s):
                    return call()
            except KeyboardInterrupt as error:
                raise stopped(self._namespace, error, name) from None
            except TooLong as error:
                place = place_in(self._namespace, error)
                where = f" (your cell, line {place[1]})" if place else ""
                raise StudentError("timeout", f"{longer}{where}.") from None
            except BaseException as error:
                trouble: Trouble = self._troubles.explain(name, error)
                raise StudentError(*trouble) from None

    @contextmanager
    def _timed(self) -> Iterator[tuple[float, str]]:
        """Takes what happens inside from the time of the exercise, as in grading.

        Gives the limit on it with the sentence for when it is over; StudentError if all is taken.
        """
        if not self._left_s:
            raise StudentError("timeout", f"{IN_ALL}.")
        call_s, start = Limits().call_s, time.monotonic()
        try:
            if self._left_s < call_s:
                yield self._left_s, IN_ALL
            else:
                yield call_s, longer_than(call_s)
        finally:
            self._left_s = max(0.0, self._left_s - (time.monotonic() - start))
