"""What the numbers and formulas of unit 05 are compared with.

Counted on the package's schedules and its model clock: the notebook's own solutions and the
checks' truths are used nowhere.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from mpedu.families import gpipe, one_f_one_b
from mpedu.plot.in_flight_figures import most_copies, versions_used
from mpedu.schedule import Action, Schedule, peak_in_flight
from mpedu.simulate import Costs, Span, Timeline, simulate

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05-1f1b" / "05-1f1b.ipynb"
MINUTES = {"A": 6, "B": 8, "C": 26, "D": 10, "E": 20, "F": 8, "G": 6, "H": 7, "I": 4, "J": 3}

K, M = 4, 8  # the running example: stages and micro-batches
F_S, B_S = 1, 2  # seconds of its forward and backward
LATE_S = Fraction(1, 2)  # of a message in section G
MANY = 32  # micro-batches in section D
SEALED_M = 6  # micro-batches of the sealed lists


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells."""
    marks = {
        cell["id"]: cell["metadata"].get("nbgrader", {})
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    }
    wanted = cells or [id for id in marks if id.startswith("check-")]
    return sum(marks[id]["points"] for id in wanted)


def clock(schedule: Schedule, f: int = F_S, b: int = B_S, late_s: Any = 0) -> Timeline:
    """A schedule on the model clock, in exact fractions."""
    return simulate(schedule, Costs(Fraction(f), Fraction(b), latency_s=Fraction(late_s)))


def seconds(schedule: Schedule, late_s: Any = 0) -> Fraction:
    """The makespan at the costs of the text."""
    return Fraction(clock(schedule, late_s=late_s).makespan_s)


def late(n_stages: int, n_microbatches: int, late_s: Any) -> Fraction:
    """What late messages add to 1F1B."""
    schedule = one_f_one_b(n_stages, n_microbatches)
    return seconds(schedule, late_s) - seconds(schedule)


def span(schedule: Schedule, name: str) -> Span:
    """The box of an action, "3B0"."""
    action = Action.parse(name)
    return next(s for s in clock(schedule).spans if s[1:4] == tuple(action))


def peaks(schedule: Schedule) -> list[int]:
    """The most that each stage holds."""
    return peak_in_flight(schedule)


def warmed_up(
    warm_up: Callable[[int], int], n_stages: int = K, n_microbatches: int = M
) -> Schedule:
    """So many forwards first on each stage, then a forward and a backward in turns, the rest."""
    schedule = []
    for stage in range(n_stages):
        n = min(n_microbatches, warm_up(stage))
        forwards, backwards = (
            [Action(kind, stage, m) for m in range(n_microbatches)] for kind in "FB"
        )
        turns = [a for pair in zip(forwards[n:], backwards, strict=False) for a in pair]
        schedule.append(forwards[:n] + turns + backwards[n_microbatches - n :])
    return schedule


def share(n_microbatches: int) -> Fraction:
    """Idle share of total time of 1F1B on K stages, counted from boxes."""
    return Fraction(clock(one_f_one_b(K, n_microbatches)).idle_share)


def over_ideal(n_stages: int, n_microbatches: int) -> Fraction:
    """Idle time over ideal time of 1F1B, counted from boxes."""
    timeline = clock(one_f_one_b(n_stages, n_microbatches))
    return Fraction(timeline.makespan_s) / (Fraction(timeline.busy_s) / n_stages) - 1


def everywhere(holds: Callable[[int, int, int, int], bool]) -> Callable[[], bool]:
    """True where `holds(stages, micro-batches, forward, backward)` does, over a grid of cases."""
    grid = [(k, m, *cost) for k in (1, 2, 4, 7) for m in (1, 2, 5, 8) for cost in ((1, 2), (3, 1))]
    return lambda: all(holds(*case) for case in grid)


def both(k: int, m: int, f: int, b: int) -> set[Fraction]:
    """The makespans of GPipe and 1F1B."""
    return {Fraction(clock(make(k, m), f, b).makespan_s) for make in (gpipe, one_f_one_b)}


def pauses_before_backwards(stage: int, late_s: Any) -> int:
    """Before how many of its backwards a stage of 1F1B waits."""
    own = [s for s in clock(one_f_one_b(K, M), late_s=late_s).spans if s.rank == stage]
    own.sort(key=lambda s: s.start_s)
    return sum(b.kind == "B" and b.start_s > a.end_s for a, b in pairwise(own))


def copies() -> list[int]:
    """The copies of its weights that each stage keeps in PipeDream."""
    return [most_copies(actions) for actions in one_f_one_b(K, M)]


def version(name: str) -> int:
    """The version of the weights that an action uses there."""
    action = Action.parse(name)
    actions = one_f_one_b(K, M)[action.stage]
    return versions_used(actions)[actions.index(action)]


def updates_before(name: str) -> int:
    """How many updates its stage has made before an action."""
    action = Action.parse(name)
    actions = one_f_one_b(K, M)[action.stage]
    return sum(a.kind == "B" for a in actions[: actions.index(action)])
