"""Pictures of schedules and timelines, each with alternative text and a plain text form.

The only module that imports matplotlib, and only when something is drawn. No pyplot: a picture
leaves no state behind, and the same input gives the same bytes.
"""

import base64
import html
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from mpedu.plot.flaw import Flaw, find_flaw
from mpedu.plot.layout import (
    Box,
    Layout,
    counts_of,
    idle_boxes,
    n_blanks,
    padded,
    schedule_layout,
    timeline_layout,
)
from mpedu.plot.looks import (
    IDLE,
    LARGEST_PT,
    LOOKS,
    RED,
    SMALLEST_PT,
    corners,
    look_of,
    number_in,
    number_sizes_pt,
)
from mpedu.plot.text import (
    busy_table,
    flaw_sentence,
    idle_sentence,
    layout_text,
    seconds,
    work_done,
)
from mpedu.plot.text import timeline_text as timeline_text
from mpedu.schedule import Schedule
from mpedu.simulate import Costs, Timeline, simulate
from mpedu.validate import validate_schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

Given = ParamSpec("Given")

WIDTH_IN = 9.0
DPI = 110
LEFT_IN, RIGHT_IN, BOTTOM_IN, GAP_IN = 0.8, 0.25, 0.66, 0.75
TITLE_COLUMNS, LINE_IN = 78, 0.2
NO_NUMBERS = "\nin the picture the numbers are left out of boxes too narrow for them"


@dataclass(frozen=True)
class Picture:
    """A figure as PNG, a sentence or two for those who do not see it, and a text form."""

    png: bytes
    alt: str
    text: str
    figure: "Figure | None" = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode("ascii")
        return (
            f'<figure style="margin:0"><img alt="{html.escape(self.alt)}" '
            'style="max-width:100%;height:auto;background:white" '
            f'src="data:image/png;base64,{data}">'
            "<details><summary>The same as text</summary>"
            f"<pre>{html.escape(self.text)}</pre></details></figure>"
        )

    def save(self, path: str | Path) -> Path:
        """The file written, .png or .svg; ValueError for another ending."""
        target = Path(path)
        if target.suffix == ".png":
            target.write_bytes(self.png)
        elif target.suffix == ".svg" and self.figure is not None:
            target.write_bytes(_rendered(self.figure, "svg"))
        else:
            raise ValueError(f"{target.name!r} is not written; give a name ending in .png or .svg")
        return target


def in_own_style(draw: Callable[Given, Picture]) -> Callable[Given, Picture]:
    """The same drawing function, in matplotlib's default style whatever the notebook has set."""

    @wraps(draw)
    def styled(*args: Given.args, **kwargs: Given.kwargs) -> Picture:
        from matplotlib import style

        with style.context("default"):
            return draw(*args, **kwargs)

    return styled


@in_own_style
def draw_timeline(
    timeline: Timeline, title: str = "", shade: bool = False, n_columns: int = 72
) -> Picture:
    """A timeline, one row per rank, on an axis area of ranks x makespan.

    shade: also measures idle time, and writes the idle share under the axis.
    ValueError for a timeline without spans.
    """
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
    return _draw_flawed(layout, flaw, f"{title}: {flaw.text}" if title else flaw.text, n_columns)


def _draw_flawed(layout: Layout, flaw: Flaw, title: str, n_columns: int) -> Picture:
    stuck = layout.stuck_s is not None
    figure, (axes,) = new_figure(title, layout.height_in, over_axes=stuck)
    looks = [look_of(box, flaw.box) for box in layout.boxes]
    numbered = draw_boxes(axes, layout, layout.boxes, looks)
    if layout.stuck_s is not None:
        axes.axvline(layout.stuck_s, color="black", linewidth=2, linestyle=":")
        side = "left" if layout.stuck_s < 0.7 * layout.extent[1] else "right"
        note = axes.text(layout.stuck_s, -0.55, "from here on nothing runs", va="bottom")
        note.set(fontsize=9, ha=side)
        axes.set_xticks([t for t in axes.get_xticks() if 0 <= t <= layout.stuck_s])
    if not layout.boxes:
        axes.set(xticks=[], xlabel="")
        axes.text(0.5, 0, "nothing to draw", ha="center", va="center", fontsize=LARGEST_PT)
    if flaw.row is not None:
        axes.get_yticklabels()[flaw.row].set(color=RED, fontweight="bold")
    for need, action in flaw.arrows:
        _draw_arrow(axes, need, action)
    legend(axes, looks)
    text = f"{title}\n{layout_text(layout, flaw, n_columns)}{'' if numbered else NO_NUMBERS}"
    return finish(figure, f"{title}. {flaw_sentence(layout, flaw)}", text)


