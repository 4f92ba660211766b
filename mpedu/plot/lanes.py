"""Swim lanes: a rank program on its clock, one lane per rank, with arrows for its messages."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mpedu.plot.lane_layout import LaneBox, Lanes, lanes_of, size_text
from mpedu.plot.lane_text import lanes_sentence, lanes_text
from mpedu.plot.layout import counted
from mpedu.plot.looks import BLUE, CHARACTER_WIDTH, GREEN, IDLE, INK, LOOKS, ORANGE, YELLOW, Look
from mpedu.plot.pictures import (
    DPI,
    Picture,
    finish,
    footnote_under,
    in_own_style,
    new_figure,
)
from mpedu.simulate import Sent, Timeline

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

HALF = 0.3  # of a lane's height, in rows
MOST_LABELLED = 24
LABEL_PT, GAP_PT = 8.0, 3.0
LEAST_PT = 1.0  # width of a box that can be seen
SKY, PURPLE, VERMILION = "#56B4E9", "#CC79A7", "#D55E00"
KINDS = {
    "compute": Look("compute", BLUE, "#00456C", "white"),
    "send": Look("send", ORANGE, "#B57D00", "black", "//"),
    "all_reduce": Look("all_reduce", GREEN, "#00664B", "black", "\\\\"),
    "all_gather": Look("all_gather", YELLOW, "#B3A800", "black", ".."),
    "reduce_scatter": Look("reduce_scatter", PURPLE, "#9A4F77", "black", "xx"),
    "all_to_all": Look("all_to_all", VERMILION, "#9A4300", "black", "++"),
    "broadcast": Look("broadcast", SKY, "#2E86BA", "black", "--"),
    "barrier": Look("barrier", "white", "#707070", "black", "||"),
    **{kind: LOOKS[kind] for kind in "FBIW"},
}
OTHERS = ((SKY, "#2E86BA", "OO"), (GREEN, "#00664B", "**"), (PURPLE, "#9A4F77", "--"))
Line = tuple[tuple[float, float], tuple[float, float]]
Place = tuple[int, float, float]  # of a label: the lane above, left and right in points


@in_own_style
def draw_lanes(timeline: Timeline, title: str = "", n_columns: int = 72) -> Picture:
    """The timeline of a rank program as swim lanes: boxes for work, collectives and sends.

    Of each message an arrow leads from its sender as it starts to its receiver as it arrives, and
    from there a dotted line until it is taken. Few messages are labelled with their sizes and
    tags, or below with the size that all have; of very many only some have an arrow, which a line
    says. Grey is a rank that waits or is idle, white one that has finished. ValueError for an empty
    timeline.
    """
    lanes = lanes_of(timeline)
    title = title or heading(lanes)
    figure, (axes,) = new_figure(title, lanes.height_in, footnote=bool(lanes.notes))
    fill_lanes(axes, lanes)
    if lanes.notes:
        footnote_under(figure, "; ".join(lanes.notes))
    alt = f"{title}. Swim lanes with {counted(lanes.n_lanes, 'rank')} as rows, "
    alt += "; ".join([lanes_sentence(lanes), *lanes.notes]) + "."
    return finish(figure, alt, f"{title}\n{lanes_text(lanes, n_columns)}")


def heading(lanes: Lanes) -> str:
    """What the lanes show, "2 ranks, 4 messages: 20 us"."""
    parts = [counted(lanes.n_ranks, "rank"), counted(lanes.n_messages, "message")]
    return f"{', '.join(parts)}: {lanes.time(lanes.makespan_s)}"


def fill_lanes(axes: "Axes", lanes: Lanes) -> None:
    """Draws the lanes on axes that are `height_in` high, or higher."""
    factor, unit = lanes.unit
    axes.set(xlim=(0, lanes.makespan_s / factor or 1), ylim=(lanes.n_lanes - 0.5, -0.5))
    every = f"; each message {size_text(lanes.one_size)}" if lanes.one_size is not None else ""
    axes.set_xlabel(f"time ({unit}){every}", loc="left")
    axes.set_yticks(range(lanes.n_lanes), [f"rank {rank}" for rank in range(lanes.n_lanes)])
    axes.tick_params(axis="y", length=0, labelsize=10)
    idle: dict[str, Any] = {"fc": IDLE, "ec": LOOKS["idle"].edge, "label": "waits or idle"}
    for rank, end_s in enumerate(lanes.ends_s):
        strip = axes.broken_barh([(0, end_s / factor)], (rank - HALF, 2 * HALF), lw=0.5, **idle)
    looks = looks_of(lanes)
    points = _points(axes)
    groups = {kind: _fill_kind(axes, lanes, kind, look) for kind, look in looks.items()}
    least_s = factor * LEAST_PT / points[0]
    seen = {box.kind for box in lanes.boxes if box.end_s - box.start_s >= least_s}
    for box in lanes.boxes:
        _name_box(axes, lanes, box, looks[box.kind], points)
    _draw_messages(axes, lanes, points)
    handles = [bars for kind, bars in groups.items() if kind in seen]
    _legend(axes, [*handles, strip] if any(lanes.ends_s) else handles)


def looks_of(lanes: Lanes) -> dict[str, Look]:
    """The look of every kind, those without one of their own in turn."""
    kinds = list(dict.fromkeys(box.kind for box in lanes.boxes))
    strange = [kind for kind in kinds if kind not in KINDS]
    looks = {kind: look for kind, look in KINDS.items() if kind in kinds}
    for i, kind in enumerate(strange):
        face, edge, hatch = OTHERS[i % len(OTHERS)]
        looks[kind] = Look(kind[:24], face, edge, "black", hatch)
    return looks


def _fill_kind(axes: "Axes", lanes: Lanes, kind: str, look: Look) -> Any:
    factor, _ = lanes.unit
    height = 2 * HALF / len(lanes.tracks)
    style: dict[str, Any] = {"fc": look.face, "ec": look.edge, "hatch": look.hatch, "lw": 0.8}
    rows = defaultdict(list)
    for box in lanes.boxes:
        if box.kind == kind:
            bottom = box.rank + _middle(lanes, box.track) - height / 2
            rows[bottom].append((box.start_s / factor, (box.end_s - box.start_s) / factor))
    for bottom, pieces in rows.items():
        bars = axes.broken_barh(pieces, (bottom, height), label=look.name, zorder=2, **style)
    return bars


def _middle(lanes: Lanes, track: str) -> float:
    """Where a track's middle is below its lane's middle, in rows."""
    return 2 * HALF * ((lanes.tracks.index(track) + 0.5) / len(lanes.tracks) - 0.5)


def _points(axes: "Axes") -> tuple[float, float]:
    """Points per unit of time and per row."""
    extent, (_, end), (low, high) = axes.get_window_extent(), axes.get_xlim(), axes.get_ylim()
    return extent.width / DPI * 72 / end, extent.height / DPI * 72 / (low - high)


def _name_box(
    axes: "Axes", lanes: Lanes, box: LaneBox, look: Look, points: tuple[float, float]
) -> None:
    factor, _ = lanes.unit
    room_pt = (box.end_s - box.start_s) / factor * points[0] - 6
    word = look.name if box.label == box.kind else box.label.lstrip("FBIW")
    size_pt = min(9.0, 0.7 * points[1] * 2 * HALF / len(lanes.tracks))
    if size_pt >= 6 and room_pt >= len(word) * size_pt * CHARACTER_WIDTH:
        middle = (box.start_s + box.end_s) / 2 / factor
        at = box.rank + _middle(lanes, box.track)
        name = axes.text(middle, at, word, ha="center", va="center_baseline", zorder=3)
        name.set(fontsize=size_pt, color=look.ink)
        name.set_bbox({"fc": look.face, "ec": "none", "pad": 0.5})  # no hatch behind letters


def _draw_messages(axes: "Axes", lanes: Lanes, points: tuple[float, float]) -> None:
    factor, _ = lanes.unit
    few = len(lanes.arrows) <= MOST_LABELLED
    style: dict[str, Any] = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
    style |= (
        {"mutation_scale": 11, "linewidth": 1.4} if few else {"mutation_scale": 7, "linewidth": 0.7}
    )
    for sent in lanes.arrows:
        start, end = _ends(lanes, sent)
        axes.annotate("", end, start, arrowprops=style, zorder=4)
        until = [float(sent.arrival_s) / factor, float(sent.taken_s) / factor]
        if (until[1] - until[0]) * points[0] > GAP_PT:  # it lies there: a dotted line to a dot
            off = end[1] + (0.05 if end[1] > sent.destination else -0.05)
            (line,) = axes.plot(until, [off] * 2, ":", color=INK, lw=style["linewidth"], zorder=4)
            line.set(marker="o", markevery=[1], markersize=3.5)
    placed: list[Place] = []
    for sent in lanes.arrows if few else []:
        _label(axes, lanes, sent, points, placed)


def _ends(lanes: Lanes, sent: Sent) -> Line:
    """Where an arrow starts and where it ends, in (units of time, rows)."""
    factor, _ = lanes.unit
    side = HALF if sent.destination >= sent.source else -HALF
    start = float(sent.start_s) / factor, sent.source + side
    return start, (float(sent.arrival_s) / factor, sent.destination - side)


def _label(
    axes: "Axes", lanes: Lanes, sent: Sent, points: tuple[float, float], placed: list[Place]
) -> None:
    """Writes a message's size and tag between two lanes, if need be the first of them alone."""
    size = [size_text(sent.n_bytes)] if lanes.one_size is None else []
    words = [*size, *[f"tag {sent.tag}"] * (sent.tag > 0)]
    for word in dict.fromkeys([", ".join(words), *words[:1]]) if words else ():
        for place in _places(lanes, sent, word, points):
            inside = place[1] >= 0 and place[2] <= axes.get_xlim()[1] * points[0]
            others = [_ends(lanes, other) for other in lanes.arrows if other is not sent]
            meets = any(_meets(line, place, points) for line in others)
            if inside and not meets and _is_free(place, placed):
                placed.append(place)
                row, left, right = place
                at = (left + right) / 2 / points[0]
                text = axes.text(at, row + 0.5, word, zorder=5, ha="center", va="center_baseline")
                text.set(fontsize=LABEL_PT, bbox={"fc": "white", "ec": "none", "pad": 0.5})
                return


