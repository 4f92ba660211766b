"""Why a call of a student's function gave no answer, in words.

Runs on both sides of the wall: in a notebook and in the student's process.
"""

import errno
import sys
import traceback
from typing import NamedTuple

from autograder.worker.plain import NotPlain, name_of
from autograder.worker.walls import use_memory_reserve
from mpedu.agreement import Mismatch
from mpedu.faults import Withheld

_MOST_CHARACTERS = 300  # of a message
_UNREADABLE = (SyntaxError, IndentationError, TabError)


class Trouble(NamedTuple):
    """Why there is no answer, as `StudentError` on the judge's side has it."""

    kind: str
    message: str
    type_name: str = ""
    line: int | None = None


class Troubles:
    """Explains exceptions of code whose cells it knows.

    `cells` maps the file name a cell was compiled with to what the student calls that cell.
    """

    def __init__(self, memory_bytes: int | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.cells: dict[str, str] = {}

    def explain(self, name: str, error: BaseException) -> Trouble:
        """Why a call of `name` gave no answer, inside the handler of that exception."""
        kind = type(error)
        if issubclass(kind, MemoryError):
            limit = "all there is"
            if self.memory_bytes is not None:
                use_memory_reserve()  # the limit is ours: room to say that it was reached
                limit = f"the {self.memory_bytes // 2**20} MiB it has"
            return Trouble("out_of_memory", f"your code asks for more memory than {limit}.")
        if kind is NotPlain:
            return Trouble("not_plain", f"{_text(error)}.")
        if kind is NotImplementedError:
            return Trouble("unwritten", f"`{name}` is not written yet.")
        if issubclass(kind, Withheld):
            return Trouble("withheld", f"{_text(error)}.")
        text, line = self.describe(error)
        if kind is Mismatch:
            return Trouble("mismatch", text.removeprefix("Mismatch: "), "", line)
        # A student's own kind of ValueError keeps the promise of a ValueError.
        type_name = "ValueError" if issubclass(kind, ValueError) else name_of(kind)
        return Trouble("raised", f"your code raises {text}", type_name, line)

    def describe(self, error: BaseException, cell: str = "") -> tuple[str, int | None]:
        """A sentence on an exception being handled, and the student's line that raised it."""
        line = None
        if type(error) in _UNREADABLE and isinstance(error, SyntaxError):
            cell, line = self.cells.get(error.filename or "", cell), error.lineno
        trace = sys.exc_info()[2]
        while trace:
            file_name = trace.tb_frame.f_code.co_filename
            if file_name in self.cells:
                cell, line = self.cells[file_name], trace.tb_lineno
            trace = trace.tb_next
        place = f"{cell}, line {line}" if line else cell
        text = f"{name_of(type(error))}: {_text(error)}".removesuffix(": ")
        return f"{text} ({place})." if place else f"{text}.", line


def _text(error: BaseException) -> str:
    """What an exception says, shortened; whatever its `__str__` does instead."""
    try:
        if type(error) in _UNREADABLE and isinstance(error, SyntaxError):
            return _cleaned(error.msg)  # without the place, which `_describe` tells
        return _of_a_limit(error) or _cleaned(str(error))
    except BaseException:
        return "its text cannot be shown"


def _of_a_limit(error: BaseException) -> str:
    """What the code did where only a limit of grading made it fail, "" for other exceptions."""
    said = str(error)
    if type(error) is EOFError and said == "EOF when reading a line":
        return "it calls input(), and there is no keyboard when graded"
    if type(error) is RuntimeError and said == "can't start new thread":
        return "it starts more threads than allowed"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "it opens more files than allowed"
    if isinstance(error, OSError) and error.errno == errno.EAGAIN:
        # reading from a pipe can give the same, so the line that failed has to be one that forks
        frames = traceback.extract_tb(sys.exc_info()[2], limit=-1)
        if any("fork" in (frame.line or "") for frame in frames):
            return "it starts more processes than allowed"
    return ""


def _cleaned(text: str) -> str:
    """A real str of one line that can be sent."""
    plain = str.encode(text, errors="replace").decode()
    return " ".join(plain[: 4 * _MOST_CHARACTERS].split())[:_MOST_CHARACTERS]
