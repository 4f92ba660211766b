"""Wrong schedules of unit 05, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = 'raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}")'
Drawn = tuple[int, str]


def _source(body: str, guard: str = "") -> str:
    guard = guard or f"if n_stages < 1 or n_microbatches < 1:\n    {_REFUSE}"
    return (
        "from mpedu.schedule import Action\n\n\ndef one_f_one_b(n_stages, n_microbatches):\n"
        f"{indent(guard.strip(), '    ')}\n{indent(body.strip(), '    ')}\n"
    )


def _order(id: str, body: str, legal: Drawn, lean: Drawn) -> Answer:
    return Answer(id, _source(body), {"one_f_one_b": legal, "one_f_one_b_lean": lean})


def _illegal(id: str, body: str, diagnosis: str = "") -> Answer:
    return _order(id, body, (0, diagnosis or id), (0, "illegal"))


def _warmed_up(warm_up: str, turn: str = "F, B", drain: str = "n - warm_up, n") -> str:
    """A stage's list by its warm-up, the order of a turn, and which backwards come last."""
    forward, backward = 'Action("F", stage, m)', 'Action("B", stage, m - warm_up)'
    turns = {"F, B": f"{forward}, {backward}", "B, F": f"{backward}, {forward}"}[turn]
    return f"""
n, schedule = n_microbatches, []
for stage in range(n_stages):
    warm_up = {warm_up}
    actions = [Action("F", stage, m) for m in range(warm_up)]
    for m in range(warm_up, n):
        actions += [{turns}]
    schedule.append(actions + [Action("B", stage, m) for m in range({drain})])
return schedule"""


_RIGHT = _warmed_up("min(n, n_stages - 1 - stage)")


def _refusing(id: str, guard: str, diagnosis: str) -> Answer:
    """A right schedule behind a guard of its own."""
    expected = {"one_f_one_b": (2, diagnosis), "one_f_one_b_lean": (5, "")}
    return Answer(id, _source(_RIGHT, guard), expected)


