"""The typical mistakes of unit 01 with sealed runs, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

import numpy as np

from autograder.checks.causes import Causes, Seen, wrong_where
from autograder.checks.unit_01.sealed_runs import ELEMENT_BYTES, RUNS
from mpedu.runs import SUM_CAUSES, SumRun

_RESULTS = (
    "results_evidence",
    "Compare what each rank gets with the sum, rank by rank and element by element.",
)
_BYTES = (
    "bytes_evidence",
    "The sums are right. Compare what each rank sent with 2(p-1)/p n, rank by rank.",
)
_TIME = (
    "time_evidence",
    "Sums and bytes are those of a ring. Compare the time with 2(p-1) steps of latency plus the "
    "bytes of one part over the bandwidth.",
)
_EVIDENCE = {
    cause: look
    for cause, look in zip(SUM_CAUSES[1:], (*[_RESULTS] * 3, *[_BYTES] * 2, _TIME), strict=True)
}
_LONG = 1.5  # times a ring's time: far above what uneven parts do, below what a third rank does


def true_cause(run: SumRun) -> str:
    """Which cause all the evidence of a run speaks for."""
    given, total, p = np.array(run.given), np.sum(run.given, axis=0), len(run.given)
    right = [np.array_equal(got, total) for got in run.got]
    n_bytes = ELEMENT_BYTES * len(total)
    if right == [True] + [False] * (p - 1):
        return "only_rank_0"
    if not all(right):
        return (
            "divided"
            if np.allclose(np.array(run.got) * p, np.broadcast_to(total, given.shape))
            else "tail_lost"
        )
    if sum(run.sent_bytes) > 2 * (p - 1) * n_bytes:
        return "whole_arrays"
    if run.sent_bytes[0] == (p - 1) * n_bytes:
        return "through_rank_0"
    return "in_turn" if run.time_s > _LONG * ring_s(run) else "none"


def ring_s(run: SumRun) -> float:
    """Seconds of a ring with parts of one size."""
    p, n_bytes = len(run.given), ELEMENT_BYTES * len(run.given[0])
    return 2 * (p - 1) * (run.latency_s + n_bytes / p / run.bytes_per_s)


ASKED = Causes(
    "sum_cause",
    SUM_CAUSES,
    RUNS,
    true_cause,
    lambda run, got, right: _EVIDENCE[got if right == "none" else right],
    {
        "what comes out": ("only_rank_0", "divided", "tail_lost"),
        "what is sent": ("whole_arrays", "through_rank_0"),
        "when it ends, and healthy runs": ("none", "in_turn"),
    },
    lambda run: f"{len(run.given)} ranks and {len(run.given[0])} elements",
    'print(sealed_run({}, "01"))',
)


def _divides(run: SumRun) -> bool:
    return len(run.given[0]) % len(run.given) == 0


def _uneven_is_slow(seen: Seen) -> bool:
    """Are exactly the healthy runs wrong whose parts are uneven?"""
    return all(
        (got != right) == (right == "none" and not _divides(run)) for run, right, got in seen
    )


KNOWN = (
    ASKED.mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every run: look at what comes out, at the bytes and at the time.",
    ),
    ASKED.mistake(
        "results_alone",
        wrong_where(("whole_arrays", "through_rank_0", "in_turn"), ("none",)),
        "You look at what comes out only. Right sums may cost too many bytes, or too much time.",
    ),
    ASKED.mistake(
        "sum_of_bytes_alone",
        wrong_where(("through_rank_0",), ("none", "in_turn")),
        "All ranks together send as much through rank 0 as on a ring: compare rank by rank.",
    ),
    ASKED.mistake(
        "time_ignored",
        wrong_where(("in_turn",), ("none",)),
        "You take no notice of the time: right sums and right bytes may still come late.",
    ),
    ASKED.mistake(
        "rank_0_alone",
        wrong_where(("only_rank_0",)),
        "You look at what rank 0 gets only: compare every rank.",
    ),
    ASKED.mistake(
        "first_element_alone",
        wrong_where(("tail_lost",)),
        "You look at the beginning only: compare all elements, to the last.",
    ),
    ASKED.mistake(
        "uneven_taken_for_slow",
        _uneven_is_slow,
        "Where the array does not divide by the ranks, healthy parts are uneven: allow bytes and "
        "time a little more than the formula says.",
    ),
)
