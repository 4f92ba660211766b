"""Communications of torch.distributed that have been started, and how a rank waits for them."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch.distributed as dist

from mpedu.arrays import Array
from mpedu.comm import Request
from mpedu.distributed.flights import Flight
from mpedu.ranks.board import Board

# What torch says when the other side has gone, or has not come in time.
SIGNS_OF_LOSS = re.compile(
    r"connection (closed|reset|refused)( by peer)?|broken pipe|timed out|remote process exit"
    r"|nccl communicator was aborted|(full mesh|fullmesh) failed|socket (is )?closed",
    re.IGNORECASE,
)


class LostPeer(RuntimeError):
    """A communication ended because the other side did: a consequence, never a cause."""


def tell_of_loss(name: str, error: RuntimeError) -> None:
    """Raises a LostPeer where torch says that the other side of operation `name` is gone."""
    sign = SIGNS_OF_LOSS.search(str(error))
    if sign is not None:
        raise LostPeer(f"{name}: {sign[0].lower()}") from error


@contextmanager
def told_of_loss(name: str) -> Iterator[None]:
    """Makes a LostPeer of what torch says inside when the other side is gone.

    What is done for every message spells it out: the block costs a microsecond.
    """
    try:
        yield
    except RuntimeError as error:
        tell_of_loss(name, error)
        raise


class Waits(NamedTuple):
    """Where a rank says what it waits for, under its number among all ranks."""

    board: Board
    rank: int

    def wait(self, work: dist.Work, name: str, peers: Iterable[int]) -> None:
        """Returns when `work` of the operation `name` is done, in which `peers` take part."""
        self.board.wait_in(self.rank, name, peers)
        try:
            work.wait()
        except RuntimeError as error:
            tell_of_loss(name, error)
            raise
        finally:
            self.board.go_on(self.rank)


class Started(Request):
    """One message; `wait` gives `value`, of a sent one None."""

    def __init__(
        self, waits: Waits, work: dist.Work | None, name: str, peer: int, value: Array = None
    ) -> None:
        self._waits, self._work, self._name, self._peer = waits, work, name, peer
        self._value = value

    def wait(self) -> Array:
        """Returns when the array may be used again (sent), or with what was received."""
        work, self._work = self._work, None  # gloo must not be waited for twice
        if work is not None:
            self._waits.wait(work, self._name, (self._peer,))
        return self._value


class Flying(Request):
    """What needs more than one work, or something done on arrival.

    any_gradient: of a collective, whether some rank's array may need a gradient.
    """

    def __init__(
        self,
        waits: Waits,
        flight: Flight,
        name: str,
        peers: tuple[int, ...],
        any_gradient: bool = True,
    ) -> None:
        self._waits, self._flight, self._name, self._peers = waits, flight, name, peers
        self.any_gradient = any_gradient
        self._value: Array = None

    def wait(self) -> Array:
        """The result."""
        works, self._flight.works = self._flight.works, []
        for work in works:
            self._waits.wait(work, self._name, self._peers)
        if works:
            self._value = self._flight.land()
        return self._value


class Agreed(Request):
    """A collective that starts as soon as all ranks have agreed on it.

    agree: waits until they have, and gives what has started and whether some array needs a
    gradient; is called once.
    """

    def __init__(
        self,
        waits: Waits,
        agree: Callable[[], tuple[Flight, bool]],
        name: str,
        peers: tuple[int, ...],
    ) -> None:
        self._waits, self._agree, self._name, self._peers = waits, agree, name, peers
        self._flying: Flying | None = None
        self.any_gradient = False

    def wait(self) -> Array:
        """The result; Mismatch where the ranks did not agree."""
        if self._flying is None:
            self._waits.board.wait_in(self._waits.rank, self._name, self._peers)
            try:
                with told_of_loss(self._name):
                    flight, self.any_gradient = self._agree()
            finally:
                self._waits.board.go_on(self._waits.rank)
            self._flying = Flying(self._waits, flight, self._name, self._peers)
        return self._flying.wait()


class Noted(Request):
    """A request of which a ledger is told when it is waited for."""

    def __init__(self, request: Request, end: Callable[[], None]) -> None:
        self._request, self._end = request, end

    @property
    def any_gradient(self) -> bool:
        """Whether some rank's array needs a gradient, once a collective is done."""
        return bool(getattr(self._request, "any_gradient", False))

    def wait(self) -> Array:
        """What the request gives."""
        end, self._end = self._end, _nothing
        end()
        return self._request.wait()


def _nothing() -> None: ...
