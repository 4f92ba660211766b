"""Views of a schedule: its timeline, faulty or not; the memory it holds; its idle time as areas."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mpedu.families import gpipe
from mpedu.plot.flaw import Flaw, find_flaw
from mpedu.plot.lane_layout import is_rank_program
from mpedu.plot.lanes import draw_lanes
from mpedu.plot.layout import (
    Box,
    Layout,
    actions_in,
    counts_of,
    entries_of,
    idle_boxes,
    n_blanks,
    padded,
    schedule_layout,
    timeline_layout,
)
from mpedu.plot.looks import BLUE, GREEN, ORANGE, RED, look_of
from mpedu.plot.pictures import (
    Picture,
    draw_arrow,
    draw_boxes,
    finish,
    footnote_under,
    in_own_style,
    legend,
    new_figure,
)
from mpedu.plot.text import (
    busy_table,
    flaw_sentence,
    idle_sentence,
    layout_text,
    seconds,
    table,
    work_done,
)
from mpedu.schedule import Schedule, in_flight, peak_in_flight
from mpedu.simulate import Costs, Timeline, simulate
from mpedu.validate import rank_word, validate_schedule

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

CURVE_HEIGHT_IN = 3.2
NO_NUMBERS = "\nin the picture the numbers are left out of boxes too narrow for them"
STYLES = ((BLUE, "-", "o"), (ORANGE, "--", "s"), (GREEN, "-.", "D"), (RED, ":", "v"))
IDLE_LOOKS = ("ramp-up", "turn", "drain")


@in_own_style
def draw_timeline(
    timeline: Timeline, title: str = "", shade: bool = False, n_columns: int = 72
) -> Picture:
    """A timeline, one row per rank, on an axis area of ranks x makespan.

    That of a rank program is drawn as swim lanes. shade: also measures idle time, and writes the
    idle share under the axis. ValueError for a timeline without spans.
    """
    if isinstance(timeline, Timeline) and is_rank_program(timeline):
        if shade:
            raise ValueError("shade measures a schedule's idle time; this is of a rank program")
        return draw_lanes(timeline, title, n_columns)
    layout = timeline_layout(timeline)
    start_s, end_s = layout.extent
    title = title or f"{layout.rows}, {layout.microbatches}: {seconds(end_s - start_s)}"
    gaps = idle_boxes(layout) if shade else []
    figure, (axes,) = new_figure(title, layout.height_in, footnote=shade)
    looks = [look_of(box) for box in layout.boxes] + ["idle shaded"] * len(gaps)
    numbered = draw_boxes(axes, layout, [*layout.boxes, *gaps], looks)
    legend(axes, looks if shade else [*looks, "idle"])
    alt = f"{title}. Timeline with {layout.rows} as rows, from {seconds(start_s)} to "
    alt += f"{seconds(end_s)}: {work_done(layout)}."
    text = f"{title}\n{layout_text(layout, None, n_columns)}{'' if numbered else NO_NUMBERS}"
    if shade:
        share = idle_sentence(layout)
        footnote_under(figure, share)
        alt += f" {share}."
        text += f"\n{busy_table(layout)}\n{share}"
    return finish(figure, alt, text)


@in_own_style
def draw_schedule(
    schedule: object,
    costs: Costs | None = None,
    n_stages: int | None = None,
    n_microbatches: int | None = None,
    title: str = "",
    shade: bool = False,
    n_columns: int = 72,
) -> Picture:
    """A legal schedule's timeline; of a faulty one what runs, and in red its first fault.

    Counts left out are 1 + the largest index found. An entry `...` is a blank, drawn dashed.
    shade: as in `draw_timeline`, where the schedule is legal.
    Where a picture would show nothing, the fault alone: no entry is an Action, or work on wrong
    stages leaves no room for labels.
    ValueError when there are too many boxes to draw.
    """
    costs = costs or Costs()
    found = counts_of(schedule)
    n_stages, n_microbatches = n_stages or found[0], n_microbatches or found[1]
    longer = padded(costs, max(n_stages, found[0]))
    layout = schedule_layout(schedule, longer, n_stages, n_microbatches)
    fault = None
    if not n_blanks(schedule):
        faults = validate_schedule(schedule, n_stages or None, n_microbatches or None)
        if not faults:
            legal: Schedule = schedule  # type: ignore[assignment]  # no faults: it is a Schedule
            return draw_timeline(simulate(legal, costs), title, shade, n_columns)
        fault = faults[0]
    flaw = find_flaw(schedule, layout, fault, n_stages)
    told = f"{title}: {flaw.text}" if title else flaw.text
    if fault and not any(actions_in(entries_of(schedule))):
        return Picture(b"", told, told)
    return _draw_flawed(layout, flaw, told, n_columns)


def _draw_flawed(layout: Layout, flaw: Flaw, title: str, n_columns: int) -> Picture:
    figure, (axes,) = new_figure(title, layout.height_in, over_axes=layout.stuck_s is not None)
    numbered = draw_order(axes, layout, flaw)
    if flaw.in_labels and not numbered:
        return Picture(b"", title, title)
    text = f"{title}\n{layout_text(layout, flaw, n_columns)}{'' if numbered else NO_NUMBERS}"
    return finish(figure, f"{title}. {flaw_sentence(layout, flaw)}", text)


def draw_order(axes: "Axes", layout: Layout, flaw: Flaw) -> bool:
    """Draws a schedule's boxes, and in red what the flaw names; whether all numbers had room."""
    red = [flaw.box, *(action for _, action in flaw.arrows)]
    looks = [look_of(box, next((r for r in red if r is box), None)) for box in layout.boxes]
    numbered = draw_boxes(axes, layout, layout.boxes, looks)
    if layout.stuck_s is not None:
        axes.axvline(layout.stuck_s, color="black", linewidth=2, linestyle=":")
        side = "left" if layout.stuck_s < 0.7 * layout.extent[1] else "right"
        note = axes.text(layout.stuck_s, -0.55, "from here on nothing runs", va="bottom")
        note.set(fontsize=9, ha=side)
        axes.set_xticks([t for t in axes.get_xticks() if 0 <= t <= layout.stuck_s])
    if flaw.row is not None:
        axes.get_yticklabels()[flaw.row].set(color=RED, fontweight="bold")
    for need, action in flaw.arrows:
        draw_arrow(axes, need, action)
    legend(axes, looks)
    return numbered


