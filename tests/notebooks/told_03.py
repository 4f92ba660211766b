"""The numbers in the messages of unit 03, from the call each message names.

Counted on the model clock, summed over boxes or found by trying one number after the other: the
oracle that the checks compare with is used nowhere.
"""

from fractions import Fraction
from itertools import count
from math import isqrt
from typing import Any

from told import Call, Told
from told_schedules_03 import SAME_AS as SAME_AS
from told_schedules_03 import SCHEDULES, not_named, returned
from truths_03 import (
    TIE,
    TIE_RELATIVE,
    K,
    clock,
    deal,
    idle_slots,
    over_ideal,
    ragged_s,
    share,
    slots,
)

from autograder.notebook import sealed_run
from mpedu.simulate import Timeline


def _counted(timeline: Timeline) -> tuple[list[Any], Fraction, list[Fraction]]:
    """Devices, boxes, first start, last end and work; the idle share; the lengths of the boxes."""
    start_s, end_s = min(s.start_s for s in timeline.spans), max(s.end_s for s in timeline.spans)
    lengths_s = [Fraction(s.end_s) - Fraction(s.start_s) for s in timeline.spans]
    area_s = timeline.n_ranks * (Fraction(end_s) - Fraction(start_s))
    described = [timeline.n_ranks, len(timeline.spans), start_s, end_s, sum(lengths_s)]
    return described, (area_s - sum(lengths_s)) / area_s, lengths_s


def _share(call: Call) -> list[Any]:
    described, idle, _ = _counted(*call.args)
    return [*described, call.got, idle]


def _over_busy(call: Call) -> list[Any]:
    _, idle, _ = _counted(*call.args)
    return [*_share(call), call.got, idle / (1 - idle), idle]


def _fraction(call: Call) -> list[Any]:
    return [call.got, share(*call.args)]


def _ratio(call: Call) -> list[Any]:
    return [call.got, over_ideal(*call.args)]


def _slots(call: Call) -> Fraction:
    return slots(*call.args[:2])


def _idle_slots(call: Call) -> Fraction:
    return idle_slots(*call.args[:2])


def _fewest(call: Call) -> tuple[int, Fraction]:
    """The fewest micro-batches, all numbers tried; the share of these or of fewer, as given."""
    k, bound = call.args
    limit = Fraction(bound) + Fraction(TIE)
    right = next(m for m in count(1) if Fraction(k - 1, m + k - 1) <= limit)
    tried = call.got if isinstance(call.got, int) and 1 <= call.got < right else right
    return right, Fraction(k - 1, tried + k - 1)


def _number(call: Call, n_ties: int = 2) -> list[Any]:
    """What came back, what was due, and the share that shows it."""
    (right, shares), (_, bound) = _fewest(call), call.args
    if call.got < 1:
        return [call.got, right, 1]
    if call.got == right + 1 and abs(shares - Fraction(bound)) <= TIE:
        return [call.got, right, right, f"{float(shares):.17g}", f"{bound:.17g}", *[TIE] * n_ties]
    return [call.got, right, min(call.got, right), shares]


def _forward_s(call: Call) -> Fraction:
    _, m, n, s, o = call.args
    return Fraction(o) + Fraction(n, m) * Fraction(s)


def _time(call: Call) -> list[Any]:
    (k, m), forward_s = call.args[:2], _forward_s(call)
    return [call.got, clock(k, m, forward_s, 2 * forward_s).makespan_s]


def _time_differs(call: Call) -> list[Any]:
    forward_s = _forward_s(call)
    return [*_time(call), _slots(call), _slots(call), forward_s, 2 * forward_s]


def _times_s(call: Call) -> dict[int, Fraction]:
    k, n, s, o = call.args
    return {
        m: 3 * (m + k - 1) * (Fraction(o) + Fraction(n, m) * Fraction(s)) for m in range(1, n + 1)
    }


def _best(call: Call) -> list[Any]:
    """What came back, its step, by how many percent longer than the shortest, which is whose."""
    times_s = _times_s(call)
    best = min(times_s, key=lambda m: times_s[m])
    longer = 100 * float(times_s[call.got] / times_s[best] - 1)
    return [call.got, times_s[call.got], f"{longer:.3g}", times_s[best], best]


def _root_down(call: Call) -> list[Any]:
    k, n, s, o = call.args
    root = isqrt(int((k - 1) * n * Fraction(s) / Fraction(o)))
    return [*_best(call), k - 1 if max(1, root) == call.got else None]


def _equal(call: Call) -> list[Any]:
    times_s = _times_s(call)
    equal = [m for m in times_s if times_s[m] <= min(times_s.values()) * (1 + TIE_RELATIVE)]
    return [call.got, equal[0], TIE_RELATIVE if call.got in equal else None]


def _sizes(call: Call) -> list[Any]:
    return [size for size, _ in call.got][:8]


def _lost(call: Call) -> list[Any]:
    n, m = call.args
    return [n - sum(size for size, _ in call.got), n, n, m, call.got[0][0]]


def _makespans(call: Call) -> list[Any]:
    return [*_sizes(call), ragged_s([size for size, _ in call.got]), ragged_s(deal(*call.args)), K]


def _losses(call: Call) -> list[Any]:
    """A loss of 1 for every sample, 5 in the last piece: the weighted mean and the true one."""
    losses = [1] * (len(call.got) - 1) + [5]
    given = sum(Fraction(w) * loss for (_, w), loss in zip(call.got, losses, strict=True))
    samples = [loss for (size, _), loss in zip(call.got, losses, strict=True) for _ in range(size)]
    right = Fraction(sum(samples), len(samples))
    return [1, 5, given, right, f"{100 * abs(float(given / right) - 1):.2g}"]


