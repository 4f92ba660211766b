"""What a search is asked for, checked, and the least that any answer takes."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from mpedu.faults import require_at_least
from mpedu.schedule import Schedule, peak_in_flight
from mpedu.simulate import Costs, Seconds


class Problem(NamedTuple):
    """What is asked for, and the sums that bounds are made of."""

    placement: tuple[int, ...]  # the rank of each stage
    n_ranks: int
    n_microbatches: int
    costs: Costs
    caps: tuple[float, ...]  # activations that each rank may hold
    freed_by: str
    kinds: str  # "FIW", or "FB"
    seconds: dict[str, list[Seconds]]  # of each kind, by stage
    stages: tuple[tuple[int, ...], ...]  # of each rank
    head_s: tuple[Seconds, ...]  # of each rank: before its first input can have come
    to_the_end_s: tuple[Seconds, ...]  # after a stage's forward: forwards above, all backwards
    to_the_start_s: tuple[Seconds, ...]  # after a stage's backward: backwards below

    @property
    def last_kind(self) -> str:
        """The whole backward, or its half for the inputs: what goes to the stage before."""
        return self.kinds[1]

    def keeps_caps(self, schedule: Schedule) -> bool:
        """Whether no rank holds more than it may."""
        peaks = peak_in_flight(schedule, self.freed_by)
        return all(peak <= cap for peak, cap in zip(peaks, self.caps, strict=True))


def problem_of(
    placement: Sequence[int],
    n_microbatches: int,
    costs: Costs,
    memory_cap: int | Sequence[int] | None,
    freed_by: str,
    split: bool,
) -> Problem:
    """The problem; ValueError in one sentence where it is none, or has no answer."""
    require_at_least(1, n_stages=len(placement), n_microbatches=n_microbatches)
    n_ranks = 1 + max(placement)
    if sorted(set(placement)) != list(range(n_ranks)):
        raise ValueError(
            f"placement={list(placement)} leaves ranks of 0..{n_ranks - 1} without a stage; "
            "give the rank of each stage, every rank at least one"
        )
    if freed_by not in ("I", "W"):
        raise ValueError(f"freed_by={freed_by!r} is unknown; choose 'I' or 'W'")
    stages = tuple(
        tuple(s for s, rank in enumerate(placement) if rank == r) for r in range(n_ranks)
    )
    kinds = "FIW" if split else "FB"
    seconds = costs.table(kinds, len(placement))
    hops_s = [_hop_s(costs, *pair, stage) for stage, pair in enumerate(pairwise(placement))]
    hops_back_s = [
        _hop_s(costs, *pair, stage + 1) for stage, pair in enumerate(pairwise(placement))
    ]
    up_s = [0, *accumulate(f + hop for f, hop in zip(seconds["F"], hops_s, strict=False))]
    backward_s = seconds[kinds[1]]
    down_s = [0, *accumulate(b + hop for b, hop in zip(backward_s, hops_back_s, strict=False))]
    last_w_s: Seconds = seconds["W"][0] if split else 0
    turn_s = up_s[-1] + seconds["F"][-1] + down_s[-1] + backward_s[-1] + last_w_s
    return Problem(
        tuple(placement),
        n_ranks,
        n_microbatches,
        costs,
        _caps(memory_cap, stages),
        freed_by if split else "I",
        kinds,
        seconds,
        stages,
        tuple(up_s[own[0]] for own in stages),
        tuple(turn_s - up - f for up, f in zip(up_s, seconds["F"], strict=True)),
        tuple(down + last_w_s for down in down_s),
    )


def _hop_s(costs: Costs, rank: int, other: int, sender: int) -> Seconds:
    """Seconds from the end of `sender` to the arrival at a neighbour of what it gives."""
    return 0 if rank == other else costs.sent(0, 0, sender)[2]


def _caps(
    memory_cap: int | Sequence[int] | None, stages: Sequence[Sequence[int]]
) -> tuple[float, ...]:
    if memory_cap is None:
        return (float("inf"),) * len(stages)
    caps = memory_cap if isinstance(memory_cap, Sequence) else [memory_cap] * len(stages)
    if len(caps) != len(stages):
        raise ValueError(
            f"memory_cap has {len(caps)} entries for {len(stages)} ranks; give one number, "
            "or one per rank"
        )
    for rank, (cap, own) in enumerate(zip(caps, stages, strict=True)):
        if not cap >= len(own):
            holds = f"holds {len(own)} stage{'s' * (len(own) > 1)}"
            raise ValueError(
                f"memory_cap={cap} on rank {rank}, which {holds}: a micro-batch leaves an "
                f"activation on each, and none could go through; give at least {len(own)}"
            )
    return tuple(map(float, caps))
