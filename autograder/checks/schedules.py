"""Is a schedule legal, with the stages of each rank where they belong, and what differs if not?"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from autograder.checks.values import article, shown
from autograder.diagnosis import Case, Diagnosis
from mpedu.schedule import Action, Schedule
from mpedu.simulate import Timeline
from mpedu.validate import validate_schedule

_GENERAL = {
    "not_a_schedule": "the answer is not a list with one list of Action per {rank}.",
    "n_lists": "the number of lists is not the number of {rank}s.",
    "too_much_work": "a {rank}'s list holds far more work than there is.",
    "wrong_stage": "the second field of an Action must be {the stage} whose list it stands in.",
    "wrong_kind": "an action's kind is none of those asked for.",
    "empty": "a {rank} has no work; each runs all of every micro-batch.",
    "out_of_range": "a micro-batch does not exist; they are numbered from zero.",
    "repeated": "some work is done twice.",
    "missing": "some work is missing; each stage runs a forward and a backward of every one.",
    "before_forward": "a backward stands before its own forward.",
    "before_input": "an action stands before another one of its own rank, whose result it needs.",
    "weights_early": "a W stands before its own I.",
    "activation_order": "two neighbouring stages run their forwards in different orders.",
    "gradient_order": "two neighbouring stages run their backwards in different orders.",
    "channel_order": "the two ends of a link need one order.",
    "cycle": "the {rank}s wait for each other: the schedule cannot finish.",
}


class Asked(NamedTuple):
    """The lists that an exercise asks for: the stages of each rank, micro-batches, kinds of work.

    one_each: every rank holds the stage of its own number alone, and is called by it.
    """

    stages: Sequence[Sequence[int]]
    n_microbatches: int
    kinds: str = "FB"
    one_each: bool = True

    @property
    def rank(self) -> str:
        """What a rank is called."""
        return "stage" if self.one_each else "rank"


def looped(n_ranks: int, n_microbatches: int, n_chunks: int, kinds: str = "FB") -> Asked:
    """Lists of ranks that hold every n_ranks-th stage, n_chunks each."""
    stages = [range(rank, n_ranks * n_chunks, n_ranks) for rank in range(n_ranks)]
    return Asked(stages, n_microbatches, kinds, one_each=False)


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
    return illegal_lists(case, got, Asked([[stage] for stage in range(n_stages)], n_microbatches))


def illegal_lists(case: Case, got: Any, asked: Asked) -> Diagnosis | None:
    """The first fault of an answer beside the lists that its case asks for, None of a legal one."""
    found = _form(got, asked) or _fault(got, asked)
    if found is None:
        return None
    id, sentence = found
    look = f"`show({', '.join([case.name, *map(str, case.args)])})` draws it."
    return Diagnosis(id, f"{case}: {sentence}. {look}", general(id, asked))


def general(id: str, asked: Asked) -> str:
    """What is said of a fault in a case that is not shown."""
    the_stage = "the stage" if asked.one_each else "a stage of the rank"
    return _GENERAL[id].replace("{rank}", asked.rank).replace("{the stage}", the_stage)


def _form(got: Any, asked: Asked) -> tuple[str, str] | None:
    """What the lists themselves have wrong, before any work in them is looked at."""
    word, n_ranks = asked.rank, len(asked.stages)
    if got is None:
        return "not_a_schedule", "None came back: a return seems to be missing"
    if not isinstance(got, list):
        return "not_a_schedule", f"{shown(got)} came back; a list with one list per {word} is asked"
    if len(got) != n_ranks:
        what = "lists" if all(isinstance(entry, list) for entry in got) else "entries, not lists,"
        return "n_lists", f"{len(got)} {what} came back for n_{word}s={n_ranks}"
    for rank, actions in enumerate(got):
        if not isinstance(actions, list):
            return "not_a_schedule", f"{word} {rank} is {shown(actions)}, a list of Action is asked"
        n_work = len(asked.stages[rank]) * asked.n_microbatches
        if len(actions) > most_work(1, n_work):
            most = len(asked.kinds) * n_work
            return "too_much_work", f"{word} {rank} has {len(actions)} entries, {most} are expected"
        for place, action in enumerate(actions):
            problem = _action_problem(asked, rank, action)
            if problem:
                return problem[0], f"{word} {rank}, entry {place}: {problem[1]}"
    return None


def _action_problem(asked: Asked, rank: int, action: object) -> tuple[str, str] | None:
    if type(action) is not Action:
        what = article(type(action).__name__)
        return "not_a_schedule", f"{what}; give Action(kind, stage, microbatch)"
    if action.kind not in tuple(asked.kinds):
        *kinds, last = map(repr, asked.kinds)
        return (
            "wrong_kind",
            f"the kind is {action.kind[:20]!r}; {', '.join(kinds)} or {last} is asked",
        )
    if action.stage not in asked.stages[rank]:
        shown_action = f"Action({action.kind!r}, {action.stage}, {action.microbatch})"
        if asked.one_each:
            return (
                "wrong_stage",
                f"{shown_action}: the second field is the stage whose list this is",
            )
        own = " and ".join(map(str, asked.stages[rank]))
        return "wrong_stage", f"{shown_action}: rank {rank} holds the stages {own}"
    return None


def _fault(got: Schedule, asked: Asked) -> tuple[str, str] | None:
    """The first fault of the work itself."""
    faults = validate_schedule(got, sum(map(len, asked.stages)), asked.n_microbatches)
    if not faults:
        return None
    kind, _, stage, microbatch, text = faults[0]
    if kind == "channel_order" and asked.one_each and asked.kinds == "FB":
        return _disagreement(got)
    # Negative numbers are a fault of form to the validator, and a wrong number to a reader.
    id = "out_of_range" if kind == "not_an_action" else kind
    if id == "before_forward" and f"{stage}W{microbatch} stands" in text:
        id, text = "weights_early", f"{text}: W needs its own I first"
    # Where a rank holds one stage, its own, it is called by that.
    return id, re.sub(r"\brank (?=\d)", "stage ", text) if asked.one_each else text


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


def pause_of_last(timeline: Timeline, rank: str) -> str:
    """Where the last one waits: in a fastest schedule of F and B it never does between its boxes.

    rank: what it is called, as `Asked.rank`.
    """
    last = [span for span in timeline.spans if span.rank == timeline.n_ranks - 1]
    last.sort(key=lambda span: span.start_s)
    for before, after in pairwise(last):
        if after.start_s > before.end_s:
            stage = "" if rank == "stage" else after.stage
            return (
                f" The last {rank} need not pause: yours waits from {shown(before.end_s)} to "
                f"{shown(after.start_s)} s, before {stage}{after.kind}{after.microbatch}."
            )
    return ""
