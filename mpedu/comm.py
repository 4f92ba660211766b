"""`Comm`: what a rank program may ask of the machine it runs on, whichever machine that is.

A rank program is a function `program(comm, ...)`; every rank runs it with a `Comm` of its own.
Arrays are NumPy arrays of numbers or torch tensors, contiguous. What one rank sends from a NumPy
array another may receive into a tensor of the same dtype and shape.

Messages carry no gradient: sending a tensor that needs one is refused. Collectives of tensors are
differentiable; their gradient is that of the sum of all ranks' losses (see `differentiable`).
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from mpedu.arrays import Array, kind_of
from mpedu.calls import ENGINE_TAGS as ENGINE_TAGS
from mpedu.calls import TAGS as TAGS
from mpedu.calls import USER_TAGS as USER_TAGS
from mpedu.calls import Call as Call
from mpedu.calls import Checks
from mpedu.calls import even_sizes as even_sizes
from mpedu.meter import Meter
from mpedu.simulate import Span


class Link(NamedTuple):
    """One way messages go: from rank `source` to rank `destination`, "F" or "B"."""

    source: int
    destination: int
    direction: str


class Request(ABC):
    """A communication that has been started; `wait` may be called once or again."""

    @abstractmethod
    def wait(self) -> Array:
        """Returns when the array may be used again (sent), or with what was received."""

    def __repr__(self) -> str:
        return "<a request; call wait() on it>"


class Channel(ABC):
    """This rank's end of a `Link`: messages arrive in the order they were sent."""

    @abstractmethod
    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""

    @abstractmethod
    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""


