"""The exchange: who has sent what to whom, and when it arrives on the model clock.

It runs no program and no thread. Somebody who does (the simulated machine, a judge) hands it the
calls of all ranks, gets a `Pending` for each, and learns from `freed` who may go on.

The clock. A message starts when it is posted and its sender's outgoing link is free, occupies that
link for bytes / bandwidth, and arrives a latency later. Whoever receives takes it at the later of
the own clock and the arrival. Collectives run on a second clock and link of each rank, its
communication clock, one after the other; a blocking one is posted and waited for. There is no other
contention, so times do not depend on the order in which calls are handed in.

Rendezvous decides only who may go on: a send is done when its receiver has posted the receive.
"""

from collections import defaultdict, deque
from typing import Any, NamedTuple

from mpedu.agreement import Mismatch, difference
from mpedu.arrays import Array, Spec, kind_of
from mpedu.collectives import Pattern, pattern_of
from mpedu.comm import Call
from mpedu.mail import Key, Mail, words
from mpedu.mail import Pending as Pending
from mpedu.mail import Wire as Wire  # importable from here too
from mpedu.meter import Meter
from mpedu.ranks.board import Waiting
from mpedu.simulate import Sent, Span

_FOR_S = 1.0  # how long a rank has waited means nothing here


class Group(NamedTuple):
    """The ranks of one `Comm`, by their numbers among all ranks."""

    number: int
    members: tuple[int, ...]


class _Round:
    """One collective of a group: who has come to it, by rank in the group, with which call."""

    def __init__(self, group: Group, number: int, operation: str) -> None:
        self.group, self.number, self.operation = group, number, operation
        self.calls: dict[int, Call] = {}
        self.any_gradient = False
        self.n_ended = 0


class _Task:
    """One rank's part in a round: its pattern and its clock. For the pattern it is the port."""

    def __init__(self, exchange: "Exchange", round_: _Round, pending: Pending, at_s: float) -> None:
        self.exchange, self.round, self.pending = exchange, round_, pending
        self.rank, self.size = round_.group.members.index(pending.rank), len(round_.group.members)
        self.clock_s = self.start_s = at_s
        self._x = round_.calls[self.rank].x
        self.pattern: Pattern = pattern_of(self, round_.calls[self.rank])

    def isend(self, x: Array, destination: int) -> Pending:
        """Posts a copy of `x`, or an empty message."""
        pending = Pending(self.pending.rank, self.round.operation)
        self.exchange._mail.post(self._key(self.rank, destination), x, pending, self.clock_s, 1)
        return pending

    def irecv(self, source: int) -> Pending:
        """Posts a receive."""
        pending = Pending(self.pending.rank, self.round.operation)
        self.exchange._mail.want(self._key(source, self.rank), None, pending)
        return pending

    def taken(self, x: Array) -> Array:
        """What was received, as an array of the kind that this rank has given."""
        if x is None or type(x) is type(self._x) or kind_of(x) is (kind := kind_of(self._x)):
            return x
        own = kind.empty(self._x, tuple(x.shape))
        kind.fill(own, x)
        return own

    def _key(self, source: int, destination: int) -> Key:
        members = self.round.group.members
        tag = -1 - self.round.number
        return Key(self.round.group.number, members[source], members[destination], tag)


