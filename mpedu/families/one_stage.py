"""The named schedules, one stage per rank: each a few lines that give a list."""

from mpedu.faults import require_at_least
from mpedu.schedule import Action, Schedule


def naive(n_stages: int, n_microbatches: int) -> Schedule:
    """One micro-batch at a time, forward and backward: one busy stage, one activation held."""
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    return [
        [Action(kind, stage, m) for m in range(n_microbatches) for kind in "FB"]
        for stage in range(n_stages)
    ]


def gpipe(n_stages: int, n_microbatches: int, backward_order: str = "forward") -> Schedule:
    """All forwards, then all backwards; every stage peaks at n_microbatches activations.

    GPipe (Huang et al. 2019, section 2.2). backward_order: "forward" takes the backwards in the
    order of the forwards, as torch does; "reverse" the last micro-batch first.
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    if backward_order not in ("forward", "reverse"):
        raise ValueError(f"backward_order={backward_order!r} is unknown; choose forward or reverse")
    forwards = list(range(n_microbatches))
    backwards = forwards if backward_order == "forward" else forwards[::-1]
    return [
        [Action("F", stage, m) for m in forwards] + [Action("B", stage, m) for m in backwards]
        for stage in range(n_stages)
    ]


def one_f_one_b(n_stages: int, n_microbatches: int) -> Schedule:
    """Stage s warms up by n_stages - 1 - s forwards, then each forward is followed by a backward.

    No further ahead, though it could go on: this keeps the last stage busy, and stage s peaks at
    min(n_microbatches, n_stages - s) micro-batches.
    PipeDream-Flush, "1F1B" (Narayanan et al. 2021, Megatron-LM, section 2.2.1).
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    schedule = []
    for stage in range(n_stages):
        warm_up = min(n_microbatches, n_stages - 1 - stage)
        forwards = [Action("F", stage, m) for m in range(n_microbatches)]
        backwards = [Action("B", stage, m) for m in range(n_microbatches)]
        steady = [a for pair in zip(forwards[warm_up:], backwards, strict=False) for a in pair]
        schedule.append(forwards[:warm_up] + steady + backwards[n_microbatches - warm_up :])
    return schedule
