"""What is wrong with a backward over a chain of layers, and the mistakes that its calls betray."""

from collections.abc import Callable
from typing import Any

from autograder.checks.unit_04.chains import Tried
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from autograder.oracle_04 import most_held

MOST_NAMES = 2  # activations too many that names left over explain
_FIRST = {"x": "as x", "y": "as y", "gradient": "as gradient"}


def wrong_gradient(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: None where the gradient for x came out, every layer's backward run once."""
    made = got.made
    if got.is_gradient and len(made.backwards) == made.n_layers:
        return None
    if not any(made.forwards) and not made.backwards:
        text = f"{case}: no layer is called at all."
        return Diagnosis("no_work", text, "no layer is called.")
    if made.misuses:
        return _misused(case, got)
    without = [layer for layer in range(made.n_layers) if layer not in made.backwards]
    if without:
        text = (
            f"{case}: {len(without)} of {made.n_layers} layers never run their backward, the "
            f"last of them layer {without[-1]}."
        )
        return Diagnosis("unfinished", text, "not all layers run their backward.")
    what = "None; is a return missing?"
    if got.result is not None:
        what = "something else than what layer 0's backward gave; that is the gradient for x."
    general = "what comes back is not the gradient for x."
    return Diagnosis("no_gradient", f"{case}: it returns {what}", general)


def _misused(case: Case, got: Any) -> Diagnosis:
    kind, layer, what, given = got.made.misuses[0]
    if what == "again":
        text = (
            f"{case}: the backward of layer {layer} runs twice, so its weights' gradient is "
            "counted twice."
        )
        return Diagnosis("again", text, "the backward of a layer runs more than once.")
    due = {"x": f"the input of layer {layer}", "y": f"the output of layer {layer}"}
    needed = due.get(what, f"the gradient for the output of layer {layer}")
    text = f"{case}: layer {layer}.{kind} gets {given} {_FIRST[what]}; it needs {needed}."
    general = f"a layer's {kind} gets something else {_FIRST[what]} than it needs."
    return Diagnosis(f"wrong_{what}", text, general)


def _skips_ahead(got: Tried) -> int | None:
    """The first layer that is gone back through before the one after it; None for none."""
    for misuse in got.made.misuses[:1]:
        backwards = [*got.made.backwards, misuse.layer]
        before = backwards[: backwards.index(misuse.layer)]
        if misuse.what == "gradient" and misuse.layer + 1 not in before:
            return misuse.layer
    return None


def _segments_in_order(case: Case, got: Tried) -> bool:
    """Does the first segment come first, whether it then lacks its input or a gradient?"""
    first = got.made.misuses[:1]
    if first and first[0][:3] == ("forward", 0, "x"):
        return True
    layer = _skips_ahead(got)
    return layer is not None and 2 * layer < got.made.n_layers


def _layers_in_order(case: Case, got: Tried) -> bool:
    """Does a segment's first layer come first? Of two segments the last may be the longer one."""
    layer = _skips_ahead(got)
    return layer is not None and (case.args[1] == 1 or 2 * layer >= got.made.n_layers - 1)


def _where(
    applies: Callable[[int, int], bool], wrong: Callable[[Case, Tried], bool]
) -> Callable[[Answers], bool]:
    """Is every answer wrong in that way where it applies to (layers, segments), else right?"""

    def matches(answers: Answers) -> bool:
        pairs = [pair for pair in answers if applies(*pair[0].args)]
        others = [pair for pair in answers if not applies(*pair[0].args)]
        is_wrong = bool(pairs) and all(wrong(*pair) for pair in pairs)
        return is_wrong and all(wrong_gradient(*pair) is None for pair in others)

    return matches


def _mistake(
    id: str,
    matches: Callable[[Answers], bool],
    sentence: Callable[[Case, Any], str],
    why: str,
) -> Mistake:
    return Mistake(id, matches, lambda case, got: f"{sentence(case, got)} {why}", why)


def _wrong(case: Case, got: Any) -> str:
    found = wrong_gradient(case, got)
    return found.text if found else str(case)


def _leaves_rest(case: Case, got: Tried) -> bool:
    n_layers, n_segments = case.args
    covered = n_layers // n_segments * n_segments
    return not any(got.made.forwards[covered:]) and got.made.forwards[covered - 1] > 0


def _from_output(case: Case, got: Tried) -> bool:
    """Is a segment run again from what came out of it?"""
    first = got.made.misuses[:1]
    return bool(first) and first[0].kind == "forward" and first[0].given == "the last output"


def _last_segment_only(case: Case, got: Tried) -> bool:
    """Of a length that a last segment may have, whichever way the layers are cut."""
    n_layers, n_segments = case.args
    down, up = n_layers // n_segments, -(-n_layers // n_segments)
    lengths = {down, up, n_layers - (n_segments - 1) * up, n_layers % up}
    return not got.made.misuses and len(got.made.backwards) in lengths


GRADIENTS = (
    _mistake(
        "remainder_dropped",
        _where(lambda n, s: n % s > 0, _leaves_rest),
        _wrong,
        "Layers are lost where n_segments does not divide their number.",
    ),
    _mistake(
        "from_output",
        _where(lambda n, s: True, _from_output),
        _wrong,
        "A checkpoint is the input of its segment: keep it before the segment runs, not after.",
    ),
    _mistake(
        "last_segment_only",
        _where(lambda n, s: s > 1, _last_segment_only),
        _wrong,
        "Only the last segment is gone through: does a return stand inside the loop?",
    ),
    _mistake(
        "segments_in_order",
        _where(lambda n, s: s > 1, _segments_in_order),
        _wrong,
        "A backward begins at the end: take the segments from the last to the first.",
    ),
    _mistake(
        "layers_in_order",
        _where(lambda n, s: n > s, _layers_in_order),
        _wrong,
        "A backward begins at the end: inside a segment, too, the last layer comes first.",
    ),
)


def too_many_forwards(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: None where no more than one forward of the whole chain is run again.

    And where this saves something: who holds everything needs no forward again.
    """
    bad = wrong_gradient(case, got)
    if not bad and got.made.peak >= got.made.n_layers:
        return Diagnosis("all_held", KEEPS_ALL.text(case, got), KEEPS_ALL.general)
    if bad or sum(got.made.forwards) <= 2 * got.made.n_layers:
        return bad
    text = f"{_forwards(case, got)} One time more than without checkpoints is enough."
    general = "layers run forward more often than once more than without checkpoints."
    return Diagnosis("more_forwards", text, general)


def _forwards(case: Case, got: Tried) -> str:
    forwards = got.made.forwards
    busiest = forwards.index(max(forwards))
    return (
        f"{case}: {sum(forwards)} forwards of a layer, at most {2 * got.made.n_layers} expected; "
        f"layer {busiest} runs {forwards[busiest]} times."
    )


def _from_the_start(case: Case, got: Tried) -> bool:
    forwards = got.made.forwards
    return forwards[0] > 2 and forwards[0] > forwards[-1] and forwards == sorted(forwards)[::-1]


FORWARDS = (
    _mistake(
        "restarts_at_zero",
        _where(lambda n, s: s > 2, _from_the_start),
        _forwards,
        "Each time you begin again at the very first layer, which in the extreme takes a number of "
        "forwards that grows with the square of the layers; begin at the nearest checkpoint.",
    ),
    _mistake(
        "three_times",
        lambda answers: all(min(got.made.forwards) > 2 for _, got in answers),
        _forwards,
        "No layer runs fewer than three times: a segment is run again for each of two purposes "
        "that one run serves.",
    ),
)


def _peak(case: Case, got: Tried) -> str:
    n_layers, n_segments = case.args
    return (
        f"{case}: at its peak it holds {got.made.peak} activations, at most "
        f"{most_held(n_layers, n_segments)} expected: {n_segments} and one segment of "
        f"{-(-n_layers // n_segments)}."
    )


KEEPS_ALL = _mistake(
    "keeps_all",
    lambda answers: all(got.made.peak >= got.made.n_layers for _, got in answers),
    _peak,
    "That is all of them: outputs inside segments are still referenced, by a list or a name.",
)


def holds_too_many(most_more: int) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: None where the peak is at most so many above what checkpointing holds."""

    def differs(case: Case, got: Any) -> Diagnosis | None:
        bad = wrong_gradient(case, got)
        more = 0 if bad else got.made.peak - most_held(*case.args)
        if bad or more <= most_more:
            return bad
        if more > MOST_NAMES:
            general = "far more activations are held than checkpoints and one segment."
            return Diagnosis("holds_more", f"{_peak(case, got)} What do you still keep?", general)
        why = (
            "A name or a loop variable still holds one that is done with, like the output of the "
            "first pass: `del` it, or stop that pass earlier."
        )
        return Diagnosis("name_left", f"{_peak(case, got)} {why}", why)

    return differs


def wrong_segments(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: None where forwards are run again from as many places as asked."""
    bad = holds_too_many(0)(case, got)
    n_segments = case.args[1]
    as_asked = n_segments - got.made.n_restarts in (0, 1)  # the last one may be kept
    if bad or as_asked or too_many_forwards(case, got):
        return bad  # or what has been told already
    text = f"{_places(case, got)} Cut the layers into as many segments as n_segments says."
    return Diagnosis("other_segments", text, "layers are not cut into n_segments segments.")


def _places(case: Case, got: Tried) -> str:
    n_segments = case.args[1]
    return (
        f"{case}: forwards begin again at {got.made.n_restarts} places, {n_segments} expected, or "
        f"{n_segments - 1} where the last segment is kept."
    )


def _length_for_number(case: Case, got: Tried) -> bool:
    n_layers, n_segments = case.args
    return got.made.n_restarts + 1 - -(-n_layers // n_segments) in (0, 1)


def _rounded_up(case: Case, got: Tried) -> bool:
    """Do lengths rounded up come to that many segments, and hold no more than they may?"""
    n_layers, n_segments = case.args
    n_cut = -(-n_layers // -(-n_layers // n_segments))
    return n_cut - got.made.n_restarts in (0, 1) and got.made.peak <= most_held(*case.args)


def _rest_on_last(case: Case, got: Tried) -> bool:
    """Does the last segment take all that is left over?"""
    n_layers, n_segments = case.args
    last = n_layers - (n_segments - 1) * (n_layers // n_segments)
    return got.made.peak in (n_segments - 1 + last, n_segments + last)


HELD = (
    _mistake(
        "length_for_number",
        lambda answers: all(_length_for_number(case, got) for case, got in answers),
        _places,
        "You take n_segments for the number of layers in a segment; it is how many segments there "
        "are.",
    ),
    _mistake(
        "lengths_rounded_up",
        lambda answers: all(_rounded_up(case, got) for case, got in answers),
        _places,
        "A length rounded up uses the layers before there are as many segments as n_segments says: "
        "let lengths differ by one layer, longer and shorter ones.",
    ),
    _mistake(
        "rest_on_last",
        lambda answers: all(_rest_on_last(case, got) for case, got in answers),
        _peak,
        "All the layers left over lie in your last segment, which makes it long: let segments "
        "differ by one layer at most.",
    ),
    KEEPS_ALL,
)