@in_own_style
def in_flight_curve(
    schedules: Mapping[str, Schedule | Callable[..., Schedule]],
    *counts: int,
    costs: Costs | None = None,
    freed_by: str = "I",
) -> Picture:
    """Micro-batches whose activations are held: over time on the fullest stage, and every peak.

    One schedule whose peaks are all alike has no second panel: the curve says it.
    A function in place of a schedule is called with `counts`: `in_flight_curve({"GPipe": gpipe},
    4, 8)`. ValueError without schedules, or with the first fault of one that is not legal.
    """
    if not schedules:
        raise ValueError('no schedules to draw; give some by name, {"GPipe": gpipe(4, 8)}')
    lists = {name: made(*counts) if callable(made) else made for name, made in schedules.items()}
    timelines = {name: simulate(schedule, costs) for name, schedule in lists.items()}
    title = "How many micro-batches are held at once?"
    peaks = {name: peak_in_flight(schedule, freed_by) for name, schedule in lists.items()}
    alike = len(peaks) == 1 and all(len(set(values)) == 1 for values in peaks.values())
    figure, (left, *rest) = new_figure(title, CURVE_HEIGHT_IN, n_columns=1 if alike else 2)
    for i, (name, schedule) in enumerate(lists.items()):
        color, line, marker = STYLES[i % len(STYLES)]
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 2}
        rank = peaks[name].index(max(peaks[name]))
        ends_s = [float(span.end_s) for span in timelines[name].spans if span.rank == rank]
        held = [0, *in_flight(schedule[rank], freed_by)]
        fullest = timeline_layout(timelines[name]).row_names[rank]
        left.step([0.0, *ends_s], held, where="post", label=f"{name}, {fullest}", **look)
        for right in rest:
            right.plot(range(len(peaks[name])), peaks[name], marker=marker, label=name, **look)
    most = max(max(values) for values in peaks.values())
    n_ranks = max(map(len, peaks.values()))
    word = rank_word((s.rank, s.stage) for line in timelines.values() for s in line.spans)
    left.set(xlabel="time (s)", ylabel="micro-batches held", xlim=(0, None))
    for right in rest:
        right.set(xlabel=word, ylabel="most held at once", xticks=range(n_ranks))
    for axes in (left, *rest):
        axes.set(ylim=(0, 1.15 * most))
        axes.grid(color="#E0E0E0")
        axes.legend(loc="best", fontsize=9, framealpha=1)
    alt = "; ".join(f"{name} {max(p)} on {word} {p.index(max(p))}" for name, p in peaks.items())
    rows = [[name, *p, *[""] * (n_ranks - len(p))] for name, p in peaks.items()]
    heads = [word, *map(str, range(n_ranks))]
    text = f"{title}\nthe most that a {word} holds\n{table(heads, rows)}"
    return finish(figure, f"{title} The most: {alt}.", text)


