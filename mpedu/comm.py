"""`Comm`: what a rank program may ask of the machine it runs on, whichever machine that is.

A rank program is a function `program(comm, ...)`; every rank runs it with a `Comm` of its own.
Arrays are NumPy arrays or torch tensors, and must be contiguous. What one rank sends from a NumPy
array another may receive into a tensor. Every dtype of numbers can be sent; `all_reduce` between
processes knows floats of 16 bits and more, complex numbers, int8, int32, int64, uint8 and bool.

Both sides must give the same number of elements and the same dtype: nobody compares them yet. A
message too long breaks the receiver, one too short leaves the rest as it was, and bytes of another
dtype are read as what they are not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mpedu.simulate import Span

Array = Any  # numpy.ndarray or torch.Tensor: this layer knows neither
TAGS = 2**31  # gloo carries no larger tag
USER_TAGS = 2**30  # tags of user programs are below; those from here on are the engine's


class Link(NamedTuple):
    """One way messages go: from rank `source` to rank `destination`, "F" or "B"."""

    source: int
    destination: int
    direction: str


class Request(ABC):
    """A communication that has been started."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when the array may be used again (sent) or holds the message (received)."""


class Channel(ABC):
    """This rank's end of a `Link`: messages arrive in the order they were sent."""

    @abstractmethod
    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""

    @abstractmethod
    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""


class Comm(ABC):
    """The ranks of one run, seen from one of them.

    rank, size: this rank's number, and how many there are.
    device: where this rank keeps its tensors, "cpu" or "cuda:2".
    spans: what `record` was given; the launcher makes the run's Timeline of it.
    `what`, where a method takes it, names the message in reports: "activations of F3".
    tag: 0 to 2**30 - 1, those above are the engine's; a message is received under the tag it was
    sent with, in the order sent. With NCCL order alone decides: it knows no tags.
    A rank cannot send to itself: ValueError.
    """

    rank: int
    size: int
    device: str = "cpu"

    def __init__(self, on_report: Callable[[object], None] = lambda _: None) -> None:
        self.spans: list[Span] = []
        self._on_report = on_report

    @abstractmethod
    def isend(self, x: Array, destination: int, tag: int = 0, what: str = "") -> Request:
        """Starts to send `x`, which must stay as it is until the request was waited for."""

    @abstractmethod
    def irecv(self, source: int, out: Array, tag: int = 0, what: str = "") -> Request:
        """Starts to receive into `out`, of the shape and dtype of what is sent."""

    @abstractmethod
    def broadcast(self, x: Array, root: int = 0) -> Array:
        """`x`, overwritten on every rank with that of `root`."""

    @abstractmethod
    def all_reduce(self, x: Array, op: str = "sum") -> Array:
        """A new array, on every rank the "sum" or "max" of all ranks' `x`."""

    @abstractmethod
    def barrier(self) -> None:
        """Returns when every rank has called it."""

    @abstractmethod
    def split(self, color: int) -> "Comm":
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""

    @abstractmethod
    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in. Every rank names the same links."""

    def send(self, x: Array, destination: int, tag: int = 0, what: str = "") -> None:
        """Sends `x`; may return only when the receiver takes it, so two must not both send first.

        ValueError for a rank that does not exist, an array that is not contiguous, or a tensor
        that needs a gradient.
        """
        self.isend(x, destination, tag, what).wait()

    def recv(self, source: int, out: Array, tag: int = 0, what: str = "") -> Array:
        """`out`, overwritten with the message from `source`; the errors of `send`."""
        self.irecv(source, out, tag, what).wait()
        return out

    def record(self, span: Span) -> None:
        """Notes what this rank did when; times are those of `time.perf_counter`.

        span.rank is this rank's number among all ranks of the run, also in what `split` made.
        """
        self.spans.append(span)

    def report(self, value: object) -> None:
        """Hands plain data to whoever started the ranks and asked for it."""
        self._on_report(value)


class Alone(Comm):
    """One rank, in the process that asks: for serial runs of what also runs on many."""

    rank, size = 0, 1

    def isend(self, x: Array, destination: int, tag: int = 0, what: str = "") -> Request:
        """ValueError: there is nobody to send to."""
        raise ValueError(f"isend: no rank {destination}; rank 0 is alone")

    def irecv(self, source: int, out: Array, tag: int = 0, what: str = "") -> Request:
        """ValueError: there is nobody to receive from."""
        raise ValueError(f"irecv: no rank {source}; rank 0 is alone")

    def broadcast(self, x: Array, root: int = 0) -> Array:
        """`x`."""
        return x

    def all_reduce(self, x: Array, op: str = "sum") -> Array:
        """A copy of `x`."""
        return x + 0

    def barrier(self) -> None:
        """Returns at once."""

    def split(self, color: int) -> Comm:
        """The same rank."""
        return Alone(self._on_report)

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """None: there are no links."""
        return {}
