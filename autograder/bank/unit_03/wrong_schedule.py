"""Wrong schedules of unit 03, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = 'raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}")'


def _gpipe(id: str, body: str, legal: tuple[int, str], fast: tuple[int, str]) -> Answer:
    """`gpipe` with the counts refused, then `body`."""
    source = (
        "from mpedu.schedule import Action\n\n\ndef gpipe(n_stages, n_microbatches):\n"
        f"    if n_stages < 1 or n_microbatches < 1:\n        {_REFUSE}\n"
        f"{indent(body.strip(), '    ')}\n"
    )
    return Answer(id, source, {"gpipe": legal, "gpipe_fast": fast})


def _illegal(id: str, body: str, diagnosis: str = "") -> Answer:
    return _gpipe(id, body, (0, diagnosis or id), (0, "illegal"))


def _refusing(id: str, guard: str, diagnosis: str) -> Answer:
    """A right schedule behind a guard of its own."""
    source = f"""from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
{indent(guard.strip(), "    ")}
    pieces = range(n_microbatches)
    return [[Action(kind, s, m) for kind in "FB" for m in pieces] for s in range(n_stages)]
"""
    return Answer(id, source, {"gpipe": (2, diagnosis), "gpipe_fast": (2, "")})


SCHEDULES = (
    _illegal("no_work", "return [[] for _ in range(n_stages)]"),
    _illegal("a_list_for_each_action", "return [[] for _ in range(n_stages + 3)]", "n_lists"),
    _illegal(
        "one_microbatch",
        "return [[Action(kind, stage, 0) for kind in 'FB'] for stage in range(n_stages)]",
    ),
    _gpipe(
        "naive_order",
        """
return [
    [Action(kind, stage, m) for m in range(n_microbatches) for kind in "FB"]
    for stage in range(n_stages)
]""",
        (2, "naive_order"),
        (0, "slow"),
    ),
    _illegal(
        "off_by_one",
        """
return [
    [Action(kind, stage, m) for kind in "FB" for m in range(1, n_microbatches + 1)]
    for stage in range(n_stages)
]""",
    ),
    _illegal(
        "gradient_order",
        """
schedule = []
for stage in range(n_stages):
    order = list(range(n_microbatches))
    forwards = [Action("F", stage, m) for m in order]
    if stage % 2:
        order.reverse()
    schedule.append(forwards + [Action("B", stage, m) for m in order])
return schedule""",
    ),
    _illegal(
        "activation_order",
        """
schedule = []
for stage in range(n_stages):
    order = sorted(range(n_microbatches), reverse=stage % 2 == 1)
    backwards = [Action("B", stage, m) for m in range(n_microbatches)]
    schedule.append([Action("F", stage, m) for m in order] + backwards)
return schedule""",
    ),
    _illegal(
        "stage_shifted",
        """
