"""The typical mistakes of unit 06 with sealed timelines, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable

from autograder import oracle_06
from autograder.checks.causes import Causes, Seen
from autograder.checks.unit_06.sealed_runs import CAUSES, RUNS

_EVIDENCE = {
    "contiguous_chunks": (
        "placement_evidence",
        "Which stages does each rank hold? Compare with the stages it should hold.",
    ),
    "weights_lost": (
        "count_evidence",
        "Count the boxes of each kind: is every piece of work there, on every rank?",
    ),
    "weights_last": (
        "order_evidence",
        "When does each rank run its W, before or after its last I? Look at every rank, and at "
        "the times: boxes come in any order.",
    ),
    "slow_link": (
        "message_evidence",
        "Compare the end of an F with the start of the next stage's F that needs it, for the "
        "receivers that wait least.",
    ),
    "slow_rank": (
        "length_evidence",
        "Compare the lengths of the boxes of one kind over all ranks.",
    ),
}

ASKED = Causes(
    "timeline_cause",
    CAUSES,
    RUNS,
    oracle_06.timeline_cause,
    lambda run, got, right: _EVIDENCE[got if right == "none" else right],
    {
        "where stages lie, and what never ran": ("contiguous_chunks", "weights_lost"),
        "what takes long": ("slow_link", "slow_rank"),
        "healthy runs, and the order of W": ("none", "weights_last"),
    },
    lambda run: f"{run.n_ranks} ranks and {len(run.spans)} boxes",
    'show(sealed_run({}, "06"))',
)


def _taken(cause: str, *given: str) -> Callable[[Seen], bool]:
    """Is exactly one cause missed, each time, always for one of the `given`, if any are?"""

    def explains(seen: Seen) -> bool:
        missed = {right for _, right, got in seen if got != right}
        names = [got for _, right, got in seen if right == cause]
        return missed == {cause} and cause not in names and (not given or {*names} <= {*given})

    return explains


KNOWN = (
    ASKED.mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every run: read it from the boxes.",
    ),
    ASKED.mistake(
        "placement_ignored",
        _taken("contiguous_chunks"),
        "You take no notice of which stages stand on which rank.",
    ),
    ASKED.mistake(
        "counts_ignored",
        _taken("weights_lost", "none", "weights_last"),
        "You take no notice of work that never ran: nothing waits for it, so it leaves no gap. "
        "Count the boxes of each kind.",
    ),
    ASKED.mistake(
        "order_ignored",
        _taken("weights_last", "none"),
        "You take no notice of when each W runs: its time says it, not its place among the boxes.",
    ),
    ASKED.mistake(
        "messages_ignored",
        _taken("slow_link", "none"),
        "You take no notice of the time between a result and its use on the next rank.",
    ),
    ASKED.mistake(
        "lengths_ignored",
        _taken("slow_rank", "none"),
        "You take no notice of how long boxes are on different ranks.",
    ),
    ASKED.mistake(
        "healthy_missed",
        _taken("none"),
        "You take every healthy run for a faulty one. F, I and W may differ in length, ranks wait "
        "in healthy runs too, and on some ranks W comes late by plan.",
    ),
)
