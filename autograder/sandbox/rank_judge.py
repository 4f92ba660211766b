"""The judge of a rank program: `Comm`, meter and clock, served to ranks that may send anything.

It reads one rank at a time, until that one must wait, in the order in which simulated ranks have
the baton (`mpedu.simulated.baton`): so a run takes the course it has at home, whichever process
is faster. An answer is sent as soon as it is known, so that its rank can work meanwhile.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from autograder.diagnosis import StudentError
from autograder.programs import Books, RanksRun, of_rank, parted, require_arguments
from autograder.sandbox.rank_checks import (
    REPORTED,
    Broken,
    Checks,
    Lost,
    Rank,
    array_of,
    checking,
    is_trouble,
    require,
    spec_of,
)
from autograder.sandbox.shown import shown
from autograder.worker import ranks as wire
from autograder.worker.protocol import Channel, ProtocolError, decode, encode
from autograder.worker.trouble import Trouble
from mpedu.agreement import Mismatch
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Pending

_MOST_REQUESTS = 20_000  # started by a rank and not waited for
_MOST_BYTES = 2**26  # in all frames of a run: what is sent stays here until it is received
_GRACE_S = 0.5  # for ranks to stop when another one has failed


class RankJudge:
    """One run of a program by the processes at the other ends of `channels`, in order of rank.

    unstopped: ranks still running after a run that failed; they are good for no other run.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        machine: Simulated,
        limit_s: float,
    ) -> None:
        self._books = Books(len(channels), machine)
        self._exchange = self._books.exchange
        self._ranks = [
            Rank(rank, channel, self._exchange.world) for rank, channel in enumerate(channels)
        ]
        self._freed: set[int] = set()
        self._deadline = time.monotonic() + limit_s
        self._n_bytes = 0
        self.unstopped = {rank.rank for rank in self._ranks}
        self._does: dict[int, Callable[..., bool]] = {
            wire.ISEND: self._isend,
            wire.IRECV: self._irecv,
            wire.START: self._start,
            wire.WAIT: self._wait,
            wire.NOW: self._now,
            wire.GROUP: self._group,
            wire.BUY: self._buy,
            wire.ENDED: self._ended,
            wire.TROUBLE: self._trouble,
        }

    def run(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> RanksRun:
        """What the program `name` gives; StudentError where it fails, Lost where a rank is lost."""
        require_arguments(len(self._ranks), arguments)
        try:
            for rank, given in zip(self._ranks, arguments, strict=True):
                plain, rank.served = parted(given)
                served = [(at, one.name, list(one.methods)) for at, one in rank.served.items()]
                message = ("rank", name, rank.rank, len(self._ranks), plain, served)
                self._send(rank, encode(message))
            with np.errstate(all="ignore"):
                self._let_all_run()
            if self._exchange.waits:
                raise self._books.stuck()
            return self._books.run_of([rank.result for rank in self._ranks])
        except StudentError:
            self._stop_all()
            raise
        finally:
            self.unstopped = {rank.rank for rank in self._ranks if not rank.is_over}

    def _let_all_run(self) -> None:
        """Until all have ended, or nobody can go on."""
        n_ranks = len(self._ranks)
        can_go, running = set(range(n_ranks)), 0
        while can_go:
            self._serve(self._ranks[running])
            can_go.discard(running)
            can_go |= self._freed
            self._freed.clear()
            following = (rank % n_ranks for rank in range(running + 1, running + n_ranks + 1))
            running = next((rank for rank in following if rank in can_go), running)

    def _serve(self, rank: Rank) -> None:
        """Does what one rank asks until it must wait or has ended."""
        if rank.waits_for is not None:
            self._take(rank)  # it has the answer
        goes_on = True
        while goes_on:
            frame = self._next(rank)
            try:
                goes_on = self._does[frame[0]](rank, *frame[1:])
            except Broken:
                raise Lost(rank.rank, "crashed") from None

    def _next(self, rank: Rank) -> tuple[Any, ...]:
        try:
            data = rank.channel.frame(max(0.0, self._deadline - time.monotonic()))
            frame: tuple[Any, ...] = msgpack.unpackb(
                data, use_list=False, max_map_len=0, max_ext_len=0
            )
            known = type(frame) is tuple and type(frame[0]) is int and frame[0] in self._does
        except TimeoutError:
            raise Lost(rank.rank, "timeout") from None
        except ProtocolError as error:
            raise Lost(rank.rank, "crashed", str(error)) from None
        except (EOFError, OSError):
            raise Lost(rank.rank, "ended") from None
        except Exception:  # the bytes are a stranger's: whatever goes wrong means one thing
            known = False
        if not known:
            raise Lost(rank.rank, "crashed", "what it sends is no call")
        self._n_bytes += len(data)
        if self._n_bytes > _MOST_BYTES:
            why = f"your ranks send more than the {_MOST_BYTES // 2**20} MiB that pass in one run."
            raise StudentError("out_of_memory", why)
        return frame

    def _answer(self, rank: Rank, *parts: Any) -> bool:
        """Sends what a rank waits for, or that its ranks do not agree."""
        if rank.mismatch is not None:
            parts, rank.mismatch = (wire.MISMATCH, str(rank.mismatch)), None
        self._send(rank, msgpack.packb(parts))
        return True

    def _send(self, rank: Rank, frame: bytes) -> None:
        try:
            rank.channel.send_frames([frame], max(0.0, self._deadline - time.monotonic()))
        except TimeoutError:
            raise Lost(rank.rank, "timeout") from None
        except OSError:
            raise Lost(rank.rank, "ended") from None

    # What ranks ask for. Each gives whether the rank goes on.

    def _isend(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            at, destination, tag, what, *packed = parts
            checks = rank.group(at)
            call: Any = checks.isend(array_of(*packed), destination, tag, shown(what)[:100])
        return self._started(rank, at, self._exchange.isend(rank.rank, checks.group, *call))

    def _irecv(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            at, source, tag, what, dtype, shape = parts
            spec = spec_of(dtype, shape)
            checks = rank.group(at)
            call: Any = checks.irecv(source, None, tag, shown(what)[:100])
        source, tag, what = call
        pending = self._exchange.irecv(rank.rank, checks.group, source, spec, tag, what)
        return self._started(rank, at, pending)

    def _start(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            at, operation, dtype, shape, data, *rest = parts
            x = None if dtype is None else array_of(dtype, shape, data)
            checks = rank.group(at)
            call = checks.call(operation, x, *rest)
        try:
            pending = self._exchange.collective(rank.rank, checks.group, call)
        except Mismatch as error:
            rank.mismatch = error
            rank.n_requests += 1
            return True
        return self._started(rank, at, pending)

    def _started(self, rank: Rank, at: int, pending: Pending) -> bool:
        if len(rank.requests) >= _MOST_REQUESTS:
            why = f"your code starts more than {_MOST_REQUESTS} operations without waiting for one."
            raise of_rank(rank.rank, Trouble("out_of_memory", why))
        rank.requests[rank.n_requests] = pending, at
        rank.n_requests += 1
        freed = self._exchange.freed
        while freed:
            other = self._ranks[freed.popleft()]
            self._freed.add(other.rank)
            self._give(other)
        return True

    def _wait(self, rank: Rank, *parts: Any) -> bool:
        if rank.mismatch is not None:
            return self._answer(rank)
        with checking():
            (number,) = parts
            pending, _ = rank.requests[number]
        rank.waits_for = number
        if not self._exchange.wait(rank.rank, pending):
            return False
        self._give(rank)
        self._take(rank)
        return True

    def _give(self, rank: Rank) -> None:
        """Answers a rank whose request is done."""
        pending, _ = rank.requests[rank.waits_for or 0]
        if pending.error is not None:
            self._answer(rank, wire.MISMATCH, str(pending.error))
        elif pending.value is None:
            self._answer(rank, wire.DONE)
        else:
            x = np.asarray(pending.value)
            self._answer(rank, wire.ARRAY, x.dtype.str, x.shape, x.tobytes())

    def _take(self, rank: Rank) -> None:
        """Moves the clock of a rank that has got its answer, in its turn."""
        number, rank.waits_for = rank.waits_for or 0, None
        pending, at = rank.requests[number]
        try:
            value = self._exchange.take(rank.rank, pending)
        except Mismatch:  # it was told, and may ask again
            return
        del rank.requests[number]
        if pending.round is not None and pending.round.operation == "split":
            rank.colors[at] = value.tolist()

    def _now(self, rank: Rank, *parts: Any) -> bool:
        return self._answer(rank, wire.DONE, self._exchange.clock_s[rank.rank])

    def _group(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            (at,) = parts
            colors, group = rank.colors.pop(at), rank.group(at).group
        made = self._exchange.group_of(rank.rank, group, colors)
        rank.groups.append(Checks(made, rank.rank))
        return self._answer(rank, wire.DONE, len(rank.groups) - 1, made.members)

    def _buy(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            position, method, packed = parts
            served, args = rank.served[position], decode(packed)
            require(type(args) is tuple and method in served.methods)
        try:
            value = self._books.buy(rank.rank, served, method, args)
        except ValueError as error:
            return self._answer(rank, wire.REFUSED, str(error))
        return self._answer(rank, wire.DONE, value)

    def _ended(self, rank: Rank, *parts: Any) -> bool:
        if rank.mismatch is not None:
            raise StudentError("mismatch", f"{rank.mismatch}.")
        with checking():
            (packed,) = parts
            rank.result = decode(packed)
        self._over(rank)
        self._exchange.finish(rank.rank)
        return False

    def _trouble(self, rank: Rank, *parts: Any) -> bool:
        with checking():
            require(is_trouble(parts, (*REPORTED, "mismatch")))
        kind, message, type_name, line = parts
        self._over(rank)
        raise of_rank(rank.rank, Trouble(kind, shown(message), shown(type_name), line))

    def _over(self, rank: Rank) -> None:
        rank.is_over, rank.mismatch = True, None
        self._answer(rank, wire.DONE)

    def _stop_all(self) -> None:
        """Ends the ranks that are left, and hears that they have."""
        self._deadline = time.monotonic() + _GRACE_S
        left = [rank for rank in self._ranks if not rank.is_over]
        for rank in left:
            rank.mismatch = None
            with suppress(Lost):
                self._answer(rank, wire.OVER)
        for rank in left:
            with suppress(Lost, StudentError):
                while self._next(rank)[0] not in (wire.ENDED, wire.TROUBLE):
                    pass
                rank.is_over = True
