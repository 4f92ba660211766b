"""The typical mistakes of unit 03's schedules, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

from autograder import oracle
from autograder.checks.schedules import as_schedule, illegal, most_work, pause_of_last
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, each
from mpedu.families import naive
from mpedu.schedule import Action, Schedule
from mpedu.simulate import Costs, simulate, simulate_until_stuck

UNIT_COSTS = Costs(forward_s=1, backward_s=2)  # whole numbers: exact, and the ones of the text


def legal(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    """Whether a schedule of these counts can run, one stage per rank."""
    return illegal(Case("gpipe", (n_stages, n_microbatches)), schedule) is None


def seen_in(matches_one: Callable[[Schedule, int, int], bool]) -> Callable[[Answers], bool]:
    """`matches` of a mistake that must be seen in every answer, each being lists of Action."""

    def matches(case: Case, got: Any) -> bool:
        schedule = as_schedule(got, most_work(*case.args))
        return schedule is not None and matches_one(schedule, *case.args)

    return each(matches)


def _shifted(schedule: Schedule, stages: int = 0, microbatches: int = 0) -> Schedule:
    return [[Action(k, s + stages, m + microbatches) for k, s, m in acts] for acts in schedule]


def _fields_swapped(schedule: Schedule) -> Schedule:
    return [[Action(kind, m, stage) for kind, stage, m in actions] for actions in schedule]


def _one_list_for_all(answers: Answers) -> bool:
    several = [got for case, got in answers if case.args[0] > 1]
    return bool(several) and all(
        isinstance(got, list) and len(got) > 1 and all(actions is got[0] for actions in got)
        for got in several
    )


def _no_work(case: Case, got: Any) -> bool:
    if not isinstance(got, list) or len(got) != case.args[0]:
        return False
    return all(isinstance(actions, list) and not actions for actions in got)


def _missing_text(case: Case, got: Any) -> str:
    n_stages, n_microbatches = case.args
    last = f"..F{n_microbatches - 1}" if n_microbatches > 2 else ""
    return (
        f"{case}: stage {min(2, n_stages - 1)} never runs F1{last}. Only micro-batch 0 is used: "
        "is the inner loop missing?"
    )


def _beyond_text(case: Case, got: Any) -> str:
    n = case.args[1]
    return (
        f"{case}: micro-batch {n} does not exist (n_microbatches={n} means 0..{n - 1}) and 0 is "
        "missing."
    )


def _shifted_text(case: Case, got: Any) -> str:
    kind, held, _ = got[-1][0]
    return (
        f"{case}: stage {len(got) - 1} holds Action({kind!r}, {held}, ..): second field must be "
        "the stage whose list this is."
    )


def _swapped_text(case: Case, got: Any) -> str:
    kind, held, m = got[-1][0]
    return (
        f"{case}: stage {len(got) - 1} holds Action({kind!r}, {held}, {m}): the stage comes "
        "second, the micro-batch third; yours look swapped."
    )


def _shift_mistake(by: int) -> Mistake:
    return Mistake(
        "stage_shifted",
        seen_in(lambda schedule, k, m: legal(_shifted(schedule, stages=-by), k, m)),
        _shifted_text,
        "the second field of an Action must be the stage whose list it stands in.",
    )


LEGAL = (
    Mistake(
        "shared_list",
        _one_list_for_all,
        lambda case, got: (
            f"{case}: all stages are the same list object; changing one changes all. "
            "Make a new one for each stage, inside the loop; `[x] * n_stages` repeats one list."
        ),
        "all stages are the same list object; changing one changes all.",
    ),
    Mistake(
        "no_work",
        each(_no_work),
        lambda case, got: (
            f"{case}: no work: your list for stage 0 is empty, {2 * case.args[1]} actions expected."
        ),
        "no work: the lists are empty.",
    ),
    Mistake(
        "one_microbatch",
        seen_in(lambda schedule, k, m: legal(schedule, k, 1)),
        _missing_text,
        "only the first micro-batch is used: is the inner loop missing?",
    ),
    Mistake(
        "off_by_one",
        seen_in(lambda schedule, k, m: legal(_shifted(schedule, microbatches=-1), k, m)),
        _beyond_text,
        "micro-batches are numbered from zero; yours start one higher.",
    ),
    _shift_mistake(-1),
    _shift_mistake(1),
    Mistake(
        "fields_swapped",
        seen_in(lambda schedule, k, m: legal(_fields_swapped(schedule), k, m)),
        _swapped_text,
        "the fields stage and microbatch of an Action look swapped.",
    ),
    Mistake(
        "arguments_swapped",
        seen_in(lambda schedule, k, m: legal(schedule, m, k)),
        lambda case, got: (
            f"{case}: {len(got)} lists came back for n_stages={case.args[0]}: the arguments look "
            "swapped."
        ),
        "the arguments n_stages and n_microbatches look swapped.",
    ),
)


def first_late_forward(schedule: Schedule) -> tuple[Action, Action] | None:
    """The first forward after a backward of its stage, and that backward; None in GPipe."""
    for actions in schedule:
        backward = None
        for action in actions:
            if action.kind == "B":
                backward = backward or action
            elif backward:
                return action, backward
    return None


def late_forward(case: Case, got: Schedule) -> str:
    """The first forward that comes too late, in words, "" in GPipe."""
    late = first_late_forward(got)
    if late is None:
        return ""
    forward, backward = late
    return (
        f"{case}: F{forward.microbatch} on stage {forward.stage} comes after B{backward.microbatch}"
    )


def _piece_by_piece(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    return all(
        (forward.kind, backward.kind) == ("F", "B") and forward[1:] == backward[1:]
        for actions in schedule
        for forward, backward in zip(actions[::2], actions[1::2], strict=False)
    )


def _naive_text(case: Case, got: Any) -> str:
    slow = oracle.makespan_s(simulate_until_stuck(naive(*case.args), UNIT_COSTS))
    fast = oracle.least_makespan_s(*case.args)
    return (
        f"{late_forward(case, got)}: that is the naive order (unit 02). GPipe finishes all "
        f"forwards first. Makespan {shown(slow)}, GPipe needs {shown(fast)}."
    )


FORWARDS_FIRST = (
    Mistake(
        "naive_order",
        seen_in(_piece_by_piece),
        _naive_text,
        "each forward is followed by its own backward: that is the naive order. GPipe finishes "
        "all forwards first.",
    ),
)


def slow(case: Case, got: Any, costs: list[tuple[int, int]]) -> Diagnosis | None:
    """For `examine`: a makespan longer than it must be at some of the costs, None for the least."""
    fault = illegal(case, got)
    if fault:
        why = fault.text.removeprefix(f"{case}: ")
        text = f"{case}: not a legal schedule, so it has no makespan: {why}"
        return Diagnosis("illegal", text, f"not a legal schedule: {fault.general}")
    n_stages, n_microbatches = case.args
    for forward_s, backward_s in costs:
        timeline = simulate(got, Costs(forward_s, backward_s))
        least_s = oracle.least_makespan_s(n_stages, n_microbatches, (forward_s, backward_s))
        if timeline.makespan_s > least_s:
            text = (
                f"{case}: makespan {shown(timeline.makespan_s)} at costs {forward_s} and "
                f"{backward_s}; {shown(least_s)} is possible." + pause_of_last(timeline, "stage")
            )
            return Diagnosis("slow", text, "the makespan is longer than it must be.")
    return None
