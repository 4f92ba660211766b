"""A deadlock as a picture: the ranks in a circle, an arrow from each to those it waits for."""

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mpedu.plot.lane_layout import Lanes, lanes_of
from mpedu.plot.lane_text import lanes_text
from mpedu.plot.lanes import fill_lanes
from mpedu.plot.layout import counted
from mpedu.plot.looks import INK, RED
from mpedu.plot.pictures import (
    LEFT_IN,
    RIGHT_IN,
    WIDTH_IN,
    Picture,
    finish,
    footnote_under,
    in_own_style,
    new_figure,
)
from mpedu.ranks.board import Waiting
from mpedu.ranks.deadlock import blockers, circle
from mpedu.ranks.outcome import RankError
from mpedu.simulate import Timeline

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

MOST_TOLD = 8  # ranks that stand in the circle with what they wait in
MOST_DRAWN = 32
HEIGHTS_IN = ((2, 1.2), (4, 2.1), (16, 3.4), (MOST_DRAWN, 6.0))  # up to so many ranks
WRAP_COLUMNS = 26
MOST_TITLE = 230  # characters, three lines
SPARE_IN = 0.45  # below axes for ticks, which a circle does not have


class Waits(NamedTuple):
    """Who waits for whom: `chain` in red, its last rank the first again or one that has ended.

    told: what each rank does, by rank.
    """

    arrows: list[tuple[int, int]]
    chain: list[int]
    told: dict[int, str]

    @property
    def red(self) -> set[tuple[int, int]]:
        """The arrows along the chain."""
        return set(pairwise(self.chain))


@in_own_style
def draw_deadlock(
    failed: RankError | Sequence[Waiting],
    timeline: Timeline | None = None,
    title: str = "",
    n_columns: int = 72,
) -> Picture:
    """Who waits for whom, the circle in red; below it what ran before, where that is known.

    failed: the error, or its `waiting`. timeline: default that of the error.
    ValueError where nobody waits.
    """
    waiting = failed.waiting if isinstance(failed, RankError) else failed
    if not waiting:
        raise ValueError("no rank waits in this, so there is no deadlock to draw; print it instead")
    words = str(failed) if isinstance(failed, RankError) else ""
    timeline = timeline or (failed.timeline if isinstance(failed, RankError) else None)
    waits = waits_of(waiting, words)
    title = title or (words.split("\n")[0].rstrip(":") if words else _heading(waits))
    text = f"{title}\n{waits_text(waits)}"
    title = textwrap.shorten(title, MOST_TITLE, placeholder=" ...")
    shown, note = _shown(waits)
    if not shown:
        return Picture(b"", title, text)
    lanes = _lanes_until_stuck(timeline, waiting)
    height_in = next(h for most, h in HEIGHTS_IN if len(shown) <= most)
    height_in = max(height_in, lanes.height_in + SPARE_IN if lanes else 0.0)
    figure, panels = new_figure(title, height_in - SPARE_IN, 2 if lanes else 1, 1, bool(note))
    _draw_circle(panels[0], waits, shown, height_in)
    alt = f"{title}. Ranks in a circle, arrows to whom they wait for; in red: {_red_text(waits)}."
    if lanes:
        fill_lanes(panels[1], lanes)
        panels[1].set_title("what ran before", loc="left", fontsize=10)
        text += f"\nwhat ran before\n{lanes_text(lanes, n_columns)}"
        alt += f" Below, what ran before, until {lanes.time(lanes.makespan_s)}."
    if note:
        footnote_under(figure, note)
    return finish(figure, alt, text)


def _lanes_until_stuck(timeline: Timeline | None, waiting: Sequence[Waiting]) -> Lanes | None:
    """What ran before; who waits still does at the end of it. None where nothing is known."""
    if not timeline or not (timeline.spans or timeline.messages):
        return None
    lanes = lanes_of(timeline)
    waits = {w.rank for w in waiting}
    ends_s = [lanes.makespan_s if r in waits else end_s for r, end_s in enumerate(lanes.ends_s)]
    return lanes._replace(ends_s=ends_s)