class Exchange:
    """The messages, meter and clocks of `n_ranks` ranks.

    link, between: the wires inside a node and between nodes. node_size: ranks of a node, None where
    all are on one; ValueError where the ranks do not fill their nodes. clock_s: each rank's compute
    clock. freed: ranks whose wait has ended, in that order, for whoever runs them to take out.
    untaken: messages that a rank has started to send or receive and not waited for.
    """

    def __init__(
        self, n_ranks: int, link: Wire, between: Wire | None = None, node_size: int | None = None
    ) -> None:
        self.world = Group(0, tuple(range(n_ranks)))
        self.meter = Meter()
        self._mail = Mail(n_ranks, (link, between), node_size, self.meter, self._finish)
        self.clock_s = [0.0] * n_ranks
        self.spans: list[Span] = []
        self.sent: list[Sent] = []
        self.freed: deque[int] = deque()
        self.waits: dict[int, Pending] = {}
        self.untaken: set[Pending] = set()
        self.finished: set[int] = set()
        self._communication_s = [0.0] * n_ranks
        self._rounds: dict[tuple[int, int], _Round] = {}
        self._n_rounds: defaultdict[tuple[int, int], int] = defaultdict(int)  # by group, rank
        self._tasks: list[deque[_Task]] = [deque() for _ in range(n_ranks)]  # the first one runs
        self._ready: deque[tuple[_Task, Array]] = deque()
        self._groups: dict[tuple[int, int, int], Group] = {}

    # The calls of a rank; none of them blocks. Ranks, tags and sizes have been checked.

    def isend(
        self, rank: int, group: Group, x: Array, destination: int, tag: int, what: str = ""
    ) -> Pending:
        """Posts a message of `x`, which nobody may change any more; rank: among all ranks."""
        peer = group.members[destination]
        pending = Pending(rank, f"send to rank {peer}{words(what, tag)}", peer)
        self.meter.call(rank, "send")
        self.untaken.add(pending)
        key = Key(group.number, rank, peer, tag)
        self._mail.post(key, x, pending, self.clock_s[rank], 0)
        self._run()
        return pending

    def irecv(
        self, rank: int, group: Group, source: int, spec: Spec | None, tag: int, what: str = ""
    ) -> Pending:
        """Posts a receive of what fits `spec`, or of anything."""
        peer = group.members[source]
        pending = Pending(rank, f"recv from rank {peer}{words(what, tag)}", peer)
        self.meter.call(rank, "recv")
        self.untaken.add(pending)
        self._mail.want(Key(group.number, peer, rank, tag), spec, pending)
        self._run()
        return pending

    def collective(self, rank: int, group: Group, call: Call) -> Pending:
        """Enters the group's next collective; Mismatch where others call it otherwise."""
        number = self._n_rounds[group.number, rank]
        self._n_rounds[group.number, rank] += 1
        round_ = self._rounds.setdefault(
            (group.number, number), _Round(group, number, call.operation)
        )
        place = group.members.index(rank)
        # Who is like one is like all; only in all_to_all each pair has numbers of its own.
        others = list(round_.calls.items())
        for earlier in others if call.operation == "all_to_all" else others[:1]:
            text = difference(group.members, earlier, (place, call))
            if text:
                raise Mismatch(text)
        round_.calls[place] = call
        round_.any_gradient |= call.needs_gradient
        self.meter.call(rank, call.operation)
        pending = Pending(rank, call.operation)
        pending.round = round_
        self._tasks[rank].append(_Task(self, round_, pending, self.clock_s[rank]))
        if len(self._tasks[rank]) == 1:
            self._begin(rank)
        self._run()
        return pending

    def group_of(self, rank: int, group: Group, colors: list[int]) -> Group:
        """The ranks with the color of `rank`, after the round in which all told theirs."""
        color = colors[group.members.index(rank)]
        members = tuple(m for m, other in zip(group.members, colors, strict=True) if other == color)
        key = (group.number, self._n_rounds[group.number, rank], color)
        return self._groups.setdefault(key, Group(1 + len(self._groups), members))

    def compute(self, rank: int, seconds: float, name: str = "compute") -> None:
        """Moves the compute clock on."""
        start_s = self.clock_s[rank]
        self.clock_s[rank] = start_s + seconds
        self.spans.append(Span(rank, name, -1, -1, start_s, start_s + seconds))

    def wait(self, rank: int, pending: Pending) -> bool:
        """Whether it is done; if not, `rank` waits from now on and will be among `freed`."""
        if not pending.done:
            self.waits[rank] = pending
        return pending.done

    def take(self, rank: int, pending: Pending) -> Array:
        """What a call gives, once it is done; moves the compute clock. Raises its Mismatch."""
        self.untaken.discard(pending)
        if pending.error is not None:
            raise pending.error
        self.clock_s[rank] = max(self.clock_s[rank], pending.ready_s)
        self._note(pending, self.clock_s[rank])
        return pending.value

    def finish(self, rank: int) -> None:
        """The program of `rank` has ended."""
        self.finished.add(rank)

    # What is said when nothing goes on.

    def waiting(self) -> list[Waiting]:
        """Who waits in what, and for whom; in a collective for those that have not come to it."""
        return [
            Waiting(rank, pending.what, _FOR_S, self._peers(pending))
            for rank, pending in sorted(self.waits.items())
        ]

    def _peers(self, pending: Pending) -> tuple[int, ...]:
        if pending.round is None:
            return (pending.peer,)
        members = pending.round.group.members
        absent = [m for place, m in enumerate(members) if place not in pending.round.calls]
        return tuple(absent or (m for m in members if m != pending.rank))

    def left_over(self) -> list[str]:
        """What has no other end, now that all have finished: a sentence for each."""
        lines = self._mail.left_over()
        for tasks in self._tasks:
            lines += [
                f"rank {task.pending.rank} started {task.round.operation}, "
                f"and rank {absent} never did"
                for task in tasks
                for absent in self._peers(task.pending)[:1]
            ]
        return lines

    def _finish(self, pending: Pending) -> None:
        pending.done = True
        if pending.task is not None:
            self._ready.append((pending.task, pending))
        elif self.waits.get(pending.rank) is pending:
            del self.waits[pending.rank]
            self.freed.append(pending.rank)

    def _note(self, pending: Pending, taken_s: float) -> None:
        """Records the message that a receive has got."""
        message, pending.message = pending.message, None
        if message is not None:
            key, tag = message.key, max(message.key.tag, -1)
            self.sent.append(
                Sent(
                    key.source,
                    key.destination,
                    message.kind,
                    message.n_bytes,
                    message.start_s,
                    message.end_s,
                    message.arrival_s,
                    taken_s,
                    tag,
                )
            )

    # Collectives.

    def _begin(self, rank: int) -> None:
        task = self._tasks[rank][0]
        task.clock_s = task.start_s = max(task.clock_s, self._communication_s[rank])
        self._ready.append((task, None))

    def _run(self) -> None:
        """Lets every collective go on as far as it can."""
        while self._ready:
            task, pending = self._ready.popleft()
            self._go_on(task, pending)

    def _go_on(self, task: _Task, pending: Pending | None) -> None:
        while True:
            value = None
            if pending is not None:
                task.clock_s = max(task.clock_s, pending.ready_s)
                self._note(pending, task.clock_s)
                value = task.taken(pending.value)
            try:
                pending = task.pattern.send(value)
            except StopIteration as stop:
                self._end(task, stop.value)
                return
            if not pending.done:
                pending.task = task
                return

    def _end(self, task: _Task, value: Any) -> None:
        pending, rank = task.pending, task.pending.rank
        self._communication_s[rank] = pending.ready_s = task.clock_s
        pending.value, pending.any_gradient = value, task.round.any_gradient
        self.spans.append(Span(rank, task.round.operation, -1, -1, task.start_s, task.clock_s))
        self._finish(pending)
        task.round.n_ended += 1
        if task.round.n_ended == task.size:
            del self._rounds[task.round.group.number, task.round.number]
        self._tasks[rank].popleft()
        if self._tasks[rank]:
            self._begin(rank)
