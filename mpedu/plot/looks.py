"""How the boxes of a figure look: colour never stands alone (Okabe and Ito's palette)."""

from collections.abc import Sequence
from typing import NamedTuple

from mpedu.plot.layout import Box
from mpedu.plot.text import seconds

BLUE, ORANGE, GREEN, YELLOW = "#0072B2", "#E69F00", "#009E73", "#F0E442"
RED, IDLE, INK = "#C00000", "#F0F0F0", "#404040"
SMALLEST_PT, LARGEST_PT = 5.5, 11.0
CHARACTER_WIDTH = 0.65


class Look(NamedTuple):
    """How one sort of box is drawn, and its name in the legend."""

    name: str
    face: str
    edge: str
    ink: str
    hatch: str = ""
    line: str = "-"


LOOKS = {
    "F": Look("forward", BLUE, "#00456C", "white"),
    "B": Look("backward", ORANGE, "#B57D00", "black", "//"),
    "I": Look("backward for inputs", YELLOW, "#B3A800", "black", "//"),
    "W": Look("backward for weights", GREEN, "#00664B", "black", "\\\\"),
    "idle": Look("idle", IDLE, "#B8B8B8", INK),
    "idle shaded": Look("idle", IDLE, "#B8B8B8", "black", ".."),
    "ramp-up": Look("ramp-up", IDLE, "#C4C4C4", "black", ".."),
    "turn": Look("turn", IDLE, "#CCCCCC", "black", "xx"),
    "drain": Look("drain", IDLE, "#CCCCCC", "black", "--"),
    "waits": Look("never reached", "white", "#707070", INK),
    "no action": Look("no action", "white", "#707070", INK),
    "missing": Look("missing", "white", "#707070", INK, line="--"),
    "blank": Look("still to fill in", "#FFF3B0", "black", "black", line="--"),
    "fault": Look("first fault", RED, "#800000", "white"),
    "fault missing": Look("first fault", "white", RED, RED, line="--"),
}


def look_of(box: Box, fault_box: Box | None = None) -> str:
    """The name in `LOOKS` of a box's look."""
    if box is fault_box:
        return "fault missing" if box.state == "missing" else "fault"
    return box.action.kind if box.state == "ran" and box.action else box.state


def corners(box: Box) -> list[tuple[float, float]]:
    """The corners of a box in (seconds, rows); a box is as high as its row."""
    top, bottom = box.row - 0.5, box.row + 0.5
    return [(box.start_s, top), (box.end_s, top), (box.end_s, bottom), (box.start_s, bottom)]


def number_in(box: Box, look: str) -> str:
    """What stands in a box: the micro-batch alone where colour and hatch say the kind."""
    if box.state == "idle":
        return seconds(box.end_s - box.start_s)
    return box.label.lstrip("FBIW") if look in "FBIW" else box.label


def number_sizes_pt(boxes: Sequence[Box], looks: Sequence[str], points_per_s: float) -> list[float]:
    """The font size that each box has room for, in points; below `SMALLEST_PT` write nothing."""
    words = [number_in(box, look) for box, look in zip(boxes, looks, strict=True)]
    # One size for boxes of one width, whether their number has one digit or two.
    longest = max((len(w) for w, box in zip(words, boxes, strict=True) if box.action), default=1)
    sizes = []
    for box, word in zip(boxes, words, strict=True):
        room_pt = (box.end_s - box.start_s) * points_per_s - (2 if box.state == "ran" else 4)
        n_characters = longest if box.action else max(len(word), 1)
        sizes.append(min(LARGEST_PT, room_pt / n_characters / CHARACTER_WIDTH))
    return sizes
