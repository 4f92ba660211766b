"""The typical mistakes of unit 07 with one forward or backward, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.checks.programs import failed, links, shown_array, waits
from autograder.checks.unit_07.work import Answer, Array, Problem, near, problem_of
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, StudentError

ByRank = Callable[[Problem], list[Array]]


def outputs(problem: Problem) -> list[Array]:
    """y of each rank."""
    return [xs[0] for xs in problem.xs[1:]]


def kept(problem: Problem) -> list[Array]:
    """What the stage of each rank keeps: its input and its output."""
    return [problem.kept(stage, 0) for stage in range(problem.n_ranks)]


def inputs(problem: Problem) -> list[Array]:
    """x of each rank."""
    return [xs[0] for xs in problem.xs[:-1]]


def input_gradients(problem: Problem) -> list[Array]:
    """The gradient for x of each rank."""
    return [of_stage[0] for of_stage in problem.gradients[:-1]]


def wrong_work(kind: str) -> Callable[[Case, Answer], Diagnosis | None]:
    """For `examine`: which rank has its stage do something else than this one action."""
    method = {"F": "forward", "B": "backward"}[kind]

    def differs(case: Case, got: Answer) -> Diagnosis | None:
        if isinstance(got, StudentError):
            return failed(case, got)
        for ledger in got.ledgers:
            n_calls = len(ledger.done)
            if n_calls != 1 or ledger.done[0][0] != kind:
                text = (
                    f"{case}: rank {ledger.rank} calls stage.{method} {n_calls} times, once is due."
                    if {one for one, _ in ledger.done} <= {kind}
                    else f"{case}: rank {ledger.rank} calls more than stage.{method}."
                )
                general = "some rank does not call its stage once."
                return Diagnosis("other_work", text, general)
        return None

    return differs


def wrong_y(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: on which rank y is not that of the whole chain."""
    bad = wrong_work("F")(case, got)
    if bad or isinstance(got, StudentError):
        return bad
    expected = outputs(problem_of(case))
    for rank, (result, due) in enumerate(zip(got.run.results, expected, strict=True)):
        if not _is_pair(result):
            text = f"{case}: rank {rank} returns {shown(result)}; the pair (y, kept) is asked."
            return Diagnosis("no_pair", text, "some rank does not return a pair.")
        if not near(result[0], due):
            return _differs(case, rank, "as y", result[0], due)
    return None


def wrong_kept(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: on which rank something else is kept than what the stage gave."""
    bad = wrong_y(case, got)
    if bad or isinstance(got, StudentError):
        return bad
    for rank, (result, due) in enumerate(zip(got.run.results, kept(problem_of(case)), strict=True)):
        if not near(result[1], due):
            return _differs(case, rank, "as kept", result[1], due)
    return None


def wrong_x_gradient(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: on which rank the gradient for x is not that of the whole chain."""
    bad = wrong_work("B")(case, got)
    if bad or isinstance(got, StudentError):
        return bad
    expected = input_gradients(problem_of(case))
    for rank, (result, due) in enumerate(zip(got.run.results, expected, strict=True)):
        if not near(result, due):
            return _differs(case, rank, "as gradient for x", result, due)
    return None


def wrong_messages(step: int) -> Callable[[Case, Answer], Diagnosis | None]:
    """For `examine`: None where each rank sends once to the next (step 1) or the one before.

    And where it does not wait for that.
    """

    def differs(case: Case, got: Answer) -> Diagnosis | None:
        if isinstance(got, StudentError):
            return failed(case, got)
        ranks = range(problem_of(case).n_ranks)
        due = sorted((r, r + step) for r in ranks if r + step in ranks)
        if links(got.run) != due:
            text = (
                f"{case}: {len(links(got.run))} messages, {len(due)} are due: one from each rank "
                f"to the one {'after' if step > 0 else 'before'} it, if there is one."
            )
            return Diagnosis("other_messages", text, "other messages are sent than those asked.")
        n_unwaited = len(got.run.unwaited)
        lost = [rank for rank, _ in due if got.in_sent[rank] < 1]
        if n_unwaited == len(due) and lost:
            why = "its request is not in `sent`: nobody can wait for it. Append what `isend` gives."
            text = f"{case}: rank {lost[0]} started a send, and {why}"
            return Diagnosis("not_in_sent", text, "the request of some send is not in `sent`.")
        if n_unwaited != len(due):
            text = (
                f"{case}: {n_unwaited} sends are left to wait for later, {len(due)} are due. Start "
                "each with `isend`, append its request to `sent`, and do not wait for it here."
            )
            return Diagnosis("other_waits", text, "not every send is left to wait for later.")
        return None

    return differs


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple | list) and len(result) == 2


def _differs(case: Case, rank: int, what: str, got: Any, due: Array) -> Diagnosis:
    given, look = shown(got), "Follow the ranks one by one: what came, what did the stage make of "
    look += "it, what was passed on?"
    if isinstance(got, np.ndarray):
        given = shown_array(got)
        if got.shape != due.shape:
            look = f"The shape is {got.shape}, {due.shape} is due."
        elif got.dtype != due.dtype:
            look = f"The dtype is {got.dtype}; keep {due.dtype}."
    text = f"{case}: rank {rank} returns {given} {what}, expected {shown_array(due)}. {look}"
    return Diagnosis("differs", text, f"some rank returns something else {what}.")


