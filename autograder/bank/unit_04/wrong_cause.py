"""Wrong answers to unit 04's `memory_cause`: a right one with one thought missing, and others."""

from autograder.bank import Answer

_RIGHT = """
def memory_cause(forwards, held, gradient_errors):
    wrong = [error for error in gradient_errors if error > 1e-4]
    if wrong and all(abs(error - 1) < 1e-6 for error in wrong):
        return "no_gradient"
    if wrong:
        return "mask_redrawn"
    if max(held) >= len(forwards):
        return "keeps_everything"
    if max(forwards) < 3:
        return "none"
    if set(forwards) <= {1, 3}:
        return "checkpointed_twice"
    return "restarts_at_zero"
"""


def _wrong(id: str, source: str, score: int, diagnosis: str = "") -> Answer:
    return Answer(f"cause_{id}", source, {"memory_cause": (score, diagnosis or id)})


def _without(id: str, score: int, *pairs: str, diagnosis: str = "") -> Answer:
    """The right answer with texts replaced, (old, new, old, new, ..)."""
    source = _RIGHT
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{old!r} is not in the right answer")
        source = source.replace(old, new)
    return _wrong(id, source, score, diagnosis)


def _always(cause: object) -> str:
    return f"def memory_cause(forwards, held, gradient_errors):\n    return {cause!r}\n"


_WRONG = "wrong = [error for error in gradient_errors if error > 1e-4]"
WRONG_CAUSES = (
    _without("last_layer_alone", 2, _WRONG,
             "wrong = gradient_errors if gradient_errors[-1] > 1e-4 else []"),
    _without("gradients_ignored", 2, _WRONG, "wrong = []"),
    _without("held_ignored", 2, "max(held) >= len(forwards)", "False"),
    _without("more_is_more", 2, "set(forwards) <= {1, 3}", "False"),
    _without("more_is_twice", 2, "set(forwards) <= {1, 3}", "True"),
    _without("exact_zero", 0, _WRONG, "wrong = [error for error in gradient_errors if error]"),
    _without("lost_for_wrong", 2, "if wrong and all(abs(error - 1) < 1e-6 for error in wrong)",
             "if False"),
    _without("wrong_for_lost", 2, "all(abs(error - 1) < 1e-6 for error in wrong)", "True",
             diagnosis="gradient_evidence"),
    _without("wrong_by_half_only", 2, "error > 1e-4", "error > 2",
             diagnosis="gradient_evidence"),
    _without("all_layers_lost", 2, "for error in wrong)", "for error in gradient_errors)",
             diagnosis="lost_for_wrong"),
    _without("every_second_forward", 2, "max(forwards) < 3", "max(forwards) < 2",
             diagnosis="healthy_evidence"),
    _without("half_held", 1, "max(held) >= len(forwards)", "max(held) > len(forwards) / 2",
             diagnosis="healthy_evidence"),
    _without("sum_of_forwards", 2, "max(forwards) < 3", "sum(forwards) <= 3 * len(forwards)",
             diagnosis="forward_evidence"),
    _without("three_is_twice", 2, "set(forwards) <= {1, 3}", "max(forwards) == 3",
             diagnosis="forward_evidence"),
    _without("wrong_from_one", 2, "error > 1e-4]", "error >= 1]", diagnosis="gradient_evidence"),
    _without("restart_from_four", 2, "max(forwards) < 3", "max(forwards) < 4",
             diagnosis="forward_evidence"),
    _wrong("one_name", _always("none"), 0),
    _wrong("unknown_name", _always("all is well"), 0),
    _wrong("no_name", _always(None), 0),
    _wrong("number", _always(3), 0, "no_name"),
    _without("capitals", 2, '"none"', '"None"', diagnosis="unknown_name"),
)  # fmt: skip
