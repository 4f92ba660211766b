"""Wrong answers to unit 05's `ready` and `can_finish`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_HEAD = "from mpedu.schedule import Action\n\n\n"
_READY = """def ready(action, done, n_stages):
    kind, stage, m = action
    if kind == "F":
        return {forward}
    return {backward}
"""
_FORWARD = 'stage == 0 or Action("F", stage - 1, m) in done'
_OWN = 'Action("F", stage, m) in done'
_AFTER = 'Action("B", stage + 1, m) in done'
_BACKWARD = f"{_OWN} and (stage == n_stages - 1 or {_AFTER})"


def _ready(
    id: str,
    forward: str = _FORWARD,
    backward: str = _BACKWARD,
    score: int = 0,
    diagnosis: str = "",
) -> Answer:
    source = _HEAD + _READY.format(forward=forward, backward=backward)
    return Answer(f"ready_{id}", source, {"ready": (score, diagnosis or id)})


_SEEN = "stage == max([a.stage for a in done], default=0)"
READY = (
    _ready("always_ready", "True", "True"),
    _ready("never_ready", "False", "False"),
    _ready("turned_round", f"not ({_FORWARD})", f"not ({_BACKWARD})"),
    _ready("own_stage_alone", "True", _OWN, score=1),
    _ready("own_forward_alone", backward=_OWN, score=2),
    _ready("end_reached", backward='Action("F", n_stages - 1, m) in done', score=2),
    _ready(
        "gradient_from_before",
        backward=f'{_OWN} and (stage == 0 or Action("B", stage - 1, m) in done)',
        score=1,
    ),
    _ready("no_last_stage", backward=f"{_OWN} and {_AFTER}", score=2),
    _ready("last_without_forward", backward=f"stage == n_stages - 1 or {_AFTER}", score=2),
    _ready("no_first_stage", forward='Action("F", stage - 1, m) in done', score=2),
    _ready(
        "any_microbatch",
        'stage == 0 or any(a[:2] == ("F", stage - 1) for a in done)',
        'any(a[:2] == ("F", stage) for a in done) if stage == n_stages - 1'
        ' else any(a[:2] == ("B", stage + 1) for a in done)',
    ),
    _ready("stages_seen", backward=f"{_OWN} and ({_SEEN} or {_AFTER})", score=2),
    _ready(
        "last_stage_is_n_stages",
        backward=f"{_OWN} and (stage == n_stages or {_AFTER})",
        score=2,
        diagnosis="no_last_stage",
    ),
    _ready(
        "earlier_ones_first",
        'Action("F", stage, m - 1) in done or m == 0',
        diagnosis="differs",
        score=2,
    ),
    _ready(
        "all_before_it",
        forward=f'({_FORWARD}) and (m == 0 or Action("F", stage, m - 1) in done)',
        diagnosis="differs",
        score=2,
    ),
    _ready(
        "a_number", forward=f"int({_FORWARD})", backward=f"int({_BACKWARD})", diagnosis="no_bool"
    ),
    _ready("nothing", "None", "None", diagnosis="no_bool"),
    Answer(
        "ready_looks_up",
        _HEAD + "def ready(action, done, n_stages):\n    return done[action]\n",
        {"ready": (0, "raised")},
    ),
)

_LOOP = """
done, at = set(), [0] * len(schedule)
moved = True
while moved:
    moved = False
    for stage, actions in enumerate(schedule):
        while at[stage] < len(actions) and ready(actions[at[stage]], done, n_stages):
            done.add(actions[at[stage]])
            at[stage] += 1
            moved = True
"""
_REQUIRED = """
required = {
    Action(kind, stage, m)
    for kind in "FB"
    for stage in range(n_stages)
    for m in range(n_microbatches)
}
"""
_ENDED = "at == [len(actions) for actions in schedule]"
_RIGHT = f"done == required and {_ENDED} and sum(at) == len(required)"


def _finish(
    id: str, body: str, score: int, diagnosis: str = "", backward: str = _BACKWARD
) -> Answer:
    source = _HEAD + _READY.format(forward=_FORWARD, backward=backward)
    source += "\n\ndef can_finish(schedule, n_stages, n_microbatches):\n"
    source += indent(body.strip(), "    ") + "\n"
    return Answer(f"finish_{id}", source, {"can_finish": (score, diagnosis or id)})


def _verdict(id: str, verdict: str, score: int, diagnosis: str = "") -> Answer:
    return _finish(id, f"{_LOOP}{_REQUIRED}return {verdict}", score, diagnosis)


FINISHES = (
    _verdict("always_true", "True", 0),
    _verdict("always_false", "False", 0),
    _verdict("work_not_counted", _ENDED, 1),
    _verdict("done_twice", "done == required", 1),
    _verdict(
        "ends_not_asked",
        'all(Action("B", 0, m) in done for m in range(n_microbatches)) and sum(at) == len(done)',
        1,
    ),
    _verdict("amount_alone", "sum(at) == 2 * n_stages * n_microbatches", 1),
    _verdict("numbers_alone", f"{_ENDED} and sum(at) == 2 * n_stages * n_microbatches", 1),
    _finish(
        "each_list_alone",
        f"{_REQUIRED}return sorted(sum(schedule, [])) == sorted(required)",
        2,
    ),
    _finish(
        "ready_looks_at_its_own_stage",
        f"{_LOOP}{_REQUIRED}return {_RIGHT}",
        2,
        "each_list_alone",
        backward=_OWN,
    ),
    _verdict("turned_round", f"not ({_RIGHT})", 0, "differs"),
    _verdict("at_least_one_ended", f"{_RIGHT} or len(schedule) > 3", 0, "differs"),
    _verdict("nothing_returned", "None", 0, "no_bool"),
    _verdict("how_much_is_done", "len(done)", 0, "no_bool"),
    _finish(
        "gpipe_only",
        f"{_LOOP}{_REQUIRED}same = len({{str([a[::2] for a in acts]) for acts in schedule}}) == 1\n"
        f"return {_RIGHT} and same",
        0,
        "differs",
    ),
    _finish(
        "one_round_alone",
        f"{_LOOP.replace('while moved:', 'for _ in range(1):')}{_REQUIRED}return {_RIGHT}",
        0,
        "differs",
    ),
)
