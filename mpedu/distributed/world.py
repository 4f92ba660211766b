"""One rank's process on torch.distributed: what all its `Comm`s share."""

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from mpedu.arrays import Array
from mpedu.comm import Request
from mpedu.distributed.flights import Flight
from mpedu.distributed.staging import HostBuffers
from mpedu.distributed.started import Flying, Started, Waits, tell_of_loss, told_of_loss
from mpedu.ranks.board import Board
from mpedu.ranks.unfinished import Ledger
from mpedu.tensors import bytes_of


def initialise(rank: int, n_ranks: int, store: Any, with_nccl: bool, limit_s: float) -> None:
    """Makes the process group that a `ProcessComm` speaks through; LostPeer where one is lost."""
    backend = "cpu:gloo,cuda:nccl" if with_nccl else "gloo"
    limit = timedelta(seconds=limit_s)
    with told_of_loss("start"):
        dist.init_process_group(backend, store=store, rank=rank, world_size=n_ranks, timeout=limit)


class World:
    """What all the `Comm`s of one rank share.

    device: where it keeps its tensors. host: buffers through which those of a GPU travel where NCCL
    cannot take them. limit_s: torch's own limit for each operation. node_size: ranks of a node.
    """

    def __init__(
        self,
        board: Board,
        device: str = "cpu",
        limit_s: float = 1800.0,
        host: HostBuffers | None = None,
        node_size: int | None = None,
        check_messages: bool = True,
    ) -> None:
        self.rank = dist.get_rank()
        self.waits = Waits(board, self.rank)
        self.device, self.limit_s, self.host = device, limit_s, host
        self.node_size = dist.get_world_size() if node_size is None else node_size
        self.check_messages = check_messages
        self.ledger = Ledger()

    def group(self, members: Iterable[int], **how: Any) -> dist.ProcessGroup:
        """A new group of these ranks, by their numbers among all; all of them must ask for it."""
        limit, listed = timedelta(seconds=self.limit_s), list(members)
        self.waits.board.wait_in(self.rank, "making of a group", listed)
        with told_of_loss("making of a group"):
            group: dist.ProcessGroup = dist.new_group(
                listed, timeout=limit, use_local_synchronization=True, **how
            )
        self.waits.board.go_on(self.rank)
        return group

    def is_staged(self, x: Array) -> bool:
        """Whether it travels through the buffers, where there are some."""
        return isinstance(x, torch.Tensor) and not (x.is_cpu and self.device != "cpu")


class End:
    """Messages with one rank, unchecked."""

    def __init__(self, world: World, number: int, group: dist.ProcessGroup | None) -> None:
        self.number = number
        self._world = world
        self._isend = partial(dist.isend, dst=number, group=group)
        self._irecv = partial(dist.irecv, src=number, group=group)

    def send(self, x: Array, tag: int, name: str) -> Request:
        """Starts to send."""
        host = self._world.host
        if host is not None and self._world.is_staged(x):
            flight = Flight(host=host)
            with told_of_loss(name):
                flight.add(self._isend(flight.outgoing(x), tag=tag))
            return Flying(self._world.waits, flight, name, (self.number,))
        try:
            work = self._isend(x if isinstance(x, torch.Tensor) else bytes_of(x), tag=tag)
        except RuntimeError as error:
            tell_of_loss(name, error)
            raise
        return Started(self._world.waits, work, name, self.number)

    def receive(self, out: Array, tag: int, name: str) -> Request:
        """Starts to receive."""
        host = self._world.host
        if host is not None and self._world.is_staged(out):
            flight = Flight(host=host)
            with told_of_loss(name):
                flight.add(self._irecv(flight.incoming(out), tag=tag))
            flight.result = lambda: out
            return Flying(self._world.waits, flight, name, (self.number,))
        try:
            wire = out if isinstance(out, torch.Tensor) else bytes_of(out)
            work = self._irecv(wire, tag=tag)
        except RuntimeError as error:
            tell_of_loss(name, error)
            raise
        return Started(self._world.waits, work, name, self.number, out)
