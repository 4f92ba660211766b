"""The typical mistakes of unit 03's `idle_share`, and the sentences they draw."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from autograder import oracle
from autograder.checks.values import (
    Number,
    constant,
    formula_mistake,
    percent,
    rounded,
    shown,
    shown_apart,
)
from autograder.diagnosis import Case, Mistake
from mpedu.simulate import Timeline


def wrong_share(case: Case, got: Any) -> str:
    """What came back for one timeline, and what was expected."""
    (timeline,) = case.args
    given, right = shown_apart(got, oracle.idle_share(timeline))
    return f"{described(timeline)}: idle_share gives {given}, expected {right}."


def described(timeline: Timeline) -> str:
    """A timeline in words: devices, boxes, clock, work."""
    start_s, end_s = _clock(timeline)
    return (
        f"A timeline of {timeline.n_ranks} device{'s' * (timeline.n_ranks > 1)} and "
        f"{len(timeline.spans)} boxes, from {shown(start_s)} to {shown(end_s)} s, "
        f"{shown(sum(_busy_s(timeline)))} s of work"
    )


def _clock(timeline: Timeline) -> tuple[Number, Number]:
    return min(s.start_s for s in timeline.spans), max(s.end_s for s in timeline.spans)


def _busy_s(timeline: Timeline) -> list[Number]:
    busy_s: list[Number] = [0] * timeline.n_ranks
    for span in timeline.spans:
        busy_s[span.rank] += span.end_s - span.start_s
    return busy_s


def _share(timeline: Timeline, makespan_s: Number, n_devices: int) -> Number:
    """The idle share that follows from another makespan or number of devices; 2 from none."""
    area = makespan_s * n_devices
    return 1 - sum(_busy_s(timeline)) / area if area else 2


def _over_busy(timeline: Timeline) -> Fraction:
    share = oracle.idle_share(timeline)
    return share / (1 - share)


def _busiest(timeline: Timeline) -> Number:
    return 1 - max(_busy_s(timeline)) / oracle.makespan_s(timeline)


def _boxes(timeline: Timeline) -> Number:
    return 1 - len(timeline.spans) / (timeline.n_ranks * oracle.makespan_s(timeline))


def _closed_form(timeline: Timeline) -> Number:
    n_microbatches = len({span.microbatch for span in timeline.spans})
    return oracle.bubble_fraction(timeline.n_ranks, n_microbatches)


def _inner_gaps(timeline: Timeline) -> list[tuple[Number, Number]]:
    """Per device with work: seconds it waits between its first and its last box, and both ways."""
    gaps = []
    for rank, busy_s in enumerate(_busy_s(timeline)):
        own = [span for span in timeline.spans if span.rank == rank]
        if own:
            window_s = max(span.end_s for span in own) - min(span.start_s for span in own)
            gaps.append((window_s - busy_s, window_s))
    return gaps


def _gaps_of_area(timeline: Timeline) -> Number:
    area = timeline.n_ranks * oracle.makespan_s(timeline)
    return sum(gap_s for gap_s, _ in _inner_gaps(timeline)) / area


def _mean_of_gaps(timeline: Timeline) -> Number:
    return sum(gap_s / window_s for gap_s, window_s in _inner_gaps(timeline)) / timeline.n_ranks


def _gaps_of_windows(timeline: Timeline) -> Number:
    gaps = _inner_gaps(timeline)
    return sum(gap_s for gap_s, _ in gaps) / sum(window_s for _, window_s in gaps)


def _mistake(id: str, formulas: Sequence[Callable[[Timeline], Number]], why: str) -> Mistake:
    return formula_mistake(id, formulas, lambda case, got: f"{wrong_share(case, got)} {why}", why)


def _over_busy_text(case: Case, got: Any) -> str:
    (timeline,) = case.args
    share = oracle.idle_share(timeline)
    return (
        f"{wrong_share(case, got)} {shown(got)} = {_over_busy(timeline)} is the ratio to ideal "
        f"time; asked is the share of total, {share}."
    )


def _boxes_text(case: Case, got: Any) -> str:
    (timeline,) = case.args
    longest_s = max(span.end_s - span.start_s for span in timeline.spans)
    return (
        f"{wrong_share(case, got)} A box here takes up to {shown(longest_s)} s, you counted boxes: "
        "add up end_s - start_s."
    )


def _late_clock_text(case: Case, got: Any) -> str:
    start_s, _ = _clock(case.args[0])
    return (
        f"{wrong_share(case, got)} The clock starts at {shown(start_s)} s: makespan is the last "
        "end minus the first start."
    )


SHARES = (
    formula_mistake(
        "over_busy",
        [_over_busy],
        _over_busy_text,
        "this is the ratio to ideal time, idle over busy; asked is the share of total.",
    ),
    formula_mistake(
        "boxes", [_boxes], _boxes_text, "boxes were counted; they differ in length: add up seconds."
    ),
    _mistake(
        "inner_gaps",
        [_gaps_of_area, _mean_of_gaps, _gaps_of_windows],
        "You left out waiting before the first and after the last box: a bubble includes ramp-up "
        "and drain.",
    ),
    _mistake(
        "busiest_device",
        [_busiest],
        "That is the idle share of the busiest device alone; every device counts.",
    ),
    _mistake(
        "busy_share",
        [lambda timeline: 1 - oracle.idle_share(timeline)],
        "That is the busy share; idle is what is left of the whole.",
    ),
    _mistake(
        "closed_form",
        [_closed_form],
        "Your numbers follow the formula of GPipe with equal stages; count the boxes instead.",
    ),
    constant(
        lambda case, got: (
            f"{wrong_share(case, got)} Yours is the same for every timeline: compute it from the "
            "spans."
        )
    ),
    rounded(oracle.idle_share, wrong_share),
    percent(oracle.idle_share, wrong_share),
)
EDGES = (
    formula_mistake(
        "late_clock",
        [lambda t: _share(t, _clock(t)[1], t.n_ranks)],
        _late_clock_text,
        "the clock may start late: makespan is the last end minus the first start.",
    ),
    _mistake(
        "devices_seen",
        [lambda t: _share(t, oracle.makespan_s(t), len({span.rank for span in t.spans}))],
        "You counted the devices that have boxes; one without work idles too: use n_ranks.",
    ),
    _mistake(
        "list_order",
        [lambda t: _share(t, t.spans[-1].end_s - t.spans[0].start_s, t.n_ranks)],
        "The spans come in any order; look for the first start and the last end among all.",
    ),
)
