"""What ranks send is a stranger's: here it is checked, as their own `Comm` has done before."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any

import numpy as np

from autograder.programs import Served
from autograder.worker.protocol import Channel
from mpedu.agreement import Mismatch
from mpedu.alone import Alone
from mpedu.arrays import Array, Spec
from mpedu.comm import Call
from mpedu.simulated.exchange import Group, Pending

# What a process may report of its code; what befalls several ranks, and time, the judge tells.
REPORTED = ("unwritten", "missing", "withheld", "raised", "not_plain", "out_of_memory")
_DTYPES = {np.dtype(code).str: np.dtype(code) for code in "?bhilqBHILQefdgFD"}


class Checks(Alone):
    """Checks what a rank calls as its own `Comm` has done, and gives back what is left to do."""

    def __init__(self, group: Group, world_rank: int) -> None:
        super().__init__()
        self.group = group
        self.rank, self.size = group.members.index(world_rank), len(group.members)

    def call(self, operation: str, x: Array, op: Any, root: Any, sizes: Any, others: Any) -> Any:
        """The checked `Call` of a collective; an exception of any type where it is none."""
        if operation == "broadcast":
            return self.broadcast(x.copy(), root, True)  # it will be written to
        if operation == "all_reduce":
            return self.all_reduce(x, op, True)
        if operation == "all_gather":
            return self.all_gather(x, sizes, True)
        if operation == "reduce_scatter":
            return self.reduce_scatter(x, op, sizes, True)
        if operation == "all_to_all":
            return self.all_to_all(x, sizes, others, True)
        if operation == "split":
            return Call("split", self._color(int(x[0])))
        return self.barrier(True) if operation == "barrier" else require(False)

    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Any:
        return x, destination, tag, what

    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Any:
        return source, tag, what

    def _start(self, call: Call) -> Any:
        return call


class Rank:
    """One rank's connection, and what it has asked for."""

    def __init__(self, rank: int, channel: Channel, world: Group) -> None:
        self.rank, self.channel = rank, channel
        self.served: dict[int, Served] = {}  # by its place among the arguments
        self.groups = [Checks(world, rank)]
        self.requests: dict[int, tuple[Pending, int]] = {}  # by number; and the group's place
        self.n_requests = 0
        self.waits_for: int | None = None  # a request
        self.colors: dict[int, list[int]] = {}  # told in a split, by the place of the group
        self.mismatch: Mismatch | None = None  # to be told with the next answer
        self.result: Any = None
        self.is_over = False

    def group(self, at: Any) -> Checks:
        """The group of that place."""
        require(type(at) is int and at >= 0)
        group: Checks = self.groups[at]
        return group


class Lost(Exception):
    """A rank that is late, or gone, or has sent what makes no sense, as `why` tells."""

    def __init__(self, rank: int, kind: str, why: str = "") -> None:
        super().__init__(why)
        self.rank, self.kind, self.why = rank, kind, why


class Broken(Exception):
    """A rank has sent what its `Comm` never sends."""


@contextmanager
def checking() -> Iterator[None]:
    """Broken for whatever goes wrong inside: what is read there is a stranger's."""
    try:
        yield
    except Exception:
        raise Broken from None


def require(holds: bool) -> None:
    """Broken where it does not hold."""
    if not holds:
        raise Broken


def spec_of(dtype: Any, shape: Any) -> Spec | None:
    """What a receive asks for; None where it takes anything."""
    return None if dtype is None else Spec(_DTYPES[dtype].name, shape_of(shape))


def shape_of(shape: Any) -> tuple[int, ...]:
    """The shape in a frame."""
    require(type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape))
    return tuple(shape)


def array_of(dtype: Any, shape: Any, data: Any) -> Array:
    """The array of a frame; not to be written to."""
    return np.frombuffer(data, _DTYPES[dtype]).reshape(shape_of(shape))


def is_trouble(parts: tuple[Any, ...], kinds: Sequence[str]) -> bool:
    """Whether these are a kind among `kinds`, a message, a type's name and a line or None."""
    types = [type(part) for part in parts]
    return types in ([str, str, str, NoneType], [str, str, str, int]) and parts[0] in kinds