def new_figure(
    title: str,
    height_in: float,
    n_rows: int = 1,
    n_columns: int = 1,
    footnote: bool = False,
    over_axes: bool = False,
) -> tuple["Figure", list["Axes"]]:
    """A white figure of notebook width with a heading, and its axes, row after row.

    height_in: of one axes; footnote, over_axes: leave room for a line below, or above, the axes.
    """
    from matplotlib.figure import Figure

    lines = textwrap.wrap(title, TITLE_COLUMNS) or [""]
    top_in = 0.18 + LINE_IN * len(lines) + (0.22 if over_axes else 0.0)
    bottom_in = BOTTOM_IN + (0.25 if footnote else 0.0)
    whole_in = top_in + n_rows * height_in + (n_rows - 1) * GAP_IN + bottom_in
    width_in = (WIDTH_IN - LEFT_IN - RIGHT_IN - (n_columns - 1) * GAP_IN) / n_columns
    figure = Figure(figsize=(WIDTH_IN, whole_in), dpi=DPI, facecolor="white")
    place = {"left": LEFT_IN / WIDTH_IN, "right": 1 - RIGHT_IN / WIDTH_IN}
    place |= {"bottom": bottom_in / whole_in, "top": 1 - top_in / whole_in}
    place |= {"hspace": GAP_IN / height_in, "wspace": GAP_IN / width_in}
    grid = figure.subplots(n_rows, n_columns, squeeze=False, gridspec_kw=place)
    heading = figure.text(place["left"], 1 - 0.1 / whole_in, "\n".join(lines), va="top")
    heading.set(fontsize=11.5, fontweight="bold", linespacing=1.15)
    return figure, grid.ravel().tolist()


def footnote_under(figure: "Figure", text: str) -> None:
    """Writes a line at the foot of a figure made with room for it."""
    figure.text(LEFT_IN / WIDTH_IN, 0.03, text, va="bottom", fontsize=10, fontweight="bold")


def finish(figure: "Figure", alt: str, text: str) -> Picture:
    """The figure as a Picture."""
    return Picture(_rendered(figure, "png"), alt, text, figure)


def draw_boxes(axes: "Axes", layout: Layout, boxes: Sequence[Box], looks: Sequence[str]) -> bool:
    """Draws boxes on a layout's rows, each with its look; whether all numbers found room."""
    from matplotlib.collections import PolyCollection

    start_s, end_s = layout.extent
    n_rows = max(len(layout.row_names), 1)
    axes.set(xlim=(start_s, end_s), ylim=(n_rows - 0.5, -0.5), facecolor=IDLE)
    axes.set_xlabel("time (s)", loc="left")
    axes.set_yticks(range(len(layout.row_names)), layout.row_names)
    axes.tick_params(axis="y", length=0, labelsize=10)
    points_per_s = axes.get_position().width * WIDTH_IN * 72 / (end_s - start_s)
    narrowest_pt = points_per_s * min((b.end_s - b.start_s for b in boxes), default=1.0)
    for name in dict.fromkeys(looks):
        look = LOOKS[name]
        group = [corners(b) for b, other in zip(boxes, looks, strict=True) if other == name]
        shapes = PolyCollection(group, fc=look.face, ec=look.edge, hatch=look.hatch, label=name)
        shapes.set(linestyle=look.line, linewidth=min(1.0, narrowest_pt / 10))
        if name.startswith("fault"):
            shapes.set(linewidth=2, zorder=3)
        axes.add_collection(shapes)
    sizes_pt = number_sizes_pt(boxes, looks, points_per_s)
    for box, look_name, size_pt in zip(boxes, looks, sizes_pt, strict=True):
        if size_pt >= SMALLEST_PT:
            at_s, word = (box.start_s + box.end_s) / 2, number_in(box, look_name)
            number = axes.text(at_s, box.row, word, ha="center", va="center_baseline")
            number.set(fontsize=size_pt, color=LOOKS[look_name].ink)
    return min(sizes_pt, default=LARGEST_PT) >= SMALLEST_PT


def _draw_arrow(axes: "Axes", need: Box, action: Box) -> None:
    """A red arrow from the work needed to the work in need, between the facing edges."""
    from matplotlib.patheffects import withStroke

    down = (action.row > need.row) - (action.row < need.row)
    side = down or (1 if need.row == 0 else -1)  # in one row: an arc that meets no heading
    start = ((need.start_s + need.end_s) / 2, need.row + 0.3 * side)
    end = ((action.start_s + action.end_s) / 2, action.row + 0.3 * (-down or side))
    length_in = abs(end[0] - start[0]) / (axes.get_xlim()[1] - axes.get_xlim()[0]) * WIDTH_IN
    bend = 0.0 if down else min(0.3, 0.6 / length_in) * side * (1 if end > start else -1)
    style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "mutation_scale": 18}
    style |= {"color": RED, "linewidth": 2.5, "shrinkA": 0, "shrinkB": 0}
    style |= {"path_effects": [withStroke(linewidth=5, foreground="white")]}
    axes.annotate("", end, start, arrowprops=style, zorder=5)


def legend(axes: "Axes", looks: Sequence[str]) -> None:
    """Puts the names of the looks right under the axes."""
    from matplotlib.patches import Patch

    shown = [look for name, look in LOOKS.items() if name in looks]
    handles = [Patch(fc=k.face, ec=k.edge, hatch=k.hatch, ls=k.line, label=k.name) for k in shown]
    height_in = axes.get_window_extent().height / DPI
    axes.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(1.0, -0.24 / height_in),
        ncols=len(handles),
        fontsize=9,
        frameon=False,
        borderaxespad=0.0,
    )


def _rendered(figure: "Figure", kind: str) -> bytes:
    import matplotlib

    target = io.BytesIO()
    unstable = {"Software" if kind == "png" else "Date": None}
    with matplotlib.rc_context({"svg.hashsalt": "mpedu"}):
        figure.savefig(target, format=kind, metadata=unstable)
    return target.getvalue()
