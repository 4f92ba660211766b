"""Schedules whose micro-batches all go the same way, each a period after the one before.

The building blocks of Qi et al. 2024b, "Pipeline Parallelism with Controllable Memory", section 3:
how long a micro-batch's activations are held, over the period, is what a rank holds. The stages'
distances on the way up and down are tried out; 1F1B and the V shapes of that paper are among them.
"""

from collections.abc import Iterator
from itertools import product

from mpedu.schedule import Action, Schedule
from mpedu.search.problem import Problem
from mpedu.simulate import Seconds

PAUSES = (0, 1, 2, 3)  # between neighbouring stages, in mean forwards


def waves(problem: Problem) -> Iterator[Schedule]:
    """Each set of pauses as a schedule; some may be illegal, or over the caps."""
    seconds, ranks = problem.seconds, problem.placement
    work_s = [sum(seconds[k][s] for k in problem.kinds for s in own) for own in problem.stages]
    unit_s = sum(seconds["F"]) / len(ranks)
    one_leg = len(ranks) == problem.n_ranks
    more = (0,) if one_leg else PAUSES
    waits = (0, problem.n_ranks // 2) if "W" in problem.kinds else (0,)
    for up, up_on, down_on, down, wait in product(PAUSES, more, more, PAUSES, waits):
        pauses = (up * unit_s, up_on * unit_s, down_on * unit_s, down * unit_s)
        first_s = _way(problem, pauses)
        for (kind, stage), at_s in [*first_s.items()] if "W" in problem.kinds else []:
            if kind == "I":
                first_s["W", stage] = at_s + seconds["I"][stage] + wait * unit_s
        yield _repeated(problem, first_s, max(work_s))


def one_by_one(problem: Problem) -> Schedule:
    """A micro-batch only when the one before is through: legal under any cap that is possible."""
    schedule: Schedule = [[] for _ in problem.stages]
    back = problem.kinds[1:]
    for m in range(problem.n_microbatches):
        for stage, rank in enumerate(problem.placement):
            schedule[rank].append(Action("F", stage, m))
        for stage, rank in reversed(list(enumerate(problem.placement))):
            schedule[rank] += [Action(kind, stage, m) for kind in back]
    return schedule


def _way(
    problem: Problem, pauses: tuple[Seconds, Seconds, Seconds, Seconds]
) -> dict[tuple[str, int], Seconds]:
    """When the first micro-batch starts each F, and each B or I.

    pauses: after a forward on a rank's first stage, on its others; after a backward on its others,
    on its first.
    """
    up_s, up_on_s, down_on_s, down_s = pauses
    first = {own[0] for own in problem.stages}
    starts_s: dict[tuple[str, int], Seconds] = {}
    now_s: Seconds = 0
    for kind, first_pause_s, pause_s in (
        ("F", up_s, up_on_s),
        (problem.last_kind, down_s, down_on_s),
    ):
        order = range(len(problem.placement))
        for stage in order if kind == "F" else reversed(order):
            starts_s[kind, stage] = now_s
            now_s += problem.seconds[kind][stage]
            now_s += first_pause_s if stage in first else pause_s
    return starts_s


def _repeated(
    problem: Problem, first_s: dict[tuple[str, int], Seconds], period_s: Seconds
) -> Schedule:
    """Every rank's actions in the order of their starts; of equal ones backwards come first."""
    timed: list[list[tuple[Seconds, bool, int, int, str]]] = [[] for _ in problem.stages]
    for (kind, stage), at_s in first_s.items():
        timed[problem.placement[stage]] += [
            (at_s + m * period_s, kind == "F", stage, m, kind)
            for m in range(problem.n_microbatches)
        ]
    return [[Action(kind, stage, m) for *_, stage, m, kind in sorted(each)] for each in timed]