def waits_of(waiting: Sequence[Waiting], words: str = "") -> Waits:
    """Who waits for whom; words: a report, which tells the ranks that have finished."""
    told = {w.rank: w.text for w in waiting}
    arrows = [(rank, peer) for rank, peers in blockers(waiting).items() for peer in peers]
    ended = {int(rank) for rank in re.findall(r"rank (\d+) has finished", words)}
    for peer in sorted({peer for _, peer in arrows} - set(told)):
        told[peer] = "has finished" if peer in ended else "does not wait"
    return Waits(arrows, circle(waiting, ended), told)


def waits_text(waits: Waits) -> str:
    """One line for each rank, ">" before those of the circle."""
    lines = []
    for rank, text in sorted(waits.told.items()):
        peers = [peer for source, peer in waits.arrows if source == rank]
        mark = ">" if rank in waits.chain else " "
        waits_for = f", waits for rank{'s' * (len(peers) > 1)} {', '.join(map(str, peers))}"
        lines.append(f"{mark} rank {rank}: {text}{waits_for if peers else ''}")
    return "\n".join([*lines, f"in red, marked >: {_red_text(waits)}"])


def _red_text(waits: Waits) -> str:
    return " -> ".join(f"rank {rank}" for rank in waits.chain) or "nothing"


def _heading(waits: Waits) -> str:
    pairs = [f"rank {one} waits for rank {other}" for one, other in pairwise(waits.chain)]
    return f"deadlock: {', '.join(pairs)}" if pairs else f"{counted(len(waits.told), 'rank')} wait"


def _shown(waits: Waits) -> tuple[list[int], str]:
    """The ranks that are drawn, those of the chain first and in its order; what is left out."""
    chain = list(dict.fromkeys(waits.chain))
    shown = [*chain, *sorted(set(waits.told) - set(chain))]
    if len(shown) <= MOST_TOLD:
        return shown, ""
    if 0 < len(chain) <= MOST_TOLD:
        return chain, f"{counted(len(shown) - len(chain), 'more rank')} not drawn; the text has all"
    if len(shown) <= MOST_DRAWN:
        return shown, "what each rank waits in is told in the text form"
    return [], ""


def _draw_circle(axes: "Axes", waits: Waits, shown: list[int], height_in: float) -> None:
    width_in = WIDTH_IN - LEFT_IN - RIGHT_IN
    axes.set(xlim=(-width_in / 2, width_in / 2), ylim=(SPARE_IN - height_in / 2, height_in / 2))
    axes.set(xticks=[], yticks=[])
    axes.set_axis_off()
    names = {}
    for rank, (x, y) in zip(shown, _places(len(shown), height_in), strict=True):
        is_red = rank in waits.chain
        name = axes.text(x, y, _words(waits, rank, len(shown)), ha="center", va="center", zorder=3)
        box = {"boxstyle": "round", "fc": "white", "ec": RED if is_red else INK, "lw": 1.5}
        name.set(fontsize=9, bbox=box)
        names[rank] = name
    for source, peer in sorted(set(waits.arrows), key=lambda arrow: arrow in waits.red):
        if source in names and peer in names:
            _draw_wait(axes, names[source], names[peer], (source, peer) in waits.red)


def _places(n: int, height_in: float) -> list[tuple[float, float]]:
    """Places around an ellipse, clockwise from the top; of two, left and right."""
    start = math.pi if n <= 2 else math.pi / 2
    angles = [start - 2 * math.pi * i / n for i in range(n)]
    return [(2.9 * math.cos(a), (height_in / 2 - 0.35) * math.sin(a)) for a in angles]


def _words(waits: Waits, rank: int, n_shown: int) -> str:
    if n_shown > MOST_TOLD:
        return str(rank)
    lines = textwrap.wrap(waits.told[rank], WRAP_COLUMNS, max_lines=2, placeholder=" ...")
    return "\n".join([f"rank {rank}", *lines])


def _draw_wait(axes: "Axes", source: Any, peer: Any, is_red: bool) -> None:
    """An arrow between two names, bent so that one and its answer lie apart.

    It is drawn after the names, whose edges it ends at.
    """
    style: dict[str, Any] = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.18"}
    style |= {"mutation_scale": 16 if is_red else 12, "linewidth": 2.5 if is_red else 1.0}
    style |= {"color": RED if is_red else INK, "shrinkA": 2, "shrinkB": 2}
    style |= {"patchA": source.get_bbox_patch(), "patchB": peer.get_bbox_patch()}
    ends = peer.get_position(), source.get_position()
    axes.annotate("", *ends, arrowprops=style, annotation_clip=False, zorder=4)