def _spread(call: Call) -> int:
    even = deal(*call.args)
    return max(even) - min(even)


def _weight(call: Call) -> list[Any]:
    n = call.args[0]
    pairs = enumerate(call.got)
    return next([i, z, n, Fraction(z, n), w] for i, (z, w) in pairs if abs(w - z / n) > 1e-9)


def _first_piece(call: Call) -> list[Any]:
    first = call.got[0]
    return [*(first if isinstance(first, tuple | list) else [first]), 0]


def _run(call: Call) -> list[Any]:
    """The number of a run, twice, its stages, its micro-batches and their sizes."""
    (run,) = call.args
    number = next(n for n in count(1) if sealed_run(n) == run)
    return [number, number, len(run.schedule), len(run.sizes), *run.sizes]


def _list_given(call: Call) -> list[Any]:
    return [*_run(call), *([len(call.got)] if isinstance(call.got, list) else [])]


def _also(*values: Any) -> Any:
    """A list of the values of (call), each put after those of a first expression."""
    head, *rest = values
    return lambda call: [*head(call), *(v(call) if callable(v) else v for v in rest)]


def _got(call: Call) -> Any:
    return call.got


def _all(name: str, ids: str, told: Any) -> Told:
    return {f"{name} {id}": told for id in ids.split()}


_TIMELINE_IDS = (
    "differs busiest_device inner_gaps constant busy_share closed_form devices_seen list_order "
    "rounded percent"
)
_RUN_IDS = (
    "actions_compared one_name loss_alone order_ignored order_by_number total_alone "
    "twice_of_equal_sizes last_by_number first_for_last losses_ignored exact_floats unknown_name "
    "kept_evidence order_evidence loss_evidence"
)
_WITH_ONE_OVER_M = "equal_sizes ratio_evidence healthy_is_one ratio_to_m ragged_ignored"
TOLD: Told = {
    **SCHEDULES,
    **_all("idle_share", _TIMELINE_IDS, _share),
    "idle_share over_busy": _over_busy,
    "idle_share late_clock": _also(_share, lambda call: min(s.start_s for s in call.args[0].spans)),
    "idle_share boxes": _also(_share, lambda call: max(_counted(*call.args)[2])),
    "idle_share no_error": returned,
    **_all("bubble_fraction", "whole_division percent constant rounded", _fraction),
    **_all("bubble_fraction", "ratio_given one_slot_more utilisation", _also(_fraction, _got)),
    "bubble_fraction differs": _also(_fraction, _idle_slots),
    "bubble_fraction divided_by_all": _also(_fraction, _got, _idle_slots, _slots),
    "bubble_fraction all_stages_idle": _also(
        _fraction, _got, 1, lambda call: share(1, call.args[1])
    ),
    "bubble_over_ideal share_given": _also(_ratio, _got),
    "bubble_over_ideal whole_ratio": _ratio,
    "bubble_over_ideal differs": _also(_ratio, _idle_slots),
    "min_microbatches search_ends": lambda call: [call.got, _fewest(call)[0]],
    **_all("min_microbatches", "differs float_noise still_above", _number),
    "min_microbatches strictly_below": lambda call: _number(call, n_ties=1),
    "min_microbatches no_int": lambda call: [call.got],
    "min_microbatches no_error": returned,
    **_all(
        "step_time_s",
        "overhead_once no_overhead overhead_of_backward overhead_per_sample no_backward "
        "backward_as_forward size_is_count rounded",
        _time,
    ),
    "step_time_s slots_m_plus_k": _also(
        _time, lambda call: call.got / (3 * _forward_s(call)), _idle_slots, _slots
    ),
    "step_time_s slots_m": _also(_time, _idle_slots, _slots),
    "step_time_s all_stages_added": _also(_time, _slots),
    "step_time_s whole_piece": _also(
        _time, *[lambda call: Fraction(call.args[2], call.args[1])] * 2
    ),
    "step_time_s differs": _time_differs,
    "step_time_s no_number": lambda call: [len(call.got)],
    "best_microbatches always_most": _best,
    "best_microbatches always_4k": _also(_best, lambda call: Fraction(call.got, call.args[0])),
    "best_microbatches root_down": _root_down,
    "best_microbatches larger_of_equal": _equal,
    "best_microbatches slower": _also(_best, lambda call: min(_times_s(call))),
    "best_microbatches no_int": lambda call: [call.got],
    "best_microbatches no_count": lambda call: [call.got, min(_times_s(call)), max(_times_s(call))],
    "split_batch remainder_dropped": _lost,
    "split_batch samples": _also(
        _sizes, lambda call: sum(size for size, _ in call.got), lambda call: call.args[0]
    ),
    "split_batch remainder_last": _makespans,
    "split_batch equal_weights": _losses,
    "split_batch weights_of_one": lambda call: [
        max(w for _, w in call.got),
        sum(w for _, w in call.got),
    ],
    **_all("split_batch", "empty_piece size_order", _sizes),
    "split_batch uneven": _also(_sizes, _spread),
    "split_batch weight": _weight,
    **_all("split_batch", "swapped_pair no_pairs", _first_piece),
    "split_batch wrong_error": not_named,
    **_all("cause", _RUN_IDS, _run),
    **_all("cause", _WITH_ONE_OVER_M, _also(_run, 1)),
    "cause no_name": _list_given,
}
