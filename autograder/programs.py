"""Rank programs as checks run them: what the judge serves, what a run gives, how one fails.

The same here for a notebook, where ranks are simulated, and for the grader, where each has a
process of its own: both hand the calls of the ranks to one `Books`, in the same order.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from autograder.diagnosis import StudentError
from autograder.worker.plain import NotPlain
from autograder.worker.protocol import encode
from autograder.worker.trouble import Trouble
from mpedu.meter import Meter
from mpedu.ranks.deadlock import deadlock
from mpedu.simulate import Timeline
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Exchange, in_time

_MOST_TOLD = 8  # waits of a deadlock
# Troubles that are those of one rank; all others speak of the program or of several ranks.
_OF_ONE_RANK = ("raised", "not_plain", "out_of_memory", "timeout", "crashed")


class Served(NamedTuple):
    """Work that a rank program buys: an argument whose methods the judge computes and charges.

    methods: by name a `function(rank, *args)` that gives (value, seconds): plain data for the
    program, and the price on the rank's clock. Arguments are plain data, and a stranger's: what
    the function raises is a ValueError in the program.
    """

    name: str
    methods: Mapping[str, Callable[..., tuple[Any, float]]]


class Defect(Exception):
    """The check itself is wrong: nobody's 0 points."""


class RanksRun(NamedTuple):
    """What a rank program gave: results by rank, plain data; what was counted; the model clock.

    makespan_s: when the last rank has ended. bought: by rank, the (object, method) of each piece of
    served work, in order. unwaited: what was started and never waited for, a sentence each.
    contents: what each message of the timeline held, None where it was empty.
    """

    results: list[Any]
    meter: Meter
    timeline: Timeline
    makespan_s: float
    bought: list[list[tuple[str, str]]]
    unwaited: Sequence[str] = ()
    contents: Sequence[Any] = ()


class Books:
    """The exchange of one run, and what its ranks have bought."""

    def __init__(self, n_ranks: int, machine: Simulated) -> None:
        self.exchange = Exchange(n_ranks, machine.link, machine.between, machine.node_size)
        self.exchange.contents = []
        self.bought: list[list[tuple[str, str]]] = [[] for _ in range(n_ranks)]

    def buy(self, rank: int, served: Served, method: str, args: tuple[Any, ...]) -> bytes:
        """The value of served work as plain data, charged to `rank`.

        ValueError where it refuses its arguments: that nothing can be computed from them is the
        student's mistake, whatever the error. Defect where the check serves no value or price.
        """
        try:
            value, seconds = served.methods[method](rank, *args)
        except Exception as error:
            why = f"({type(error).__name__}: {error})"[:200]
            raise ValueError(f"{served.name}.{method} cannot take these arguments {why}") from None
        if not 0 <= seconds < math.inf:
            raise Defect(f"{served.name}.{method}: {seconds!r} s is no price")
        try:
            packed = encode(value)
        except NotPlain as error:
            raise Defect(f"{served.name}.{method} gives no plain data: {error}") from None
        self.exchange.compute(rank, seconds, f"{served.name}.{method}")
        self.bought[rank].append((served.name, method))
        return packed

    def run_of(self, results: list[Any]) -> RanksRun:
        """What the run gave, now that all have ended; StudentError where something is left over."""
        exchange = self.exchange
        left_over = exchange.left_over()
        if left_over:
            more = f" (and {len(left_over) - 1} more)" if len(left_over) > 1 else ""
            raise StudentError("unreceived", f"{left_over[0]}{more}.")
        unwaited = sorted(
            f"rank {one.rank} never waits for its {one.what}" for one in exchange.untaken
        )
        sent = zip(exchange.sent, exchange.contents or (), strict=True)
        contents = [x for _, x in sorted(sent, key=lambda pair: in_time(pair[0]))]
        return RanksRun(
            results,
            exchange.meter,
            exchange.timeline(),
            max(exchange.clock_s),
            self.bought,
            unwaited,
            contents,
        )

    def stuck(self) -> StudentError:
        """Why no rank can go on: who waits for whom, and in which operation."""
        waiting = self.exchange.waiting()
        circle = deadlock(waiting, self.exchange.finished) or "no rank can go on"
        told = ", ".join(f"rank {w.rank} in {w.text}" for w in waiting[:_MOST_TOLD])
        more = ", and so on" if len(waiting) > _MOST_TOLD else ""
        return StudentError("deadlock", f"deadlock: {circle} ({told}{more}).")


def of_rank(rank: int, trouble: Trouble) -> StudentError:
    """The trouble of one rank as the failure of the run."""
    kind, message, type_name, line = trouble
    where = f"rank {rank}: " if kind in _OF_ONE_RANK else ""
    return StudentError(kind, where + message, type_name, line)


def parted(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[int, Served]]:
    """One rank's arguments without what is served, and that by position."""
    served = {at: one for at, one in enumerate(arguments) if type(one) is Served}
    plain = tuple(None if at in served else one for at, one in enumerate(arguments))
    return plain, served


def require_arguments(n_ranks: int, arguments: Sequence[tuple[Any, ...]]) -> None:
    """ValueError where the check does not give each rank a tuple of arguments."""
    if len(arguments) != n_ranks or any(type(one) is not tuple for one in arguments):
        raise ValueError(f"give {n_ranks} tuples of arguments, one per rank")
