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
from typing import Any

from mpedu.agreement import Mismatch, difference
from mpedu.arrays import Array, Spec
from mpedu.calls import words
from mpedu.comm import Call
from mpedu.meter import Meter
from mpedu.ranks.board import Waiting
from mpedu.simulate import Sent, Span, Timeline
from mpedu.simulated.mail import Key, Mail
from mpedu.simulated.mail import Pending as Pending
from mpedu.simulated.mail import Wire as Wire  # importable from here too
from mpedu.simulated.rounds import Group as Group  # importable from here too
from mpedu.simulated.rounds import Round, Task

_FOR_S = 1.0  # how long a rank has waited means nothing here


def in_time(sent: Sent) -> tuple[float, int, int]:
    """The order in which messages were sent."""
    return float(sent.start_s), sent.source, sent.destination


class Exchange:
    """The messages, meter and clocks of `n_ranks` ranks.

    link, between: the wires inside a node and between nodes. node_size: ranks of a node, None where
    all are on one; ValueError where the ranks do not fill their nodes. clock_s: each rank's compute
    clock. freed: ranks whose wait has ended, in that order, for whoever runs them to take out.
    untaken: what a rank has started and not waited for. contents: what the messages of `sent` held,
    in their order, for whoever asks for it by making it a list.
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
        self.contents: list[Array] | None = None
        self.freed: deque[int] = deque()
        self.waits: dict[int, Pending] = {}
        self.untaken: dict[Pending, None] = {}
        self.finished: set[int] = set()
        self._communication_s = [0.0] * n_ranks
        self._rounds: dict[tuple[int, int], Round] = {}
        self._n_rounds: defaultdict[tuple[int, int], int] = defaultdict(int)  # by group, rank
        self._tasks: list[deque[Task]] = [deque() for _ in range(n_ranks)]  # the first one runs
        self._ready: deque[tuple[Task, Array]] = deque()
        self._groups: dict[tuple[int, int, int], Group] = {}

    # The calls of a rank; none of them blocks. Ranks, tags and sizes have been checked.

    def isend(
        self, rank: int, group: Group, x: Array, destination: int, tag: int, what: str = ""
    ) -> Pending:
        """Posts a message of `x`, which nobody may change any more; rank: among all ranks."""
        peer = group.members[destination]
        pending = Pending(rank, f"send to rank {peer}{words(what, tag)}", peer)
        self.meter.call(rank, "send")
        self.untaken[pending] = None
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
        self.untaken[pending] = None
        self._mail.want(Key(group.number, peer, rank, tag), spec, pending)
        self._run()
        return pending

    def collective(self, rank: int, group: Group, call: Call) -> Pending:
        """Enters the group's next collective; Mismatch where others call it otherwise."""
        number = self._n_rounds[group.number, rank]
        self._n_rounds[group.number, rank] += 1
        round_ = self._rounds.setdefault(
            (group.number, number), Round(group, number, call.operation)
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
        self.untaken[pending] = None
        self._tasks[rank].append(Task(self._mail, round_, pending, self.clock_s[rank]))
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
        self.untaken.pop(pending, None)
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
        for pending in self.untaken:
            if pending.done and pending.round is not None:
                lines.append(f"rank {pending.rank} never waited for the {pending.what} it started")
            elif pending.done and pending.what.startswith("recv"):
                lines.append(
                    f"rank {pending.rank} never waited for what it started to receive from "
                    f"{pending.what.removeprefix('recv from ')}"
                )
        return lines

    def timeline(self) -> Timeline:
        """What was computed and sent so far, in order of time."""
        spans = sorted(self.spans, key=lambda span: (span.start_s, span.rank))
        return Timeline(spans, len(self.clock_s), tuple(sorted(self.sent, key=in_time)))

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
            if self.contents is not None:
                self.contents.append(message.x)
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

    def _go_on(self, task: Task, pending: Pending | None) -> None:
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

    def _end(self, task: Task, value: Any) -> None:
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
