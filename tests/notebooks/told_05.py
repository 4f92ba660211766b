"""The numbers in the messages of unit 05, from the call each message names.

Counted on the package's schedules, its validator and its model clock; the oracle that the checks
compare with is used nowhere. What all schedules have in common is read as in unit 03.
"""

from itertools import pairwise
from typing import Any

from told import Call, Told
from told_schedules_03 import SAME_AS as OF_GPIPE
from told_schedules_03 import SCHEDULES, returned

from mpedu.families import one_f_one_b
from mpedu.schedule import Action, in_flight, missing_work, peak_in_flight
from mpedu.simulate import Costs, simulate

SHOWN = 12  # actions of a list that a message spells


def _spelled(actions: list[Action]) -> str:
    words = " ".join(f"{action.kind}{action.microbatch}" for action in actions[:SHOWN])
    return (words or "no work") + " .." * (len(actions) > SHOWN)


def _first_wrong(call: Call) -> tuple[int, Any, int]:
    """Place, number given and number due of the first wrong one."""
    (actions,) = call.args
    due, got = in_flight(actions), list(call.got)
    place = next(i for i, (a, b) in enumerate(zip(got, due, strict=True)) if a != b)
    return place, got[place], due[place]


def _of_list(call: Call) -> list[str]:
    return [f"in_flight of {_spelled(call.args[0])}"]


def _begins(call: Call) -> list[Any]:
    got = call.got if isinstance(call.got, list) else [call.got]
    return got[:SHOWN]


def _held_differs(call: Call) -> list[Any]:
    place, given, due = _first_wrong(call)
    return [call.args[0][place].microbatch, place, given, due]


def _held_length(call: Call) -> list[Any]:
    return [len(call.got), len(call.args[0])]


def _held_no_int(call: Call) -> list[Any]:
    place = next(i for i, n in enumerate(call.got) if not isinstance(n, int))
    return [place, call.got[place]]


def _peak_due(call: Call) -> int:
    n_stages, n_microbatches, stage = call.args
    return peak_in_flight(one_f_one_b(n_stages, n_microbatches))[stage]


def _peak(call: Call) -> list[Any]:
    return [call.got, _peak_due(call)]


def _of_moment(call: Call) -> list[str]:
    action, done, n_stages = call.args
    forwards = [str(a) for a in sorted(done) if a.kind == "F" and a[2] == action.microbatch]
    backwards = [str(a) for a in sorted(done) if a.kind == "B" and a[2] == action.microbatch]
    near = forwards + backwards
    words = ", ".join(near[:8]) or "nothing"
    more = " .." * (len(near) > 8)
    return [f"ready of {action}, n_stages={n_stages}, done with it: {words}{more}"]


def _of_schedule(call: Call) -> list[str]:
    schedule, n_stages, n_microbatches = call.args
    lists = [f"stage {stage}: {_spelled(actions)}" for stage, actions in enumerate(schedule)]
    words = "; ".join(lists[:4]) + " .." * (len(lists) > 4)
    return [f"can_finish of n_stages={n_stages}, n_microbatches={n_microbatches} ({words})"]


def _holds(call: Call) -> list[Any]:
    """The first stage that holds another number than 1F1B: stage, held, due."""
    due = peak_in_flight(one_f_one_b(*call.args))
    held = peak_in_flight(call.got)
    stage = next(s for s, pair in enumerate(zip(held, due, strict=True)) if pair[0] != pair[1])
    return [stage, held[stage], due[stage]]


def _holds_fewer(call: Call) -> list[Any]:
    return [*_holds(call), _holds(call)[1]]


def _in_a_row(call: Call) -> list[Any]:
    """The stage and the two neighbours of one kind while forwards are left."""
    for stage, actions in enumerate(call.got):
        kinds = "".join(a.kind for a in actions)
        begin, last = kinds.index("B"), kinds.rindex("F")
        for at in range(begin, last):
            if kinds[at] == kinds[at + 1]:
                return [stage, actions[at].microbatch, actions[at + 1].microbatch]
        if last < begin and call.args[1] > 2 * call.args[0]:
            return [stage, actions[begin].microbatch]
    return []


def _out_of_range(call: Call) -> list[Any]:
    """A number below 0 is told by its place, one too large by what there is."""
    for stage, actions in enumerate(call.got):
        for place, action in enumerate(actions):
            if action.microbatch < 0:
                return [stage, place, action.microbatch, 0]
    return SCHEDULES["gpipe out_of_range"](call)