class Comm(Checks, ABC):
    """The ranks of one run, seen from one of them.

    rank, size: this rank's number, and how many there are.
    device: where this rank keeps its tensors, "cpu" or "cuda:2".
    meter: what has been called and sent; on real ranks by this rank alone.
    spans: what `record` was given; the launcher makes the run's Timeline of it.
    `what`, where a method takes it, names the message in reports: "activations of F3".
    tag: 0 to 2**29 - 1, those above are not for programs; a message is received under the tag it
    was sent with, in the order sent. With NCCL order alone decides: it knows no tags.
    async_op: a collective only starts, and a Request comes back, whose `wait` gives the result.
    Errors: ValueError in a sentence that names rank and operation, for a rank that does not exist
    or is the own one, no tag, what is no array, cannot travel, or does not fit the other end.
    """

    rank: int
    size: int
    device: str = "cpu"

    def __init__(self, on_report: Callable[[object], None] = lambda _: None) -> None:
        self.spans: list[Span] = []
        self.meter = Meter()
        self._on_report = on_report

    @staticmethod
    def from_environment(**options: Any) -> AbstractContextManager["Comm"]:
        """This process as a rank that torchrun has started; see `torchrun.from_environment`."""
        entered: AbstractContextManager[Comm] = importlib.import_module(
            "mpedu.torchrun"  # loads torch
        ).from_environment(**options)
        return entered

    def isend(self, x: Array, destination: int, tag: int = 0, what: str = "") -> Request:
        """Starts to send `x`, which must stay as it is until the request was waited for.

        Keep the request: what is let go before that may never arrive.
        """
        return self._sent("isend", x, destination, tag, what)

    def irecv(self, source: int, out: Array = None, tag: int = 0, what: str = "") -> Request:
        """Starts to receive a message; `out` is overwritten with it, None asks for a new array."""
        return self._received("irecv", source, out, tag, what)

    def send(self, x: Array, destination: int, tag: int = 0, what: str = "") -> None:
        """Sends `x`; may return only when the receiver takes it, so two must not both send first.

        On the simulated machine it never returns earlier.
        """
        self._sent("send", x, destination, tag, what).wait()

    def recv(self, source: int, out: Array = None, tag: int = 0, what: str = "") -> Array:
        """The message from `source`: `out`, overwritten, or a new array where that is None."""
        return self._received("recv", source, out, tag, what).wait()

    def broadcast(self, x: Array, root: int = 0, async_op: bool = False) -> Array:
        """`x`, overwritten on every rank with that of `root`."""
        self._check_rank("broadcast", root)
        self._check_array("broadcast", x, written=True)
        return self._collective(Call("broadcast", x, root=int(root)), async_op)

    def all_reduce(self, x: Array, op: str = "sum", async_op: bool = False) -> Array:
        """A new array, on every rank the "sum" or "max" of all ranks' `x`, of one shape."""
        self._check_op("all_reduce", op)
        return self._collective(Call("all_reduce", x, op=op), async_op)

    def all_gather(
        self, x: Array, sizes: Sequence[int] | None = None, async_op: bool = False
    ) -> Array:
        """A new array of all ranks' rows: their `x` along the first axis, in order of rank.

        sizes: the rows of each rank, the same list on all; None where all have as many. An array
        without axes is one row.
        """
        rows = self._rows("all_gather", x)
        if sizes is not None:
            sizes = self._sizes("all_gather", sizes)
            if sizes[self.rank] != rows:
                raise self._wrong("all_gather", f"{rows} rows given, sizes={list(sizes)} says else")
        return self._collective(Call("all_gather", x, sizes=sizes), async_op)

    def reduce_scatter(
        self,
        x: Array,
        op: str = "sum",
        sizes: Sequence[int] | None = None,
        async_op: bool = False,
    ) -> Array:
        """A new array: this rank's rows of the "sum" or "max" of all ranks' `x`, of one shape.

        sizes: the rows that each rank gets, the same list on all; None splits them as evenly as can
        be, larger parts first (`even_sizes`).
        """
        self._check_op("reduce_scatter", op)
        rows = self._rows("reduce_scatter", x, least_axes=1)
        sizes = even_sizes(rows, self.size) if sizes is None else sizes
        sizes = self._sizes("reduce_scatter", sizes, rows)
        return self._collective(Call("reduce_scatter", x, op=op, sizes=sizes), async_op)

    def all_to_all(
        self,
        x: Array,
        send_sizes: Sequence[int] | None = None,
        recv_sizes: Sequence[int] | None = None,
        async_op: bool = False,
    ) -> Array:
        """A new array of the rows that all ranks have for this one, in order of rank.

        send_sizes: how many rows of `x` go to each rank, first those for rank 0; None: as many to
        each. recv_sizes: how many come from each; None: as many as are sent, or, where send_sizes
        is given, asked of the others first (one more small all_to_all).
        """
        rows = self._rows("all_to_all", x, least_axes=1)
        if send_sizes is None:
            if rows % self.size:
                raise self._wrong(
                    "all_to_all", f"{rows} rows do not divide by {self.size} ranks; give send_sizes"
                )
            send_sizes = even_sizes(rows, self.size)
            recv_sizes = send_sizes if recv_sizes is None else recv_sizes
        send_sizes = self._sizes("all_to_all", send_sizes, rows)
        if recv_sizes is None:
            recv_sizes = self._exchanged(send_sizes)
        recv_sizes = self._sizes("all_to_all", recv_sizes)
        call = Call("all_to_all", x, sizes=send_sizes, recv_sizes=recv_sizes)
        return self._collective(call, async_op)

    def barrier(self, async_op: bool = False) -> Any:
        """Returns when every rank has called it."""
        return self._finished(self._start(Call("barrier")), async_op)

    def compute(self, seconds: float | None = None, flops: float | None = None) -> None:
        """Work that takes so long on the model clock; real ranks have real work and do nothing."""
        given = [v for v in (seconds, flops) if v is not None]
        if len(given) != 1 or isinstance(given[0], bool) or not isinstance(given[0], Real):
            raise self._wrong(
                "compute", f"seconds={seconds!r}, flops={flops!r}; give one of them, a number"
            )
        if not 0 <= given[0] < float("inf"):
            raise self._wrong("compute", f"{given[0]!r} is no amount of work; give 0 or more")
        self._compute(seconds, flops)

    @abstractmethod
    def now_s(self) -> float:
        """Seconds on this rank's clock: the model clock, or on real ranks `time.perf_counter`."""

    @abstractmethod
    def split(self, color: int) -> "Comm":
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""

    @abstractmethod
    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in. Every rank names the same links."""

    def record(self, span: Span) -> None:
        """Notes what this rank did when; times are those of `now_s`.

        span.rank is this rank's number among all ranks of the run, also in what `split` made.
        """
        self.spans.append(span)

    def report(self, value: object) -> None:
        """Hands plain data to whoever started the ranks and asked for it."""
        self._on_report(value)

    # What a machine has to do. Everything that comes here has been checked.

    @abstractmethod
    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Request: ...

    @abstractmethod
    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Request: ...

    @abstractmethod
    def _start(self, call: Call) -> Request: ...

    def _compute(self, seconds: float | None, flops: float | None) -> None:
        """Real ranks compute by computing."""

    def _sent(self, name: str, x: Array, destination: int, tag: int, what: str) -> Request:
        self._check_peer(name, destination)
        self._check_tag(name, tag)
        self._check_array(name, x)
        return self._isend(x, int(destination), int(tag), what)

    def _received(self, name: str, source: int, out: Array, tag: int, what: str) -> Request:
        self._check_peer(name, source)
        self._check_tag(name, tag)
        if out is not None:
            self._check_array(name, out, written=True)
        return self._irecv(int(source), out, int(tag), what)

    def _collective(self, call: Call, async_op: bool) -> Array:
        name = call.operation
        self._check_array(name, call.x, may_need_gradient=True)
        kind = kind_of(call.x)
        if name != "broadcast":
            differentiated = kind.differentiated(self, call, async_op)
            if differentiated is not None:
                return differentiated
        elif kind.needs_gradient(call.x):
            raise self._wrong(name, "the tensor needs a gradient; give x.detach()")
        return self._finished(self._start(call), async_op)

    @staticmethod
    def _finished(request: Request, async_op: bool) -> Any:
        return request if async_op else request.wait()

    def _exchanged(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        ones = (1,) * self.size
        counts = np.array(sizes, dtype=np.int64)
        call = Call("all_to_all", counts, sizes=ones, recv_sizes=ones)
        return tuple(self._start(call).wait().tolist())
