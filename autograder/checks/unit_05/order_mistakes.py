"""The typical mistakes of unit 05's schedule, and the sentences they draw."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from autograder import oracle_05
from autograder.checks.schedules import illegal
from autograder.checks.unit_03.schedule_mistakes import LEGAL as OF_ANY_SCHEDULE
from autograder.checks.unit_03.schedule_mistakes import legal, seen_in
from autograder.checks.unit_03.schedule_mistakes import slow as slow
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from mpedu.schedule import Action, Schedule

Order = list[tuple[str, int]]  # kinds and micro-batches of one stage's list


def _order(actions: list[Action]) -> Order:
    return [(action.kind, action.microbatch) for action in actions]


def _same(schedule: Schedule, orders: Iterator[Order]) -> bool:
    return [_order(actions) for actions in schedule] == list(orders)


def _warmed_up(n_microbatches: int, warm_up: int, first: str = "F", back: str = "oldest") -> Order:
    """Some forwards, then pairs of a forward and a backward, then the backwards that are left.

    first: which one of a pair comes first; back: whether a pair's backward is of the oldest
    micro-batch held, or of the newest.
    """
    warm_up = min(n_microbatches, warm_up)
    forwards = [("F", m) for m in range(n_microbatches)]
    backwards = [("B", m) for m in range(n_microbatches)]
    if back == "newest":
        backwards = backwards[warm_up:] + backwards[:warm_up]
    order = forwards[:warm_up]
    for forward, backward in zip(forwards[warm_up:], backwards, strict=False):
        order += [forward, backward] if first == "F" else [backward, forward]
    return order + backwards[n_microbatches - warm_up :]


def _all_warmed_up(
    warm_up: Callable[[int, int], int], **how: str
) -> Callable[[Schedule, int, int], bool]:
    """Whether every stage's list begins with `warm_up(n_stages, stage)` forwards, and so on."""
    return lambda schedule, k, m: _same(
        schedule, (_warmed_up(m, warm_up(k, stage), **how) for stage in range(k))
    )


def _first_missing(schedule: Schedule, n_microbatches: int) -> list[list[Action]]:
    """By stage the backwards that are not there, ascending."""
    return [
        [a for m in range(n_microbatches) if (a := Action("B", stage, m)) not in actions]
        for stage, actions in enumerate(schedule)
    ]


