"""Collectives as what they are: messages. Ring, tree and pairwise patterns over send and receive.

A pattern is a generator: it starts messages at a `Port` and yields what it must wait for; it gets
the received array back from the yield, and returns this rank's result. So one core can run the
patterns of many ranks, and run them beside the ranks' own work. p is the number of ranks, n the
bytes of the array.

Sources: ring all-reduce, Patarasuk and Yuan 2009, section 3; binomial tree and dissemination,
Thakur, Rabenseifner and Gropp 2005, sections 3 and 4.
"""

from collections.abc import Callable, Generator
from itertools import accumulate, pairwise
from typing import Any, Protocol

from mpedu.arrays import Array, kind_of
from mpedu.comm import Call, even_sizes

Pattern = Generator[Any, Array, Array]


class Port(Protocol):
    """One rank's messages of one collective; each pair of ranks has an order of its own."""

    rank: int
    size: int

    def isend(self, x: Array, destination: int) -> Any:
        """Starts to send a copy of `x`; what comes back may be waited for."""

    def irecv(self, source: int) -> Any:
        """Starts to receive; what comes back must be waited for and gives the array."""


def pattern_of(port: Port, call: Call) -> Pattern:
    """The messages of one rank's call."""
    return _PATTERNS[call.operation](port, call)


def tree_broadcast(port: Port, call: Call) -> Pattern:
    """From the root along a binomial tree: ceil(log2 p) rounds, in each twice as many have it.

    Ranks count from the root. A rank gets the array from the one without its lowest bit, and passes
    it on to those with one lower bit more, the largest subtree first.
    """
    root = call.root or 0
    place = (port.rank - root) % port.size
    bit = _power_above(port.size)
    if place:
        bit = place & -place
        parent = (place - bit + root) % port.size
        kind_of(call.x).fill(call.x, (yield port.irecv(parent)))
    sends = []
    while bit > 1:
        bit //= 2
        if place + bit < port.size:
            sends.append(port.isend(call.x, (place + bit + root) % port.size))
    yield from sends
    return call.x


def ring_all_gather(port: Port, call: Call) -> Pattern:
    """Every part goes once round the ring: p-1 steps, (p-1) parts sent by each rank."""
    x = call.x.reshape(1) if not call.x.shape else call.x
    parts: list[Array] = [None] * port.size
    parts[port.rank] = x
    yield from _pass_round(port, parts)
    return kind_of(x).join(parts)


def ring_reduce_scatter(port: Port, call: Call) -> Pattern:
    """Partial sums go round the ring, each rank adding its own: p-1 steps, (p-1)/p n bytes."""
    parts = _parts(call.x, call.sizes)
    yield from _sum_round(port, parts, call.op)
    return kind_of(call.x).copy(parts[port.rank])


def ring_all_reduce(port: Port, call: Call) -> Pattern:
    """Reduce-scatter, then all-gather, on pieces of n/p: 2(p-1) steps, 2(p-1)/p n bytes."""
    kind = kind_of(call.x)
    flat = kind.copy(call.x).reshape(-1)
    parts = _parts(flat, even_sizes(len(flat), port.size))
    yield from _sum_round(port, parts, call.op)
    yield from _pass_round(port, parts)
    return kind.join(parts).reshape(call.x.shape)


def pairwise_all_to_all(port: Port, call: Call) -> Pattern:
    """In step s each rank sends to the one s further and receives from the one s before it."""
    kind, parts = kind_of(call.x), _parts(call.x, call.sizes)
    received: list[Array] = [None] * port.size
    received[port.rank] = parts[port.rank]
    for step in range(1, port.size):
        sent = port.isend(parts[(port.rank + step) % port.size], (port.rank + step) % port.size)
        source = (port.rank - step) % port.size
        received[source] = yield port.irecv(source)
        yield sent
    return kind.join(received)


def dissemination_barrier(port: Port, call: Call) -> Pattern:
    """In round k each rank tells the one 2**k further: ceil(log2 p) rounds of empty messages."""
    step = 1
    while step < port.size:
        sent = port.isend(None, (port.rank + step) % port.size)
        yield port.irecv((port.rank - step) % port.size)
        yield sent
        step *= 2
    return None


def _sum_round(port: Port, parts: list[Array], op: str | None) -> Pattern:
    """Leaves in `parts[rank]` the sum over ranks of that part."""
    for step in range(port.size - 1):
        sent = port.isend(parts[(port.rank - step - 1) % port.size], (port.rank + 1) % port.size)
        place = (port.rank - step - 2) % port.size
        partial = yield port.irecv((port.rank - 1) % port.size)
        parts[place] = kind_of(partial).combine(op or "sum", partial, parts[place])
        yield sent
    return None


def _pass_round(port: Port, parts: list[Array]) -> Pattern:
    """Fills `parts` with those that the other ranks hold at their own place."""
    for step in range(port.size - 1):
        sent = port.isend(parts[(port.rank - step) % port.size], (port.rank + 1) % port.size)
        parts[(port.rank - step - 1) % port.size] = yield port.irecv((port.rank - 1) % port.size)
        yield sent
    return None


def _parts(x: Array, sizes: tuple[int, ...] | None) -> list[Array]:
    """The rows of `x`, cut into parts of these sizes; views, not copies."""
    return [x[start:end] for start, end in pairwise(accumulate(sizes or (), initial=0))]


def _power_above(n: int) -> int:
    """The least power of two that is `n` or more."""
    return 1 << (n - 1).bit_length()


_PATTERNS: dict[str, Callable[[Port, Call], Pattern]] = {
    "broadcast": tree_broadcast,
    "all_gather": ring_all_gather,
    "reduce_scatter": ring_reduce_scatter,
    "all_reduce": ring_all_reduce,
    "all_to_all": pairwise_all_to_all,
    "barrier": dissemination_barrier,
    "split": ring_all_gather,
}
