"""Wrong answers to unit 02's `naive`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = 'raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}")'
_PAIRS = "[Action(kind, {stage}, {m}) for m in range({count}) for kind in 'FB']"


def _naive(id: str, body: str, legal: tuple[int, str], busy: tuple[int, str]) -> Answer:
    """`naive` with the counts refused, then `body`."""
    source = (
        "from mpedu.schedule import Action\n\n\ndef naive(n_stages, n_microbatches):\n"
        f"    if n_stages < 1 or n_microbatches < 1:\n        {_REFUSE}\n"
        f"{indent(body.strip(), '    ')}\n"
    )
    return Answer(f"naive_{id}", source, {"naive": legal, "naive_busy": busy})


def _illegal(id: str, body: str, diagnosis: str = "") -> Answer:
    return _naive(id, body, (0, diagnosis or id), (0, "illegal"))


def _lists(stage: str = "stage", m: str = "m", count: str = "n_microbatches") -> str:
    pairs = _PAIRS.format(stage=stage, m=m, count=count)
    return f"return [{pairs} for stage in range(n_stages)]"


def _refusing(id: str, guard: str, diagnosis: str) -> Answer:
    """A right schedule behind a guard of its own."""
    source = f"""from mpedu.schedule import Action


def naive(n_stages, n_microbatches):
{indent(guard.strip(), "    ")}
    {_lists()}
"""
    return Answer(f"naive_{id}", source, {"naive": (2, diagnosis), "naive_busy": (2, "")})


SCHEDULES = (
    _illegal("no_work", "return [[] for _ in range(n_stages)]"),
    _illegal("one_microbatch", _lists(m="0", count="1")),
    _illegal("off_by_one", _lists(m="m + 1")),
    _illegal("stage_shifted", _lists(stage="stage + 1")),
    _illegal(
        "fields_swapped",
        """
return [
    [Action(kind, m, stage) for m in range(n_microbatches) for kind in "FB"]
    for stage in range(n_stages)
]""",
    ),
    _illegal(
        "arguments_swapped",
        """
return [
    [Action(kind, stage, m) for m in range(n_stages) for kind in "FB"]
    for stage in range(n_microbatches)
]""",
    ),
    _illegal(
        "shared_list",
        """
schedule = [[]] * n_stages
for stage in range(n_stages):
    for m in range(n_microbatches):
        schedule[stage] += [Action("F", stage, m), Action("B", stage, m)]
return schedule""",
    ),
    _naive(
        "all_forwards_first",
        """
return [
    [Action(kind, stage, m) for kind in "FB" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
        (3, ""),
        (0, "all_forwards_first"),
    ),
    Answer(
        "naive_forwards_first_and_nothing_refused",
        """from mpedu.schedule import Action


def naive(n_stages, n_microbatches):
    pieces = range(n_microbatches)
    return [[Action(kind, s, m) for kind in "FB" for m in pieces] for s in range(n_stages)]
""",
        {"naive": (2, "no_error"), "naive_busy": (0, "all_forwards_first")},
    ),
    _illegal(
        "stages_reversed",
        _lists().replace("in range(n_stages)", "in reversed(range(n_stages))"),
        "wrong_stage",
    ),
    _naive(
        "one_f_one_b",
        """
schedule = []
for stage in range(n_stages):
    ahead = min(n_microbatches, n_stages - stage)
    actions = [Action("F", stage, m) for m in range(ahead)]
    for m in range(n_microbatches):
        actions.append(Action("B", stage, m))
        if m + ahead < n_microbatches:
            actions.append(Action("F", stage, m + ahead))
    schedule.append(actions)
return schedule""",
        (3, ""),
        (0, "overlaps"),
    ),
    _naive(
        "all_at_once_on_one_stage",
        f"""
if n_stages == 1:
    pieces = range(n_microbatches)
    return [[Action(kind, 0, m) for kind in "FB" for m in pieces]]
{_lists()}""",
        (3, ""),
        (1, "holds_more"),
    ),
    _illegal(
        "backward_first",
        """
return [
    [Action(kind, stage, m) for m in range(n_microbatches) for kind in "BF"]
    for stage in range(n_stages)
]""",
        "before_forward",
    ),
    _illegal(
        "last_stage_turns_round",
        """
schedule = []
for stage in range(n_stages):
    pieces = list(range(n_microbatches))
    if stage == n_stages - 1:
        pieces.reverse()
    schedule.append([Action(kind, stage, m) for m in pieces for kind in "FB"])
return schedule""",
        "activation_order",
    ),
    _illegal("forwards_only", _lists().replace("'FB'", "'F'"), "missing"),
    _illegal(
        "one_flat_list",
        """
return [
    Action(kind, stage, m)
    for m in range(n_microbatches) for kind in "FB" for stage in range(n_stages)
]""",
        "n_lists",
    ),
    _illegal("strings", _lists().replace("Action(kind, stage, m)", "f'{stage}{kind}{m}'"),
             "not_a_schedule"),
    _illegal("nothing_returned", _lists().replace("return", "schedule ="), "not_a_schedule"),
    _refusing("nothing_refused", "", "no_error"),
    _refusing(
        "stages_alone_refused",
        'if n_stages < 1:\n    raise ValueError(f"n_stages={n_stages}")',
        "no_error",
    ),
    _refusing(
        "value_not_named",
        'if n_stages < 1 or n_microbatches < 1:\n    raise ValueError("too small")',
        "wrong_error",
    ),
    _refusing(
        "asserted",
        "assert n_stages >= 1 and n_microbatches >= 1, (n_stages, n_microbatches)",
        "wrong_error",
    ),
)  # fmt: skip
