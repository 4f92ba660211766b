"""A rank program in a student's process: `Comm` as frames to the judge, who keeps all the books.

Nothing here counts, times or decides; what a student makes of it is the judge's side to withstand.
Calls that need no answer wait here for the next one that does: nobody can tell the difference,
since the judge reads one rank until it must wait.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import msgpack  # type: ignore[import-untyped]
import numpy as np

from autograder.worker.protocol import MAX_FRAME_BYTES, Channel
from mpedu.agreement import Mismatch
from mpedu.arrays import Array, kind_of
from mpedu.comm import Call, Comm, Link, Request
from mpedu.comm import Channel as CommChannel
from mpedu.ranks.travel import pickled_program, unpickled_program
from mpedu.simulate import Span

# A frame to the judge is a list: one of these, then what belongs to it. Answered are those from
# WAIT on.
ISEND, IRECV, START, WAIT, NOW, GROUP, BUY, ENDED, TROUBLE = range(9)
# And an answer: plain parts, an array, the texts of two kinds of errors, or that the run is over.
DONE, ARRAY, MISMATCH, REFUSED, OVER = range(5)
MOST_ARRAY_BYTES = MAX_FRAME_BYTES - 2**12
_MOST_ANSWER_BYTES = 2**30
_MOST_WAITING_BYTES = 2**16
HELD = "_held"  # a method that is no part of what is served
_MOST_CHARACTERS = 100  # of what a message is said to be


def own_copy(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program made anew with all its globals: no run sees what another one has left in them."""
    copy: Callable[..., Any] = unpickled_program(pickled_program(program, ()))[0]
    return copy


class Bought:
    """Stands for a served object: the judge does the work of its methods and charges for it."""

    def __init__(self, name: str, methods: Iterable[str], buy: Callable[..., Any]) -> None:
        self._name = name
        for method in methods:
            setattr(self, method, partial(buy, method))

    def __repr__(self) -> str:
        return f"<{self._name}, served by the judge>"


class Watched(Bought):
    """A served object that tells, before each call, what is still there of earlier answers.

    That is for its method HELD(method, counts): by method, of how many answers the last part, an
    array, has not been dropped.
    """

    def __init__(self, name: str, methods: Iterable[str], buy: Callable[..., Any]) -> None:
        alive: dict[str, WeakValueDictionary[int, Array]] = {}

        def watched(method: str, *args: Any) -> Any:
            buy(HELD, method, {of: len(arrays) for of, arrays in alive.items()})
            value = buy(method, *args)
            if isinstance(value, tuple) and value and isinstance(value[-1], np.ndarray):
                arrays = alive.setdefault(method, WeakValueDictionary())
                arrays[id(value[-1])] = value[-1]  # an address is used again only when it is free
            return value

        super().__init__(name, (method for method in methods if method != HELD), watched)


def given(
    plain: tuple[Any, ...], served: Sequence[tuple[int, str, list[str]]], buy: Callable[..., Any]
) -> list[Any]:
    """A program's arguments: what is plain, and at its positions what is served.

    `buy(position, method, *args)` asks for the work.
    """
    arguments = list(plain)
    for position, name, methods in served:
        kind = Watched if HELD in methods else Bought
        arguments[position] = kind(name, methods, partial(buy, position))
    return arguments


class Over(BaseException):
    """Raised in a program to end it: another rank has failed."""


