"""A schedule on the model clock: when each action runs if every stage costs what `Costs` says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mpedu.schedule import Action, Schedule, all_needs, run_order
from mpedu.validate import validate_schedule

Seconds = float | Fraction
PerStage = Seconds | Sequence[Seconds]


@dataclass(frozen=True)
class Costs:
    """Seconds of one micro-batch on one stage; each a number, or a sequence of one per stage.

    `input_s` and `weight_s` (the two halves of a split backward) default to half of `backward_s`.
    `latency_s` is added to every message between two ranks; it blocks neither of them.
    Fractions give exact times.
    """

    forward_s: PerStage = 1.0
    backward_s: PerStage = 2.0
    input_s: PerStage | None = None
    weight_s: PerStage | None = None
    latency_s: Seconds = 0

    def __post_init__(self) -> None:
        for name in ("forward_s", "backward_s", "input_s", "weight_s"):
            cost = getattr(self, name)
            for value in cost if isinstance(cost, Sequence) else [cost]:
                if value is not None and not (0 < value < math.inf):
                    raise ValueError(f"{name}={cost!r} is not a time; give seconds above 0")
        if not 0 <= self.latency_s < math.inf:
            raise ValueError(f"latency_s={self.latency_s!r} is not a time; give seconds, 0 or more")

    def of(self, action: Action) -> Seconds:
        """Seconds that `action` takes; ValueError where a sequence does not reach its stage."""
        kind, stage, _ = action
        if kind == "F":
            return _at(self.forward_s, stage, "forward_s")
        if kind == "I" and self.input_s is not None:
            return _at(self.input_s, stage, "input_s")
        if kind == "W" and self.weight_s is not None:
            return _at(self.weight_s, stage, "weight_s")
        whole = _at(self.backward_s, stage, "backward_s")
        return whole if kind == "B" else whole / 2


def _at(cost: PerStage, stage: int, name: str) -> Seconds:
    if not isinstance(cost, Sequence):
        return cost
    if stage >= len(cost):
        raise ValueError(
            f"{name} has {len(cost)} entries and stage {stage} is asked; give one each"
        )
    return cost[stage]


class Span(NamedTuple):
    """One action as it ran: from `start_s` to `end_s` on `rank`.

    `kind` is an action's letter, or of a rank program "compute" or the operation's name, as
    "send" or "all_reduce"; `stage` and `microbatch` are -1 where they mean nothing.
    """

    rank: int
    kind: str
    stage: int
    microbatch: int
    start_s: Seconds
    end_s: Seconds


class Sent(NamedTuple):
    """One message as it went, in seconds on the model clock.

    From `start_s` to `end_s` it occupies the outgoing link of rank `source`, at `arrival_s` it is
    at `destination`, which takes it at `taken_s`. `kind` names the operation that sent it.
    """

    source: int
    destination: int
    kind: str
    n_bytes: int
    start_s: Seconds
    end_s: Seconds
    arrival_s: Seconds
    taken_s: Seconds
    tag: int


class Timeline(NamedTuple):
    """What ran when, on `n_ranks` ranks; the clock may start at any time.

    `messages` are those of a rank program, in any order.
    """

    spans: list[Span]
    n_ranks: int
    messages: tuple[Sent, ...] = ()

    @property
    def start_s(self) -> Seconds:
        """Start of the first span or message; ValueError without any."""
        starts_s = [span.start_s for span in self.spans] + [sent.start_s for sent in self.messages]
        if not starts_s:
            raise ValueError("this timeline has no spans; a share of nothing has no value")
        return min(starts_s)

    @property
    def makespan_s(self) -> Seconds:
        """From the first start to the last end, of spans and messages; ValueError without any."""
        start_s = self.start_s
        ends_s = [span.end_s for span in self.spans] + [sent.taken_s for sent in self.messages]
        return max(ends_s) - start_s

    @property
    def busy_s(self) -> Seconds:
        """Device seconds of work, summed over ranks."""
        return sum((span.end_s - span.start_s for span in self.spans), start=0)

    @property
    def idle_share(self) -> Seconds:
        """Idle share of device time, in [0, 1): 1 - busy / (ranks * makespan)."""
        return 1 - self.busy_s / (self.n_ranks * self.makespan_s)


def simulate(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """The timeline of a legal schedule: every rank runs its list, each action as soon as it can.

    ValueError with the first fault's sentence when the schedule is not legal.
    """
    faults = validate_schedule(schedule)
    if faults:
        raise ValueError(faults[0].text)
    return simulate_until_stuck(schedule, costs)


def simulate_until_stuck(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """The timeline of what runs before nothing can go on; all of it when the schedule is legal."""
    costs = Costs() if costs is None else costs
    n_stages = 1 + max((a.stage for actions in schedule for a in actions), default=0)
    waits = all_needs(schedule, n_stages)
    order, _ = run_order(schedule, waits)
    ends: dict[Action, tuple[int, Seconds]] = {}
    free_s: list[Seconds] = [0] * len(schedule)
    spans = []
    for rank, action in order:
        start_s = free_s[rank]
        for need in waits[action]:
            from_rank, end_s = ends[need]
            start_s = max(start_s, end_s if from_rank == rank else end_s + costs.latency_s)
        free_s[rank] = start_s + costs.of(action)
        ends[action] = (rank, free_s[rank])
        spans.append(Span(rank, *action, start_s, free_s[rank]))
    return Timeline(spans, len(schedule))
