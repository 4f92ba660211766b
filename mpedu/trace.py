"""Timelines as Chrome traces, for chrome://tracing and https://ui.perfetto.dev.

Format: "Trace Event Format", Google, sections on complete, flow and metadata events.
"""

import json
from collections.abc import Container
from pathlib import Path
from typing import Any

from mpedu.schedule import Action
from mpedu.simulate import Seconds, Sent, Span, Timeline
from mpedu.validate import rank_word

# Names from the fixed palette that the viewers know: blue, orange, yellow, green; else grey.
COLORS = {"F": "rail_response", "B": "thread_state_iowait", "I": "startup", "W": "rail_load"}
COLORS |= {"compute": "rail_response", "send": "thread_state_iowait"}
OTHER_COLOR = "generic_work"
# What a rank has going on at once: its own work, its collectives, messages on its outgoing link.
TRACKS = ("work", "collectives", "messages")
COLLECTIVES = "all_reduce all_gather reduce_scatter all_to_all broadcast barrier split".split()
Event = dict[str, Any]


def from_zero(timeline: Timeline, busy_s: float | None = None) -> Timeline:
    """The same timeline with its first start at 0 s; ValueError without spans and messages.

    busy_s: also scaled, so that this is its busy time; a simulation on the model clock, in units of
    its own, so stands beside a measured one.
    """
    start_s = timeline.start_s
    if busy_s is not None and not timeline.busy_s:
        raise ValueError("this timeline has no work, so it cannot be scaled to a busy time")
    scale = 1.0 if busy_s is None else busy_s / float(timeline.busy_s)

    def moved(entry: Any) -> Any:
        times_s = {name: getattr(entry, name) for name in entry._fields if name.endswith("_s")}
        at_s = {name: scale * float(time_s - start_s) for name, time_s in times_s.items()}
        return entry._replace(**at_s)

    messages = tuple(map(moved, timeline.messages))
    return Timeline([moved(span) for span in timeline.spans], timeline.n_ranks, messages)


def track_of(kind: str) -> str:
    """On which of the `TRACKS` a span of this kind lies."""
    if kind in COLLECTIVES:
        return "collectives"
    return "messages" if kind in ("send", "recv") else "work"


def chrome_trace(
    timeline: Timeline,
    predicted: Timeline | None = None,
    names: tuple[str, str] = ("measured", "predicted"),
) -> dict[str, Any]:
    """A timeline in Chrome's trace event format: one process, one thread per rank, times in us.

    Of a rank program, collectives and messages have threads of their own, and an arrow leads from
    where a message is sent to where it is taken.
    predicted: as a second process below, scaled to the same busy time. Both start at 0.
    """
    events = _process(0, names[0], from_zero(timeline))
    if predicted is not None:
        scaled = from_zero(predicted, float(timeline.busy_s))
        events += _process(1, f"{names[1]}, scaled to the same busy time", scaled)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def write_trace(
    timeline: Timeline,
    path: str | Path,
    predicted: Timeline | None = None,
    names: tuple[str, str] = ("measured", "predicted"),
) -> Path:
    """The file written, JSON as of `chrome_trace`."""
    target = Path(path)
    target.write_text(json.dumps(chrome_trace(timeline, predicted, names)), encoding="utf-8")
    return target


def _process(pid: int, name: str, timeline: Timeline) -> list[Event]:
    word = rank_word((span.rank, span.stage) for span in timeline.spans)
    word = "rank" if timeline.messages else word
    tracks = _Tracks(pid, timeline.n_ranks, word)
    events = [_named("process_name", pid, 0, name)]
    for span in sorted(timeline.spans, key=lambda span: (span.rank, span.start_s)):
        tid = tracks.tid(span.rank, track_of(span.kind))
        events.append(_slice(pid, tid, span.start_s, span.end_s, _shown(span, word)))
    collectives = {(span.rank, span.kind) for span in timeline.spans if span.kind in COLLECTIVES}
    for number, sent in enumerate(timeline.messages):
        events += _message(pid, number, sent, tracks, collectives)
    return events[:1] + tracks.names() + events[1:]


class _Tracks:
    """The threads of a process: one for each rank's work, and those that it needs beside that."""

    def __init__(self, pid: int, n_ranks: int, word: str) -> None:
        self.pid, self.n_ranks, self.word = pid, n_ranks, word
        self.used = {(rank, "work") for rank in range(n_ranks)}

    def tid(self, rank: int, track: str) -> int:
        """The thread of a rank's track, which is used from now on."""
        self.used.add((rank, track))
        return rank + self.n_ranks * TRACKS.index(track)

    def names(self) -> list[Event]:
        """What the threads are called, and where other tracks are used also in which order."""
        events = []
        for rank, track in sorted(self.used):
            tid, name = self.tid(rank, track), f"{self.word} {rank}"
            name += "" if track == "work" else f" {track}"
            events.append(_named("thread_name", self.pid, tid, name))
            if len(self.used) > self.n_ranks:
                place = len(TRACKS) * rank + TRACKS.index(track)
                events.append(_named("thread_sort_index", self.pid, tid, place, "sort_index"))
        return events


def _message(
    pid: int, number: int, sent: Sent, tracks: _Tracks, collectives: Container[tuple[int, str]]
) -> list[Event]:
    """A message's time on the link, the moment it is taken, and a flow from one to the other.

    A viewer draws a flow between the events of two threads: a collective's messages lie within it.
    """
    events = []
    words = {
        "bytes": sent.n_bytes,
        "tag": sent.tag,
        "arrival_us": round(1e9 * sent.arrival_s) / 1000,
    }
    for ph, rank, peer, times_s in (
        ("s", sent.source, f"to rank {sent.destination}", (sent.start_s, sent.end_s)),
        ("f", sent.destination, f"from rank {sent.source}", (sent.taken_s, sent.taken_s)),
    ):
        tid = tracks.tid(rank, "collectives" if (rank, sent.kind) in collectives else "messages")
        shown = {"name": f"{sent.kind} {peer}", "cname": OTHER_COLOR, "args": words}
        made = _slice(pid, tid, *times_s, shown)
        flow = {"ph": ph, "pid": pid, "tid": tid, "ts": made["ts"], "name": "message"}
        flow |= {"cat": "message", "id": f"{pid}.{number}"}
        events += [made, {**flow, "bp": "e"} if ph == "f" else flow]
    return events


def _shown(span: Span, word: str) -> Event:
    """What a span's event says."""
    color = COLORS.get(span.kind, OTHER_COLOR)
    if span.stage == -1:
        return {"name": span.kind, "cname": color, "args": {}}
    action = Action(span.kind, span.stage, span.microbatch)
    name = str(action) if word == "rank" else f"{span.kind}{span.microbatch}"
    args = {"stage": span.stage, "microbatch": span.microbatch}
    return {"name": name, "cname": color, "args": args}


def _slice(pid: int, tid: int, start_s: Seconds, end_s: Seconds, shown: Event) -> Event:
    # Whole nanoseconds, so that no span seems to begin before the one before it has ended.
    start_ns, end_ns = round(1e9 * start_s), round(1e9 * end_s)
    times = {"ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000}
    return {"ph": "X", "pid": pid, "tid": tid, **shown, **times}


def _named(what: str, pid: int, tid: int, value: str | int, field: str = "name") -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {field: value}}
