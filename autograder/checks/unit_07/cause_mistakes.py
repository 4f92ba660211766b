"""The typical mistakes of unit 07 with sealed runs, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

import numpy as np

from autograder.checks.causes import Causes, Seen, wrong_where
from autograder.checks.unit_07.sealed_runs import RUNS
from mpedu.runs import ENGINE_CAUSES, EngineRun
from mpedu.schedule import peak_in_flight

_NOISE = 1e-6
_RATIOS = (
    "ratio_evidence",
    "Compare the ratios with the shares of the samples, micro-batch by micro-batch, in the order "
    "of the backwards.",
)
_ACROSS = (
    "across_evidence",
    "Something is in the gradients that belongs to no micro-batch. On which stages, and what does "
    "the number of kept micro-batches say?",
)
_HELD = (
    "held_evidence",
    "The gradients are right, and the record is the list. Compare what each rank kept at most with "
    "what its list needs.",
)
_RECORD = ("record_evidence", "Compare what each rank did with its list, entry by entry.")
_EVIDENCE = {
    "not_divided": _RATIOS,
    "overwritten": _RATIOS,
    "reduced_each_time": _RATIOS,
    "own_gradient": _ACROSS,
    "one_buffer": _ACROSS,
    "never_freed": _HELD,
    "other_order": _RECORD,
}


def true_cause(run: EngineRun) -> str:
    """Which cause all the evidence of a run speaks for."""
    if run.record != run.schedule:
        return "other_order"
    is_held = list(run.held) == peak_in_flight(run.schedule)
    if max(run.across) > _NOISE:
        return "own_gradient" if is_held else "one_buffer"
    due, ratios = np.array(run.sizes) / sum(run.sizes), np.array(run.ratios)
    if np.allclose(ratios, due):
        return "none" if is_held else "never_freed"
    if np.allclose(ratios, 1):
        return "not_divided"
    return "overwritten" if np.isclose(ratios, 0).any() else "reduced_each_time"


ASKED = Causes(
    "engine_cause",
    ENGINE_CAUSES,
    RUNS,
    true_cause,
    lambda run, got, right: _EVIDENCE[got if right == "none" else right],
    {
        "how much of each micro-batch": ("not_divided", "overwritten", "reduced_each_time"),
        "what a backward used": ("own_gradient", "one_buffer"),
        "order, memory, and healthy runs": ("none", "never_freed", "other_order"),
    },
    lambda run: f"{len(run.schedule)} ranks and {len(run.sizes)} micro-batches",
    'print(sealed_run({}, "07"))',
)


def _sizes_ignored(seen: Seen) -> bool:
    """Are exactly the runs wrong whose gradients are right and whose sizes differ?"""
    return all(
        (got != right) == (right in ("none", "never_freed") and len(set(run.sizes)) > 1)
        for run, right, got in seen
    )


KNOWN = (
    ASKED.mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every run: look at the record, the ratios, what is across, and what "
        "was kept.",
    ),
    ASKED.mistake(
        "record_ignored",
        wrong_where(("other_order",), ("none", "never_freed")),
        "You take no notice of the record. Right gradients do not prove that the list was run.",
    ),
    ASKED.mistake(
        "memory_ignored",
        wrong_where(("never_freed",), ("none",)),
        "You take no notice of what is kept. Right gradients may still cost too much memory.",
    ),
    ASKED.mistake(
        "gradients_alone",
        wrong_where(("never_freed", "other_order"), ("none",)),
        "You look at the gradients only. What was done, and what was kept, counts as well.",
    ),
    ASKED.mistake(
        "across_one_cause",
        lambda seen: any(
            wrong_where((right,), (got,))(seen)
            for right, got in (("own_gradient", "one_buffer"), ("one_buffer", "own_gradient"))
        ),
        "Two causes put something across into the gradients, and you always name one of them: what "
        "was kept tells which.",
    ),
    ASKED.mistake(
        "zeros_ignored",
        wrong_where(("overwritten",), ("reduced_each_time", "not_divided", "none")),
        "Look for ratios of zero: micro-batches of which nothing is left.",
    ),
    ASKED.mistake(
        "growth_ignored",
        wrong_where(("reduced_each_time",), ("not_divided", "overwritten", "none")),
        "Ratios may be too large by one factor for all, or by another one for each: compare them "
        "in the order of the backwards.",
    ),
    ASKED.mistake(
        "equal_shares",
        _sizes_ignored,
        "Sizes may differ: a ratio should be the micro-batch's share of the samples.",
    ),
)
