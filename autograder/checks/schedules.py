"""Is a student's schedule legal, one stage per rank, and if not, what differs?"""

import re
from itertools import pairwise
from typing import Any

from autograder.checks.values import article, shown
from autograder.diagnosis import Case, Diagnosis
from mpedu.schedule import Action, Schedule
from mpedu.validate import validate_schedule

_GENERAL = {
    "not_a_schedule": "the answer is not a list with one list of Action per stage.",
    "n_lists": "the number of lists is not the number of stages.",
    "too_much_work": "a stage's list holds far more work than there is.",
    "wrong_stage": "the second field of an Action must be the stage whose list it stands in.",
    "wrong_kind": "an action is neither a forward (F) nor a backward (B).",
    "empty": "a stage has no work; each runs a forward and a backward of every micro-batch.",
    "out_of_range": "a micro-batch does not exist; they are numbered from zero.",
    "repeated": "some work is done twice.",
    "missing": "some work is missing; each stage runs a forward and a backward of every one.",
    "before_forward": "a backward stands before its own forward.",
    "activation_order": "two neighbouring stages run their forwards in different orders.",
    "gradient_order": "two neighbouring stages run their backwards in different orders.",
    "cycle": "the stages wait for each other: the schedule cannot finish.",
}


def as_schedule(got: object, n_most: int) -> Schedule | None:
    """The answer if it is lists of Action, `n_most` of them or fewer; None for anything else."""
    if not isinstance(got, list) or len(got) > n_most:
        return None
    if not all(isinstance(actions, list) for actions in got) or sum(map(len, got)) > n_most:
        return None
    if not all(type(action) is Action for actions in got for action in actions):
        return None
    return got


def most_work(n_stages: int, n_microbatches: int) -> int:
    """More actions than this are not looked at one by one."""
    return 64 + 4 * n_stages * n_microbatches


def illegal(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, cases of (n_stages, n_microbatches): the first fault, None of a legal one."""
    n_stages, n_microbatches = case.args
    found = _form(got, n_stages, n_microbatches) or _fault(got, n_stages, n_microbatches)
    if found is None:
        return None
    id, sentence = found
    look = f"`show({case.name}, {n_stages}, {n_microbatches})` draws it."
    return Diagnosis(id, f"{case}: {sentence}. {look}", _GENERAL[id])


def _form(got: Any, n_stages: int, n_microbatches: int) -> tuple[str, str] | None:
    """What the lists themselves have wrong, before any work in them is looked at."""
    if got is None:
        return "not_a_schedule", "None came back: a return seems to be missing"
    if not isinstance(got, list):
        return "not_a_schedule", f"{shown(got)} came back; a list with one list per stage is asked"
    if len(got) != n_stages:
        what = "lists" if all(isinstance(entry, list) for entry in got) else "entries, not lists,"
        return "n_lists", f"{len(got)} {what} came back for n_stages={n_stages}"
    for stage, actions in enumerate(got):
        if not isinstance(actions, list):
            return "not_a_schedule", f"stage {stage} is {shown(actions)}, a list of Action is asked"
        if len(actions) > most_work(1, n_microbatches):
            most = 2 * n_microbatches
            return "too_much_work", f"stage {stage} has {len(actions)} entries, {most} are expected"
        for place, action in enumerate(actions):
            problem = _action_problem(stage, action)
            if problem:
                return problem[0], f"stage {stage}, entry {place}: {problem[1]}"
    return None


def _action_problem(stage: int, action: object) -> tuple[str, str] | None:
    if type(action) is not Action:
        what = article(type(action).__name__)
        return "not_a_schedule", f"{what}; give Action(kind, stage, microbatch)"
    if action.kind not in ("F", "B"):
        return "wrong_kind", f"the kind is {action.kind[:20]!r}; 'F' or 'B' is asked"
    if action.stage != stage:
        shown_action = f"Action({action.kind!r}, {action.stage}, {action.microbatch})"
        return "wrong_stage", f"{shown_action}: the second field is the stage whose list this is"
    return None


def _fault(got: Schedule, n_stages: int, n_microbatches: int) -> tuple[str, str] | None:
    """The first fault of the work itself."""
    faults = validate_schedule(got, n_stages, n_microbatches)
    if not faults:
        return None
    kind, _, _, _, text = faults[0]
    if kind == "channel_order":
        return _disagreement(got)
    # Negative numbers are a fault of form to the validator, and a wrong number to a reader.
    id = "out_of_range" if kind == "not_an_action" else kind
    return id, re.sub(r"\brank (?=\d)", "stage ", text)  # here a rank holds one stage, its own


def _disagreement(got: Schedule) -> tuple[str, str]:
    """The first two neighbours whose orders differ, forwards first."""
    for kind in "FB":
        orders = [[a.microbatch for a in actions if a.kind == kind] for actions in got]
        for stage, (here, after) in enumerate(pairwise(orders)):
            if here != after:
                place = next(i for i, (a, b) in enumerate(zip(here, after, strict=True)) if a != b)
                if kind == "F":
                    return "activation_order", _activations(stage, here, after, place)
                return "gradient_order", _gradients(stage, here[place], after[place], place)
    raise ValueError("no neighbours disagree")


def _activations(stage: int, here: list[int], after: list[int], place: int) -> str:
    sent, received = (_from(order, place) for order in (here, after))
    return (
        f"link {stage}->{stage + 1}: stage {stage} sends {sent}, stage {stage + 1} receives "
        f"{received}: its two ends need one order"
    )


def _gradients(stage: int, here: int, after: int, place: int) -> str:
    when = f"as number {place + 1}" if place else "first"
    return (
        f"stage {stage + 1} sends gradient {after} {when}, stage {stage} expects gradient {here} "
        f"{when}: the two ends of link {stage + 1}->{stage} need one order"
    )


def _from(order: list[int], place: int) -> str:
    numbers = ",".join(map(str, order[place : place + 3]))
    return f"{'..' if place else ''}{numbers}{'..' if len(order) > place + 3 else ''}"
