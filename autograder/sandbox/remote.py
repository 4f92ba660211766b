"""A student's functions in another process, asked over a socket by someone who believes nothing.

Every wait has a limit and every message is checked. Whatever goes wrong over there is a
`StudentError` here. After a timeout or a crash the process and all it started are gone, and every
further call raises the same error at once.
"""

import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import NoneType
from typing import Any, NoReturn, Self

from autograder.diagnosis import StudentError
from autograder.sandbox.parent import Report, SandboxError, StudentProcess, WarmParent
from autograder.worker.plain import NotPlain
from autograder.worker.protocol import ProtocolError
from autograder.worker.walls import Limits

# What the worker may report; timeouts and crashes are told by this side alone.
_REPORTED = ("unwritten", "missing", "withheld", "raised", "not_plain", "out_of_memory")
_BROKEN = "your code broke the connection to the judge"
_MOST_CHARACTERS = 500
_MOST_CELL_ERRORS = 50
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # differs from run to run
_LAST_WORDS_S = 2.0  # a process that ended by itself is reported at once


class RemoteSubject:
    """The student's functions `names`, after the cells have run; a context manager.

    `cell_errors` holds a sentence for each cell that did not come to its end, `output` what the
    code printed, up to the limit. Made by `Sandbox.open`.
    """

    def __init__(
        self,
        parent: WarmParent,
        cells: Sequence[tuple[str, str]],
        names: Sequence[str],
        limits: Limits,
    ) -> None:
        taken = [name for name in names if hasattr(RemoteSubject, name)]
        if taken:
            raise ValueError(f"no function to ask for can be called {taken[0]}; rename it")
        self.cell_errors: list[str] = []
        self._names, self._limits = tuple(names), limits
        self._left_s = limits.exercise_s
        self._n_calls = 0
        self._printed = b""
        self._error: StudentError | None = None
        self._parent = parent
        self._process = StudentProcess(parent)
        with suppress(StudentError):  # told when it is asked
            self._run(cells)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the only function returns; StudentError where that is no plain data."""
        if len(self._names) != 1:
            raise TypeError(f"there are {len(self._names)} functions; ask for one by its name")
        return self._call(self._names[0], *args, **kwargs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"{name} is not asked for in this exercise")
        return partial(self._call, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def lost(self) -> bool:
        """Whether the process is gone, so that every further call raises the same error."""
        return self._error is not None

    @property
    def output(self) -> str:
        """What the student's code printed so far, from the beginning, up to the limit."""
        if not self._process.ended:
            self._printed += self._process.printed()
        text = self._printed[: self._limits.output_bytes].decode(errors="replace")
        return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)

    def close(self) -> None:
        """Ends the process and everything that it started."""
        self._end()

    def _run(self, cells: Sequence[tuple[str, str]]) -> None:
        # a lone surrogate, which JSON can hold, is no character and no Python
        clean = [tuple(part.encode(errors="replace").decode() for part in cell) for cell in cells]
        try:
            reply = self._exchange(("cells", clean), self._limits.exercise_s)
        except NotPlain:
            self._lose("crashed", "the cells of your notebook are too large to be run.")
        errors = reply[1] if len(reply) == 2 else None
        if type(errors) is not list or any(type(text) is not str for text in errors):
            self._lose("crashed", f"{_BROKEN}.")
        self.cell_errors = [_shown(text) for text in errors[:_MOST_CELL_ERRORS]]

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._n_calls += 1
        reply = self._exchange(("call", self._n_calls, name, args, kwargs), self._limits.call_s)
        # types first: what was sent may be an array, and compare as one
        if [type(part) for part in reply[:2]] != [str, int] or reply[1] != self._n_calls:
            self._lose("crashed", f"{_BROKEN}.")
        if reply[0] == "answer" and len(reply) == 3:
            return reply[2]
        if reply[0] == "trouble" and _is_trouble(reply[2:]):
            kind, message, type_name, line = reply[2:]
            raise StudentError(kind, _shown(message), _shown(type_name), line)
        self._lose("crashed", f"{_BROKEN}.")

    def _exchange(self, message: tuple[Any, ...], limit_s: float) -> tuple[Any, ...]:
        """The reply to a message; without one StudentError, and the end of the process."""
        if self._error:
            raise StudentError(self._error.kind, self._error.message)
        if self._process.ended:
            raise ValueError("this process is closed; open another one")
        longer = f"your code takes longer than {limit_s:g} s"
        if self._left_s < limit_s:
            limit_s, longer = self._left_s, "your code takes longer than an exercise may in all"
        start = time.monotonic()
        try:
            self._process.channel.send(message, limit_s)
            reply = self._process.channel.receive(limit_s)
        except TimeoutError:
            self._lose("timeout", f"{longer} and was stopped.")
        except ProtocolError as error:
            self._lose("crashed", f"{_BROKEN}: {_shown(str(error))}.")
        except (EOFError, OSError):
            self._lose(*self._why_ended())
        finally:
            self._left_s = max(0.0, self._left_s - (time.monotonic() - start))
        if type(reply) is not tuple:
            self._lose("crashed", f"{_BROKEN}.")
        return reply

    def _lose(self, kind: str, message: str) -> NoReturn:
        """Ends the process and raises, now and at every further call."""
        self._end()
        self._error = StudentError(kind, message)
        raise StudentError(kind, message)

    def _end(self) -> Report | None:
        if self._process.ended:
            return None
        self._printed += self._process.printed()
        return self._process.end()

    def _why_ended(self) -> tuple[str, str]:
        """Kind and sentence for a process that does not listen any more."""
        try:
            report = self._process.last_words(_LAST_WORDS_S)
        except SandboxError:
            lost = self._parent.walled or self._parent.ended(_LAST_WORDS_S)
            self._end()
            if lost:
                raise
            return "crashed", "your code ended its process and the one that watches over it."
        if report is None:
            return "crashed", f"{_BROKEN}: it was closed."
        code, limits = report.code, self._limits
        if code in (-signal.SIGKILL, -signal.SIGXCPU):
            if report.cpu_s > limits.cpu_s - 1:
                return "timeout", f"your code takes more than {limits.cpu_s} s of processor time."
            if 2 * report.peak_bytes > limits.memory_bytes:
                n_mib = limits.memory_bytes // 2**20
                return (
                    "out_of_memory",
                    f"your code asks for more memory than the {n_mib} MiB it has.",
                )
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return "crashed", f"the process that runs your code ended before it answered ({how})."


def _is_trouble(parts: tuple[Any, ...]) -> bool:
    kinds = [type(part) for part in parts]
    known = kinds in ([str, str, str, NoneType], [str, str, str, int])
    return known and parts[0] in _REPORTED


def _shown(text: str) -> str:
    """A student's text, short and without anything a terminal or a page could act on."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text[:_MOST_CHARACTERS])
    return _ADDRESS.sub("0x...", printable)
