"""One rank, in the process that asks: for serial runs of what also runs on many."""

import time
from collections.abc import Iterable

from mpedu.arrays import Array, kind_of
from mpedu.comm import Call, Channel, Comm, Link, Request


class Alone(Comm):
    """One rank, in the process that asks: for serial runs of what also runs on many."""

    rank, size = 0, 1

    def split(self, color: int) -> Comm:
        """The same rank."""
        return Alone(self._on_report)

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """None: there are no links."""
        return {}

    def now_s(self) -> float:
        """Seconds of `time.perf_counter`."""
        return time.perf_counter()

    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Request:
        raise AssertionError("one rank has no peer; the check before has said so")

    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Request:
        raise AssertionError("one rank has no peer; the check before has said so")

    def _start(self, call: Call) -> Request:
        self.meter.call(0, call.operation)
        if call.operation in ("broadcast", "barrier"):
            return Done(call.x)
        x = kind_of(call.x).copy(call.x)
        x = x.reshape(1) if call.operation == "all_gather" and not x.shape else x
        return Done(x, call.needs_gradient)


class Done(Request):
    """What needs no waiting."""

    def __init__(self, value: Array, any_gradient: bool = False) -> None:
        self._value, self.any_gradient = value, any_gradient

    def wait(self) -> Array:
        """The value."""
        return self._value
