"""Where each box of a schedule's picture stands, and the picture as text; draws nothing itself.

A faulty schedule is laid out in two parts: what runs, on the model clock, and right of `stuck_s`
what never runs: in list order the work that waits and the blanks, then the work that is missing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

from mpedu.schedule import (
    Action,
    Schedule,
    actions_of,
    missing_work,
    stage_to_rank,
)
from mpedu.simulate import Costs, Span, Timeline, simulate_until_stuck
from mpedu.validate import action_problem, rank_word

MOST_BOXES = 5000


class Box(NamedTuple):
    """One box: `row` from the top, `state` "ran", "waits", "missing", "blank" or "no action"."""

    row: int
    start_s: float
    end_s: float
    label: str
    state: str
    action: Action | None


class Layout(NamedTuple):
    """All boxes, the rows' names, and where work stops (None when everything given runs)."""

    boxes: list[Box]
    row_names: list[str]
    stuck_s: float | None

    @property
    def extent(self) -> tuple[float, float]:
        """From the start of the first box to the end of the last, in s; (0, 1) without boxes."""
        start_s = min((box.start_s for box in self.boxes), default=0.0)
        return start_s, max((box.end_s for box in self.boxes), default=1.0)

    @property
    def rows(self) -> str:
        """How many rows of what: "4 stages"."""
        return counted(len(self.row_names), self.row_names[0].split()[0])

    @property
    def microbatches(self) -> str:
        """How many micro-batches: "8 micro-batches"."""
        numbers = {box.action.microbatch for box in self.boxes if box.action}
        return counted(len(numbers), "micro-batch", "es")

    @property
    def height_in(self) -> float:
        """Height of the axes that hold the rows, in inches."""
        n_rows = max(len(self.row_names), 1)
        return n_rows * (0.55 if n_rows <= 4 else 0.42)


def counted(n: int, word: str, plural: str = "s") -> str:
    """A number with its word, "1 stage", "4 stages"."""
    return f"{n} {word}{'' if n == 1 else plural}"


def timeline_layout(timeline: Timeline) -> Layout:
    """The boxes of a timeline; ValueError when there is nothing to draw or too much."""
    if not isinstance(timeline, Timeline):
        kind = type(timeline).__name__
        raise ValueError(f"this is a {kind}; give a Timeline, as simulate(schedule) returns it")
    if not timeline.spans:
        raise ValueError("this timeline has no spans, so there is nothing to draw; give it work")
    _require_drawable(len(timeline.spans))
    for span in timeline.spans:
        if not 0 <= span.rank < timeline.n_ranks:
            raise ValueError(f"{span} has no row; the ranks are 0 to {timeline.n_ranks - 1}")
        if not -math.inf < span.start_s < span.end_s < math.inf:
            raise ValueError(f"{span} takes no time; its end_s must come after its start_s")
    names = _row_names(((s.rank, s.stage) for s in timeline.spans), timeline.n_ranks)
    return Layout([_ran(span, names) for span in timeline.spans], names, None)


def schedule_layout(schedule: object, costs: Costs, n_stages: int, n_microbatches: int) -> Layout:
    """Every box of any schedule, however faulty; ValueError when there would be too many."""
    lists = entries_of(schedule)
    _require_drawable(max(sum(map(len, lists)), 2 * n_stages * n_microbatches))
    spans = _what_runs(lists, costs, n_stages)
    queue = list(_left_over(lists, spans))
    if n_stages and n_microbatches and not n_blanks(schedule):
        queue += _missing(actions_in(lists), n_stages, n_microbatches)
    n_rows = max([len(lists), *(row + 1 for row, _, _ in queue)])
    held = [(row, action.stage) for row, action, _ in queue if action]
    names = _row_names([*held, *((span.rank, span.stage) for span in spans)], n_rows)
    boxes = [_ran(span, names) for span in spans]
    stuck_s = max((box.end_s for box in boxes), default=0.0)
    free_s = [stuck_s] * n_rows
    for row, action, state in queue:
        end_s = free_s[row] + float(costs.of(action or Action("F", row, 0)))
        boxes.append(Box(row, free_s[row], end_s, _label(action, state, names), state, action))
        free_s[row] = end_s
    return Layout(boxes, names, stuck_s if queue else None)


def idle_boxes(layout: Layout) -> list[Box]:
    """The gaps between a row's boxes, and before and after them, as boxes in state "idle"."""
    start_s, end_s = layout.extent
    gaps = []
    for row in range(len(layout.row_names)):
        free_s = start_s
        mine = sorted(box for box in layout.boxes if box.row == row)
        for begin_s, until_s in [*((b.start_s, b.end_s) for b in mine), (end_s, end_s)]:
            if begin_s > free_s:
                gaps.append(Box(row, free_s, begin_s, "", "idle", None))
            free_s = max(free_s, until_s)
    return gaps


