"""Messages on the model clock: what has been posted, what is awaited, and the wires between.

A message starts when it is posted and its sender's outgoing link is free, occupies that link for
bytes / bandwidth, and arrives a latency later. It is done, at both ends, when both are posted.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

from mpedu.agreement import Mismatch, message_difference
from mpedu.arrays import Array, Spec, kind_of
from mpedu.calls import words
from mpedu.faults import require_at_least
from mpedu.meter import Meter

NONE = Spec("nothing", ())  # of an empty message


class Wire(NamedTuple):
    """One rank's way out to others: seconds until a message is there, bytes per second on it."""

    latency_s: float = 0.0
    bytes_per_s: float = float("inf")


class Pending:
    """One call of one rank that may not be done yet.

    what: as a report names it. ready_s: when it is done on the model clock. value: what it gives;
    error: or why it gives nothing. any_gradient: some rank's array needs a gradient.
    """

    __slots__ = (
        "any_gradient",
        "done",
        "error",
        "message",
        "peer",
        "rank",
        "ready_s",
        "round",
        "task",
        "value",
        "what",
    )

    def __init__(self, rank: int, what: str, peer: int = -1) -> None:
        self.rank, self.what, self.peer = rank, what, peer
        self.done, self.any_gradient = False, False
        self.ready_s = 0.0
        self.value: Array = None
        self.error: Mismatch | None = None
        self.message: Message | None = None  # which a receive has got
        self.round: Any = None  # of a collective
        self.task: Any = None  # of a collective, which waits for it


class Key(NamedTuple):
    """What matches the two ends of a message; a collective's own have tags below 0."""

    group: int
    source: int
    destination: int
    tag: int


class Message(NamedTuple):
    """A message on its way; x: a copy that nobody else has, None of an empty one."""

    key: Key
    x: Array
    spec: Spec
    kind: str
    n_bytes: int
    start_s: float
    end_s: float
    arrival_s: float
    sent: Pending


class Mail:
    """All messages between `n_ranks` ranks; `finished` is told of every `Pending` that is done.

    link, between: the wires inside a node and between nodes. node_size: ranks of a node, None where
    all are on one. ValueError where the ranks do not fill their nodes, and for a wire that is none.
    """

    def __init__(
        self,
        n_ranks: int,
        wires: tuple[Wire, Wire | None],
        node_size: int | None,
        meter: Meter,
        finished: Callable[[Pending], None],
    ) -> None:
        node_size = n_ranks if node_size is None else node_size
        require_at_least(1, n_ranks=n_ranks, node_size=node_size)
        if n_ranks > node_size and n_ranks % node_size:
            raise ValueError(
                f"{n_ranks} ranks do not fill nodes of {node_size}; "
                "give a number of ranks that node_size divides"
            )
        link, between = wires
        self._node_size, self._wires = node_size, (link, link if between is None else between)
        for wire in self._wires:
            _check(wire)
        self._meter, self._finished = meter, finished
        self._free_s = ([0.0] * n_ranks, [0.0] * n_ranks)  # links of messages, of collectives
        self._posted: defaultdict[Key, deque[Message]] = defaultdict(deque)
        self._wanted: defaultdict[Key, deque[tuple[Spec | None, Pending]]] = defaultdict(deque)

    def post(self, key: Key, x: Array, pending: Pending, at_s: float, lane: int) -> None:
        """Posts a message at `at_s`; lane 1 is that of collectives, whose arrays are copied."""
        kind = None if x is None else kind_of(x)
        n_bytes = 0 if kind is None else kind.n_bytes(x)
        is_between = key.source // self._node_size != key.destination // self._node_size
        wire, free_s = self._wires[is_between], self._free_s[lane]
        start_s = max(at_s, free_s[key.source])
        end_s = free_s[key.source] = start_s + n_bytes / wire.bytes_per_s
        operation = pending.what if lane else "send"
        self._meter.message(key.source, operation, n_bytes, is_between)
        if lane and kind:
            x = kind.copy(x)
        message = Message(
            key,
            x,
            kind.spec(x) if kind else NONE,
            operation,
            n_bytes,
            start_s,
            end_s,
            end_s + wire.latency_s,
            pending,
        )
        wanted = self._wanted.get(key)
        if wanted:
            spec, taken = wanted.popleft()
            if not wanted:
                del self._wanted[key]  # collectives come back to no key
            self._match(message, spec, taken)
        else:
            self._posted[key].append(message)

    def want(self, key: Key, spec: Spec | None, pending: Pending) -> None:
        """Posts a receive of what fits `spec`, or of anything."""
        posted = self._posted.get(key)
        if posted:
            message = posted.popleft()
            if not posted:
                del self._posted[key]
            self._match(message, spec, pending)
        else:
            self._wanted[key].append((spec, pending))

    def _match(self, message: Message, spec: Spec | None, taken: Pending) -> None:
        key = message.key
        if spec is not None and spec != message.spec:
            why = message_difference(
                key.source, key.destination, message.spec, spec, words("", key.tag)
            )
            taken.error = Mismatch(why)
        taken.message, taken.value, taken.ready_s = message, message.x, message.arrival_s
        message.sent.ready_s = message.end_s
        self._finished(message.sent)
        self._finished(taken)

    def left_over(self) -> list[str]:
        """What has no other end: a sentence for each message of a program."""
        lines = []
        for posted in self._posted.values():
            lines += [
                f"rank {m.key.destination} never received what rank {m.key.source} sent it: "
                f"{m.spec}{words('', m.key.tag)}"
                for m in posted
                if m.key.tag >= 0
            ]
        for key, wanted in self._wanted.items():
            lines += [
                f"rank {key.source} never sent what rank {key.destination} started to receive "
                f"from it{words('', key.tag)}"
                for _ in wanted
                if key.tag >= 0
            ]
        return lines


def _check(wire: Wire) -> None:
    is_wire = isinstance(wire, Wire) and all(isinstance(number, Real) for number in wire)
    if not (is_wire and 0 <= wire.latency_s < float("inf") and wire.bytes_per_s > 0):
        raise ValueError(f"{wire!r} is no wire; give Wire(latency_s >= 0, bytes_per_s > 0)")
