"""What can be wrong with unit 06's split schedules, `delay_weight_gradients` and zero bubble H1."""

from typing import Any

from autograder import oracle_06
from autograder.checks.schedules import Asked, as_schedule, illegal_lists, most_work
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from mpedu.families import one_f_one_b
from mpedu.schedule import Action, Schedule, peak_in_flight
from mpedu.simulate import simulate


def _asked(given: Schedule) -> Asked:
    """The same work on the same ranks, in halves."""
    stages = [sorted({action.stage for action in actions}) for actions in given]
    n_microbatches = 1 + max(action.microbatch for action in given[0])
    one_each = stages == [[rank] for rank in range(len(given))]
    return Asked(stages, n_microbatches, "FIW", one_each)


def cannot_run(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what keeps an answer from being the given work in halves, in a legal order."""
    (given,) = case.args
    fault = illegal_lists(case, got, _asked(given))
    if fault is None:
        return None
    said = fault.text.removeprefix(f"{case}: ").partition(" `show(")[0]
    if fault.id == "wrong_kind" and "kind is 'B'" in said:
        said += " A backward in halves is an I in its place, and a W later on."
    look = f"`show({case.name}, {oracle_06.name_of(given)})` draws it."
    return fault._replace(text=f"{case}: {said} {look}")


def other_order(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, of legal answers: F and I in another order than F and B were given in."""
    given = case.args[0]
    for rank, (before, after) in enumerate(zip(given, got, strict=True)):
        due = [_halved(action) for action in before]
        kept = [action for action in after if action.kind != "W"]
        for place, (wanted, found) in enumerate(zip(due, kept, strict=True)):
            if wanted != found:
                word = _asked(given).rank
                text = (
                    f"{case}: on {word} {rank} number {place + 1} of the F and I is "
                    f"{found}, and was {_whole(wanted)} in the list that was given. Leave the "
                    "order of F and I as it is; only W is free to move."
                )
                return Diagnosis("order_changed", text, "F and I are not in the order given.")
    return None


def _halved(action: Action) -> Action:
    return action._replace(kind="I") if action.kind == "B" else action


def _whole(action: Action) -> Action:
    return action._replace(kind="B") if action.kind == "I" else action


def slow(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: not legal, in another order, or longer than it must be at equal costs."""
    fault = cannot_run(case, got)
    if fault:
        text = f"{case}: not a legal schedule, so it has no makespan: "
        text += fault.text.removeprefix(f"{case}: ")
        return Diagnosis("illegal", text, f"not a legal schedule: {fault.general}")
    fault = other_order(case, got)
    if fault:
        return fault
    timeline = simulate(got, oracle_06.EQUAL)
    least_s = oracle_06.makespan_s(oracle_06.filled(case.args[0]))
    if timeline.makespan_s <= least_s:
        return None
    text = f"{_makespan(case, got)} Look for a rank that waits while it has a W to run."
    return Diagnosis("slow", text, "the makespan is longer than it must be.")


def _makespan(case: Case, got: Any) -> str:
    given = case.args[0]
    least_s = oracle_06.makespan_s(oracle_06.filled(given))
    return (
        f"{case}: makespan {shown(oracle_06.makespan_s(got))} where F, I and W take 1 "
        f"second each; {shown(least_s)} is possible, and undivided backwards take "
        f"{shown(oracle_06.makespan_s(given))}."
    )


def _lagging(id: str, lag: int | None, why: str) -> Mistake:
    """Every answer is the given one with each W the same number of backwards later."""

    def matches(answers: Answers) -> bool:
        return all(
            as_schedule(got, 2 * most_work(8, sum(map(len, case.args[0])))) is not None
            and got == oracle_06.halved(case.args[0], lambda rank: lag)
            for case, got in answers
        )

    return Mistake(id, matches, lambda case, got: f"{_makespan(case, got)} {why}", why)


DELAY = (
    _lagging(
        "at_once",
        0,
        "Each W follows its I at once, so a rank that could run the next I, or wait, runs W "
        "instead: let W wait for a gap.",
    ),
    _lagging(
        "one_later",
        1,
        "Every rank runs each W one backward later. Ranks differ: the first must not wait with its "
        "W, the last can wait longest.",
    ),
    _lagging(
        "weights_last",
        None,
        "Every W comes after all other work. On the first rank gaps between its backwards stay "
        "empty: run a W wherever it would wait.",
    ),
)


def cannot_run_h1(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, cases of (n_stages, n_microbatches): no legal schedule in halves."""
    n_stages, n_microbatches = case.args
    return illegal_lists(case, got, Asked([[s] for s in range(n_stages)], n_microbatches, "FIW"))


def slow_h1(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, of legal ones: slower than zero bubble H1, or with more held."""
    due_s = oracle_06.makespan_s(oracle_06.zero_bubble_h1(*case.args))
    given_s = oracle_06.makespan_s(got)
    if given_s > due_s:
        text = (
            f"{case}: makespan {given_s} where F, I and W take 1 second each; H1 takes {due_s}. "
            "Let stage r run each W r backwards later."
        )
        return Diagnosis("slow", text, "the makespan is longer than that of H1.")
    n_stages, n_microbatches = case.args
    for freed_by, due in (
        ("I", peak_in_flight(one_f_one_b(n_stages, n_microbatches))),
        ("W", [min(n_stages, n_microbatches)] * n_stages),
    ):
        for stage, (held, most) in enumerate(zip(peak_in_flight(got, freed_by), due, strict=True)):
            if held > most:
                text = (
                    f"{case}: stage {stage} holds {held} micro-batches at once where {freed_by} "
                    f"frees them; {most} are allowed."
                )
                return Diagnosis(f"held_till_{freed_by.lower()}", text, _HELD[freed_by])
    return None


_HELD = {
    "I": "a stage holds more than in 1F1B, counted as freed by I.",
    "W": "a stage holds more than the first one does in 1F1B, counted as freed by W.",
}
