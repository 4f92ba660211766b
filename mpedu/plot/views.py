"""Other views of a schedule: the memory it holds over time, and its idle time as areas."""

from collections.abc import Callable, Mapping
from typing import Any

from mpedu.families import gpipe
from mpedu.plot.layout import Box, Layout, idle_boxes, timeline_layout
from mpedu.plot.looks import BLUE, GREEN, ORANGE, RED, look_of
from mpedu.plot.pictures import (
    Picture,
    draw_boxes,
    finish,
    footnote_under,
    in_own_style,
    legend,
    new_figure,
)
from mpedu.plot.text import seconds, table
from mpedu.schedule import Schedule, in_flight, peak_in_flight
from mpedu.simulate import Costs, simulate

CURVE_HEIGHT_IN = 3.2
STYLES = ((BLUE, "-", "o"), (ORANGE, "--", "s"), (GREEN, "-.", "D"), (RED, ":", "v"))
IDLE_LOOKS = ("ramp-up", "turn", "drain")


@in_own_style
def in_flight_curve(
    schedules: Mapping[str, Schedule | Callable[..., Schedule]],
    *counts: int,
    costs: Costs | None = None,
    freed_by: str = "I",
) -> Picture:
    """Micro-batches whose activations are held: over time on the fullest rank, and every peak.

    A function in place of a schedule is called with `counts`: `in_flight_curve({"GPipe": gpipe},
    4, 8)`. ValueError without schedules, or with the first fault of one that is not legal.
    """
    if not schedules:
        raise ValueError('no schedules to draw; give some by name, {"GPipe": gpipe(4, 8)}')
    lists = {name: made(*counts) if callable(made) else made for name, made in schedules.items()}
    timelines = {name: simulate(schedule, costs) for name, schedule in lists.items()}
    title = "How many micro-batches are held at once?"
    figure, (left, right) = new_figure(title, CURVE_HEIGHT_IN, n_columns=2)
    peaks = {name: peak_in_flight(schedule, freed_by) for name, schedule in lists.items()}
    for i, (name, schedule) in enumerate(lists.items()):
        color, line, marker = STYLES[i % len(STYLES)]
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 2}
        rank = peaks[name].index(max(peaks[name]))
        ends_s = [float(span.end_s) for span in timelines[name].spans if span.rank == rank]
        held = [0, *in_flight(schedule[rank], freed_by)]
        fullest = timeline_layout(timelines[name]).row_names[rank]
        left.step([0.0, *ends_s], held, where="post", label=f"{name}, {fullest}", **look)
        right.plot(range(len(peaks[name])), peaks[name], marker=marker, label=name, **look)
    most = max(max(values) for values in peaks.values())
    n_ranks = max(map(len, peaks.values()))
    left.set(xlabel="time (s)", ylabel="micro-batches held", xlim=(0, None))
    right.set(xlabel="rank", ylabel="most held at once", xticks=range(n_ranks))
    for axes in (left, right):
        axes.set(ylim=(0, 1.15 * most))
        axes.grid(color="#E0E0E0")
        axes.legend(loc="best", fontsize=9, framealpha=1)
    alt = "; ".join(f"{name} {max(p)} on rank {p.index(max(p))}" for name, p in peaks.items())
    rows = [[name, *p, *[""] * (n_ranks - len(p))] for name, p in peaks.items()]
    text = (
        f"{title}\nthe most that a rank holds\n{table(['rank', *map(str, range(n_ranks))], rows)}"
    )
    return finish(figure, f"{title} The most: {alt}.", text)


@in_own_style
def triangle_figure(
    n_stages: int = 4,
    n_microbatches: int = 8,
    forward_s: float = 1.0,
    backward_s: float = 2.0,
) -> Picture:
    """GPipe's idle time as it falls, and the same pushed to the right: one area per stage.

    Above the timeline; below every stage's work first, M (t_f + t_b) of ideal time, then its idle
    pieces, which are (K-1)(t_f + t_b) on every stage.
    """
    timeline = simulate(gpipe(n_stages, n_microbatches), Costs(forward_s, backward_s))
    layout = timeline_layout(timeline)
    _, end_s = layout.extent
    idle = idle_boxes(layout)
    idle_looks = [_idle_look(box, layout) for box in idle]
    boxes = [*layout.boxes, *idle]
    looks = [*map(look_of, layout.boxes), *idle_looks]
    ideal_s = n_microbatches * (forward_s + backward_s)
    title = f"{layout.rows}, {layout.microbatches}: the idle time moves, its area stays"
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
