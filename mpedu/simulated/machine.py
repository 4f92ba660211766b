"""The simulated machine: all ranks in this process, on a model clock, exact and repeatable.

Ranks are threads of which exactly one runs at a time. Whoever must wait hands a baton to the next
rank that can go on, by rule, so that every run of the same program is the same. Each rank has its
own copies of the program and its arguments, and its own random state. NumPy suffices.
"""

import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from mpedu.agreement import Mismatch
from mpedu.arrays import Array, kind_of
from mpedu.comm import Call, Channel, Comm, Link, Request
from mpedu.faults import require_at_least
from mpedu.published import load_hardware
from mpedu.ranks.deadlock import deadlock
from mpedu.ranks.errors import failure_text, frame_lines
from mpedu.ranks.outcome import Failed, Interrupted, RankError, Run
from mpedu.ranks.travel import pickled_program, unpickled_program
from mpedu.simulate import Timeline
from mpedu.simulated.baton import Baton
from mpedu.simulated.exchange import Exchange, Group, Pending, Wire

LINK = Wire(latency_s=5e-6, bytes_per_s=100e9)
MOST_RANKS = 1024
# Frames of the machinery, left out of a student's traceback.
_OURS = ("agreement", "arrays", "comm", "calls", "collectives", "differentiable", "tensors")
_HERE = Path(__file__).parent
_MACHINERY = {str(_HERE.parent / f"{name}.py") for name in _OURS} | set(
    map(str, _HERE.glob("*.py"))
)


class Simulated(NamedTuple):
    """What the ranks run on.

    link, between: the wires inside a node and between nodes (None: the same); node_size: ranks of
    a node (None: all are on one). flops_per_s: what `comm.compute(flops=)` reckons with.
    """

    link: Wire = LINK
    between: Wire | None = None
    node_size: int | None = None
    flops_per_s: float | None = None

    @classmethod
    def of(cls, device: str) -> Self:
        """Devices of that name in `data/hardware.toml`, like "a100-80gb", at their peak speeds.

        ValueError listing the known ones.
        """
        facts = load_hardware(device)
        return cls(
            Wire(facts.latency_s, facts.link_bytes_per_s),
            Wire(facts.between_latency_s, facts.between_bytes_per_s),
            facts.node_size,
            facts.flops_per_s,
        )


def run_simulated(
    program: Callable[..., Any],
    n_ranks: int,
    arguments: tuple[Any, ...] = (),
    machine: Simulated = Simulated(),  # noqa: B008 -- a constant
    timeout_s: float | None = 60.0,
    on_report: Callable[[int, Any], None] | None = None,
) -> Run:
    """What `program(comm, *arguments)` gives on `n_ranks` simulated ranks.

    Each rank gets copies of its own, made as for a process: what is not importable travels by
    value, so that ranks share no variable of a notebook. timeline: what was computed and sent on
    the model clock. Results are the objects themselves.
    RankError: a rank failed (`cause` is its own exception), no rank can go on, a message
    has no other end, or the time is over.
    """
    require_at_least(1, n_ranks=n_ranks)
    if n_ranks > MOST_RANKS:
        raise ValueError(f"n_ranks={n_ranks} is too many to simulate; give at most {MOST_RANKS}")
    exchange = Exchange(int(n_ranks), machine.link, machine.between, machine.node_size)
    baton = Baton(exchange)
    payload = pickled_program(program, arguments)
    reports = on_report or (lambda rank, value: None)

    def live(rank: int) -> Any:
        own_program, own_arguments = unpickled_program(payload)
        comm = SimulatedComm(baton, rank, exchange.world, machine, partial(reports, rank))
        return own_program(comm, *own_arguments)

    programs = [partial(live, rank) for rank in range(n_ranks)]
    try:
        ended = baton.run(programs, timeout_s)
    except KeyboardInterrupt:
        head = f"{n_ranks} ranks, none left running"
        raise Interrupted("\n".join([head, *_states(baton)])) from None
    error = _error(baton, ended, timeout_s)
    if error is not None:
        raise error
    return Run(baton.results, _timeline(exchange), exchange.meter)


def _timeline(exchange: Exchange) -> Timeline | None:
    return exchange.timeline() if exchange.spans or exchange.sent else None


def _error(baton: Baton, ended: bool, timeout_s: float | None) -> RankError | None:
    """What tells that a run did not come to its end; None where it did."""
    exchange = baton.exchange
    waiting, failed, cause = exchange.waiting(), [], None
    if not ended:
        lines = [f"not done after {timeout_s:g} s (timeout_s):", *_states(baton)]
    elif baton.failed is not None:
        failed, cause, waiting = [_failed(*baton.failed)], baton.failed[1], []
        lines = [failure_text(failed, [])]
    elif baton.stuck:
        circle = deadlock(waiting, exchange.finished)
        lines = [f"deadlock: {circle}{' ' if circle else ''}(no rank can go on):"]
        lines += [f"  rank {w.rank} waits in {w.text}" for w in waiting]
        lines += [f"  rank {rank} has finished" for rank in sorted(exchange.finished)]
    elif left := exchange.left_over():
        lines = ["\n  ".join(left[:8]) + ("\n  ..." if len(left) > 8 else "")]
    else:
        return None
    lines += [
        f"  rank {rank} could not be ended: it catches every exception, or is busy outside Python; "
        "a restart of the kernel ends it"
        for rank in baton.unended()
    ]
    return RankError("\n".join(lines), failed, waiting, _timeline(exchange), cause)


