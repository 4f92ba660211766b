"""The typical mistakes of unit 04 with sealed runs, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable

from autograder import oracle_04
from autograder.checks.causes import Causes, Seen
from autograder.checks.unit_04.sealed_runs import CAUSES, RUNS, Run

_GRADIENTS = (
    "gradient_evidence",
    "Look at all the gradient errors, the first layers' too: which are far above rounding, and are "
    "they all the same?",
)
_EVIDENCE = {
    "none": (
        "healthy_evidence",
        "Are gradients off by more than rounding, is more held than checkpoints and a segment, or "
        "any layer run more than twice?",
    ),
    "keeps_everything": (
        "held_evidence",
        "Compare the most that is held at once with the number of layers.",
    ),
    "restarts_at_zero": (
        "forward_evidence",
        "How often does each layer run forward, from the first to the last?",
    ),
    "checkpointed_twice": (
        "forward_evidence",
        "How often does each layer run forward, from the first to the last?",
    ),
    "mask_redrawn": _GRADIENTS,
    "no_gradient": _GRADIENTS,
}

ASKED = Causes(
    "memory_cause",
    CAUSES,
    RUNS,
    oracle_04.memory_cause,
    lambda run, got, right: _EVIDENCE[right],
    {
        "what is held, and nothing wrong": ("none", "keeps_everything"),
        "what is run again": ("restarts_at_zero", "checkpointed_twice"),
        "gradients": ("mask_redrawn", "no_gradient"),
    },
    lambda run: f"{len(run[0])} layers",
    'sealed_run({}, "04")',
)


def _taken(cause: str, *given: str) -> Callable[[Seen], bool]:
    """Is exactly one cause missed, each time, always for one of the `given`?"""

    def explains(seen: Seen) -> bool:
        missed = {right for _, right, got in seen if got != right}
        names = [got for _, right, got in seen if right == cause]
        return missed == {cause} and cause not in names and {*names} <= {*given}

    return explains


def _errors_of(place: int) -> Callable[[Seen], bool]:
    """Are gradients taken for right wherever this one layer's is?"""

    def is_right(run: Run) -> bool:
        return run[2][place] <= oracle_04.HEALTHY_ERROR

    return lambda seen: (
        all(
            (got not in ("mask_redrawn", "no_gradient")) if is_right(run) else got == right
            for run, right, got in seen
        )
        and any(got != right for _, right, got in seen)
    )


KNOWN = (
    ASKED.mistake(
        "exact_zero",
        lambda seen: all(got in ("mask_redrawn", "no_gradient") for _, _, got in seen),
        "By your answers no run has right gradients. Adding in another order changes the last "
        "digits: do you allow for that?",
    ),
    ASKED.mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every run: look at the forwards, at what is held and at the "
        "gradient errors.",
    ),
    ASKED.mistake(
        "last_layer_alone",
        _errors_of(-1),
        "You look at the last layer's gradient alone. A last segment that is not run again has "
        "right ones, whatever happens before it.",
    ),
    ASKED.mistake(
        "gradients_ignored",
        lambda seen: all(
            got == right if right not in ("mask_redrawn", "no_gradient") else got == "none"
            for _, right, got in seen
        ),
        "You take no notice of the gradient errors; what is held and run again can be as it "
        "should while they are wrong.",
    ),
    ASKED.mistake(
        "held_ignored",
        _taken("keeps_everything", "none"),
        "You take no notice of what is held: gradients and forwards can be right while nothing is "
        "saved.",
    ),
    ASKED.mistake(
        "more_is_more",
        _taken("checkpointed_twice", "restarts_at_zero"),
        "More forwards than two have two causes: compare the first layers with those in the "
        "middle.",
    ),
    ASKED.mistake(
        "more_is_twice",
        _taken("restarts_at_zero", "checkpointed_twice"),
        "More forwards than two have two causes: compare the first layers with those in the "
        "middle.",
    ),
    ASKED.mistake(
        "lost_for_wrong",
        _taken("no_gradient", "mask_redrawn"),
        "Gradients that are wrong and gradients that are not there look different: by how much is "
        "each of them off?",
    ),
)
