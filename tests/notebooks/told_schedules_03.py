"""The numbers of unit 03's messages on schedules, looked up in the student's own lists."""

import re
import traceback
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from told import TOKEN, Call, Told
from truths_03 import B_S, F_S, clock

from autograder.checks.schedules import illegal
from autograder.diagnosis import Case
from mpedu.families import naive
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline, simulate, simulate_until_stuck


def _first(call: Call, wrong: Callable[[int, Any], bool]) -> tuple[int, int, Any]:
    """Stage, place and entry of the first entry of which (stage, entry) is wrong."""
    return next(
        (stage, place, entry)
        for stage, actions in enumerate(call.got)
        for place, entry in enumerate(actions)
        if wrong(stage, entry)
    )


def _place(wrong: Callable[[int, Any], bool]) -> Callable[[Call], list[Any]]:
    return lambda call: list(_first(call, wrong)[:2])


def _wrong_stage(call: Call) -> list[Any]:
    stage, place, entry = _first(call, lambda stage, entry: entry.stage != stage)
    return [stage, place, entry.stage, entry.microbatch]


def _absent(call: Call, stage: int, kind: str) -> list[int]:
    there = {a.microbatch for a in call.got[stage] if a.kind == kind}
    return [m for m in range(call.args[1]) if m not in there]


def _missing(call: Call) -> list[Any]:
    """Stage, then the first and the last absent forward, the same of the backwards."""
    stages = range(call.args[0])
    stage = next(s for s in stages if _absent(call, s, "F") or _absent(call, s, "B"))
    absent = (_absent(call, stage, kind) for kind in "FB")
    return [stage, *(m for some in absent for m in dict.fromkeys(some[:1] + some[-1:]))]


def _one_microbatch(call: Call) -> list[Any]:
    stage, absent = 2, _absent(call, 2, "F")  # an inner one, to name no end of the pipeline
    (used,) = {a.microbatch for a in call.got[stage]}
    return [stage, absent[0], absent[-1], used]


def _off_by_one(call: Call) -> list[Any]:
    n = call.args[1]
    beyond = max(a.microbatch for a in call.got[0])
    return [beyond, n, 0, n - 1, *_absent(call, 0, "F")]


def _out_of_range(call: Call) -> list[Any]:
    n_stages, n = call.args
    stage, _, entry = _first(call, lambda _, entry: entry.microbatch not in range(n))
    return [stage, entry.stage, entry.microbatch, n_stages, 0, n_stages - 1, n, 0, n - 1]


def _before_forward(call: Call) -> list[Any]:
    for stage, actions in enumerate(call.got):
        for place, (kind, _, m) in enumerate(actions):
            if kind == "B" and Action("F", stage, m) not in actions[:place]:
                return [stage, stage, m, stage, m]
    return []


def _repeated(call: Call) -> list[Any]:
    for stage, actions in enumerate(call.got):
        for place, action in enumerate(actions):
            if action in actions[:place]:
                return [stage, stage, action.microbatch]
    return []


def _orders(call: Call, kind: str) -> tuple[int, list[int], list[int]]:
    """The first stage whose order differs from the next one's, and both orders."""
    orders = [[a.microbatch for a in actions if a.kind == kind] for actions in call.got]
    pairs = enumerate(pairwise(orders))
    return next((stage, here, after) for stage, (here, after) in pairs if here != after)


def _activation_order(call: Call) -> list[Any]:
    stage, here, after = _orders(call, "F")
    return [stage, stage + 1, stage, *here[:3], stage + 1, *after[:3]]


def _gradient_order(call: Call) -> list[Any]:
    stage, here, after = _orders(call, "B")
    return [stage + 1, after[0], stage, here[0], stage + 1, stage]


def _cycle(call: Call) -> list[Any]:
    """Who waits where and for what, from stage 0 until it closes, after all that can run ran."""
    ran = {(s.rank, s.kind, s.microbatch) for s in simulate_until_stuck(call.got, Costs()).spans}
    waiting = [
        next((a for a in actions if (rank, a.kind, a.microbatch) not in ran), None)
        for rank, actions in enumerate(call.got)
    ]
    stage, seen, told = 0, set[int](), list[Any]()
    while stage not in seen:
        seen.add(stage)
        action = waiting[stage]
        if action is None:
            return []
        other = stage + (1 if action.kind == "B" else -1)
        told += [stage, stage, action.microbatch, other, action.microbatch, other]
        stage = other
    return told


