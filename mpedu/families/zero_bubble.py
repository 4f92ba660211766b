"""Schedules with split backwards, one stage per rank: the weights' halves fill the bubble."""

from mpedu.families.interleaved import alternated, split
from mpedu.faults import require_at_least
from mpedu.schedule import Action, Schedule


def zero_bubble_h1(n_stages: int, n_microbatches: int) -> Schedule:
    """1F1B's order with split backwards; stage s runs its weights' halves s backwards later.

    ZB-H1 (Qi et al. 2024, section 2.1). Counted as freed by I, a stage holds what it holds in
    1F1B; counted as freed by W, every stage holds what stage 0 holds there.
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    schedule = []
    for stage in range(n_stages):
        forwards = [Action("F", stage, m) for m in range(n_microbatches)]
        backwards = split([(stage, m) for m in range(n_microbatches)], stage)
        schedule.append(alternated(forwards, backwards, min(n_microbatches, n_stages - 1 - stage)))
    return schedule
