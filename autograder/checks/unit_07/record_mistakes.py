"""What unit 07's stages were asked for, and when, and the mistakes that this betrays."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from autograder.checks.programs import failed
from autograder.checks.unit_07.cases import gpipe
from autograder.checks.unit_07.run_mistakes import wrong_gradients
from autograder.checks.unit_07.work import (
    BACKWARD_S,
    FORWARD_S,
    TOLERANCE,
    Answer,
    Problem,
    problem_of,
)
from autograder.checks.values import shown
from autograder.diagnosis import Case, Diagnosis, Mistake, StudentError
from mpedu.schedule import peak_in_flight
from mpedu.simulate import Costs, simulate

BYTES = 8  # of an element
Done = list[tuple[str, int | None]]


def wrong_record(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: where a rank did something else than its list says."""
    if isinstance(got, StudentError):
        return failed(case, got)
    problem = problem_of(case)
    for ledger in got.ledgers:
        due = [(action.kind, action.microbatch) for action in problem.schedule[ledger.rank]]
        if ledger.done == due:
            continue
        pairs = zip([*ledger.done, None], [*due, None], strict=False)
        place = next(i for i, (one, other) in enumerate(pairs) if one != other)
        text = (
            f"{case}: rank {ledger.rank}, entry {place}: the list says {_told(due, place)}, the "
            f"stage was asked for {_told(ledger.done, place)}."
        )
        return Diagnosis("other_record", text, "some rank does something else than its list says.")
    for ledger, most in zip(got.ledgers, peak_in_flight(problem.schedule), strict=True):
        if ledger.most_held > most + 1:  # one more may lie in a variable until the next forward
            text = (
                f"{case}: rank {ledger.rank} holds what {ledger.most_held} forwards kept at once; "
                f"its list needs {most}. Drop what a backward has used: pop it."
            )
            return Diagnosis("never_freed", text, "some rank never drops what was kept.")
    if got.run.unwaited:
        text = (
            f"{case}: {got.run.unwaited[0]}. Is the request of every `isend` in `sent`, and all of "
            "`sent` waited for in the end?"
        )
        return Diagnosis("unwaited", text, "some send is never waited for.")
    return None


def _told(actions: Sequence[tuple[str, int | None]], place: int) -> str:
    if place >= len(actions):
        return "nothing more"
    kind, m = actions[place]
    return f"{kind}{m}" if m is not None else f"{kind} of what belongs to no micro-batch"


def other_time(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: gradients first, then whether it takes the time of the list."""
    bad = wrong_gradients(case, got)
    if bad or isinstance(got, StudentError):
        return bad
    due_s, took_s = least_s(problem_of(case)), got.run.makespan_s
    if abs(took_s - due_s) <= due_s * TOLERANCE:
        return None
    if took_s < due_s:
        text = (
            f"{case}: it takes {shown(took_s)} s, the list {shown(due_s)} s. So this is not the "
            "list: is it other work, or the same in another order?"
        )
        return Diagnosis("faster", text, "it takes less time than the list: it is not the list.")
    text = (
        f"{case}: it takes {shown(took_s)} s, the list {shown(due_s)} s. Does a rank do work "
        "twice, or wait where its list does not ask for it?"
    )
    return Diagnosis("slower", text, "it takes longer than the list must.")


def least_s(problem: Problem) -> float:
    """Seconds that the list takes where no rank waits for a send; pieces are of one size."""
    message_s = problem.inputs[0].size * BYTES / problem.link.bytes_per_s
    costs = Costs(FORWARD_S, BACKWARD_S, latency_s=problem.link.latency_s, message_s=message_s)
    return float(simulate(problem.schedule, costs).makespan_s)


def _own_list(problem: Problem) -> list[Done]:
    lists = gpipe(problem.n_ranks, len(problem.sizes))
    return [[(a.kind, a.microbatch) for a in actions] for actions in lists]


def _as_a_queue(problem: Problem) -> list[Done]:
    """Each list with its backwards in the order of its forwards."""
    found: list[Done] = []
    for actions in problem.schedule:
        order = iter([action.microbatch for action in actions if action.kind == "F"])
        found.append([(k, m if k == "F" else next(order)) for k, _, m in actions])
    return found


def _order_is(order: Callable[[Problem], list[Done]]) -> Any:
    """Do all stages do that, whatever the list says?"""
    return lambda answers: all(
        not isinstance(got, StudentError)
        and [ledger.done for ledger in got.ledgers] == order(problem_of(case))
        for case, got in answers
    )


def _with_forwards_again(case: Case, rank: int) -> Counter[tuple[str, int | None]]:
    """The work of a rank's list, each forward twice."""
    actions = problem_of(case).schedule[rank]
    return Counter({(a.kind, a.microbatch): 1 + (a.kind == "F") for a in actions})


RECORD = (
    Mistake(
        "own_order",
        _order_is(_own_list),
        lambda case, got: (
            f"{case}: the stages do all forwards, then all backwards, whatever the list says. "
            "Right gradients do not show that; what each stage was asked for does."
        ),
        "the stages do all forwards, then all backwards, whatever the list says.",
    ),
    Mistake(
        "queue",
        _order_is(_as_a_queue),
        lambda case, got: (
            f"{case}: each backward takes the oldest kept values, so backwards run in the order of "
            "the forwards, whatever the list says. Keep them by micro-batch."
        ),
        "each backward takes the oldest kept values, which are not always its own.",
    ),
    Mistake(
        "forward_again",
        lambda answers: all(
            not isinstance(got, StudentError)
            and all(
                Counter(one.done) == _with_forwards_again(case, one.rank) for one in got.ledgers
            )
            for case, got in answers
        ),
        lambda case, got: (
            f"{case}: every stage runs each forward twice. What a backward needs was kept at the "
            "first time; computing it again is another schedule, with more work."
        ),
        "every stage runs each forward twice.",
    ),
)


def _in_step(case: Case, got: Any) -> bool:
    """Do ranks wait for each other by a barrier?"""
    return not isinstance(got, StudentError) and any(
        kind == "barrier" for _, kind in got.run.meter.counts
    )


CLOCK = (
    Mistake(
        "in_step",
        lambda answers: all(_in_step(case, got) for case, got in answers),
        lambda case, got: (
            f"{case}: it takes {shown(got.run.makespan_s)} s, the list "
            f"{shown(least_s(problem_of(case)))} s: a barrier has all ranks wait for the slowest. "
            "A message is all the waiting that a list needs."
        ),
        "a barrier has all ranks wait for the slowest; a message is all the waiting needed.",
    ),
)
