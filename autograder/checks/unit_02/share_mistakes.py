"""The typical mistakes of unit 02's `utilisation`, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle, oracle_02
from autograder.checks.unit_03.timeline_mistakes import described
from autograder.checks.values import (
    Number,
    constant,
    formula_mistake,
    percent,
    rounded,
    shown_apart,
)
from autograder.diagnosis import Case, Mistake
from mpedu.simulate import Timeline


def wrong_share(case: Case, got: Any) -> str:
    """What came back for one timeline, and what was expected."""
    (timeline,) = case.args
    given, right = shown_apart(got, oracle_02.utilisation(timeline))
    return f"{described(timeline)}: utilisation gives {given}, expected {right}."


def _busy_s(timeline: Timeline, rank: int | None = None) -> Number:
    return sum(s.end_s - s.start_s for s in timeline.spans if rank in (None, s.rank))


def _over(timeline: Timeline, makespan_s: Number, n_devices: int) -> Number:
    """The share that follows from another makespan or number of devices; 2 from none."""
    area = makespan_s * n_devices
    return _busy_s(timeline) / area if area else 2


def _busiest(timeline: Timeline) -> Number:
    busy_s = max(_busy_s(timeline, rank) for rank in range(timeline.n_ranks))
    return busy_s / oracle.makespan_s(timeline)


def _own_windows(timeline: Timeline) -> Number:
    """The mean over devices of busy time over their own first start to last end."""
    shares: list[Number] = []
    for rank in range(timeline.n_ranks):
        own = [span for span in timeline.spans if span.rank == rank]
        window_s = max((s.end_s for s in own), default=1) - min((s.start_s for s in own), default=0)
        shares.append(_busy_s(timeline, rank) / window_s)
    return sum(shares) / timeline.n_ranks


def _boxes(timeline: Timeline) -> Number:
    return len(timeline.spans) / (timeline.n_ranks * oracle.makespan_s(timeline))


def _mistake(id: str, formulas: Sequence[Callable[[Timeline], Number]], why: str) -> Mistake:
    return formula_mistake(id, formulas, lambda case, got: f"{wrong_share(case, got)} {why}", why)


SHARES = (
    _mistake(
        "idle_for_busy",
        [oracle.idle_share],
        "That is the idle share; utilisation is what is left of the whole.",
    ),
    _mistake(
        "busy_devices",
        [lambda timeline: oracle_02.utilisation(timeline) * timeline.n_ranks],
        "That is how many devices are busy on average; a share divides by their number too.",
    ),
    _mistake(
        "busiest_device",
        [_busiest],
        "That is the utilisation of the busiest device alone; every device counts.",
    ),
    _mistake(
        "own_windows",
        [_own_windows],
        "You took each device from its own first box to its own last: waiting before and after "
        "counts too.",
    ),
    _mistake(
        "boxes",
        [_boxes],
        "You counted boxes; they differ in length: add up end_s - start_s.",
    ),
    _mistake(
        "one_over_n",
        [lambda timeline: 1 / timeline.n_ranks],
        "One over the number of devices is right where one works at a time; count the boxes, so "
        "that it is right for any timeline.",
    ),
    constant(
        lambda case, got: (
            f"{wrong_share(case, got)} Yours is the same for every timeline: compute it from the "
            "spans."
        )
    ),
    rounded(oracle_02.utilisation, wrong_share),
    percent(oracle_02.utilisation, wrong_share),
)
EDGES = (
    _mistake(
        "late_clock",
        [lambda t: _over(t, max(span.end_s for span in t.spans), t.n_ranks)],
        "The clock need not start at zero: makespan is the last end minus the first start.",
    ),
    _mistake(
        "devices_seen",
        [lambda t: _over(t, oracle.makespan_s(t), len({span.rank for span in t.spans}))],
        "You counted the devices that have boxes; one without work is paid for too: use n_ranks.",
    ),
    _mistake(
        "list_order",
        [lambda t: _over(t, t.spans[-1].end_s - t.spans[0].start_s, t.n_ranks)],
        "The spans come in any order; look for the first start and the last end among all.",
    ),
)
