"""`Comm` over torch.distributed: gloo between processes on CPU, NCCL between GPUs."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from mpedu.board import Board
from mpedu.comm import TAGS, Array, Channel, Comm, Link, Request
from mpedu.simulate import Span

# What torch says when the other side has gone, or has not come in time.
SIGNS_OF_LOSS = re.compile(r"connection (closed|reset)( by peer)?|broken pipe|timed out|nccl", re.I)
OPERATIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


class LostPeer(RuntimeError):
    """A communication ended because the other side did: a consequence, never a cause."""


class ProcessComm(Comm):
    """The ranks of `group` (default: all of the process group that was initialised).

    board: where this rank says what it waits for, under `board_rank`, its number among all ranks.
    on_report: what `report` hands its value to.
    """

    def __init__(
        self,
        board: Board,
        device: str = "cpu",
        group: dist.ProcessGroup | None = None,
        on_report: Callable[[object], None] = lambda _: None,
        spans: list[Span] | None = None,
    ) -> None:
        super().__init__(on_report)
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.device = device
        self._board = board
        self._board_rank = dist.get_rank()
        self._group = group
        if spans is not None:
            self.spans = spans

    def isend(self, x: Array, destination: int, tag: int = 0, what: str = "") -> Request:
        """Starts to send `x`, which must stay as it is until the request was waited for."""
        tensor = self._checked("isend", x, destination, tag)
        send = partial(dist.isend, group=self._group, group_dst=destination, tag=tag)
        return self._start(f"send to rank {destination}", what, send, tensor)

    def irecv(self, source: int, out: Array, tag: int = 0, what: str = "") -> Request:
        """Starts to receive into `out`, of the shape and dtype of what is sent."""
        tensor = self._checked("irecv", out, source, tag)
        recv = partial(dist.irecv, group=self._group, group_src=source, tag=tag)
        return self._start(f"recv from rank {source}", what, recv, tensor)

    def broadcast(self, x: Array, root: int = 0) -> Array:
        """`x`, overwritten on every rank with that of `root`."""
        self._check_rank("broadcast", root)
        tensor = _tensor("broadcast", self.rank, x)
        self._together(f"broadcast from rank {root}", dist.broadcast, tensor, group_src=root)
        return x

    def all_reduce(self, x: Array, op: str = "sum") -> Array:
        """A new array, on every rank the "sum" or "max" of all ranks' `x`."""
        if op not in OPERATIONS:
            raise ValueError(f"all_reduce: op={op!r} is unknown; choose {' or '.join(OPERATIONS)}")
        reduced = _tensor("all_reduce", self.rank, x).clone()
        self._together("all_reduce", dist.all_reduce, reduced, op=OPERATIONS[op])
        return reduced.numpy() if isinstance(x, np.ndarray) else reduced

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._together("barrier", dist.barrier)

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""
        if isinstance(color, bool) or not isinstance(color, int) or color < 0:
            raise ValueError(f"split: rank {self.rank} gave color={color!r}; give an int >= 0")
        colors = torch.zeros(self.size, dtype=torch.int64)
        colors[self.rank] = color
        alike = (self.all_reduce(colors) == color).nonzero().flatten().tolist()
        members = [self._global(rank) for rank in alike]
        group = dist.new_group(members, use_local_synchronization=True)
        return ProcessComm(self._board, self.device, group, self._on_report, self.spans)

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in. Every rank names the same links.

        gloo matches by tag, so that all links share one group. NCCL knows no tags: each link gets
        a group of two of its own, made by all ranks in one order, and order does the matching.
        """
        ends: dict[Link, Channel] = {}
        for link in sorted(links):
            group = self._group
            if self.device != "cpu":
                pair = [self._global(link.source), self._global(link.destination)]
                group = dist.new_group(pair)
            if self.rank in link[:2]:
                ends[link] = _LinkEnd(self, link, group)
        return ends

    def _global(self, rank: int) -> int:
        return rank if self._group is None else dist.get_global_rank(self._group, rank)

    def _together(self, name: str, operation: Callable[..., Any], *args: Any, **kw: Any) -> None:
        call = partial(operation, group=self._group, async_op=True, **kw)
        self._start(name, "", call, *args).wait()

    def _start(self, operation: str, what: str, call: Callable[..., Any], *args: Any) -> Request:
        name = f"{operation} ({what})" if what else operation
        with _told_of_loss(name):
            return _Started(self._board, self._board_rank, call(*args), name)

    def _checked(self, name: str, x: Array, peer: int, tag: int) -> torch.Tensor:
        self._check_rank(name, peer)
        if peer == self.rank:
            raise ValueError(f"{name}: rank {self.rank} named itself; messages go between ranks")
        if isinstance(tag, bool) or not isinstance(tag, int) or not 0 <= tag < TAGS:
            raise ValueError(
                f"{name} on rank {self.rank}: tag={tag!r} is no tag; give an int from 0 on"
            )
        return _tensor(name, self.rank, x)

    def _check_rank(self, name: str, rank: int) -> None:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            known = f"0..{self.size - 1}" if self.size > 1 else "0 alone"
            raise ValueError(f"{name} on rank {self.rank}: no rank {rank!r}; there are {known}")


class _Started(Request):
    def __init__(self, board: Board, rank: int, work: dist.Work | None, name: str) -> None:
        self._board, self._rank, self._work, self._name = board, rank, work, name

    def wait(self) -> None:
        """Returns when the array may be used again (sent) or holds the message (received)."""
        work, self._work = self._work, None  # gloo must not be waited for twice
        if work is None:
            return
        self._board.wait_in(self._rank, self._name)
        with _told_of_loss(self._name):
            work.wait()
        self._board.go_on(self._rank)


class _LinkEnd(Channel):
    def __init__(self, comm: ProcessComm, link: Link, group: dist.ProcessGroup | None) -> None:
        self._comm = comm
        self._to, self._from = f"send to rank {link[1]}", f"recv from rank {link[0]}"
        peer = comm._global(link.destination if comm.rank == link.source else link.source)
        self._send = partial(dist.isend, dst=peer, group=group)
        self._recv = partial(dist.irecv, src=peer, group=group)

    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""
        return self._comm._start(self._to, what, partial(self._send, tag=tag), x)

    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""
        return self._comm._start(self._from, what, partial(self._recv, tag=tag), out)


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
    """Makes the process group that a `ProcessComm` speaks through."""
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    dist.init_process_group(
        backend, store=store, rank=rank, world_size=n_ranks, timeout=timedelta(seconds=limit_s)
    )


def _tensor(name: str, rank: int, x: Array) -> torch.Tensor:
    """`x` as a tensor on the same memory; ValueError in a sentence where it cannot be sent."""
    if isinstance(x, np.ndarray):
        if not x.flags.c_contiguous:
            raise ValueError(f"{name} on rank {rank}: {_kind(x)} is not contiguous; send x.copy()")
        try:
            return torch.from_numpy(x)
        except TypeError:
            raise ValueError(
                f"{name} on rank {rank}: cannot send {_kind(x)}; send numbers"
            ) from None
    if not isinstance(x, torch.Tensor):
        kind = type(x).__name__
        raise ValueError(
            f"{name} on rank {rank}: {kind} is no array; give a NumPy array or a tensor"
        )
    if x.requires_grad:
        raise ValueError(f"{name} on rank {rank}: the tensor needs a gradient; give x.detach()")
    if not x.is_contiguous():
        raise ValueError(
            f"{name} on rank {rank}: {_kind(x)} is not contiguous; give x.contiguous()"
        )
    return x


def _kind(x: Array) -> str:
    return f"an array {x.dtype} {list(x.shape)}"
