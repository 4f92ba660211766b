"""Wrong answers to unit 03's `idle_share`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer


def _idle(id: str, body: str, score: int = 0, diagnosis: str = "") -> Answer:
    source = f"def idle_share(timeline):\n{indent(body.strip(), '    ')}\n"
    return Answer(id, source, {"idle_share": (score, diagnosis or id)})


_TIMES = """
start_s = min(span.start_s for span in timeline.spans)
end_s = max(span.end_s for span in timeline.spans)
makespan_s = end_s - start_s
busy_s = sum(span.end_s - span.start_s for span in timeline.spans)
by_rank = [
    sum(span.end_s - span.start_s for span in timeline.spans if span.rank == rank)
    for rank in range(timeline.n_ranks)
]
"""
SHARES = (
    _idle("busiest_device", f"{_TIMES}return 1 - max(by_rank) / makespan_s"),
    _idle(
        "inner_gaps",
        f"""{_TIMES}
gap_s = 0
for rank in range(timeline.n_ranks):
    own = [span for span in timeline.spans if span.rank == rank]
    if own:
        gap_s += max(s.end_s for s in own) - min(s.start_s for s in own) - by_rank[rank]
return gap_s / (timeline.n_ranks * makespan_s)""",
    ),
    _idle("over_busy", f"{_TIMES}return (timeline.n_ranks * makespan_s - busy_s) / busy_s"),
    _idle("late_clock", f"{_TIMES}return 1 - busy_s / (timeline.n_ranks * end_s)", 2),
    _idle("boxes", f"{_TIMES}return 1 - len(timeline.spans) / (timeline.n_ranks * makespan_s)"),
    _idle("constant", "if not timeline.spans:\n    raise ValueError\nreturn 3 / 11"),
    _idle("busy_share", f"{_TIMES}return busy_s / (timeline.n_ranks * makespan_s)"),
    _idle(
        "closed_form",
        """
n_microbatches = 1 + max(span.microbatch for span in timeline.spans)
return (timeline.n_ranks - 1) / (n_microbatches + timeline.n_ranks - 1)""",
    ),
    _idle(
        "devices_seen",
        f"""{_TIMES}
n_devices = len({{span.rank for span in timeline.spans}})
return 1 - busy_s / (n_devices * makespan_s)""",
        2,
    ),
    _idle(
        "list_order",
        f"""{_TIMES}
makespan_s = timeline.spans[-1].end_s - timeline.spans[0].start_s
return 1 - busy_s / (timeline.n_ranks * makespan_s)""",
        2,
    ),
    _idle(
        "stages_for_devices",
        f"""{_TIMES}
n_stages = 1 + max(span.stage for span in timeline.spans)
return 1 - busy_s / (n_stages * makespan_s)""",
        2,
        "differs",
    ),
    _idle("rounded", f"{_TIMES}return round(1 - busy_s / (timeline.n_ranks * makespan_s), 4)"),
    _idle("percent", f"{_TIMES}return 100 * (1 - busy_s / (timeline.n_ranks * makespan_s))"),
    _idle("idle_seconds", f"{_TIMES}return timeline.n_ranks * makespan_s - busy_s", 0, "differs"),
    _idle("least_busy_device", f"{_TIMES}return 1 - min(by_rank) / makespan_s", 0, "differs"),
    _idle("nothing_returned", f"{_TIMES}print(1 - busy_s / makespan_s)", 0, "no_number"),
    _idle("true_returned", f"{_TIMES}return busy_s < makespan_s", 0, "no_number"),
    _idle("not_a_number", f"{_TIMES}return float('nan')", 0, "no_number"),
    _idle(
        "last_end_above_zero",
        f"""{_TIMES}
return 1 - busy_s / (timeline.n_ranks * (max(0.0, end_s) - start_s))""",
        2,
        "differs",
    ),
    _idle(
        "nothing_is_no_error",
        f"""
if not timeline.spans:
    return 0.0
{_TIMES}
return 1 - busy_s / (timeline.n_ranks * makespan_s)""",
        2,
        "no_error",
    ),
    _idle(
        "end_of_the_last_to_start",
        f"""{_TIMES}
end_s = max(timeline.spans, key=lambda span: span.start_s).end_s
return 1 - busy_s / (timeline.n_ranks * (end_s - start_s))""",
        2,
        "differs",
    ),
    _idle(
        "start_of_the_first_to_end",
        f"""{_TIMES}
start_s = min(timeline.spans, key=lambda span: span.end_s).start_s
return 1 - busy_s / (timeline.n_ranks * (end_s - start_s))""",
        2,
        "differs",
    ),
    _idle(
        "start_of_the_first_listed_device",
        f"""{_TIMES}
first = timeline.spans[0].rank
start_s = min(span.start_s for span in timeline.spans if span.rank == first)
return 1 - busy_s / (timeline.n_ranks * (end_s - start_s))""",
        2,
        "differs",
    ),
    _idle(
        "clock_below_a_million",
        f"""{_TIMES}
start_s = min(1_000_000, start_s)
return 1 - busy_s / (timeline.n_ranks * (end_s - start_s))""",
        2,
        "differs",
    ),
    _idle("spans_changed", f"timeline.spans.clear()\n{_TIMES}return busy_s", 0, "raised"),
)
