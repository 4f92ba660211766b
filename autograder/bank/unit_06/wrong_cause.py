"""Wrong answers to unit 06's `timeline_cause`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_PLACES = """
if any(s.stage % n != s.rank for s in spans):
    return "contiguous_chunks"
"""
_COUNTS = """
if sum(s.kind == "W" for s in spans) < sum(s.kind == "I" for s in spans):
    return "weights_lost"
"""
_LENGTHS = """
if len({(s.kind, s.end_s - s.start_s) for s in spans}) > 3:
    return "slow_rank"
"""
_MESSAGES = """
ends = {(s.stage, s.microbatch): s.end_s for s in spans if s.kind == "F"}
starts = [s for s in spans if s.kind == "F" and s.stage > 0]
if min(s.start_s - ends[s.stage - 1, s.microbatch] for s in starts) > 0:
    return "slow_link"
"""
_ORDER = """
def times(rank, kind):
    return [s.start_s for s in spans if (s.rank, s.kind) == (rank, kind)]
if all(min(times(r, "W")) > max(times(r, "I")) for r in range(n)):
    return "weights_last"
"""
_RULES = (_PLACES, _COUNTS, _LENGTHS, _MESSAGES, _ORDER)


def _cause(
    id: str, score: int, diagnosis: str, *rules: str, otherwise: str = '"none"', first: str = ""
) -> Answer:
    head = f"n, spans = timeline.n_ranks, timeline.spans\n{first}"
    body = "\n".join(part.strip() for part in (head, *rules, f"return {otherwise}"))
    source = f"def timeline_cause(timeline):\n{indent(body, '    ')}\n"
    return Answer(f"cause_{id}", source, {"timeline_cause": (score, diagnosis)})


def _without(rule: str) -> tuple[str, ...]:
    return tuple(one for one in _RULES if one is not rule)


WRONG_CAUSES = (
    _cause("one_name", 0, "one_name"),
    _cause("placement_ignored", 2, "placement_ignored", *_without(_PLACES)),
    _cause("counts_ignored", 2, "counts_ignored", *_without(_COUNTS)),
    _cause("lengths_ignored", 2, "lengths_ignored", *_without(_LENGTHS)),
    _cause("messages_ignored", 2, "messages_ignored", *_without(_MESSAGES)),
    _cause("order_ignored", 2, "order_ignored", *_without(_ORDER)),
    _cause(
        "healthy_missed",
        2,
        "healthy_missed",
        *_without(_LENGTHS),
        otherwise='"slow_rank"',
    ),
    _cause(
        "late_on_one_rank",
        2,
        "healthy_missed",
        *_without(_ORDER),
        _ORDER.replace("all(", "any(").replace('max(times(r, "I"))', 'sorted(times(r, "I"))[1]'),
    ),
    _cause(
        "last_on_any_rank",
        2,
        "order_evidence",
        *_without(_ORDER),
        _ORDER.replace("all(", "any("),
    ),
    _cause(
        "lengths_of_all_kinds",
        1,
        "message_evidence",
        _PLACES,
        _COUNTS,
        _LENGTHS.replace("(s.kind, s.end_s - s.start_s)", "s.end_s - s.start_s").replace(
            "> 3", "> 1"
        ),
        _MESSAGES,
        _ORDER,
    ),
    _cause(
        "first_rank_alone",
        1,
        "count_evidence",
        *(rule.replace("in spans", "in own") for rule in (_COUNTS, _LENGTHS)),
        _PLACES,
        _MESSAGES,
        _ORDER,
        first="own = [s for s in spans if s.rank == 0]",
    ),
    _cause(
        "any_gap_is_a_slow_link",
        2,
        "message_evidence",
        *_without(_MESSAGES),
        _MESSAGES.replace("min(s.start_s", "max(s.start_s"),
    ),
    Answer(
        "cause_no_such_name",
        "def timeline_cause(timeline):\n    return 'bubble'\n",
        {"timeline_cause": (0, "unknown_name")},
    ),
    Answer(
        "cause_nothing_returned",
        "def timeline_cause(timeline):\n    print('none')\n",
        {"timeline_cause": (0, "no_name")},
    ),
)