def _several(matches: Callable[[Case, Any], bool]) -> Callable[[Answers], bool]:
    """For a mistake seen wherever there are two ranks or more."""
    return lambda answers: all(
        matches(case, got) for case, got in answers if problem_of(case).n_ranks > 1
    )


def _not_sent(case: Case, got: Any) -> bool:
    """Do ranks wait for one that has finished without sending?"""
    stands = waits(got)
    return any(call == "recv" and peer not in stands for call, peer in stands.values())


def _not_sent_text(case: Case, got: Any) -> str:
    rank, (_, peer) = next(
        (r, w) for r, w in waits(got).items() if w[0] == "recv" and w[1] not in waits(got)
    )
    return (
        f"{case}: rank {rank} waits for a message from rank {peer}, which has finished without "
        "sending one. Each rank but the last of the way passes on what it made."
    )


def _in_circle(call: str) -> Callable[[Case, Any], bool]:
    """Do two neighbours wait for each other, each in that call?"""

    def matches(case: Case, got: Any) -> bool:
        stands = waits(got)
        return any(stands.get(peer) == (call, r) and c == call for r, (c, peer) in stands.items())

    return matches


def _results(predicted: ByRank, at: int | None) -> Callable[[Case, Any], bool]:
    """Is that what every rank returns, as entry `at` of its pair?"""

    def matches(case: Case, got: Any) -> bool:
        if isinstance(got, StudentError):
            return False
        found = got.run.results
        if at is not None:
            if not all(map(_is_pair, found)):
                return False
            found = [result[at] for result in found]
        return all(map(near, found, predicted(problem_of(case))))

    return matches


def _waited(case: Case, got: Any) -> bool:
    """Are all messages sent, and none left to wait for?"""
    if isinstance(got, StudentError):
        return False
    return len(links(got.run)) == problem_of(case).n_ranks - 1 and not got.run.unwaited


def _input_passed_on(problem: Problem) -> list[Array]:
    return [np.tanh(problem.inputs[0] @ layer) for layer in problem.layers]


def _gradient_of_ones(problem: Problem) -> list[Array]:
    """As when each rank differentiates the sum of its own outputs."""
    found = []
    for stage, layer in enumerate(problem.layers):
        y = problem.xs[stage + 1][0]
        is_last = stage == problem.n_ranks - 1
        g = problem.gradients[-1][0] if is_last else np.ones_like(y)
        found.append((g * (1 - y * y)) @ layer.T)
    return found


def _gradient_passed_on(problem: Problem) -> list[Array]:
    """As when each rank passes on the gradient that it got."""
    given = problem.gradients[-1][0]
    ys = [xs[0] for xs in problem.xs[1:]]
    return [(given * (1 - y * y)) @ w.T for y, w in zip(ys, problem.layers, strict=True)]


def _silent(id: str) -> Mistake:
    general = "a rank waits for one that has finished without sending."
    return Mistake(id, _several(_not_sent), _not_sent_text, general)


def _mistake(id: str, matches: Callable[[Case, Any], bool], why: str, general: str = "") -> Mistake:
    return Mistake(id, _several(matches), lambda case, got: f"{case}: {why}", general or why)


FORWARD = (
    _silent("not_passed_on"),
    _mistake(
        "input_passed_on",
        _results(_input_passed_on, 0),
        "each stage works on the input of stage 0: what is passed on must be y, not x.",
        "every stage works on the first input: what is passed on must be y.",
    ),
    _mistake(
        "swapped",
        _results(kept, 0),
        "first y, then what is kept; yours look swapped.",
    ),
    _mistake(
        "y_kept",
        _results(outputs, 1),
        "y is kept, and the backward needs what `stage.forward` gave as kept.",
    ),
    _mistake(
        "x_kept",
        _results(inputs, 1),
        "x is kept. That is enough for the stage of the notebook, and for no other: the backward "
        "needs what `stage.forward` gave as kept, whatever it is.",
    ),
    _mistake(
        "waits_here",
        _waited,
        "no send is left to wait for: each rank stays in it until its message is taken. In a "
        "longer list the receiver may be sending to this rank just then, and both wait for ever. "
        "Start it with `isend` and append the request to `sent`.",
        "every send is waited for at once; start it, and leave the waiting to the end.",
    ),
)
BACKWARD = (
    _silent("gradient_not_passed_on"),
    _mistake(
        "both_wait",
        _in_circle("recv"),
        "two neighbours wait for a message of each other. A gradient comes from the rank after, "
        "and goes to the rank before.",
    ),
    _mistake(
        "ones",
        _results(_gradient_of_ones, None),
        "the backward starts from ones: that is the gradient of the sum of y. Use the received "
        "gradient, which says what the loss makes of each y.",
    ),
    _mistake(
        "same_gradient_passed_on",
        _results(_gradient_passed_on, None),
        "each rank passes on the gradient that it received. The rank before needs the gradient for "
        "its own y, which is the gradient for your x.",
        "the received gradient is passed on; the rank before needs the gradient for x.",
    ),
    _mistake(
        "received_returned",
        _results(lambda problem: [of_stage[0] for of_stage in problem.gradients[1:]], None),
        "what is returned is the gradient for y, which was received; asked is the gradient for x, "
        "which `stage.backward` gives.",
        "the received gradient is returned; asked is the gradient for x.",
    ),
    _mistake(
        "waits_in_backward",
        _waited,
        "no send is left to wait for: start it with `isend` and append the request to `sent`.",
        "every send is waited for at once; start it, and leave the waiting to the end.",
    ),
)