def _no_drain(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    """Whether each stage lacks as many backwards, at the end, as its warm-up has forwards."""
    if len(schedule) != n_stages:
        return False
    missing = _first_missing(schedule, n_microbatches)
    due = [min(n_microbatches, n_stages - 1 - stage) for stage in range(n_stages)]
    whole = [actions + more for actions, more in zip(schedule, missing, strict=True)]
    return list(map(len, missing)) == due and legal(whole, n_stages, n_microbatches)


def _no_drain_text(case: Case, got: Any) -> str:
    missing = _first_missing(got, case.args[1])
    stage = next(stage for stage, backwards in enumerate(missing) if backwards)
    names = ", ".join(f"B{a.microbatch}" for a in missing[stage][:3])
    return (
        f"{case}: stage {stage} never runs {names}{' ..' if len(missing[stage]) > 3 else ''}: the "
        "warm-up's backwards are missing. When no forward is left, the rest goes back."
    )


def _beyond(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    """Whether all is well but for micro-batches that do not exist, and these only where M < K."""
    known = [[a for a in actions if a.microbatch < n_microbatches] for actions in schedule]
    too_many = sum(map(len, known)) < sum(map(len, schedule))
    may_be = n_microbatches < n_stages
    must_be = n_microbatches < n_stages - 1
    return must_be <= too_many <= may_be and legal(known, n_stages, n_microbatches)


def _beyond_text(case: Case, got: Any) -> str:
    n_microbatches = case.args[1]
    action = next(a for actions in got for a in actions if a.microbatch >= n_microbatches)
    return (
        f"{case}: stage {action.stage} runs {action.kind}{action.microbatch}, and the last one is "
        f"{n_microbatches - 1}: your warm-up runs past micro-batch M-1 where M is small."
    )


def _mistake(
    id: str, sees: Callable[[Schedule, int, int], bool], why: str, general: str
) -> Mistake:
    return Mistake(id, seen_in(sees), lambda case, got: f"{case}: {why}", general)


LEGAL = (
    *OF_ANY_SCHEDULE,
    Mistake(
        "past_the_last",
        seen_in(_beyond),
        _beyond_text,
        "where there are few micro-batches, your warm-up runs past the last one.",
    ),
    Mistake(
        "no_drain",
        seen_in(_no_drain),
        _no_drain_text,
        "the warm-up's backwards are missing at the end.",
    ),
    _mistake(
        "backward_first",
        _all_warmed_up(lambda k, stage: k - 1 - stage, first="B"),
        "after a warm-up of K-1 less the stage number a forward comes first, then a backward: on "
        "the last stage, which needs no warm-up, yours goes back before it went forward.",
        "after the warm-up a backward comes before its forward; the forward is first.",
    ),
    _mistake(
        "warm_up_reversed",
        _all_warmed_up(lambda k, stage: stage),
        "your warm-up grows from the first stage to the last. The first one is furthest from the "
        "end, so it must go ahead most; the last one needs none. As it is, all wait for ever.",
        "the warm-up grows towards the last stage, which needs none; the first needs most.",
    ),
    _mistake(
        "newest_first",
        _all_warmed_up(lambda k, stage: k - 1 - stage, back="newest"),
        "after the warm-up each forward is followed by its own backward, whose gradient cannot be "
        "there yet. The oldest micro-batch goes back first.",
        "a forward is followed by its own backward; the oldest micro-batch goes back first.",
    ),
)


def not_in_turns(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, of legal lists: where forwards and backwards do not take turns."""
    for stage, actions in enumerate(got):
        kinds = [action.kind for action in actions]
        begin = kinds.index("B")
        n_left = kinds[begin:].count("F")
        steady = actions[begin : begin + 2 * n_left]
        for before, after in pairwise(steady):
            if before.kind == after.kind:
                what = "forwards" if after.kind == "F" else "backwards"
                return _turns(
                    f"{case}: on stage {stage} {_short(before)} is followed by {_short(after)}, two"
                    f" {what} in a row."
                )
        if not n_left and case.args[1] > 2 * case.args[0]:
            return _turns(
                f"{case}: on stage {stage} no forward comes after {_short(actions[begin])}."
            )
    return None


def _short(action: Action) -> str:
    return f"{action.kind}{action.microbatch}"


def _turns(what: str) -> Diagnosis:
    why = "From its first backward on, a stage takes turns as long as forwards are left"
    return Diagnosis("not_in_turns", f"{what} {why}: B, F, B, F.", f"{why[0].lower()}{why[1:]}.")


def _gpipe(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    pieces = "F" * n_microbatches + "B" * n_microbatches
    first = all("".join(a.kind for a in actions) == pieces for actions in schedule)
    return first and legal(schedule, n_stages, n_microbatches)


ALL_FORWARDS_FIRST = _mistake(
    "all_forwards_first",
    _gpipe,
    "every stage runs all its forwards before its first backward. That is GPipe, which holds every "
    "micro-batch at once.",
    "all forwards come first: that is GPipe, which holds every micro-batch at once.",
)
ONE_AT_A_TIME = _mistake(
    "one_at_a_time",
    _all_warmed_up(lambda k, stage: 0),
    "each forward is followed by its own backward, on every stage: that is the naive order. "
    "It holds one micro-batch, and leaves all devices but one idle.",
    "each forward is followed by its own backward on every stage: that is the naive order.",
)
EARLIER = (ALL_FORWARDS_FIRST, ONE_AT_A_TIME)


def illegal_or_earlier(answers: Answers) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: what is illegal, or that all these answers are an earlier unit's order.

    A single one does not tell: of two micro-batches on two stages others look like GPipe, too.
    """
    found = next((one for one in EARLIER if one.matches(answers)), None)

    def differs(case: Case, got: Any) -> Diagnosis | None:
        fault = illegal(case, got)
        if fault or found is None:
            return fault
        return Diagnosis(found.id, found.text(case, got), found.general)

    return differs


def not_legal(case: Case, got: Any) -> Diagnosis | None:
    """For a check that needs a legal schedule: what keeps it from being one."""
    fault = illegal(case, got)
    if fault is None:
        return None
    why = fault.text.removeprefix(f"{case}: ")
    text = f"{case}: not a legal schedule, so nobody can run it: {why}"
    return Diagnosis("illegal", text, f"not a legal schedule: {fault.general}")


def peaks_of(schedule: Schedule) -> list[int]:
    """The most that each stage holds."""
    return [max(oracle_05.in_flight(actions)) for actions in schedule]


def holds_other(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a stage that holds more than it must, or fewer than it needs."""
    fault = not_legal(case, got)
    if fault:
        return fault
    n_stages, n_microbatches = case.args
    for stage, held in enumerate(peaks_of(got)):
        due = oracle_05.peak(n_stages, n_microbatches, stage)
        if held > due:
            text = (
                f"{case}: stage {stage} holds {held} micro-batches at once, {due} "
                f"{'is' if due == 1 else 'are'} enough. Run fewer forwards ahead: the last stage "
                "stays busy all the same."
            )
            general = "a stage holds more than it must; fewer forwards ahead keep the last busy."
            return Diagnosis("holds_more", text, general)
        if held < due:
            text = (
                f"{case}: stage {stage} never holds more than {held}, and {due} are needed: with "
                f"{held} under way it waits for a gradient where it could go on forward."
            )
            general = "a stage holds too few micro-batches to stay busy."
            return Diagnosis("holds_fewer", text, general)
    return None


def _one_too_many(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    due = [min(n_microbatches, n_stages - stage + 1) for stage in range(n_stages)]
    return legal(schedule, n_stages, n_microbatches) and peaks_of(schedule) == due


def _one_too_many_text(case: Case, got: Any) -> str:
    n_stages, n_microbatches = case.args
    peaks = peaks_of(got)
    due = [oracle_05.peak(n_stages, n_microbatches, stage) for stage in range(n_stages)]
    stage = next(s for s in range(n_stages) if peaks[s] > due[s])
    return (
        f"{case}: stage {stage} holds {peaks[stage]} at once, {peaks[stage] - 1} "
        f"{'is' if peaks[stage] == 2 else 'are'} enough: one too many in flight. If a forward "
        "comes first in each turn, the warm-up is one shorter: the last stage has none."
    )


def _alike(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    """Whether every stage has the same list, of more than one micro-batch held."""
    orders = [_order(actions) for actions in schedule]
    held = min(n_stages, n_microbatches)
    return legal(schedule, n_stages, n_microbatches) and (
        all(order == orders[0] for order in orders) and set(peaks_of(schedule)) == {held}
    )


HELD = (
    ALL_FORWARDS_FIRST,
    Mistake(
        "one_too_many",
        seen_in(_one_too_many),
        _one_too_many_text,
        "one micro-batch too many is in flight on the stages that can hold it.",
    ),
    _mistake(
        "same_warm_up",
        _alike,
        "every stage has the same warm-up. It bridges the way to the end and back, so it shrinks "
        "from stage to stage, and the last stage needs none.",
        "every stage has the same warm-up; it shrinks from stage to stage, the last needs none.",
    ),
    ONE_AT_A_TIME,
)


def slow_or_gpipe(case: Case, got: Any, costs: list[tuple[int, int]]) -> Diagnosis | None:
    """For `examine`: not as fast as GPipe, or GPipe itself."""
    return not_legal(case, got) or slow(case, got, costs) or not_in_turns(case, got)
