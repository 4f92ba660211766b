"""Timelines as Chrome traces, for chrome://tracing and https://ui.perfetto.dev."""

import json
from pathlib import Path
from typing import Any

from mpedu.schedule import Action
from mpedu.simulate import Timeline
from mpedu.validate import rank_word

# Names from the fixed palette that the viewers know: blue, orange, yellow, green; else grey.
COLORS = {"F": "rail_response", "B": "thread_state_iowait", "I": "startup", "W": "rail_load"}
OTHER_COLOR = "generic_work"
Event = dict[str, Any]


def from_zero(timeline: Timeline, busy_s: float | None = None) -> Timeline:
    """The same timeline with its first span at 0 s; ValueError without spans.

    busy_s: also scaled, so that this is its busy time; a simulation on the model clock, in units of
    its own, so stands beside a measured one.
    """
    start_s = timeline.start_s
    scale = 1.0 if busy_s is None else busy_s / float(timeline.busy_s)
    spans = [
        span._replace(
            start_s=scale * float(span.start_s - start_s), end_s=scale * float(span.end_s - start_s)
        )
        for span in timeline.spans
    ]
    return Timeline(spans, timeline.n_ranks)


def chrome_trace(
    timeline: Timeline,
    predicted: Timeline | None = None,
    names: tuple[str, str] = ("measured", "predicted"),
) -> dict[str, Any]:
    """A timeline in Chrome's trace event format: one process, one thread per rank, times in us.

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
    events = [_named("process_name", pid, 0, name)]
    for rank in range(timeline.n_ranks):
        events.append(_named("thread_name", pid, rank, f"{word} {rank}"))
    for span in sorted(timeline.spans, key=lambda span: (span.rank, span.start_s)):
        action = Action(span.kind, span.stage, span.microbatch)
        # Whole nanoseconds, so that no span seems to begin before the one before it has ended.
        start_ns, end_ns = round(1e9 * span.start_s), round(1e9 * span.end_s)
        events.append(
            {
                "ph": "X",
                "pid": pid,
                "tid": span.rank,
                "name": str(action) if word == "rank" else f"{span.kind}{span.microbatch}",
                "cname": COLORS.get(span.kind, OTHER_COLOR),
                "ts": start_ns / 1000,
                "dur": (end_ns - start_ns) / 1000,
                "args": {"stage": span.stage, "microbatch": span.microbatch},
            }
        )
    return events


def _named(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}
