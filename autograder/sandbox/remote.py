"""A student's functions in another process, asked over a socket by someone who believes nothing.

Every wait has a limit and every message is checked. Whatever goes wrong over there is a
`StudentError` here. After a timeout or a crash the process and all it started are gone, and every
further call raises the same error at once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn, Self

from autograder.diagnosis import StudentError
from autograder.programs import RanksRun
from autograder.sandbox.ended import Report, too_much_together, why_ended
from autograder.sandbox.parent import Parent, StudentProcess
from autograder.sandbox.rank_checks import REPORTED, Lost, is_trouble
from autograder.sandbox.rank_judge import RankJudge
from autograder.sandbox.rungs import SandboxError
from autograder.sandbox.shown import characters, shown, told_of_cells
from autograder.sandbox.turns import Observed
from autograder.worker.limit import IN_ALL, longer_than
from autograder.worker.plain import NotPlain
from autograder.worker.protocol import ProtocolError
from autograder.worker.walls import Limits
from mpedu.simulated import Simulated

_BROKEN = "your code broke the connection to the judge"
_LAST_WORDS_S = 2.0  # a process that ended by itself is reported at once


class RemoteSubject:
    """The student's functions `names`, after the cells have run; a context manager.

    `cell_errors` holds a sentence for each cell that did not come to its end, `stopped` which of
    the student's own (name, source, True) took too long, and at which line, `output` what the
    code printed, up to the limit. Made by `Sandbox.open`; `waits=False` lets the cells run while
    others are started, `alone=True` refuses it further processes and threads, `first=True` says
    that no other process of the exercise runs. SandboxError where it fails before any cell runs.
    """

    def __init__(
        self,
        parent: Parent,
        cells: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        limits: Limits,
        waits: bool = True,
        alone: bool = False,
        first: bool = False,
    ) -> None:
        taken = [name for name in names if hasattr(RemoteSubject, name)]
        if taken:
            raise ValueError(f"no function to ask for can be called {taken[0]}; rename it")
        self.cell_errors: list[str] = []
        self.stopped: list[tuple[int, int]] = []
        self._names, self._limits = tuple(names), limits
        self._cells = [(characters(cell[0]), characters(cell[1]), *cell[2:]) for cell in cells]
        self._left_s = limits.exercise_s
        self._n_calls = 0
        self.cpu_s = 0.0  # processor time of the processes that have ended
        self._printed = b""
        self._error: StudentError | None = None
        self._others: list[RemoteSubject] = []  # of a rank program, from rank 1 on
        self._rivals: list[RemoteSubject] = []  # references that it was timed against
        self._is_alone, self._is_first = alone, first
        self.measured: dict[str, dict[str, Any]] = {}  # of a timed function, for the run's record
        self._is_settled = self._is_stale = False
        self._parent, self._process = parent, StudentProcess(parent)
        with suppress(StudentError):  # told when it is asked
            self._send_cells()
            if waits:
                self._settle()

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
    def has_run_cells(self) -> bool:
        """Whether the cells came to their end, each as far as it did."""
        return self._is_settled

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

    def run_ranks(
        self,
        name: str,
        n_ranks: int,
        arguments: Sequence[tuple[Any, ...]],
        machine: Simulated,
    ) -> RanksRun:
        """What the rank program of that name gives; see `checks.ranks`.

        Rank 0 is this process. Each of the others is one of its own that has run the same cells,
        started when it is first needed and kept for further runs.
        """
        if name not in self._names:
            raise AttributeError(f"{name} is not asked for in this exercise")
        with self._timed():
            members = self._members(n_ranks)
            limit_s, longer = self._limit(self._limits.call_s)
            judge = RankJudge([one._process.channel for one in members], machine, limit_s)
            try:
                return judge.run(name, arguments)
            except Lost as lost:
                why = {
                    "timeout": longer,
                    "crashed": _BROKEN + f": {shown(lost.why)}" * bool(lost.why),
                }
                kind, message = lost.kind, f"{why.get(lost.kind, '')}."
                if lost.kind == "ended":
                    kind, message = members[lost.rank]._why_ended()
                self._lose(kind, f"rank {lost.rank}: {message}")
            finally:
                for rank in judge.unstopped:
                    members[rank]._is_stale = True

    @property
    def observed(self) -> Observed:
        """What its functions cost, as the operating system sees it."""
        return Observed(self, self._parent)

    def _members(self, n_ranks: int) -> list["RemoteSubject"]:
        """A process per rank whose cells have run; StudentError where one does not come to that."""
        while len(self._others) < n_ranks - 1:
            other = RemoteSubject(self._parent, self._cells, self._names, self._limits, False)
            self._others.append(other)
        members = [self, *self._others[: n_ranks - 1]]
        for rank, one in enumerate(members):
            try:
                one._require_process()
            except StudentError as error:
                self._lose(error.kind, f"rank {rank}: {error.message}" if rank else error.message)
        return members

    def _send_cells(self) -> None:
        with self._starting() as limit_s:
            try:
                if self._is_alone:
                    self._process.channel.send(("alone",), limit_s)
                self._process.channel.send(("cells", self._cells), limit_s)
            except NotPlain:
                self._lose("crashed", "the cells of your notebook are too large to be run.")

    def _settle(self) -> None:
        """Waits until the process is there and the cells have run."""
        if self._is_settled:
            return
        with self._starting() as limit_s:
            self._process.meet(limit_s)
        with self._losing(self._limits.exercise_s) as limit_s:
            told = told_of_cells(self._process.channel.receive(limit_s))
        self.cell_errors, self.stopped = told
        self._is_settled = True

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._n_calls += 1
        self._require_process()
        with self._losing(self._limits.call_s) as limit_s:
            self._process.channel.send(("call", self._n_calls, name, args, kwargs), limit_s)
            reply = self._process.channel.receive(limit_s)
        reply = reply if type(reply) is tuple else ()
        # types first: what was sent may be an array, and compare as one
        if [type(part) for part in reply[:2]] != [str, int] or reply[1] != self._n_calls:
            self._lose("crashed", f"{_BROKEN}.")
        if reply[0] == "answer" and len(reply) == 3:
            return reply[2]
        if reply[0] == "trouble" and is_trouble(reply[2:], REPORTED):
            kind, message, type_name, line = reply[2:]
            raise StudentError(kind, shown(message), shown(type_name), line)
        self._lose("crashed", f"{_BROKEN}.")

    def _require_process(self) -> None:
        """A process whose cells have run: a new one where a failed run left it useless."""
        if self._error:
            raise StudentError(self._error.kind, self._error.message)
        if self._is_stale:
            self._end_process()
            self._process = StudentProcess(self._parent)
            self._is_stale = self._is_settled = self._is_first = False
            self._send_cells()
        if self._process.ended:
            raise ValueError("this process is closed; open another one")
        if self._process.is_stopped:  # since its last turn
            with self._losing(_LAST_WORDS_S):
                self._process.go_on(_LAST_WORDS_S)
        self._settle()

    def _limit(self, limit_s: float) -> tuple[float, str]:
        """What is left of a limit, and the sentence for when it is over."""
        if self._left_s < limit_s:
            return self._left_s, IN_ALL
        return limit_s, longer_than(limit_s)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Takes what happens inside from the time of the exercise."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._left_s = max(0.0, self._left_s - (time.monotonic() - start))

    @contextmanager
    def _starting(self) -> Iterator[float]:
        """As of the process; but other processes of the exercise may have left it no memory."""
        try:
            with self._process.starting() as limit_s:
                yield limit_s
        except SandboxError:
            if not self._is_first and self._process.lacked_memory():
                self._lose(*too_much_together(self._limits))
            self._end()
            raise

    @contextmanager
    def _losing(self, limit_s: float) -> Iterator[float]:
        """Inside, what goes wrong with the process ends it; gives the limit that is left."""
        limit_s, longer = self._limit(limit_s)
        try:
            with self._timed():
                yield limit_s
        except TimeoutError:
            self._lose("timeout", f"{longer}.")
        except ProtocolError as error:
            self._lose("crashed", f"{_BROKEN}: {shown(str(error))}.")
        except (EOFError, OSError):
            self._lose(*self._why_ended())

    def _lose(self, kind: str, message: str) -> NoReturn:
        """Ends the process and raises, now and at every further call."""
        self._end()
        self._error = StudentError(kind, message)
        raise StudentError(kind, message)

    def _end(self) -> None:
        for other in self._others:
            other.close()
            self.cpu_s += other.cpu_s
        self._others.clear()
        for rival in self._rivals:
            rival.close()
        self._end_process()

    def _end_process(self) -> Report | None:
        if self._process.ended:
            return None
        self._printed += self._process.printed()
        report = self._process.end()
        self.cpu_s += report.cpu_s if report else 0.0
        return report

    def _why_ended(self) -> tuple[str, str]:
        """Kind and sentence for a process that does not listen any more."""
        try:
            report = self._process.last_words(_LAST_WORDS_S)
        except SandboxError:
            if self._process.lacked_memory():  # not everywhere can be said whom to kill first
                return too_much_together(self._limits)
            lost = self._process.is_guarded or self._parent.ended(_LAST_WORDS_S)
            self._end()
            if lost:
                raise
            return "crashed", "your code ended its process and the one that watches over it."
        if report is None:
            return "crashed", f"{_BROKEN}: it was closed."
        return why_ended(report, self._limits, self._process.lacked_memory())
