"""The typical mistakes of unit 02 with sealed bills, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable

from autograder import oracle_02
from autograder.checks.causes import Causes, Seen
from autograder.checks.unit_02.sealed_runs import CAUSES, RUNS, Run

_EVIDENCE = {
    "whole_model_everywhere": (
        "layer_evidence",
        "Take each part alone: which one is off? Compare every rank's bytes of it with what all "
        "ranks together should hold.",
    ),
    "remainder_on_last": (
        "layer_evidence",
        "Compare rank by rank: some hold less than planned, others more, and together all is "
        "there.",
    ),
    "float32_weights": (
        "precision_evidence",
        "Divide measured by planned, part by part: which parts changed, and by how much?",
    ),
    "gradients_stop": ("zero_evidence", "Look for parts that are zero, on any rank."),
    "graph_kept": ("activation_evidence", "Compare the activations too, on every rank."),
    "none": (
        "healthy_evidence",
        "Divide measured by planned, part by part and rank by rank: is any of it beyond the noise?",
    ),
}


ASKED = Causes(
    "bill_cause",
    CAUSES,
    RUNS,
    oracle_02.bill_cause,
    lambda run, got, right: _EVIDENCE[right],
    {
        "which layers lie where": ("whole_model_everywhere", "remainder_on_last"),
        "what stands beside the weights": ("float32_weights", "gradients_stop"),
        "healthy bills, and activations": ("none", "graph_kept"),
    },
    lambda run: f"{len(run[0])} ranks",
    'sealed_run({}, "02")',
    "Bill",
)


def _taken(cause: str, *given: str) -> Callable[[Seen], bool]:
    """Is exactly one cause missed, each time, always for one of the `given`, if any are?"""

    def explains(seen: Seen) -> bool:
        missed = {right for _, right, got in seen if got != right}
        names = [got for _, right, got in seen if right == cause]
        return missed == {cause} and cause not in names and (not given or {*names} <= {*given})

    return explains


def _one_rank(rank: int) -> Callable[[Seen], bool]:
    """Are just those bills called healthy whose fault leaves this one rank as planned?"""
    return lambda seen: all(
        got == ("none" if _as_planned(run, rank) else right) for run, right, got in seen
    )


def _as_planned(run: Run, rank: int) -> bool:
    planned, measured = (bills[rank] for bills in run)
    return oracle_02.near([measured[part] for part in planned], list(planned.values()))


KNOWN = (
    ASKED.mistake(
        "first_rank_alone",
        _one_rank(0),
        "You look at the first rank alone: a fault may be on other ranks only.",
    ),
    ASKED.mistake(
        "last_rank_alone",
        _one_rank(-1),
        "You look at the last rank alone: a fault may be on other ranks only.",
    ),
    ASKED.mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every bill: compare measured with planned, part by part.",
    ),
    ASKED.mistake(
        "activations_ignored",
        _taken("graph_kept", "none"),
        "You take no notice of the activations: compare all four parts.",
    ),
    ASKED.mistake(
        "gradients_ignored",
        _taken("gradients_stop", "none"),
        "You take no notice of ranks that keep less than planned: compare all four parts of all "
        "ranks.",
    ),
    ASKED.mistake(
        "sums_alone",
        _taken("remainder_on_last", "none"),
        "You compare sums over the ranks. The same sum may lie on other ranks: compare one by one.",
    ),
    ASKED.mistake(
        "more_weights",
        _taken("float32_weights", "whole_model_everywhere"),
        "More bytes of parameters may be more parameters, or more bytes for each: look at the "
        "gradients as well.",
    ),
    ASKED.mistake(
        "times_n_stages",
        _taken("whole_model_everywhere", "none", "remainder_on_last", "float32_weights"),
        "Ranks are not equal, so the whole model is no fixed multiple of what a rank should hold: "
        "compare with the sum over all ranks.",
    ),
    ASKED.mistake(
        "exact_numbers",
        _taken("none"),
        "You take every healthy bill for a faulty one. Measured numbers lie up to one per cent "
        "above the planned ones: do you allow for that?",
    ),
)
