"""Wrong answers to unit 00's `blame`, one mistake an entry."""

from textwrap import dedent, indent

from autograder.bank import Answer


def _blame(id: str, source: str, score: int, diagnosis: str = "") -> Answer:
    return Answer(id, dedent(source).strip() + "\n", {"blame": (score, diagnosis or id)})


def _changed(id: str, score: int, diagnosis: str = "", **parts: str) -> Answer:
    """The right answer with some of its parts in another way."""
    used = {name: parts.get(name, right) for name, right in _PARTS.items()}
    return _blame(
        id, _RIGHT.format(**{k: indent(v, "    ") for k, v in used.items()}), score, diagnosis
    )


_RIGHT = """
def blame(waits):
    waiting = [rank for rank, wait in enumerate(waits) if wait]
    if not waiting:
        return "none", []
    way = [waiting[0]]
    while waits[way[-1]] and waits[way[-1]][1] not in way:
        way.append(waits[way[-1]][1])
    last = way[-1]
{ended}
    circle = way[way.index(waits[last][1]) :]
{circle}
"""
_PARTS = {
    "ended": """if waits[last] is None:
    waiter = way[-2]
    cause = "never_sent" if waits[waiter][0] == "recv" else "never_taken"
    return cause, [waiter, last]""",
    "circle": """start = circle.index(min(circle))
return "cycle", circle[start:] + circle[:start]""",
}

BLAMES = (
    _changed(
        "always_cycle",
        2,
        ended='if waits[last] is None:\n    return "cycle", [way[-2], last]',
    ),
    _changed(
        "swapped_calls",
        2,
        ended=_PARTS["ended"].replace('"recv"', '"send"'),
    ),
    _changed(
        "first_waiting",
        2,
        ended=_PARTS["ended"].replace("waits[waiter][0]", "waits[way[0]][0]"),
    ),
    _blame(
        "only_pairs",
        """
        def blame(waits):
            waiting = [rank for rank, wait in enumerate(waits) if wait]
            for rank in waiting:
                call, peer = waits[rank]
                if waits[peer] is None:
                    return ("never_sent" if call == "recv" else "never_taken"), [rank, peer]
                if waits[peer][1] == rank:
                    return "cycle", [rank, peer]
            return "none", []
        """,
        0,
    ),
    _changed(
        "everyone_who_waits",
        3,
        circle='return "cycle", waiting',
        ended=_PARTS["ended"].replace("[waiter, last]", "waiting"),
    ),
    _changed(
        "victims_too",
        3,
        circle='return "cycle", way',
        ended=_PARTS["ended"].replace("[waiter, last]", "way"),
    ),
    _changed(
        "order_of_number",
        3,
        circle='return "cycle", sorted(circle)',
        ended=_PARTS["ended"].replace("[waiter, last]", "sorted([waiter, last])"),
    ),
    _changed(
        "turned_round",
        3,
        circle=_PARTS["circle"].replace(
            "circle[start:] + circle[:start]",
            "[circle[start], *(circle[start + 1 :] + circle[:start])[::-1]]",
        ),
    ),
    _changed("where_met", 3, circle='return "cycle", circle'),
    _changed(
        "only_finished",
        3,
        ended=_PARTS["ended"].replace("[waiter, last]", "[last]"),
    ),
    _changed(
        "finished_first",
        3,
        "differs",
        ended=_PARTS["ended"].replace("[waiter, last]", "[last, waiter]"),
    ),
    _changed(
        "largest_first",
        3,
        "differs",
        circle=_PARTS["circle"].replace("min(", "max("),
    ),
    _changed(
        "words_of_its_own",
        0,
        "unknown_name",
        circle='return "deadlock", circle',
        ended='if waits[last] is None:\n    return "finished", [way[-2], last]',
    ),
    _changed(
        "cause_alone",
        0,
        "no_pair",
        circle='return "cycle"',
        ended=_PARTS["ended"].replace(", [waiter, last]", ""),
    ),
    _blame(
        "begins_at_rank_0",
        _RIGHT.format(
            ended=indent(_PARTS["ended"], "    "), circle=indent(_PARTS["circle"], "    ")
        ).replace("waiting[0]", "0"),
        0,
        "raised",
    ),
    _blame(
        "goes_round_for_ever",
        """
        def blame(waits):
            waiting = [rank for rank, wait in enumerate(waits) if wait]
            if not waiting:
                return "none", []
            ranks = [waiting[0]]
            while waits[ranks[-1]] and waits[ranks[-1]][1] != ranks[0]:
                ranks = [ranks[0], waits[ranks[-1]][1]]
            return "cycle", ranks
        """,
        0,
        "timeout",
    ),
)