def entries_of(schedule: object) -> list[list[object]]:
    """One list of entries per rank; whatever is no list or tuple counts as no entries."""
    ranks = schedule if isinstance(schedule, list | tuple) else []
    return [list(rank) if isinstance(rank, list | tuple) else [] for rank in ranks]


def n_blanks(schedule: object) -> int:
    """How many entries are `...`, a blank that is still to fill in."""
    return sum(entry is ... for entries in entries_of(schedule) for entry in entries)


def counts_of(schedule: object) -> tuple[int, int]:
    """Numbers of stages and of micro-batches: 1 + the largest index among the sound entries."""
    actions = [action for _, action in actions_of(actions_in(entries_of(schedule)))]
    n_stages = max((int(a.stage) for a in actions), default=-1) + 1
    return n_stages, max((int(a.microbatch) for a in actions), default=-1) + 1


def _is_action(entry: object) -> TypeGuard[Action]:
    """Whether an entry can be placed: an Action of a known kind with indices from 0."""
    return not action_problem(entry)


def actions_in(lists: list[list[object]]) -> Schedule:
    """Of each rank's entries those that can be placed."""
    return [[entry for entry in entries if _is_action(entry)] for entries in lists]


def _what_runs(lists: list[list[object]], costs: Costs, n_stages: int) -> list[Span]:
    """The spans of each rank's list up to its first blank or unusable entry."""
    starts: Schedule = []
    for entries in lists:
        end = next((i for i, entry in enumerate(entries) if not _is_action(entry)), len(entries))
        starts += actions_in([entries[:end]])
    # Never runs; it tells the simulation of stages that the shortened lists do not show.
    last_stage = Action("W", max(n_stages - 1, 0), -1)
    return simulate_until_stuck([*starts, [last_stage]], costs).spans


def _left_over(
    lists: list[list[object]], spans: list[Span]
) -> Iterator[tuple[int, Action | None, str]]:
    for row, entries in enumerate(lists):
        for entry in entries[sum(span.rank == row for span in spans) :]:
            if _is_action(entry):
                yield row, entry, "waits"
            else:
                yield row, None, "blank" if entry is ... else "no action"


def _missing(
    given: Schedule, n_stages: int, n_microbatches: int
) -> list[tuple[int, Action | None, str]]:
    """Missing work on the row of its stage; a stage that stands nowhere gets a free row."""
    rows = stage_to_rank(given)
    for stage in range(n_stages):
        own_row_is_free = stage < len(given) and not given[stage]
        n_rows = max([len(given) - 1, *rows.values()]) + 1
        rows.setdefault(stage, stage if own_row_is_free else n_rows)
    work = missing_work(given, n_stages, n_microbatches)
    work.sort(key=lambda action: (action.kind != "F", action.stage, action.microbatch))
    return [(rows[action.stage], action, "missing") for action in work]


def _row_names(held: Iterable[tuple[int, int]], n_rows: int) -> list[str]:
    """ "stage 0", .. where every row holds the stage of its own number, else "rank 0", .."""
    word = rank_word(held)
    return [f"{word} {row}" for row in range(n_rows)]


def _ran(span: Span, names: Sequence[str]) -> Box:
    action = Action(span.kind, span.stage, span.microbatch)
    label = _label(action, "ran", names)
    return Box(span.rank, float(span.start_s), float(span.end_s), label, "ran", action)


def _label(action: Action | None, state: str, names: Sequence[str]) -> str:
    if action is None:
        return ".." if state == "blank" else "?"
    one_stage = names and names[0].startswith("stage")
    return f"{action.kind}{action.microbatch}" if one_stage else str(action)


def padded(costs: Costs, n_stages: int) -> Costs:
    """The same costs, where sequences that are too short repeat their last entry.

    A faulty schedule may name stages that do not exist; their boxes need a width all the same.
    """
    longer: dict[str, Any] = {
        name: [*cost, *[*cost[-1:]] * n_stages]
        for name, cost in vars(costs).items()
        if isinstance(cost, Sequence)
    }
    return replace(costs, **longer)


def _require_drawable(n_boxes: int) -> None:
    if n_boxes > MOST_BOXES:
        raise ValueError(
            f"{n_boxes} boxes are too many for a picture, which holds {MOST_BOXES}; "
            "draw fewer stages or micro-batches"
        )
