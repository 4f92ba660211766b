"""`Comm` over torch.distributed: gloo between processes on CPU, NCCL between GPUs."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from mpedu.arrays import Array, kind_of
from mpedu.calls import words
from mpedu.comm import Call, Channel, Comm, Link, Request
from mpedu.distributed.checked import LINK_TAGS, Agreement, Messages
from mpedu.distributed.flights import Flight, Seat, take_off
from mpedu.distributed.started import Agreed, Flying, Noted, told_of_loss
from mpedu.distributed.started import LostPeer as LostPeer  # importable from here too
from mpedu.distributed.world import End, World
from mpedu.ranks.unfinished import Ledger, Line


class ProcessComm(Comm):
    """The ranks of `group` (default: all of the process group that was initialised).

    world: what is common to all groups. on_report: what `report` hands its value to.
    With `world.check_messages` what does not fit is told on the ranks concerned, and whatever is
    left over at the end; a collective then costs one small one more, and messages travel through
    the host's memory. Without, `out` must be given to every receive.
    """

    def __init__(
        self,
        world: World,
        on_report: Callable[[object], None] = lambda _: None,
        group: dist.ProcessGroup | None = None,
        name: str = "",
    ) -> None:
        super().__init__(on_report)
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.device = world.device
        self._world, self._group, self._name = world, group, name
        self._waits = world.waits
        # By rank of this group: its number among all ranks, which is what a report tells.
        self._members = tuple(_number(rank, group) for rank in range(self.size))
        self._seat = Seat(group, self.rank, self.size)
        self._ends = [End(world, number, group) for number in self._members]
        self._n_splits = 0
        self._is_async = False
        self._messages: Messages | None = None
        if world.check_messages:
            self._messages = Messages(self._seat, self._members, world.waits, world.device)
            talk = world.group(self._members, backend="gloo")
            self._agreement = Agreement(self._seat, talk, self._members)
            # One thread: it starts async collectives as all have agreed on them, in their order.
            self._beside = ThreadPoolExecutor(1, thread_name_prefix="collectives")
            self._last: Future[tuple[Flight, bool]] = Future()
            self._last.set_result((Flight(), False))

    @property
    def ledger(self) -> Ledger:
        """What was begun, in all groups; counted only where messages are checked."""
        return self._world.ledger

    @property
    def process_group(self) -> dist.ProcessGroup | None:
        """That of torch.distributed; None is its default, all ranks."""
        return self._group

    def now_s(self) -> float:
        """Seconds of `time.perf_counter`."""
        return time.perf_counter()

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""
        own = self._color(color)
        colors = self._start(Call("split", own)).wait().tolist()
        pairs = zip(self._members, colors, strict=True)
        members = [number for number, other in pairs if other == colors[self.rank]]
        self._n_splits += 1
        name = f"{self._name}/{self._n_splits}:{colors[self.rank]}"
        comm = ProcessComm(self._world, self._on_report, self._world.group(members), name)
        comm.meter, comm.spans = self.meter, self.spans
        return comm

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in. Every rank names the same links.

        gloo matches by tag, so that all links share one group. NCCL knows no tags: each link gets
        a group of two of its own, and order does the matching. Where messages are checked, order
        does it everywhere, and a message that is taken for another is told by name.
        """
        links = set(links)
        if self._messages is not None:
            return {link: _CheckedEnd(self, link) for link in links if self.rank in link[:2]}
        ends: dict[Link, _LinkEnd] = {}
        is_gloo = self.device == "cpu" or self._world.host is not None
        for link in sorted(links):
            if self.rank in link[:2]:
                pair = [self._members[rank] for rank in link[:2]]
                ends[link] = _LinkEnd(
                    self, link, self._group if is_gloo else self._world.group(pair)
                )
                if not is_gloo:
                    ends[link].open()
        return {**ends}

    def barrier(self, async_op: bool = False) -> Any:
        """Returns when every rank has called it."""
        with self._starting(async_op):
            return super().barrier(async_op)

    def _collective(self, call: Call, async_op: bool) -> Array:
        with self._starting(async_op):
            return super()._collective(call, async_op)

    @contextmanager
    def _starting(self, async_op: bool) -> Iterator[None]:
        """What `_start` is called in, which may wait for the others unless it is async."""
        self._is_async = async_op
        try:
            yield
        finally:
            self._is_async = False

    def _number(self, rank: int) -> int:
        return self._members[rank]

    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Request:
        number = self._members[destination]
        self._count(x, number)
        told = words(what, tag)
        name = f"send to rank {number}{told}"
        if self._messages is not None:
            line = Line(self._name, self._world.rank, number, tag)
            self.ledger.sent[line].begin(f"{kind_of(x).spec(x)}{told}")
            return self._messages.isend(x, destination, tag, name, what)
        return self._ends[destination].send(x, tag, name)

    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Request:
        number = self._members[source]
        self.meter.call(self._world.rank, "recv")
        told = words(what, tag)
        name = f"recv from rank {number}{told}"
        if self._messages is not None:
            line = Line(self._name, number, self._world.rank, tag)
            end = self.ledger.posted[line].begin(told)
            return Noted(self._messages.irecv(source, out, tag, name, told, what), end)
        if out is None:
            raise self._wrong("irecv", "messages are not checked here, so give `out`")
        return self._ends[source].receive(out, tag, name)

    def _start(self, call: Call) -> Request:
        self.meter.call(self._world.rank, call.operation)
        name = call.operation
        if call.root is not None:
            name += f" from rank {self._members[call.root]}"
        if self._messages is None:
            with told_of_loss(name):
                flight = self._take_off(call)
            return Flying(self._waits, flight, name, self._members)
        end = self.ledger.joined[self._name, self._members].begin(name)
        with told_of_loss(name):
            begun = self._agreement.begin(call)
        stream: Any = nullcontext()
        if self.device != "cpu":
            stream = torch.cuda.stream(torch.cuda.current_stream(self.device))
        agree: Callable[[], tuple[Flight, bool]] = partial(self._agreed, begun, stream)
        if self._is_async or not self._last.done():
            self._last = self._beside.submit(agree)
            agree = self._last.result
        return Noted(Agreed(self._waits, agree, name, self._members), end)

    def _agreed(self, begun: Any, stream: Any) -> tuple[Flight, bool]:
        any_gradient = self._agreement.settle(begun)
        if begun[0].operation == "barrier":
            return Flight(), any_gradient  # all have come: they have just agreed
        with stream:
            return self._take_off(begun[0]), any_gradient

    def _take_off(self, call: Call) -> Flight:
        world = self._world
        return take_off(self._seat, call, world.host if world.is_staged(call.x) else None)

    def _count(self, x: Array, number: int) -> None:
        own, size = self._world.rank, self._world.node_size
        self.meter.call(own, "send")
        self.meter.message(own, "send", x.nbytes, own // size != number // size)


class _LinkEnd(Channel):
    def __init__(self, comm: ProcessComm, link: Link, group: dist.ProcessGroup | None) -> None:
        self._comm, self._sends = comm, comm.rank == link.source
        peer = link.destination if self._sends else link.source
        self._end = End(comm._world, comm._members[peer], group)

    def open(self) -> None:
        """Connects both ends now.

        NCCL does so at first use, and both ends must come to it: two ranks that first used their
        links in different orders would wait for each other for ever.
        """
        x, name = torch.zeros(1, device=self._comm.device), "opening of a link"
        end = self._end
        started = end.send(x, 0, name) if self._sends else end.receive(x, 0, name)
        started.wait()

    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""
        self._comm._count(x, self._end.number)
        return self._end.send(x, tag, f"send to rank {self._end.number} ({what})")

    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""
        return self._end.receive(out, tag, f"recv from rank {self._end.number} ({what})")


class _CheckedEnd(Channel):
    def __init__(self, comm: ProcessComm, link: Link) -> None:
        self._comm, self._link, self._tag = comm, link, LINK_TAGS[link.direction]

    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` is compared with what the receiver calls it."""
        return self._comm._isend(x, self._link.destination, self._tag, what)

    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""
        return self._comm._irecv(self._link.source, out, self._tag, what)


def _number(rank: int, group: dist.ProcessGroup | None) -> int:
    return rank if group is None else dist.get_global_rank(group, rank)
