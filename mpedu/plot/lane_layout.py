"""Where the boxes and arrows of swim lanes stand: a rank program's timeline; draws nothing itself.

A lane has up to three tracks, from the top: the rank's own work, its collectives, and its messages
on its outgoing link. So what overlaps stands above each other, and waiting is a gap.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from mpedu.plot.layout import MOST_BOXES, counted
from mpedu.simulate import Sent, Span, Timeline
from mpedu.trace import TRACKS, from_zero, track_of

MOST_LANES = 32
MOST_ARROWS = 150
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


class LaneBox(NamedTuple):
    """One box on the lane of `rank`, on one of the `TRACKS`."""

    rank: int
    track: str
    kind: str
    label: str
    start_s: float
    end_s: float


class Lanes(NamedTuple):
    """Boxes and messages in order of time, from 0 s on; those messages that have an arrow.

    n_ranks, n_messages: of the whole run, of which large ones are drawn in part. ends_s: when the
    last thing on each lane ends. tracks: those in use. notes: what is left out, a sentence each.
    """

    boxes: list[LaneBox]
    messages: list[Sent]
    arrows: list[Sent]
    n_ranks: int
    n_messages: int
    ends_s: list[float]
    tracks: list[str]
    notes: list[str]

    @property
    def n_lanes(self) -> int:
        """How many ranks are drawn."""
        return len(self.ends_s)

    @property
    def makespan_s(self) -> float:
        """Until the last box ends or the last message is taken."""
        return max(self.ends_s)

    @property
    def unit(self) -> tuple[float, str]:
        """The unit of time that suits the whole: its seconds, and its name."""
        return next((unit for unit in UNITS if self.makespan_s >= unit[0]), UNITS[-1])

    @property
    def one_size(self) -> int | None:
        """The bytes of each of several messages; None where they are of several sizes."""
        sizes = {m.n_bytes for m in self.messages}
        return sizes.pop() if len(sizes) == 1 and len(self.messages) > 1 else None

    def time(self, value_s: float) -> str:
        """A time in that unit, four digits: "33 us"."""
        factor, name = self.unit
        return f"{value_s / factor:.4g} {name}"

    @property
    def height_in(self) -> float:
        """Height of the axes that hold the lanes, in inches."""
        row_in = 0.62 if self.n_lanes <= 4 else 0.5 if self.n_lanes <= 8 else 0.3
        return self.n_lanes * (row_in + 0.12 * (len(self.tracks) - 1))


def is_rank_program(timeline: Timeline) -> bool:
    """Whether a timeline is of a rank program rather than of a schedule."""
    return bool(timeline.messages) or any(span.stage == -1 for span in timeline.spans)


def lanes_of(timeline: Timeline) -> Lanes:
    """The lanes of a timeline; ValueError when there is nothing to draw or too much."""
    _require_drawable(timeline)
    spans, n_ranks, messages = from_zero(timeline)
    n_lanes = min(n_ranks, MOST_LANES)
    messages = tuple(sorted(messages, key=lambda m: (m.start_s, m.source, m.destination)))
    shown = [m for m in messages if max(m.source, m.destination) < n_lanes]
    boxes = sorted(_boxes(spans, shown), key=lambda box: (box.start_s, box.rank))
    boxes = [box for box in boxes if box.rank < n_lanes]
    notes = []
    if n_lanes < n_ranks:
        notes.append(f"the first {n_lanes} of {n_ranks} ranks are drawn")
    every = _every(len(shown), n_ranks)
    if every > 1:
        n_arrows = counted(len(shown[::every]), "arrow")
        notes.append(f"{n_arrows} for {len(shown)} messages, one in {every}")
    tracks = [track for track in TRACKS if any(box.track == track for box in boxes)]
    arrows = shown[::every]
    ends_s = [0.0] * n_lanes
    taken = [(m.destination, float(m.taken_s)) for m in shown]
    for rank, end_s in [*((box.rank, box.end_s) for box in boxes), *taken]:
        ends_s[rank] = max(ends_s[rank], end_s)
    return Lanes(boxes, shown, arrows, n_ranks, len(messages), ends_s, tracks, notes)


def size_text(n_bytes: int) -> str:
    """Bytes in decimal units: "8 B", "1.5 kB"."""
    for factor, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.4g} {name}"
    return f"{n_bytes} B"


def _boxes(spans: list[Span], messages: list[Sent]) -> Iterator[LaneBox]:
    """The spans, and each message's time on its link where no span of its kind stands for it."""
    for rank, kind, stage, microbatch, start_s, end_s in spans:
        label = kind if stage == -1 else f"{kind}{microbatch}"
        yield LaneBox(rank, track_of(kind), kind, label, float(start_s), float(end_s))
    stand_for = {(span.rank, span.kind) for span in spans}
    for m in messages:
        if (m.source, m.kind) not in stand_for:
            yield LaneBox(m.source, "messages", m.kind, m.kind, float(m.start_s), float(m.end_s))


def _every(n_messages: int, n_ranks: int) -> int:
    """Of how many messages one is drawn; the ranks take turns in that."""
    every = -(-n_messages // MOST_ARROWS) or 1
    while every > 1 and math.gcd(every, n_ranks) > 1:
        every += 1
    return every


def _require_drawable(timeline: Timeline) -> None:
    if not isinstance(timeline, Timeline):
        kind = type(timeline).__name__
        raise ValueError(f"this is a {kind}; give a Timeline, as a run brings it back")
    spans, n_ranks, messages = timeline
    if not spans and not messages:
        raise ValueError("this timeline has no spans and no messages; there is nothing to draw")
    if len(spans) + len(messages) > MOST_BOXES:
        raise ValueError(
            f"{len(spans)} spans and {len(messages)} messages are too many for a picture, which "
            f"holds {MOST_BOXES}; draw a shorter run, or write_trace the timeline"
        )
    for span in spans:
        if not 0 <= span.rank < n_ranks:
            raise ValueError(f"{span} has no lane; the ranks are 0 to {n_ranks - 1}")
        if not -math.inf < span.start_s <= span.end_s < math.inf:
            raise ValueError(f"{span} ends before it starts, or never; give its times in order")
    for m in messages:
        if not (0 <= m.source < n_ranks and 0 <= m.destination < n_ranks):
            raise ValueError(f"{m} has no lane; the ranks are 0 to {n_ranks - 1}")
        if not -math.inf < m.start_s <= m.end_s <= m.arrival_s <= m.taken_s < math.inf:
            raise ValueError(f"{m} is taken before it is sent, or never; give its times in order")
