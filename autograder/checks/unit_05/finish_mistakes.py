"""The typical mistakes of unit 05's `can_finish`, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

from autograder import oracle_05
from autograder.checks.unit_05.held_mistakes import in_words
from autograder.checks.unit_05.ready_mistakes import no_bool
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from mpedu.schedule import Action, Schedule


def _lists(case: Case) -> str:
    """A call of `can_finish` in words, with the lists where they are short."""
    schedule, n_stages, n_microbatches = case.args
    words = "; ".join(f"stage {s}: {in_words(actions)}" for s, actions in enumerate(schedule[:4]))
    more = " .." if len(schedule) > 4 else ""
    return f"can_finish of n_stages={n_stages}, n_microbatches={n_microbatches} ({words}{more})"


def differs_finish(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with one verdict, None where it is right."""
    problem = no_bool(_lists(case), "can_finish", got)
    if problem or got == oracle_05.can_finish(*case.args):
        return problem
    why = _why(*case.args)
    return Diagnosis(
        "differs",
        f"{_lists(case)} gives {got}: {why}.",
        f"a verdict is {got}, and wrong: {'work is missing, double or stuck' if got else why}.",
    )


def _all_given(schedule: Schedule) -> list[Action]:
    return [action for actions in schedule for action in actions]


def _why(schedule: Schedule, n_stages: int, n_microbatches: int) -> str:
    given = _all_given(schedule)
    due = oracle_05.all_work(n_stages, n_microbatches)
    if set(due) - set(given):
        return "some of the work is nowhere in the lists"
    if len(given) > len(set(given)):
        return "some of the work is done twice"
    if len(given) > len(due):
        return "a list holds more than the work, and does not come to its end"
    if oracle_05.can_finish(schedule, n_stages, n_microbatches):
        return "every list comes to its end, with all work done once"
    return "the stages wait for each other"


def _loop(schedule: Schedule, n_stages: int) -> tuple[set[Action], list[int]]:
    """What is done when nothing moves any more, and how far each list has come."""
    done: set[Action] = set()
    at = [0] * len(schedule)
    moved = True
    while moved:
        moved = False
        for stage, actions in enumerate(schedule):
            while at[stage] < len(actions) and oracle_05.ready(actions[at[stage]], done, n_stages):
                done.add(actions[at[stage]])
                at[stage] += 1
                moved = True
    return done, at


Verdict = Callable[[Schedule, int, int], bool]


def _finish(id: str, verdict: Verdict, why: str, general: str) -> Mistake:
    """A mistake that gives `verdict` of every schedule."""

    def matches(answers: Answers) -> bool:
        return all(type(got) is bool and got == verdict(*case.args) for case, got in answers)

    return Mistake(id, matches, lambda case, got: f"{_lists(case)} gives {got}. {why}", general)


def _ended(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    return _loop(schedule, n_stages)[1] == list(map(len, schedule))


def _all_seen(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    return _loop(schedule, n_stages)[0] >= set(oracle_05.all_work(n_stages, n_microbatches))


def _as_many(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    n_due = 2 * n_stages * n_microbatches
    return _ended(schedule, n_stages, n_microbatches) and sum(map(len, schedule)) == n_due


def _as_many_done(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    return sum(_loop(schedule, n_stages)[1]) == 2 * n_stages * n_microbatches


def _without_ends(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    done, at = _loop(schedule, n_stages)
    return done >= set(oracle_05.all_work(n_stages, n_microbatches)) and sum(at) == len(done)


def _each_complete(schedule: Schedule, n_stages: int, n_microbatches: int) -> bool:
    return sorted(_all_given(schedule)) == sorted(oracle_05.all_work(n_stages, n_microbatches))


FINISH = (
    _finish(
        "always_true",
        lambda *asked: True,
        "You say True of every schedule.",
        "every schedule is said to finish.",
    ),
    _finish(
        "always_false",
        lambda *asked: False,
        "You say False of every schedule.",
        "no schedule is said to finish.",
    ),
    _finish(
        "work_not_counted",
        _ended,
        "All lists come to their ends, and that is all you ask: an empty list does so at once. "
        "Count the required work first.",
        "all lists come to their ends, and work is missing or double: count the required work.",
    ),
    _finish(
        "done_twice",
        _all_seen,
        "All work is there and more: a set forgets what was done twice, and does not ask whether a "
        "list came to its end.",
        "work done twice is not seen: a set forgets it.",
    ),
    _finish(
        "ends_not_asked",
        _without_ends,
        "All work is done, once, and a list is left over: its next action waits for ever. Have all "
        "lists come to their ends?",
        "all work is done, and a list has not come to its end: look at that as well.",
    ),
    _finish(
        "amount_alone",
        _as_many_done,
        "As much is done as is due. That says neither which work it is, nor whether every list "
        "has come to its end.",
        "as much done as is due says neither which work it is nor whether every list has ended.",
    ),
    _finish(
        "numbers_alone",
        _as_many,
        "There is as much work as is due, and it is not the work that is due: compare the actions, "
        "not their number.",
        "as much work as is due is not the work that is due: compare the actions.",
    ),
    _finish(
        "each_list_alone",
        _each_complete,
        "Each list is complete, and together they wait for each other: a cycle. Did the loop "
        "come to the end of all of them?",
        "each list is complete, and together they wait for each other.",
    ),
)