_EACH = "for kind in 'FB' for m in range(n_microbatches)"
ORDERS = (
    _order(
        "one_too_many",
        _warmed_up("min(n, n_stages - stage)"),
        (3, ""),
        (2, "one_too_many"),
    ),
    _order(
        "same_warm_up",
        _warmed_up("min(n, n_stages - 1)"),
        (3, ""),
        (0, "same_warm_up"),
    ),
    _order("one_at_a_time", _warmed_up("0"), (0, "one_at_a_time"), (0, "one_at_a_time")),
    _order(
        "all_forwards_first",
        f"return [[Action(kind, stage, m) {_EACH}] for stage in range(n_stages)]",
        (0, "all_forwards_first"),
        (0, "all_forwards_first"),
    ),
    _order(
        "past_the_last",
        """
n, schedule = n_microbatches, []
for stage in range(n_stages):
    warm_up = n_stages - 1 - stage
    actions = [Action("F", stage, m) for m in range(warm_up)]
    for m in range(warm_up, n):
        actions += [Action("F", stage, m), Action("B", stage, m - warm_up)]
    schedule.append(actions + [Action("B", stage, m) for m in range(max(0, n - warm_up), n)])
return schedule""",
        (2, "past_the_last"),
        (4, "illegal"),
    ),
    _illegal("no_drain", _warmed_up("min(n, n_stages - 1 - stage)", drain="0")),
    _illegal("backward_first", _warmed_up("min(n, n_stages - 1 - stage)", turn="B, F")),
    _illegal("warm_up_reversed", _warmed_up("min(n, stage)")),
    _illegal(
        "newest_first",
        _RIGHT.replace("m - warm_up)]", "m)]").replace("range(n - warm_up, n)", "range(warm_up)"),
    ),
    _illegal(
        "warm_up_in_the_drain_too",
        _warmed_up("min(n, n_stages - 1 - stage)", drain="n - warm_up - 1, n"),
        "repeated",
    ),
    _illegal("no_work", "return [[] for _ in range(n_stages)]"),
    _illegal(
        "one_microbatch",
        "return [[Action(kind, stage, 0) for kind in 'FB'] for stage in range(n_stages)]",
    ),
    _illegal(
        "off_by_one",
        _RIGHT.replace("return schedule", "")
        + "return [[a._replace(microbatch=a.microbatch + 1) for a in acts] for acts in schedule]",
    ),
    _illegal("stage_shifted", _RIGHT.replace(", stage, m", ", stage + 1, m")),
    _illegal(
        "fields_swapped",
        _RIGHT.replace("return schedule", "")
        + "return [[Action(kind, m, s) for kind, s, m in acts] for acts in schedule]",
    ),
    Answer(
        "arguments_swapped",
        _source(_RIGHT).replace("(n_stages, n_microbatches):", "(n_microbatches, n_stages):"),
        {"one_f_one_b": (0, "arguments_swapped"), "one_f_one_b_lean": (0, "illegal")},
    ),
    _illegal(
        "shared_list",
        f"""
schedule = [[]] * n_stages
for stage in range(n_stages):
    schedule[stage] += [Action(kind, stage, m) {_EACH}]
return schedule""",
    ),
    _order(
        "holds_twice_as_much",
        _warmed_up("min(n, 2 * (n_stages - 1 - stage))"),
        (3, ""),
        (2, "holds_more"),
    ),
    _order(
        "two_at_most",
        _warmed_up("min(n, 1, n_stages - 1 - stage)"),
        (3, ""),
        (0, "holds_fewer"),
    ),
    _order(
        "two_forwards_in_a_row",
        """
schedule = []
for stage in range(n_stages):
    to_do, back = list(range(n_microbatches)), list(range(n_microbatches))
    actions = []
    while back:
        for m in to_do[:2 if stage < n_stages - 1 else 1]:
            actions.append(Action("F", stage, m))
            to_do.remove(m)
        room = 2 if stage < n_stages - 1 else 1
        ahead = n_microbatches - len(to_do)
        while back and back[0] < ahead:
            actions.append(Action("B", stage, back.pop(0)))
    schedule.append(actions)
return schedule""",
        (2, "not_in_turns"),
        (0, "holds_fewer"),
    ),
    _illegal(
        "gradients_descend",
        """
schedule = []
for stage in range(n_stages):
    order = sorted(range(n_microbatches), reverse=stage == n_stages - 1)
    actions = [Action("F", stage, m) for m in range(n_microbatches)]
    schedule.append(actions + [Action("B", stage, m) for m in order])
return schedule""",
        "gradient_order",
    ),
    _illegal(
        "last_backward_left_out",
        _RIGHT.replace("return schedule", "return [actions[:-1] for actions in schedule]"),
        "missing",
    ),
    _illegal(
        "steady_phase_too_long",
        """
n, schedule = n_microbatches, []
for stage in range(n_stages):
    warm_up = min(n, n_stages - 1 - stage)
    actions = [Action("F", stage, m) for m in range(warm_up)]
    for m in range(n):
        actions += [Action("F", stage, m + warm_up), Action("B", stage, m)]
    schedule.append(actions)
return schedule""",
        "out_of_range",
    ),
    _illegal(
        "warm_up_done_again",
        """
n, schedule = n_microbatches, []
for stage in range(n_stages):
    warm_up = min(n, n_stages - 1 - stage)
    actions = [Action("F", stage, m) for m in range(warm_up)]
    for m in range(n):
        actions += [Action("F", stage, m), Action("B", stage, m)]
    schedule.append(actions)
return schedule""",
        "repeated",
    ),
    _illegal("one_flat_list", _RIGHT + "[0]", "n_lists"),
    _illegal(
        "plain_tuples",
        _RIGHT.replace("return schedule", "return [[tuple(a) for a in acts] for acts in schedule]"),
        "not_a_schedule",
    ),
    _illegal("nothing_returned", _RIGHT.replace("return schedule", ""), "not_a_schedule"),
    _order(
        "far_too_many_actions",
        "return [[Action('F', stage, 0)] * 2_000 for stage in range(n_stages)]",
        (0, "too_large"),
        (0, "too_large"),
    ),
    _refusing("counts_not_refused", "pass", "no_error"),
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
    Answer(
        "fewer_microbatches_refused",
        _source(_RIGHT, f"if n_stages < 1 or n_microbatches < n_stages:\n    {_REFUSE}"),
        {"one_f_one_b": (2, "raised"), "one_f_one_b_lean": (4, "raised")},
    ),
)
