"""Collectives on torch.distributed, over arrays of any kind: started, on their way, landed.

What only moves goes as bytes. gloo adds no int16, makes 2 of True + True and loses a nan in "max":
what it cannot reduce right is gathered and reduced here.
"""

from collections.abc import Callable
from functools import partial, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from mpedu.arrays import Array, kind_of
from mpedu.comm import Call
from mpedu.distributed.staging import HostBuffers
from mpedu.tensors import bytes_of

REDUCTIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}
WHOLE = ("int8", "uint8", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
SHORT = ("float16", "bfloat16")  # summed in float32, rounded once


class Seat(NamedTuple):
    """This rank's place in a group of torch.distributed."""

    group: dist.ProcessGroup | None
    rank: int
    size: int


class Flight:
    """One communication on its way.

    host: the buffers through which tensors of a GPU go, None where they need not.
    """

    def __init__(self, seat: Seat | None = None, host: HostBuffers | None = None) -> None:
        self.seat, self._host = seat or Seat(None, 0, 1), host
        self.works: list[dist.Work] = []
        self.result: Callable[[], Array] = lambda: None
        self._lent: list[Tensor] = []
        self._landings: list[tuple[Tensor, Tensor]] = []

    def outgoing(self, x: Array) -> Tensor:
        """The bytes of `x` where the network takes them."""
        there = bytes_of(x)
        return there if self._host is None else self._lend(there).copy_(there)

    def incoming(self, out: Array, filled: bool = False) -> Tensor:
        """Where the network puts the bytes of `out`; filled: those that it holds are there now."""
        there = bytes_of(out)
        if self._host is None:
            return there
        here = self._lend(there)
        self._landings.append((there, here))
        return here.copy_(there) if filled else here

    def go(self, operation: Callable[..., Any], *tensors: Tensor, **how: Any) -> None:
        """Starts an operation of torch.distributed."""
        self.add(operation(*tensors, group=self.seat.group, async_op=True, **how))

    def add(self, work: dist.Work | None) -> None:
        """One more to wait for."""
        if work is not None:
            self.works.append(work)

    def land(self) -> Array:
        """The result, once all works were waited for."""
        for there, here in self._landings:
            there.copy_(here)
        result = self.result()
        for lent in self._lent:
            self._host.give_back(lent)  # type: ignore[union-attr]
        self._lent, self._landings = [], []
        return result

    def _lend(self, there: Tensor) -> Tensor:
        lent = self._host.lend(there.numel())  # type: ignore[union-attr]
        self._lent.append(lent)
        return lent


def take_off(seat: Seat, call: Call, host: HostBuffers | None = None) -> Flight:
    """Starts one rank's part of a collective, on which all ranks agree."""
    flight = Flight(seat, host)
    _STARTS[call.operation](flight, call)
    return flight


def _barrier(flight: Flight, call: Call) -> None:
    flight.go(dist.barrier)


def _broadcast(flight: Flight, call: Call) -> None:
    wire = flight.incoming(call.x, filled=flight.seat.rank == call.root)
    flight.go(dist.broadcast, wire, group_src=call.root)
    flight.result = lambda: call.x


def _all_reduce(flight: Flight, call: Call) -> None:
    kind, op = kind_of(call.x), call.op or "sum"
    dtype = kind.spec(call.x).dtype
    if dtype in WHOLE or (dtype in FLOATS and op == "sum"):
        out = kind.copy(call.x)
        wire = flight.incoming(out, filled=True).view(getattr(torch, dtype))
        flight.go(dist.all_reduce, wire, op=REDUCTIONS[op])
        flight.result = lambda: out
        return
    parts = kind.empty(call.x, (flight.seat.size, *call.x.shape))
    _gather(flight, call.x, parts, None)
    flight.result = lambda: reduced(op, parts)


def _all_gather(flight: Flight, call: Call) -> None:
    rows = call.x.shape[0] if call.x.shape else 1
    n_rows = sum(call.sizes) if call.sizes else rows * flight.seat.size
    out = kind_of(call.x).empty(call.x, (n_rows, *call.x.shape[1:]))
    _gather(flight, call.x, out, call.sizes)
    flight.result = lambda: out


def _gather(flight: Flight, x: Array, out: Array, sizes: tuple[int, ...] | None) -> None:
    here, there, size = flight.outgoing(x), flight.incoming(out), flight.seat.size
    if sizes is None and here.is_cuda and hasattr(dist, "all_gather_single"):
        flight.go(dist.all_gather_single, there, here)
        return
    # gloo's own all_gather takes longer, and no parts that differ in size
    row_bytes = _row_bytes(x)
    taken = None if sizes is None else [rows * row_bytes for rows in sizes]
    given = None if sizes is None else [len(here)] * size
    flight.go(
        dist.all_to_all_single,
        there,
        here.repeat(size),
        output_split_sizes=taken,
        input_split_sizes=given,
    )


def _reduce_scatter(flight: Flight, call: Call) -> None:
    """Each rank gets all parts of its rows and adds them up: no more bytes than in a ring."""
    sizes, seat, row_bytes = call.sizes or (), flight.seat, _row_bytes(call.x)
    own = (sizes[seat.rank], *call.x.shape[1:])
    parts = kind_of(call.x).empty(call.x, (seat.size, *own))
    flight.go(
        dist.all_to_all_single,
        flight.incoming(parts),
        flight.outgoing(call.x),
        output_split_sizes=[own[0] * row_bytes] * seat.size,
        input_split_sizes=[rows * row_bytes for rows in sizes],
    )
    flight.result = lambda: reduced(call.op or "sum", parts)


def _all_to_all(flight: Flight, call: Call) -> None:
    given, taken, row_bytes = call.sizes or (), call.recv_sizes or (), _row_bytes(call.x)
    out = kind_of(call.x).empty(call.x, (sum(taken), *call.x.shape[1:]))
    flight.go(
        dist.all_to_all_single,
        flight.incoming(out),
        flight.outgoing(call.x),
        output_split_sizes=[rows * row_bytes for rows in taken],
        input_split_sizes=[rows * row_bytes for rows in given],
    )
    flight.result = lambda: out


def reduced(op: str, parts: Array) -> Array:
    """The "sum" or "max" over the first axis, in order of rank; short floats are rounded once."""
    kind = kind_of(parts)
    is_short = op == "sum" and kind.spec(parts).dtype in SHORT
    if isinstance(parts, np.ndarray):
        whole = parts.astype(np.float32) if is_short else parts
        combine = np.add if op == "sum" else np.maximum
        return np.asarray(combine.reduce(whole, axis=0, dtype=whole.dtype)).astype(parts.dtype)
    if is_short:
        return parts.float().sum(0).to(parts.dtype)
    return reduce(partial(kind.combine, op), parts[1:], kind.copy(parts[0]))


def _row_bytes(x: Array) -> int:
    n_elements = prod(x.shape[1:])
    return int(n_elements * (x.itemsize if isinstance(x, np.ndarray) else x.element_size()))


_STARTS: dict[str, Callable[[Flight, Call], None]] = {
    "barrier": _barrier,
    "broadcast": _broadcast,
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "split": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}
