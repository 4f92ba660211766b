"""Wrong answers to unit 06's `zero_bubble_h1`, an extra, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer
from autograder.bank.unit_06.right import RIGHT


def _h1(id: str, diagnosis: str, lag: str = "stage", end: str = "halves + waiting") -> Answer:
    body = f"""
schedule = []
for stage, actions in enumerate(one_f_one_b(n_stages, n_microbatches)):
    halves, waiting = [], []
    for action in actions:
        if action.kind == "F":
            halves.append(action)
            continue
        halves.append(action._replace(kind="I"))
        waiting.append(action._replace(kind="W"))
        if len(waiting) > {lag}:
            halves.append(waiting.pop(0))
    schedule.append({end})
return schedule"""
    source = (
        "from mpedu.families import gpipe, one_f_one_b\n\n\n"
        f"def zero_bubble_h1(n_stages, n_microbatches):\n{indent(body.strip(), '    ')}\n"
    )
    return Answer(f"h1_{id}", source, {"zero_bubble_h1": (0, diagnosis)})


def _of(id: str, diagnosis: str, value: str) -> Answer:
    source = (
        "from mpedu.families import gpipe, one_f_one_b\n\n\n"
        f"def zero_bubble_h1(n_stages, n_microbatches):\n    return {value}\n"
    )
    return Answer(f"h1_{id}", source, {"zero_bubble_h1": (0, diagnosis)})


_HALVES = '[[h for a in r for h in ([a] if a.kind == "F" else [a._replace(kind=k) for k in "IW"])]'
ZERO_BUBBLES = (
    _h1("at_once", "slow", "0"),
    _h1("one_later", "slow", "1"),
    _h1("distance_to_the_end", "slow", "n_stages - 1 - stage"),
    Answer(
        "h1_w_wherever_a_rank_would_wait",
        f"{RIGHT[1].source}\n\nzero_bubble_h1 = lambda k, m: "
        "delay_weight_gradients(one_f_one_b(k, m))\n",
        {"zero_bubble_h1": (0, "held_till_w")},
    ),
    _h1("weights_lost", "missing", end="halves"),
    _of("undivided", "wrong_kind", "one_f_one_b(n_stages, n_microbatches)"),
    _of("of_gpipe", "slow", f"{_HALVES} for r in gpipe(n_stages, n_microbatches)]"),
    Answer(
        "h1_ahead_of_1f1b",
        """
from mpedu.schedule import Action


def zero_bubble_h1(n_stages, n_microbatches):
    schedule = []
    for stage in range(n_stages):
        ahead = min(n_microbatches, n_stages - stage)
        actions = [Action("F", stage, m) for m in range(ahead)]
        for m in range(n_microbatches + stage):
            if m + ahead < n_microbatches:
                actions.append(Action("F", stage, m + ahead))
            if m < n_microbatches:
                actions.append(Action("I", stage, m))
            if m >= stage:
                actions.append(Action("W", stage, m - stage))
        schedule.append(actions)
    return schedule
""",
        {"zero_bubble_h1": (0, "held_till_i")},
    ),
)