def _no_drain(call: Call) -> list[Any]:
    missing = missing_work(call.got, *call.args)
    first = [a for a in missing if a.stage == missing[0].stage]
    return [first[0].stage, *(a.microbatch for a in first[:3])]


def _past_the_last(call: Call) -> list[Any]:
    n = call.args[1]
    beyond = next(a for acts in call.got for a in acts if a.microbatch >= n)
    return [beyond.stage, beyond.microbatch, n - 1, "M-1"]


def _slow(call: Call) -> list[Any]:
    """Both makespans, the costs, and the first pause of the last stage."""
    timeline = simulate(call.got, Costs(1, 2))
    last = sorted(s[4:] + s[:4] for s in timeline.spans if s.rank == call.args[0] - 1)
    pauses = ((a[1], b[0], b[-1]) for a, b in pairwise(last) if b[0] > a[1])
    fast = simulate(one_f_one_b(*call.args), Costs(1, 2))
    return [timeline.makespan_s, 1, 2, fast.makespan_s, *next(pauses)]


def _late(call: Call) -> list[Any]:
    n_stages, n_microbatches, latency_s = call.args
    schedule = one_f_one_b(n_stages, n_microbatches)
    late, early = (simulate(schedule, Costs(1, 2, latency_s=c)) for c in (latency_s, 0))
    return [call.got, late.makespan_s - early.makespan_s]


def _all(name: str, ids: str, told: Any) -> Told:
    return {f"{name} {id}": told for id in ids.split()}


def _also(head: Any, *more: Any) -> Any:
    return lambda call: [*head(call), *more]


def _got_if_any(call: Call) -> list[Any]:
    return [call.got] if call.got is not None else []


def _round_trips(call: Call) -> list[Any]:
    return [*_late(call), 2, call.args[0] - 1, "1", "1"]


_HELD = (
    "before_action starts_with_zero never_freed actions_counted changes_only peak_only "
    "signs_swapped given_back"
)
_PEAK = (
    "one_more_stage of_gpipe warm_up_alone of_stage_zero from_the_front more_than_there_are "
    "least_first all_of_few"
)
_SCHEDULE = (
    "no_work empty n_lists arguments_swapped one_microbatch missing off_by_one out_of_range "
    "gradient_order stage_shifted fields_swapped wrong_stage not_a_schedule before_forward "
    "repeated cycle too_large raised wrong_error"
)
TOLD: Told = {
    **{f"one_f_one_b {id}": SCHEDULES[f"gpipe {id}"] for id in _SCHEDULE.split()},
    "one_f_one_b out_of_range": _out_of_range,
    "one_f_one_b one_too_many": lambda call: [*_holds(call)[:2], _holds(call)[2]],
    "one_f_one_b past_the_last": _past_the_last,
    "one_f_one_b no_drain": _no_drain,
    "one_f_one_b backward_first": lambda call: ["K-1"],
    "one_f_one_b not_in_turns": _in_a_row,
    "one_f_one_b holds_more": _holds,
    "one_f_one_b holds_fewer": _holds_fewer,
    "one_f_one_b slow": _slow,
    **_all("in_flight", _HELD, _begins),
    "in_flight in words": _of_list,
    "in_flight length": _held_length,
    "in_flight no_int": _held_no_int,
    "in_flight differs": _held_differs,
    "in_flight raised": SCHEDULES["gpipe raised"],
    **_all("one_f_one_b_peak", f"{_PEAK} constant differs", _peak),
    "one_f_one_b_peak no_int": _got_if_any,
    "one_f_one_b_peak no_error": returned,
    "one_f_one_b_peak wrong_error": lambda call: [call.args[2]],
    "one_f_one_b_peak raised": SCHEDULES["gpipe raised"],
    "ready in words": _of_moment,
    "ready raised": SCHEDULES["gpipe raised"],
    "ready no_last_stage": lambda call: [1],
    "ready no_first_stage": lambda call: [0],
    "ready no_bool": _got_if_any,
    "can_finish in words": _of_schedule,
    "can_finish no_bool": _got_if_any,
    **_all("extra_time_of_latency_s", "rounds_alone whole_time every_microbatch constant", _late),
    "extra_time_of_latency_s of_gpipe": _round_trips,
    "extra_time_of_latency_s differs": _also(_late, 1, 2),
}
SAME_AS = {
    "one_f_one_b illegal": lambda call: OF_GPIPE["gpipe illegal"](call),
}
