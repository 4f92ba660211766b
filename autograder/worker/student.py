"""The student's process: runs the cells of a notebook, then answers calls of its functions.

Everything here is in the student's reach once the cells run. It is written for honest code and for
accidents; what a student makes of it is the judge's side to withstand.
"""

import io
import os
import re
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

from autograder.worker.cells import Cells
from autograder.worker.protocol import HERE, Channel, decode, encode
from autograder.worker.ranks import ENDED, TROUBLE, Line, Over, WireComm, given, own_copy
from autograder.worker.timed import Timed, start_nothing_more
from autograder.worker.trouble import Trouble, Troubles
from autograder.worker.walls import Limits

_MOST_ERRORS = 50  # of cells


def run_student(link: socket.socket, limits: Limits) -> NoReturn:
    """Serves the judge on `link` until it is closed; never returns."""
    try:
        sys.stdout = sys.stderr = _Output(limits.output_bytes)
        notebook = _Notebook(limits)
        channel = Channel(link)
        channel.send(HERE)  # whatever goes wrong before this is not the student's doing
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        os._exit(1)
    try:
        while True:
            notebook.serve(channel, channel.receive())
    finally:
        os._exit(1)  # the judge is gone, or the student's code broke the worker


class _Output(io.TextIOBase):
    """Text to descriptor 1, which holds only so much and never blocks; the rest is dropped."""

    def __init__(self, n_bytes: int) -> None:
        self.left = n_bytes

    def writable(self) -> bool:
        """Whether it takes text: always."""
        return True

    def write(self, text: str) -> int:
        """Writes what fits, and counts all as written."""
        if self.left > 0:
            data = text[: self.left].encode(errors="replace")[: self.left]
            self.left -= len(data)
            with suppress(OSError):
                os.write(1, data)
        return len(text)


class _NoShell:
    """What `get_ipython()` gives: every magic does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class _Notebook:
    """One namespace in which the cells run, and the functions they define."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process = os.getpid()
        self.troubles = Troubles(limits.memory_bytes)
        self.timed: tuple[str, Timed]  # a function and its arguments, once it is to be timed
        module = ModuleType("__main__")  # dataclasses and annotations look there
        sys.modules["__main__"] = module
        self.names: dict[str, Any] = module.__dict__
        self.names.update(get_ipython=_NoShell, display=lambda *args, **kwargs: None)
        self.cells = Cells(self.names, self.troubles, limits)

    def serve(self, channel: Channel, message: tuple[Any, ...]) -> None:
        """Answers one message of the judge."""
        if message[0] == "rank":
            return self.run_rank(Line(channel), *message[1:])
        if message[0] == "alone":
            return start_nothing_more()
        if message[0] == "timed":
            reply: tuple[Any, ...] = self.prepare(channel, *message[1:])
        elif message[0] == "go":
            reply = self.take_turn(*message[1:])
        elif message[0] == "cells":
            errors = self.run_cells(message[1])
            reply = ("ready", errors, [number for pair in self.cells.stopped for number in pair])
        else:
            reply = self.answer(*message[1:])
        if os.getpid() != self.process:
            os._exit(0)  # a fork made by the student's code that came back: one process answers
        try:
            channel.send(reply)
        except BaseException as error:  # while the answer was being written down
            channel.send(("trouble", reply[1], *self.troubles.explain("", error)))

    def answer(
        self, number: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The reply to call `number`, of the function of that name."""
        if name not in self.names:
            return ("trouble", number, *self.missing(name))
        try:
            return ("answer", number, self.names[name](*args, **kwargs))
        except BaseException as error:
            return ("trouble", number, *self.explain(name, error))

    def prepare(
        self, channel: Channel, name: str, arguments: tuple[Any, ...], at: list[int], forms: Any
    ) -> tuple[Any, ...]:
        """Takes the memory in which the function of that name gets its arguments from now on."""
        channel.send(("memory",))
        self.timed = name, Timed(channel.sock, arguments, at, forms)
        return ("prepared",)

    def take_turn(self, number: int) -> tuple[Any, ...]:
        """The reply to turn `number`: dtype and shape of the answer in the memory."""
        name, timed = self.timed
        if name not in self.names:
            return ("trouble", number, *self.missing(name))
        try:
            return ("done", number, *timed.run(self.names[name]))
        except BaseException as error:
            return ("trouble", number, *self.explain(name, error))

    def run_rank(
        self,
        line: Line,
        name: str,
        rank: int,
        n_ranks: int,
        plain: tuple[Any, ...],
        served: list[tuple[int, str, list[str]]],
    ) -> None:
        """Runs the rank program of that name as one of `n_ranks` ranks, to its end."""
        if name not in self.names:
            return line.end(TROUBLE, *self.missing(name))
        comm = WireComm(line, 0, range(n_ranks), rank)

        def buy(position: int, method: str, *args: Any) -> Any:
            return decode(comm.buy(position, method, encode(args)))

        try:
            result = own_copy(self.names[name])(comm, *given(plain, served, buy))
            last: tuple[Any, ...] = (ENDED, encode(result))
        except Over:
            last = ()  # the line says it
        except BaseException as error:
            last = (TROUBLE, *self.explain(name, error))
        line.end(*last)

    def missing(self, name: str) -> Trouble:
        """That no function of that name is there, and why."""
        return Trouble("missing", f"`{name}` is not defined{self.cause(name) or '.'}")

    def explain(self, name: str, error: BaseException) -> Trouble:
        """Why a call of `name` gave no answer, inside the handler of that exception."""
        trouble = self.troubles.explain(name, error)
        if type(error) is NameError and type(error.name) is str:
            cause = self.cause(error.name)
            if cause:
                message = f"{trouble.message} `{error.name}` is not defined{cause}"
                trouble = trouble._replace(message=message)
        return trouble

    def cause(self, name: str) -> str:
        """Why no cell defined that name, as the end of a sentence; "" where no cell tried to."""
        word = re.escape(name)
        defines = re.compile(
            rf"^[ \t]*(?:(?:def|class)[ \t]+{word}\b|{word}[ \t]*=(?!=))", re.MULTILINE
        )
        stops = [stop for source, stop in self.cells.failed if defines.search(source)]
        return f", because its cell stopped with an error: {stops[-1]}" if stops else ""

    def run_cells(self, cells: list[tuple[Any, ...]]) -> list[str]:
        """Runs the cells in order; one sentence for each that did not come to its end."""
        self.cells.run(cells)
        return [stop for _, stop in self.cells.failed[:_MOST_ERRORS]]
