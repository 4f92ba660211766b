"""The typical mistakes of unit 02 with sealed bills, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable
from typing import Any

from autograder import oracle_02
from autograder.checks.unit_02.sealed_runs import CAUSES, public_runs
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake

GROUPS = {
    "which layers lie where": ("whole_model_everywhere", "remainder_on_last"),
    "what stands beside the weights": ("float32_weights", "gradients_stop"),
    "healthy bills, and activations": ("none", "graph_kept"),
}
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


def differs_cause(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: which evidence a wrong cause overlooks, None for the right one."""
    if not isinstance(got, str):
        text = f"{_gives(case, got)}; the name of a cause is asked, a str."
        return Diagnosis("no_name", text, "bill_cause gives no str; the name of a cause is asked.")
    if got not in CAUSES:
        text = f"{_gives(case, got)}, which is no cause; the causes are {', '.join(CAUSES)}."
        return Diagnosis("unknown_name", text, "the name is not among the causes listed.")
    right = oracle_02.bill_cause(*case.args)
    if got == right:
        return None
    id, look = _EVIDENCE[right]
    return Diagnosis(id, f"{_gives(case, got)}. {look}", f"a cause is not the right one. {look}")


def named(case: Case) -> str:
    """A bill by its number, with the way to look at it, where it is a public one."""
    number = next((n for n, known in public_runs().items() if known == case.args), None)
    return f'Bill {number} (`sealed_run({number}, "02")`)' if number else "Bill"


def _gives(case: Case, got: Any) -> str:
    given = repr(got) if isinstance(got, str) and len(got) <= 40 else shown(got)
    return f"{named(case)} of {len(case.args[0])} ranks: bill_cause gives {given}"


Seen = list[tuple[str, str]]  # right cause, answer


def _mistake(id: str, explains: Callable[[Seen], bool], why: str) -> Mistake:
    def matches(answers: Answers) -> bool:
        return explains([(oracle_02.bill_cause(*case.args), got) for case, got in answers])

    return Mistake(id, matches, lambda case, got: f"{_gives(case, got)}. {why}", why)


def _taken(cause: str, *given: str) -> Callable[[Seen], bool]:
    """Is exactly one cause missed, each time, always for one of the `given`, if any are?"""

    def explains(seen: Seen) -> bool:
        missed = {right for right, got in seen if got != right}
        names = [got for right, got in seen if right == cause]
        return missed == {cause} and cause not in names and (not given or {*names} <= {*given})

    return explains


def _one_rank(id: str, rank: int, word: str) -> Mistake:
    """Seen when just those bills are called healthy whose fault leaves this one rank as planned."""

    def matches(answers: Answers) -> bool:
        return all(
            got == ("none" if _as_planned(case, rank) else oracle_02.bill_cause(*case.args))
            for case, got in answers
        )

    why = f"You look at the {word} rank alone: a fault may be on other ranks only."
    return Mistake(id, matches, lambda case, got: f"{_gives(case, got)}. {why}", why)


def _as_planned(case: Case, rank: int) -> bool:
    planned, measured = (bills[rank] for bills in case.args)
    return oracle_02.near([measured[part] for part in planned], list(planned.values()))


KNOWN = (
    _one_rank("first_rank_alone", 0, "first"),
    _one_rank("last_rank_alone", -1, "last"),
    _mistake(
        "one_name",
        lambda seen: len({got for _, got in seen}) == 1,
        "Yours is the same for every bill: compare measured with planned, part by part.",
    ),
    _mistake(
        "activations_ignored",
        _taken("graph_kept", "none"),
        "You take no notice of the activations: compare all four parts.",
    ),
    _mistake(
        "gradients_ignored",
        _taken("gradients_stop", "none"),
        "You take no notice of ranks that keep less than planned: compare all four parts of all "
        "ranks.",
    ),
    _mistake(
        "sums_alone",
        _taken("remainder_on_last", "none"),
        "You compare sums over the ranks. The same sum may lie on other ranks: compare one by one.",
    ),
    _mistake(
        "more_weights",
        _taken("float32_weights", "whole_model_everywhere"),
        "More bytes of parameters may be more parameters, or more bytes for each: look at the "
        "gradients as well.",
    ),
    _mistake(
        "times_n_stages",
        _taken("whole_model_everywhere", "none", "remainder_on_last", "float32_weights"),
        "Ranks are not equal, so the whole model is no fixed multiple of what a rank should hold: "
        "compare with the sum over all ranks.",
    ),
    _mistake(
        "exact_numbers",
        _taken("none"),
        "You take every healthy bill for a faulty one. Measured numbers lie up to one per cent "
        "above the planned ones: do you allow for that?",
    ),
)


def known_mistakes(answers: Answers) -> list[Mistake]:
    """The mistakes that explain all answers, told alike in every group of them."""
    if not all(isinstance(got, str) and got in CAUSES for _, got in answers):
        return []
    wrong = [(case, got) for case, got in answers if got != oracle_02.bill_cause(*case.args)]
    if not wrong:
        return []
    told = [(mistake, mistake.text(*wrong[0])) for mistake in KNOWN if mistake.matches(answers)]
    return [
        mistake._replace(matches=lambda _: True, text=lambda *_, text=text: text)
        for mistake, text in told
    ]
