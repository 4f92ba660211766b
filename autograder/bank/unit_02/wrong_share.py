"""Wrong answers to unit 02's `utilisation`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer


def _share(id: str, body: str, score: int = 0, diagnosis: str = "") -> Answer:
    source = f"def utilisation(timeline):\n{indent(body.strip(), '    ')}\n"
    return Answer(f"share_{id}", source, {"utilisation": (score, diagnosis or id)})


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
    _share("idle_for_busy", f"{_TIMES}return 1 - busy_s / (timeline.n_ranks * makespan_s)"),
    _share("busy_devices", f"{_TIMES}return busy_s / makespan_s"),
    _share("busiest_device", f"{_TIMES}return max(by_rank) / makespan_s"),
    _share(
        "own_windows",
        f"""{_TIMES}
shares = []
for rank in range(timeline.n_ranks):
    own = [span for span in timeline.spans if span.rank == rank]
    if own:
        window_s = max(s.end_s for s in own) - min(s.start_s for s in own)
        shares.append(by_rank[rank] / window_s)
return sum(shares) / timeline.n_ranks""",
    ),
    _share("boxes", f"{_TIMES}return len(timeline.spans) / (timeline.n_ranks * makespan_s)"),
    _share("one_over_n", f"{_TIMES}return 1 / timeline.n_ranks"),
    _share("constant", "if not timeline.spans:\n    raise ValueError\nreturn 0.25"),
    _share("rounded", f"{_TIMES}return round(busy_s / (timeline.n_ranks * makespan_s), 3)"),
    _share("percent", f"{_TIMES}return 100 * busy_s / (timeline.n_ranks * makespan_s)"),
    _share("late_clock", f"{_TIMES}return busy_s / (timeline.n_ranks * end_s)", 2),
    _share(
        "devices_seen",
        f"{_TIMES}return busy_s / (len({{s.rank for s in timeline.spans}}) * makespan_s)",
        2,
    ),
    _share(
        "list_order",
        f"""{_TIMES}
makespan_s = timeline.spans[-1].end_s - timeline.spans[0].start_s
return busy_s / (timeline.n_ranks * makespan_s)""",
        2,
    ),
    _share("busy_over_idle",
           f"{_TIMES}return busy_s / max(1, timeline.n_ranks * makespan_s - busy_s)", 0, "differs"),
    _share("seconds", f"{_TIMES}return busy_s", 0, "differs"),
    _share(
        "stages_for_devices",
        f"{_TIMES}return busy_s / (makespan_s * (1 + max(s.stage for s in timeline.spans)))",
        2,
        "differs",
    ),
    _share("nothing_returned", f"{_TIMES}print(busy_s / makespan_s)", 0, "no_number"),
    _share(
        "nothing_is_zero",
        f"if not timeline.spans:\n    return 0.0\n{_TIMES}"
        "return busy_s / (timeline.n_ranks * makespan_s)",
        2,
        "no_error",
    ),
    _share(
        "nothing_is_another_error",
        f"span = timeline.spans[0]\n{_TIMES}return busy_s / (timeline.n_ranks * makespan_s)",
        2,
        "wrong_error",
    ),
)  # fmt: skip
