"""`Comm` over torch.distributed: gloo between processes on CPU, NCCL between GPUs."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from mpedu.comm import TAGS, USER_TAGS, Array, Channel, Comm, Link, Request
from mpedu.ranks.board import Board
from mpedu.simulate import Span

# What torch says when the other side has gone, or has not come in time.
SIGNS_OF_LOSS = re.compile(
    r"connection (closed|reset|refused)( by peer)?|broken pipe|timed out|remote process exit"
    r"|nccl communicator was aborted|(full mesh|fullmesh) failed|socket (is )?closed",
    re.IGNORECASE,
)
OPERATIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


class LostPeer(RuntimeError):
    """A communication ended because the other side did: a consequence, never a cause."""


class ProcessComm(Comm):
    """The ranks of `group` (default: all of the process group that was initialised).

    board: where this rank says what it waits for, under its number among all ranks.
    on_report: what `report` hands its value to. limit_s: torch's own limit for each operation.
    """

    def __init__(
        self,
        board: Board,
        device: str = "cpu",
        group: dist.ProcessGroup | None = None,
        on_report: Callable[[object], None] = lambda _: None,
        spans: list[Span] | None = None,
        limit_s: float = 1800.0,
    ) -> None:
        super().__init__(on_report)
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.device = device
        self._board = board
        self._group, self._limit_s = group, limit_s
        # By rank of this group: its number among all ranks, which is what a report tells.
        self._number = [_number(rank, group) for rank in range(self.size)]
        self._board_rank = self._number[self.rank]
        if spans is not None:
            self.spans = spans

    def isend(self, x: Array, destination: int, tag: int = 0, what: str = "") -> Request:
        """Starts to send `x`, which must stay as it is until the request was waited for."""
        tensor = self._checked("isend", x, destination, tag)
        send = partial(dist.isend, group=self._group, group_dst=int(destination), tag=int(tag))
        return self._start("send to", destination, _told(what, tag), send, tensor)

    def irecv(self, source: int, out: Array, tag: int = 0, what: str = "") -> Request:
        """Starts to receive into `out`, of the shape and dtype of what is sent."""
        tensor = self._checked("irecv", out, source, tag, written=True)
        recv = partial(dist.irecv, group=self._group, group_src=int(source), tag=int(tag))
        return self._start("recv from", source, _told(what, tag), recv, tensor)

    def broadcast(self, x: Array, root: int = 0) -> Array:
        """`x`, overwritten on every rank with that of `root`."""
        self._check_rank("broadcast", root)
        tensor = self._array("broadcast", x, written=True)
        name = f"broadcast from rank {self._number[root]}"
        self._together(name, dist.broadcast, tensor, group_src=int(root))
        return x

    def all_reduce(self, x: Array, op: str = "sum") -> Array:
        """A new array, on every rank the "sum" or "max" of all ranks' `x`."""
        if op not in OPERATIONS:
            raise ValueError(f"all_reduce: op={op!r} is unknown; choose {' or '.join(OPERATIONS)}")
        reduced = self._array("all_reduce", x).clone()
        self._together("all_reduce", dist.all_reduce, reduced, op=OPERATIONS[op])
        return reduced.numpy() if isinstance(x, np.ndarray) else reduced

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._together("barrier", dist.barrier)

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""
        if not _is_int(color, 2**62):
            raise ValueError(f"split on rank {self.rank}: color={color!r}; give an int >= 0")
        colors = torch.zeros(self.size, dtype=torch.int64)
        colors[self.rank] = int(color)
        alike = (self.all_reduce(colors) == int(color)).nonzero().flatten().tolist()
        members = [self._number[rank] for rank in alike]
        group = self._new_group(members, use_local_synchronization=True)
        return ProcessComm(
            self._board, self.device, group, self._on_report, self.spans, self._limit_s
        )

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in. Every rank names the same links.

        gloo matches by tag, so that all links share one group. NCCL knows no tags: each link gets
        a group of two of its own, and order does the matching.
        """
        ends: dict[Link, _LinkEnd] = {}
        for link in sorted(links):
            if self.rank in link[:2]:
                group = self._group if self.device == "cpu" else self._pair(link)
                ends[link] = _LinkEnd(self, link, group)
                if self.device != "cpu":
                    ends[link].open()
        return {**ends}

    def _pair(self, link: Link) -> dist.ProcessGroup:
        members = [self._number[link.source], self._number[link.destination]]
        return self._new_group(members, use_local_synchronization=True)

    def _new_group(self, members: list[int], **how: Any) -> dist.ProcessGroup:
        self._board.wait_in(self._board_rank, "making of a group", members)
        limit = timedelta(seconds=self._limit_s)
        with _told_of_loss("making of a group"):
            group: dist.ProcessGroup = dist.new_group(members, timeout=limit, **how)
        self._board.go_on(self._board_rank)
        return group

    def _together(self, name: str, operation: Callable[..., Any], *args: Any, **kw: Any) -> None:
        call = partial(operation, group=self._group, async_op=True, **kw)
        with _told_of_loss(name):
            work = call(*args)
        _Started(self._board, self._board_rank, work, name, self._number).wait()

    def _start(
        self, verb: str, peer: int, what: str, call: Callable[..., Any], *args: Any
    ) -> Request:
        number = self._number[peer]
        name = f"{verb} rank {number}{what}"
        with _told_of_loss(name):
            return _Started(self._board, self._board_rank, call(*args), name, (number,))

    def _checked(
        self, name: str, x: Array, peer: int, tag: int, written: bool = False
    ) -> torch.Tensor:
        self._check_rank(name, peer)
        if peer == self.rank:
            raise ValueError(f"{name}: rank {self.rank} named itself; messages go between ranks")
        if not _is_int(tag, TAGS):
            raise ValueError(
                f"{name} on rank {self.rank}: tag={tag!r} is no tag; give an int from 0 on"
            )
        return self._array(name, x, written)

    def _check_rank(self, name: str, rank: int) -> None:
        if not _is_int(rank, self.size):
            known = f"0..{self.size - 1}" if self.size > 1 else "0 alone"
            raise ValueError(f"{name} on rank {self.rank}: no rank {rank!r}; there are {known}")

    def _array(self, name: str, x: Array, written: bool = False) -> torch.Tensor:
        """`x` as a tensor on the same memory; ValueError in a sentence where it cannot travel."""
        try:
            return _tensor(x, self.device, written)
        except _Unfit as error:
            raise ValueError(f"{name} on rank {self.rank}: {error}") from None


class _Started(Request):
    def __init__(
        self, board: Board, rank: int, work: dist.Work | None, name: str, peers: Iterable[int]
    ) -> None:
        self._board, self._rank, self._work = board, rank, work
        self._name, self._peers = name, peers

    def wait(self) -> None:
        """Returns when the array may be used again (sent) or holds the message (received)."""
        work, self._work = self._work, None  # gloo must not be waited for twice
        if work is None:
            return
        self._board.wait_in(self._rank, self._name, self._peers)
        try:
            with _told_of_loss(self._name):
                work.wait()
        finally:
            self._board.go_on(self._rank)


class _LinkEnd(Channel):
    def __init__(self, comm: ProcessComm, link: Link, group: dist.ProcessGroup | None) -> None:
        self._comm, self._sends = comm, comm.rank == link.source
        self._peer = link.destination if self._sends else link.source
        number = comm._number[self._peer]
        self._send = partial(dist.isend, dst=number, group=group)
        self._recv = partial(dist.irecv, src=number, group=group)

    def open(self) -> None:
        """Connects both ends now.

        NCCL does so at first use, and both ends must come to it: two ranks that first used their
        links in different orders would wait for each other for ever.
        """
        x = torch.zeros(1, device=self._comm.device)
        start = self.isend if self._sends else self.irecv
        start(x, 0, "opening of a link").wait()

    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""
        send = partial(self._send, tag=tag)
        return self._comm._start("send to", self._peer, f" ({what})", send, x)

    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""
        recv = partial(self._recv, tag=tag)
        return self._comm._start("recv from", self._peer, f" ({what})", recv, out)


@contextmanager
def _told_of_loss(name: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        sign = SIGNS_OF_LOSS.search(str(error))
        if sign is None:
            raise
        raise LostPeer(f"{name}: {sign[0].lower()}") from error


def initialise(rank: int, n_ranks: int, store: Any, device: str, limit_s: float) -> None:
    """Makes the process group that a `ProcessComm` speaks through; LostPeer where one is lost."""
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    limit = timedelta(seconds=limit_s)
    with _told_of_loss("start"):
        dist.init_process_group(backend, store=store, rank=rank, world_size=n_ranks, timeout=limit)


def _number(rank: int, group: dist.ProcessGroup | None) -> int:
    return rank if group is None else dist.get_global_rank(group, rank)


def _told(what: str, tag: int) -> str:
    """What a report says of a message, in brackets: the user's words and the user's tag."""
    words = [what] if what else []
    if 0 < tag < USER_TAGS:
        words.append(f"tag {tag}")
    return f" ({', '.join(words)})" if words else ""


def _is_int(number: object, end: int) -> bool:
    """Whether it is a whole number from 0 to below `end`, of whatever integer type."""
    return isinstance(number, Integral) and not isinstance(number, bool) and 0 <= int(number) < end


class _Unfit(ValueError):
    """An array that cannot be sent or received, and why."""


def _tensor(x: Array, device: str, written: bool) -> torch.Tensor:
    if isinstance(x, np.ndarray):
        return _numpy_tensor(x, written)
    if not isinstance(x, torch.Tensor):
        raise _Unfit(f"{type(x).__name__} is no array; give a NumPy array or a tensor")
    if x.requires_grad:
        raise _Unfit("the tensor needs a gradient; give x.detach()")
    if not x.is_contiguous():
        raise _Unfit(f"{_kind(x)} is not contiguous; give x.contiguous()")
    if x.device.type not in ("cpu", torch.device(device).type):
        raise _Unfit(f"the tensor lies on {x.device}, this rank's are on {device}; move it there")
    return x


def _numpy_tensor(x: np.ndarray, written: bool) -> torch.Tensor:
    if not x.flags.c_contiguous:
        raise _Unfit(f"{_kind(x)} is not contiguous; give x.copy()")
    if written and not x.flags.writeable:
        raise _Unfit(f"{_kind(x)} cannot be written to; give an array of your own")
    if not x.dtype.isnative:
        raise _Unfit(
            f"{_kind(x)} has the byte order of another machine; "
            "give x.astype(x.dtype.newbyteorder('='))"
        )
    try:
        # torch warns of memory that must not be written; what is only sent never is
        return torch.from_numpy(x if x.flags.writeable else x.copy())
    except TypeError:
        raise _Unfit(f"cannot send {_kind(x)}; send numbers") from None


def _kind(x: Array) -> str:
    return f"an array {x.dtype} {list(x.shape)}"
