"""What a picture is, and what it is made with: figures, boxes, arrows, legends.

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

from mpedu.plot.layout import Box, Layout
from mpedu.plot.looks import (
    IDLE,
    LARGEST_PT,
    LOOKS,
    RED,
    SMALLEST_PT,
    corners,
    number_in,
    number_sizes_pt,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

Given = ParamSpec("Given")

WIDTH_IN = 9.0
DPI = 110
LEFT_IN, RIGHT_IN, BOTTOM_IN, GAP_IN = 0.8, 0.25, 0.66, 0.75
TITLE_COLUMNS, LINE_IN = 78, 0.2


@dataclass(frozen=True)
class Picture:
    """A figure as PNG, a sentence or two for those who do not see it, and a text form.

    Without bytes in `png` it is the text alone: there was nothing to see.
    """

    png: bytes
    alt: str
    text: str
    figure: "Figure | None" = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if not self.png:
            return f"<p>{html.escape(self.text)}</p>"
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
        if not self.png:
            raise ValueError(f"{target.name!r} is not written; this is a sentence, not a picture")
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
    bottom = min(0.03, 0.1 / figure.get_size_inches()[1])
    figure.text(LEFT_IN / WIDTH_IN, bottom, text, va="bottom", fontsize=10, fontweight="bold")


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


def draw_arrow(axes: "Axes", need: Box, action: Box) -> None:
    """A red arrow from the work needed to the work in need.

    Its ends lie beside the boxes' numbers, on the side of the other box: two that cross do so
    half-way, away from their heads.
    """
    from matplotlib.patheffects import withStroke

    down = (action.row > need.row) - (action.row < need.row)
    side = down or (1 if need.row == 0 else -1)  # in one row: an arc that meets no heading
    from_s, to_s = ((box.start_s + box.end_s) / 2 for box in (need, action))
    right = (to_s > from_s) - (to_s < from_s) if down else 0
    off = 0.12 if right else 0.3  # rows from the middle of each
    from_s += 0.32 * right * (need.end_s - need.start_s)
    to_s -= 0.32 * right * (action.end_s - action.start_s)
    start = from_s, need.row + off * side
    end = to_s, action.row + off * (-down or side)
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