def _failed(rank: int, error: BaseException) -> Failed:
    frames = [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in _MACHINERY
    ]
    name, text = type(error).__name__, str(error)
    if isinstance(error, SystemExit):
        text = f"the program called sys.exit({error.code!r}); return instead"
    if isinstance(error, Mismatch):
        name = "ValueError"
    return Failed(rank, name, text, frames, False, time.monotonic())


def _states(baton: Baton) -> list[str]:
    """Who was doing what when the run was stopped, a line each."""
    frames = [frame for frame in baton.frames() if frame[0] not in _MACHINERY]
    at = "".join(f", at {line}" for line in frame_lines(frames)[-1:])
    lines = [f"  rank {baton.running} is running{at}"]
    lines += [f"  rank {w.rank} waits in {w.text}" for w in baton.exchange.waiting()]
    return lines


class SimulatedComm(Comm):
    """One rank of the simulated machine."""

    def __init__(
        self,
        baton: Baton,
        rank: int,
        group: Group,
        machine: Simulated,
        on_report: Callable[[object], None],
    ) -> None:
        super().__init__(on_report)
        self._baton, self._exchange, self._group = baton, baton.exchange, group
        self._machine = machine
        self._world_rank = group.members[rank]
        self.rank, self.size = rank, len(group.members)
        self.meter = self._exchange.meter
        self.spans = self._exchange.spans

    def now_s(self) -> float:
        """Seconds on this rank's compute clock."""
        return self._exchange.clock_s[self._world_rank]

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color` (0 or more), in the order they had."""
        colors = self._start(Call("split", self._color(color))).wait().tolist()
        group = self._exchange.group_of(self._world_rank, self._group, colors)
        place = group.members.index(self._world_rank)
        return SimulatedComm(self._baton, place, group, self._machine, self._on_report)

    def channels(self, links: Iterable[Link]) -> dict[Link, Channel]:
        """This rank's ends of the links it takes part in."""
        return {link: _End(self, link) for link in sorted(links) if self.rank in link[:2]}

    def _isend(self, x: Array, destination: int, tag: int, what: str) -> Request:
        pending = self._baton.entered().isend(
            self._world_rank, self._group, kind_of(x).copy(x), destination, tag, what
        )
        return _Waited(self._baton, pending)

    def _irecv(self, source: int, out: Array, tag: int, what: str) -> Request:
        spec = None if out is None else kind_of(out).spec(out)
        pending = self._baton.entered().irecv(
            self._world_rank, self._group, source, spec, tag, what
        )
        return _Waited(self._baton, pending, out)

    def _start(self, call: Call) -> Request:
        pending = self._baton.entered().collective(self._world_rank, self._group, call)
        return _Waited(self._baton, pending)

    def _compute(self, seconds: float | None, flops: float | None) -> None:
        if seconds is None:
            speed = self._machine.flops_per_s
            if speed is None or not speed > 0 or flops is None:
                raise self._wrong(
                    "compute",
                    'flops need a device; give machine=Simulated.of("a100-80gb"), or seconds',
                )
            seconds = flops / speed
        self._baton.entered().compute(self._world_rank, float(seconds))

    def _number(self, rank: int) -> int:
        return self._group.members[rank]


class _Waited(Request):
    def __init__(self, baton: Baton, pending: Pending, out: Array = None) -> None:
        self._baton, self._pending, self._out = baton, pending, out
        self._is_filled = False

    @property
    def any_gradient(self) -> bool:
        """Whether some rank's array needs a gradient, once a collective is done."""
        return self._pending.any_gradient

    def wait(self) -> Array:
        """Returns when the call is done, with what it gives."""
        value = self._baton.wait(self._pending.rank, self._pending)
        if self._out is None:
            return value
        if not self._is_filled:  # once: the program may have changed it since
            self._is_filled = True
            kind_of(self._out).fill(self._out, value)
        return self._out


class _End(Channel):
    def __init__(self, comm: SimulatedComm, link: Link) -> None:
        self._comm = comm
        self._peer = link.destination if comm.rank == link.source else link.source

    def isend(self, x: Array, tag: int, what: str) -> Request:
        """Starts to send `x`; `what` says in a report what the message is."""
        return self._comm._isend(x, self._peer, tag, what)

    def irecv(self, out: Array, tag: int, what: str) -> Request:
        """Starts to receive into `out`."""
        return self._comm._irecv(self._peer, out, tag, what)
