"""What can be wrong with unit 02's `naive`, once its lists are legal."""

import re
from typing import Any

from autograder import oracle_02
from autograder.checks.schedules import as_schedule, illegal, most_work
from autograder.checks.unit_03.schedule_mistakes import LEGAL as LEGAL
from autograder.checks.values import shown
from autograder.diagnosis import Case, Diagnosis, Mistake, each
from mpedu.schedule import Action, peak_in_flight
from mpedu.simulate import Costs, simulate_until_stuck


def cannot_run(case: Case, got: Any) -> Diagnosis | None:
    """`illegal`, with a look at the list where a drawing would show no fault."""
    fault = illegal(case, got)
    if fault is None or fault.id != "wrong_stage":
        return fault
    n_stages, n_microbatches = case.args
    text, _, _ = fault.text.partition(" `show(")
    where = re.search(r"stage (\d+), entry", text)
    look = f" `print({case.name}({n_stages}, {n_microbatches})[{where[1] if where else 0}])` "
    return fault._replace(text=f"{text}{look}shows that list; the lists' order is the stages'.")


def not_naive(case: Case, got: Any) -> str:
    """What to add where a legal schedule is none that the next check takes; "" elsewhere."""
    if illegal(case, got) or max(peak_in_flight(got)) == 1:
        return ""
    return (
        " And one thing more: your schedule can run, but it is not the naive one yet; "
        '`check("naive_busy")` says what differs.'
    )


def not_legal(case: Case, got: Any) -> Diagnosis | None:
    """For a check that needs a legal schedule: what keeps it from being one."""
    fault = cannot_run(case, got)
    if fault is None:
        return None
    why = fault.text.removeprefix(f"{case}: ")
    text = f"{case}: not a legal schedule, so it keeps no device busy: {why}"
    return Diagnosis("illegal", text, f"not a legal schedule: {fault.general}")


def too_busy(case: Case, got: Any, costs: list[tuple[int, int]]) -> Diagnosis | None:
    """For `examine`: devices busy other than one K-th of the time, at some of the costs."""
    fault = not_legal(case, got)
    if fault:
        return fault
    n_stages = case.args[0]
    for forward_s, backward_s in costs:
        timeline = simulate_until_stuck(got, Costs(forward_s, backward_s))
        busy = oracle_02.utilisation(timeline)
        if busy * n_stages != 1:
            text = (
                f"{case}: devices are busy {shown(busy)} of the time, naive keeps them busy "
                f"1/{n_stages}.{_overlap(got)} `show({case.name}, {n_stages}, {case.args[1]})` "
                "draws it."
            )
            general = "devices are busy other than one K-th of the time: work overlaps."
            return Diagnosis("overlaps", text, general)
    return None


def _overlap(got: list[list[Action]]) -> str:
    """The first stage and piece that another piece's work comes between, in words."""
    for actions in got:
        for first, second in zip(actions[::2], actions[1::2], strict=False):
            if first[1:] != second[1:]:
                return (
                    f" On stage {first.stage} {second.kind}{second.microbatch} follows "
                    f"{first.kind}{first.microbatch}: one piece starts before another is done."
                )
    return ""


def holds_more(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a stage that holds activations of several micro-batches at once."""
    fault = not_legal(case, got)
    if fault:
        return fault
    peaks = peak_in_flight(got)
    most = max(peaks)
    if most == 1:
        return None
    text = (
        f"{case}: stage {peaks.index(most)} holds activations of {most} micro-batches at once; "
        "naive holds 1. Each forward is followed by its own backward."
    )
    general = "a stage holds several micro-batches at once; naive holds one."
    return Diagnosis("holds_more", text, general)


def _all_forwards_first(case: Case, got: Any) -> bool:
    schedule = as_schedule(got, most_work(*case.args))
    if schedule is None:
        return False
    n = case.args[1]
    return all([a.kind for a in actions] == ["F"] * n + ["B"] * n for actions in schedule)


BUSY = (
    Mistake(
        "all_forwards_first",
        each(_all_forwards_first),
        lambda case, got: (
            f"{case}: every stage runs all its forwards before its first backward. That is GPipe, "
            "of unit 03: pieces overlap. Naive brings one piece back before the next one starts."
        ),
        "all forwards come first: that is GPipe, whose pieces overlap. Naive brings one piece back "
        "before the next one starts.",
    ),
)