return [
    [Action(kind, stage - 1, m) for kind in "FB" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
    ),
    _illegal(
        "arguments_swapped",
        """
return [
    [Action(kind, stage, m) for kind in "FB" for m in range(n_stages)]
    for stage in range(n_microbatches)
]""",
    ),
    _illegal(
        "shared_list",
        """
schedule = [[]] * n_stages
for stage in range(n_stages):
    for kind in "FB":
        for m in range(n_microbatches):
            schedule[stage].append(Action(kind, stage, m))
return schedule""",
    ),
    _illegal(
        "fields_swapped",
        """
return [
    [Action(kind, m, stage) for kind in "FB" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
    ),
    _gpipe(
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
        (2, "late_forward"),
        (2, ""),
    ),
    _illegal(
        "stages_that_wait_for_each_other",
        """
pieces = range(n_microbatches)
schedule = [[Action(kind, s, m) for kind in "FB" for m in pieces] for s in range(n_stages)]
schedule[0] = [Action(kind, 0, m) for m in pieces for kind in "FB"]
return schedule""",
        "cycle",
    ),
    _illegal(
        "backwards_first",
        """
return [
    [Action(kind, stage, m) for kind in "BF" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
        "before_forward",
    ),
    _illegal(
        "last_backward_left_out",
        """
return [
    [Action("F", stage, m) for m in range(n_microbatches)]
    + [Action("B", stage, m) for m in range(n_microbatches - 1)]
    for stage in range(n_stages)
]""",
        "missing",
    ),
    _illegal(
        "forwards_done_twice",
        """
return [
    [Action(kind, stage, m) for kind in "FFB" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
        "repeated",
    ),
    _illegal(
        "words_for_kinds",
        """
return [
    [Action(kind, stage, m) for kind in ("forward", "backward") for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
        "wrong_kind",
    ),
    _illegal(
        "plain_tuples",
        """
return [
    [(kind, stage, m) for kind in "FB" for m in range(n_microbatches)]
    for stage in range(n_stages)
]""",
        "not_a_schedule",
    ),
    _illegal(
        "one_flat_list",
        """
return [
    Action(kind, stage, m)
    for stage in range(n_stages)
    for kind in "FB"
    for m in range(n_microbatches)
]""",
        "n_lists",
    ),
    _illegal(
        "too_many_actions",
        """
actions = [Action("F", 0, m % n_microbatches) for m in range(1_000)]
return [actions] + [[Action("F", stage, 0)] for stage in range(1, n_stages)]""",
        "too_much_work",
    ),
    _gpipe(
        "far_too_many_actions",
        "return [[Action('F', stage, 0)] * 10_000 for stage in range(n_stages)]",
        (0, "too_large"),
        (0, "too_large"),
    ),
    _illegal(
        "the_example_only",
        """
return [[Action(kind, stage, m) for kind in "FB" for m in range(8)] for stage in range(4)]""",
        "n_lists",
    ),
    _gpipe(
        "a_generator",
        "return (iter(()) for stage in range(n_stages))",
        (0, "not_plain"),
        (0, "not_plain"),
    ),
    Answer(
        "own_action_class",
        '''from mpedu.schedule import Action


class Task(Action):
    """An action with a nicer name."""


def gpipe(n_stages, n_microbatches):
    return [
        [Task(kind, stage, m) for kind in "FB" for m in range(n_microbatches)]
        for stage in range(n_stages)
    ]
''',
        {"gpipe": (0, "not_plain"), "gpipe_fast": (0, "not_plain")},
    ),
    Answer(
        "grows_from_call_to_call",
        """from mpedu.schedule import Action

schedule = []


def gpipe(n_stages, n_microbatches):
    for stage in range(n_stages):
        schedule.append([Action(kind, stage, m) for kind in "FB" for m in range(n_microbatches)])
    return schedule
""",
        {"gpipe": (0, "n_lists"), "gpipe_fast": (0, "illegal")},
    ),
    Answer(
        "counts_not_refused",
        """from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
    return [
        [Action(kind, stage, m) for kind in "FB" for m in range(n_microbatches)]
        for stage in range(n_stages)
    ]
""",
        {"gpipe": (2, "no_error"), "gpipe_fast": (2, "")},
    ),
    _refusing(
        "product_refused",
        """
if n_stages * n_microbatches < 1:
    raise ValueError(f"{n_stages} stages, {n_microbatches} micro-batches")""",
        "no_error",
    ),
    _refusing(
        "counts_not_named",
        """
if min(n_stages, n_microbatches) < 1:
    raise ValueError("both counts must be positive")""",
        "wrong_error",
    ),
    _refusing(
        "small_numbers_listed",
        """
if min(n_stages, n_microbatches) < 1:
    raise ValueError(f"none of {[*range(-99, 1)]} is a count")""",
        "wrong_error",
    ),
    Answer(
        "refuses_everything",
        f"def gpipe(n_stages, n_microbatches):\n    {_REFUSE}\n",
        {"gpipe": (0, "raised"), "gpipe_fast": (0, "raised")},
    ),
)