class Line:
    """Frames to the judge, and its answers, during one run."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: list[bytes] = []
        self._n_bytes = 0
        self._process = os.getpid()
        self._is_over = False
        self.n_requests = 0  # so far; the judge counts them too

    def request(self, *parts: Any) -> int:
        """Posts what starts an operation; the number under which it can be waited for."""
        self.post(*parts)
        self.n_requests += 1
        return self.n_requests - 1

    def post(self, *parts: Any) -> None:
        """Sends a frame now or later."""
        frame = msgpack.packb(parts)
        self._waiting.append(frame)
        self._n_bytes += len(frame)
        if self._n_bytes > _MOST_WAITING_BYTES:
            self._flush()

    def ask(self, *parts: Any) -> Any:
        """The answer to a frame; Mismatch and ValueError as the judge says, Over at the end."""
        if self._is_over:
            raise Over
        self.post(*parts)
        self._flush()
        answer = self._channel.frame(most_bytes=_MOST_ANSWER_BYTES)
        code, *values = msgpack.unpackb(answer, max_bin_len=_MOST_ANSWER_BYTES)
        if code == ARRAY:
            dtype, shape, data = values
            return np.frombuffer(data, dtype).reshape(shape).copy()
        return values if code == DONE else self._raise(code, values)

    def end(self, *parts: Any) -> None:
        """Sends the last frame, unless the judge has ended the run and waits for nothing else."""
        if self._is_over:
            self.post(TROUBLE, "over", "", "", None)
            self._flush()
        else:
            with suppress(Over):
                self.ask(*parts)

    def _raise(self, code: int, values: list[Any]) -> NoReturn:
        if code == OVER:
            self._is_over = True
            raise Over
        raise (Mismatch if code == MISMATCH else ValueError)(*values)

    def _flush(self) -> None:
        if os.getpid() != self._process:
            os._exit(0)  # a fork made by the student's code: one process speaks
        frames, self._waiting, self._n_bytes = self._waiting, [], 0
        self._channel.send_frames(frames)


class GradedComm(Comm):
    """What is the same at home and in grading: NumPy arrays, and no time but for bought work."""

    def record(self, span: Span) -> None:
        """Nothing: the record is the judge's."""

    def channels(self, links: Iterable[Link]) -> dict[Link, CommChannel]:
        """Refused: channels are for engines, which are not graded."""
        raise self._wrong("channels", "programs that are graded use send and recv")

    def _compute(self, seconds: float | None, flops: float | None) -> None:
        """Nothing: `compute` is for demonstrations."""

    def _check_array(
        self, name: str, x: Array, written: bool = False, may_need_gradient: bool = False
    ) -> None:
        if type(x).__module__.partition(".")[0] == "torch":
            raise self._wrong(name, "programs that are graded send NumPy arrays; give x.numpy()")
        super()._check_array(name, x, written, may_need_gradient)
        if x.nbytes > MOST_ARRAY_BYTES:
            why = f"an array of {x.nbytes} bytes; graded programs send at most {MOST_ARRAY_BYTES}"
            raise self._wrong(name, f"{why} at once; send parts of it")


class WireComm(GradedComm):
    """One rank whose calls go to the judge.

    group: which of the judge's groups of this rank; members: its ranks among all.
    """

    def __init__(self, line: Line, group: int, members: Sequence[int], world_rank: int) -> None:
        super().__init__()
        self._line, self._group, self._members = line, group, tuple(members)
        self._world_rank = world_rank
        self.rank, self.size = self._members.index(world_rank), len(members)

    def now_s(self) -> float:
        """Seconds on this rank's compute clock."""
        return float(self._line.ask(NOW)[0])

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""
        self._start(Call("split", self._color(color))).wait()
        group, members = self._line.ask(GROUP, self._group)
        return WireComm(self._line, group, members, self._world_rank)

    def buy(self, position: int, method: str, args: bytes) -> bytes:
        """The value of served work, as plain data in bytes."""
        value: bytes = self._line.ask(BUY, position, method, args)[0]
        return value

    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Request:
        parts = _packed(x)
        words = str(what)[:_MOST_CHARACTERS]
        number = self._line.request(ISEND, self._group, destination, tag, words, *parts)
        return _Asked(self._line, number, None)

    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Request:
        spec = (None, None) if out is None else (out.dtype.str, out.shape)
        words = str(what)[:_MOST_CHARACTERS]
        number = self._line.request(IRECV, self._group, source, tag, words, *spec)
        return _Asked(self._line, number, out)

    def _start(self, call: Call) -> Request:
        name = call.operation
        parts = (None, None, None) if call.x is None else _packed(call.x)
        rest = call.op, call.root, call.sizes, call.recv_sizes
        number = self._line.request(START, self._group, name, *parts, *rest)
        return _Asked(self._line, number, call.x if name == "broadcast" else None)

    @staticmethod
    def _finished(request: Any, async_op: bool) -> Any:
        return request.confirmed() if async_op else request.wait()

    def _number(self, rank: int) -> int:
        return self._members[rank]


class _Asked(Request):
    def __init__(self, line: Line, number: int, out: Array) -> None:
        self._line, self._number, self._out = line, number, out
        self._value: Array = None
        self._is_done = False

    def confirmed(self) -> "_Asked":
        """Itself; Mismatch where it does not fit what other ranks have started."""
        self._line.ask(NOW)
        return self

    def wait(self) -> Array:
        """Returns when the call is done, with what it gives."""
        if not self._is_done:
            answer = self._line.ask(WAIT, self._number)
            self._value = answer if isinstance(answer, np.ndarray) else None
            self._is_done = True
        if self._out is None:
            return self._value
        kind_of(self._out).fill(self._out, self._value)
        return self._out


def _packed(x: Array) -> tuple[str, tuple[int, ...], bytes]:
    return x.dtype.str, x.shape, x.tobytes()