@in_own_style
def triangle_figure(
    n_stages: int = 4,
    n_microbatches: int = 8,
    forward_s: float = 1.0,
    backward_s: float = 2.0,
) -> Picture:
    """GPipe's timeline, and below it the same boxes pushed left, so that idle time ends each row.

    Below every stage has its work first, M (t_f + t_b) of ideal time, then its idle pieces, which
    are (K-1)(t_f + t_b) on every stage.
    """
    timeline = simulate(gpipe(n_stages, n_microbatches), Costs(forward_s, backward_s))
    layout = timeline_layout(timeline)
    _, end_s = layout.extent
    idle = idle_boxes(layout)
    idle_looks = [_idle_look(box, layout) for box in idle]
    boxes = [*layout.boxes, *idle]
    looks = [*map(look_of, layout.boxes), *idle_looks]
    ideal_s = n_microbatches * (forward_s + backward_s)
    title = (
        f"{layout.rows}, {layout.microbatches}: from stage to stage idle time moves, its sum stays"
    )
    figure, (above, below) = new_figure(
        title, layout.height_in, n_rows=2, footnote=True, over_axes=True
    )
    draw_boxes(above, layout, boxes, looks)
    draw_boxes(below, layout, _pushed_left(boxes), looks)
    above.set_title(f"as it runs: {seconds(end_s)}", loc="left", fontsize=10)
    parts = f"{seconds(ideal_s)} of work, then {seconds(end_s - ideal_s)} idle"
    below.set_title(f"pushed left: on every stage {parts}", loc="left", fontsize=10)
    below.axvline(ideal_s, color="black", linewidth=2.5)
    legend(below, looks)
    sum_up = (
        f"every stage: ideal {n_microbatches} x {seconds(forward_s + backward_s)} + idle "
        f"{n_stages - 1} x {seconds(forward_s + backward_s)} = {seconds(end_s)}"
    )
    footnote_under(figure, sum_up)
    alt = f"{title}. Timeline above, and below the same boxes pushed left: {parts}; {sum_up}."
    return finish(
        figure, alt, f"{title}\nidle time\n{_idle_table(layout, idle, idle_looks)}\n{sum_up}"
    )


def _idle_look(gap: Box, layout: Layout) -> str:
    start_s, end_s = layout.extent
    if gap.start_s == start_s:
        return "ramp-up"
    return "drain" if gap.end_s == end_s else "turn"


def _idle_table(layout: Layout, idle: list[Box], looks: list[str]) -> str:
    rows = []
    for row, name in enumerate(layout.row_names):
        spent_s = dict.fromkeys(IDLE_LOOKS, 0.0)
        for box, look in zip(idle, looks, strict=True):
            spent_s[look] += box.end_s - box.start_s if box.row == row else 0.0
        rows.append([name, *map(seconds, spent_s.values())])
    return table(("", *IDLE_LOOKS), rows)


def _pushed_left(boxes: list[Box]) -> list[Box]:
    free_s: dict[int, float] = {}
    moved = []
    for box in boxes:
        start_s = free_s.get(box.row, 0.0)
        free_s[box.row] = start_s + box.end_s - box.start_s
        moved.append(box._replace(start_s=start_s, end_s=free_s[box.row]))
    return moved