def _places(lanes: Lanes, sent: Sent, word: str, points: tuple[float, float]) -> Iterator[Place]:
    """Where a label could stand: on its arrow, or beside a steep one; the middle gap first."""
    half_pt = GAP_PT + len(word) * LABEL_PT * CHARACTER_WIDTH / 2
    line = _ends(lanes, sent)
    low, high = sorted((sent.source, sent.destination))
    for row in sorted(range(low, high), key=lambda row: abs(2 * row + 1 - low - high)):
        middle = _crossing(line, row + 0.5) * points[0]
        run_pt = abs(_crossing(line, row + 0.7) - _crossing(line, row + 0.3)) * points[0]
        beside_pt = half_pt + run_pt / 4
        for shift_pt in (0.0,) if run_pt > 2 * half_pt else (beside_pt, -beside_pt):
            yield row, middle + shift_pt - half_pt, middle + shift_pt + half_pt


def _meets(line: Line, place: Place, points: tuple[float, float]) -> bool:
    """Whether an arrow runs through a label's place."""
    row, left, right = place
    half_rows = 0.6 * LABEL_PT / points[1]
    if max(line[0][1], line[1][1]) < row + 0.5 or min(line[0][1], line[1][1]) > row + 0.5:
        return False
    ends = [_crossing(line, row + 0.5 + side) * points[0] for side in (-half_rows, half_rows)]
    return min(ends) < right and left < max(ends)


def _crossing(line: Line, y: float) -> float:
    """Where an arrow crosses a height."""
    (x0, y0), (x1, y1) = line
    return x0 + (x1 - x0) * (y - y0) / (y1 - y0)


def _is_free(place: Place, placed: Sequence[Place]) -> bool:
    row, left, right = place
    return all(row != other[0] or right <= other[1] or other[2] <= left for other in placed)


def _legend(axes: "Axes", handles: Sequence[Any]) -> None:
    height_in = axes.get_window_extent().height / DPI
    axes.legend(
        handles=list(handles),
        loc="upper right",
        bbox_to_anchor=(1.0, -0.24 / height_in),
        ncols=min(len(handles), 6),
        fontsize=9,
        frameon=False,
        borderaxespad=0.0,
    )
