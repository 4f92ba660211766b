"""What the numbers and formulas of unit 06 are compared with.

Boxes counted on the model clock, of the package's schedules or of lists that are made here: the
notebook's own solutions, the package's closed forms and the checks' truths are used nowhere.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpedu.families import interleaved_1f1b, one_f_one_b
from mpedu.schedule import Action, Schedule, actions_of, needs, peak_in_flight, stage_to_rank
from mpedu.simulate import Costs, Timeline, simulate

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "06-interleaved" / "06-interleaved.ipynb"
MINUTES = {"A": 4, "B": 10, "C": 30, "D": 6, "E": 9, "F": 32, "G": 4, "H": 20, "J": 3}

K, M, V = 4, 8, 2  # the running example: ranks, micro-batches, chunks
LAYERS = 16


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells."""
    marks = {
        cell["id"]: cell["metadata"].get("nbgrader", {})
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    }
    wanted = cells or [id for id in marks if id.startswith("check-")]
    return sum(marks[id]["points"] for id in wanted)


def costs(n_chunks: int = 1, latency_s: Any = 0) -> Costs:
    """Of a chunk: a whole rank's forward takes 1 second, its backward 2, each half of that 1."""
    part = Fraction(1, n_chunks)
    return Costs(part, 2 * part, part, part, latency_s=Fraction(latency_s))


def clock(schedule: Schedule, latency_s: Any = 0) -> Timeline:
    """A schedule on the model clock, in exact fractions."""
    return simulate(schedule, costs(len(stage_to_rank(schedule)) // len(schedule), latency_s))


def seconds(schedule: Schedule, latency_s: Any = 0) -> Fraction:
    """Its makespan."""
    return Fraction(clock(schedule, latency_s).makespan_s)


def idle(schedule: Schedule) -> Fraction:
    """Idle share of device time, added up box by box."""
    timeline = clock(schedule)
    busy_s = sum(Fraction(span.end_s) - Fraction(span.start_s) for span in timeline.spans)
    return 1 - busy_s / (timeline.n_ranks * Fraction(timeline.makespan_s))


def over_ideal(schedule: Schedule) -> Fraction:
    """Idle time over ideal time."""
    return idle(schedule) / (1 - idle(schedule))


def chunked(n_microbatches: int = M, n_chunks: int = V, n_ranks: int = K) -> Schedule:
    """The package's interleaved schedule."""
    return interleaved_1f1b(n_ranks, n_microbatches, n_chunks)


def by_rule(sizes: list[int], n_chunks: int = V, n_ranks: int = K, short: bool = False) -> Schedule:
    """Interleaved lists in groups of these sizes, by the three rules of section C.

    short: with one forward fewer in the warm-up for every rank that follows.
    """
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    groups = [range(start, start + n) for start, n in zip(starts, sizes, strict=True)]
    chunks = list(range(n_chunks))
    schedule = []
    for rank in range(n_ranks):
        f = [Action("F", c * n_ranks + rank, m) for g in groups for c in chunks for m in g]
        b = [Action("B", c * n_ranks + rank, m) for g in groups for c in chunks[::-1] for m in g]
        after = n_ranks - 1 - rank
        warm_up = min(len(f), (1 if short else 2) * after + (n_chunks - 1) * n_ranks)
        actions = f[:warm_up]
        for number, backward in enumerate(b):
            actions += [*f[warm_up + number : warm_up + number + 1], backward]
        schedule.append(actions)
    return schedule


def halved(schedule: Schedule, lag: Callable[[int], int]) -> Schedule:
    """Every B as I, and its W after the I that comes `lag(rank)` later on that rank."""
    made: Schedule = []
    for rank, actions in enumerate(schedule):
        inputs = [a._replace(kind="I") for a in actions if a.kind == "B"]
        after: dict[Action, list[Action]] = {action: [] for action in inputs}
        for number, action in enumerate(inputs):
            last = inputs[min(number + lag(rank), len(inputs) - 1)]
            after[last].append(action._replace(kind="W"))
        moved = (a._replace(kind="I") if a.kind == "B" else a for a in actions)
        made.append([half for a in moved for half in (a, *after.get(a, []))])
    return made


def whenever_idle(schedule: Schedule) -> Schedule:
    """Every B as I, and a W wherever its rank could not run the next F or I in that second."""
    halves = [[a._replace(kind="I") if a.kind == "B" else a for a in r] for r in schedule]
    n_stages = len(stage_to_rank(schedule))
    present = {action for _, action in actions_of(halves)}
    ended: set[Action] = set()
    made: Schedule = [[] for _ in schedule]
    while sum(map(len, made)) < sum(map(len, halves)) + sum(a.kind == "I" for a in present):
        now = []
        for rank, own in enumerate(made):
            ahead = halves[rank][sum(a.kind != "W" for a in own) :][:1]
            done = [a._replace(kind="W") for a in own if a.kind == "I"]
            due = [a for a in done if a not in own]
            runs = [a for a in ahead if ended.issuperset(needs(a, present, n_stages))] + due
            now += [(own, runs[0])] if runs else []
        for own, action in now:  # all of a second at once
            own.append(action)
            ended.add(action)
    return made


def n_messages(n_chunks: int) -> int:
    """Results that another rank needs, in one step."""
    schedule = chunked(n_chunks=n_chunks)
    owner = stage_to_rank(schedule)
    present = {action for _, action in actions_of(schedule)}
    return sum(
        owner[need.stage] != owner[action.stage]
        for action in present
        for need in needs(action, present, K * n_chunks)
    )


def held(schedule: Schedule, freed_by: str = "I") -> list[int]:
    """What each rank holds at most."""
    return peak_in_flight(schedule, freed_by)


def first_work(layers: int) -> int:
    """Layers that a micro-batch goes through before the last rank, with stages of so many."""
    return layers * (K - 1)


def everywhere(holds: Callable[[int, int, int], bool]) -> Callable[[], bool]:
    """Whether something holds of (K, M, v) for many of each, K dividing M."""
    return lambda: all(
        holds(k, k * groups, v) for k in (1, 2, 3, 4, 6) for groups in (1, 2, 3) for v in (1, 2, 3)
    )


def slots(schedule: Schedule, n_chunks: int) -> Fraction:
    """The makespan in slots of a chunk's forward and backward."""
    return seconds(schedule) / (Fraction(3) / n_chunks)


def plain(n_microbatches: int = M, n_ranks: int = K) -> Schedule:
    """1F1B."""
    return one_f_one_b(n_ranks, n_microbatches)