def _late(call: Call) -> list[Any]:
    """The first forward after a backward of its stage, the stage, the first backward."""
    for stage, actions in enumerate(call.got):
        place = next(i for i, a in enumerate(actions) if a.kind == "B")
        late = [a.microbatch for a in actions[place:] if a.kind == "F"]
        if late:
            return [late[0], stage, actions[place].microbatch]
    return []


def _timed(call: Call) -> Timeline:
    return simulate(call.got, Costs(F_S, B_S))


def _slow(call: Call) -> list[Any]:
    """Both makespans, the costs, and the first pause of the last stage."""
    timeline = _timed(call)
    last = sorted(s[4:] + s[:4] for s in timeline.spans if s.rank == call.args[0] - 1)
    pauses = ((a[1], b[0], b[-1]) for a, b in pairwise(last) if b[0] > a[1])
    return [timeline.makespan_s, F_S, B_S, clock(*call.args).makespan_s, *next(pauses)]


def _parts(value: Any) -> int:
    return 1 + (sum(map(_parts, value)) if isinstance(value, list | tuple) else 0)


def _raised(call: Call) -> list[Any]:
    """What the student's own exception says, and the line it comes from."""
    try:
        call.again()
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        return [*re.findall(r"\d+", str(error)), line]
    return []


def returned(call: Call) -> list[Any]:
    """The numbers of the answer as Python prints it."""
    return list(TOKEN.findall(repr(call.got)))


def not_named(call: Call) -> list[Any]:
    """The first argument that the student's own ValueError does not name."""
    if call.got.type_name != "ValueError":
        return []
    said = re.findall(r"-?\d+", call.got.message)
    return [next(value for value in call.args if str(value) not in said)]


def _no_plain_action(call: Call) -> list[Any]:
    """Stage and place of the first entry that is no Action; nothing of an answer without lists."""
    answer = call.again()
    if not isinstance(answer, list):
        return []
    places = ((stage, place) for stage, acts in enumerate(answer) for place in range(len(acts)))
    return list(next(at for at in places if type(answer[at[0]][at[1]]) is not Action))


def _expected(call: Call) -> int:
    return len(naive(*call.args)[0])  # GPipe's stages have as many actions


SCHEDULES: Told = {
    "gpipe no_work": lambda call: [call.got.index([]), _expected(call)],
    "gpipe empty": lambda call: [call.got.index([])],
    "gpipe n_lists": lambda call: [len(call.got), call.args[0]],
    "gpipe arguments_swapped": lambda call: [len(call.got), call.args[0]],
    "gpipe one_microbatch": _one_microbatch,
    "gpipe missing": _missing,
    "gpipe naive_order": lambda call: [
        *_late(call),
        "02",
        _timed(call).makespan_s,
        clock(*call.args).makespan_s,
    ],
    "gpipe late_forward": _late,
    "gpipe slow": _slow,
    "gpipe off_by_one": _off_by_one,
    "gpipe out_of_range": _out_of_range,
    "gpipe gradient_order": _gradient_order,
    "gpipe activation_order": _activation_order,
    "gpipe stage_shifted": lambda call: [len(call.got) - 1, call.got[-1][0].stage],
    "gpipe fields_swapped": lambda call: [len(call.got) - 1, *call.got[-1][0][1:]],
    "gpipe wrong_stage": _wrong_stage,
    "gpipe wrong_kind": _place(lambda _, entry: entry.kind not in ("F", "B")),
    "gpipe not_a_schedule": _place(lambda _, entry: not isinstance(entry, Action)),
    "gpipe before_forward": _before_forward,
    "gpipe repeated": _repeated,
    "gpipe cycle": _cycle,
    "gpipe too_much_work": lambda call: [0, len(call.got[0]), _expected(call)],
    "gpipe too_large": lambda call: [20_000 if _parts(call.got) > 20_000 else None],
    "gpipe not_plain": _no_plain_action,
    "gpipe raised": _raised,
    "idle_share raised": _raised,
    "gpipe wrong_error": not_named,
}


def _fault(call: Call) -> str:
    """A schedule that cannot be timed: the sentence is that of its fault."""
    found = illegal(Case(call.name, call.args), call.got)
    return f"{call.name} {found.id if found else 'legal'}"


SAME_AS = {"gpipe illegal": _fault}
