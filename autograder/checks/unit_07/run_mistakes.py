"""The typical mistakes of unit 07 with a whole list of actions, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.checks.programs import failed, waits
from autograder.checks.unit_07.predicted import added, totals
from autograder.checks.unit_07.work import (
    TOLERANCE,
    Answer,
    Array,
    Problem,
    near,
    problem_of,
)
from autograder.checks.values import close, number_problem, shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, StudentError

Predicted = Callable[[Problem], list[Array]]


def wrong_gradients(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: on which rank the gradient of the weights is not that of the whole batch."""
    if isinstance(got, StudentError):
        return _failed(case, got)
    problem = problem_of(case)
    for ledger in got.ledgers:
        if not ledger.done:
            n_due = len(problem.schedule[ledger.rank])
            text = f"{case}: rank {ledger.rank} has its stage do nothing; {n_due} actions are due."
            return Diagnosis("no_work", text, "some rank has its stage do nothing.")
    for ledger, due in zip(got.ledgers, problem.due, strict=True):
        if not near(ledger.gradient, due):
            length = np.linalg.norm(due)
            size = np.linalg.norm(ledger.gradient) / length
            off = np.linalg.norm(ledger.gradient - due) / length
            text = (
                f"{case}: the gradient on rank {ledger.rank} is not that of the whole batch in one "
                f"process: {shown(float(size), 4)} times as long, and {shown(float(off), 2)} of "
                "its length away. Which micro-batches are in it, with which weight, and from which "
                "kept values?"
            )
            general = "the gradient on some rank is not that of the whole batch."
            return Diagnosis("wrong_gradient", text, general)
    return None


def _failed(case: Case, got: StudentError) -> Diagnosis | None:
    """As `failed`; an index error most often comes from a list that is empty on this rank."""
    bad = failed(case, got)
    if bad and got.type_name == "IndexError":
        why = "Inputs are on rank 0 only, targets on the last rank only; elsewhere both are empty."
        return bad._replace(text=f"{bad.text} {why}")
    return bad


def wrong_loss(case: Case, got: Answer) -> Diagnosis | None:
    """For `examine`: gradients first, then the loss that the last rank returns."""
    bad = wrong_gradients(case, got)
    if bad or isinstance(got, StudentError):
        return bad
    found, due = got.run.results[-1], problem_of(case).loss
    problem = number_problem(found)
    if problem:
        text = f"{case}: the last rank {problem}"
        return Diagnosis("no_loss", text, "the last rank returns no number as loss.")
    if close(found, due):
        return None
    text = f"{case}: the last rank returns the loss {shown(found)}, expected {shown(due)}."
    return Diagnosis("other_loss", text, "the last rank returns another loss.")


def _is_all_forwards_first(problem: Problem) -> bool:
    """Can no two neighbours want to send to each other at once?"""
    kinds = ["".join(a.kind for a in actions) for actions in problem.schedule]
    return problem.n_ranks == 1 or all("BF" not in one for one in kinds)


def _both_send(case: Case, got: Any) -> bool:
    stands = waits(got)
    return any(stands.get(peer) == ("send", r) and c == "send" for r, (c, peer) in stands.items())


def _sends_block(answers: Answers) -> bool:
    """Do exactly those lists stick in which neighbours send to each other?"""
    stuck = [(problem_of(case), _both_send(case, got)) for case, got in answers]
    return any(is_stuck for _, is_stuck in stuck) and all(
        is_stuck != _is_all_forwards_first(problem) for problem, is_stuck in stuck
    )


def _sends_block_text(case: Case, got: Any) -> str:
    r, peer = next(
        (r, peer) for r, (c, peer) in waits(got).items() if waits(got).get(peer) == ("send", r)
    )
    return (
        f"{case}: ranks {r} and {peer} both stand in a send to each other, one with activations, "
        "one with a gradient. Start each send with `isend` and wait for all of them in the end."
    )


def _predicted(problem: Problem, predict: Predicted) -> list[Array] | None:
    try:
        return predict(problem)
    except ValueError:  # sizes that do not fit: such a program raises
        return None


def _gradient_mistake(id: str, predictions: Sequence[Predicted], why: str, general: str) -> Mistake:
    """A mistake seen when one of the predictions gives all gradients of all answers."""

    def is_so(predict: Predicted, case: Case, got: Any) -> bool:
        due = _predicted(problem_of(case), predict)
        if due is None or isinstance(got, StudentError):
            return due is None and isinstance(got, StudentError)
        return all(
            one.done and near(one.gradient, g) for one, g in zip(got.ledgers, due, strict=True)
        )

    def matches(answers: Answers) -> bool:
        if not any(wrong_gradients(case, got) for case, got in answers):
            return False  # what is wrong is something else
        return any(all(is_so(one, case, got) for case, got in answers) for one in predictions)

    return Mistake(id, matches, lambda case, got: f"{case}: {why}", general)


def _weighted(weight: Callable[[int, Problem], float]) -> Predicted:
    return lambda problem: totals(problem, added(problem, weight), "once")


def _per_stage(problem: Problem) -> list[Array]:
    """Divided by the samples on every rank, once more each time."""
    return totals(problem, added(problem, again=1 / sum(problem.sizes)), "once")


GRADIENTS = (
    Mistake(
        "sends_block",
        _sends_block,
        _sends_block_text,
        "two neighbours both stand in a send to each other; start sends, and wait in the end.",
    ),
    _gradient_mistake(
        "not_divided",
        [_weighted(lambda size, problem: 1.0)],
        "the gradients are as many times too large as the batch has samples. `stage.loss` gives "
        "the sum over a micro-batch: divide by the samples of the whole batch, once.",
        "the gradients are as many times too large as the batch has samples: divide once.",
    ),
    _gradient_mistake(
        "means_added",
        [_weighted(lambda size, problem: 1 / size)],
        "the gradients are as many times too large as there are micro-batches: the means of all "
        "micro-batches are added up. Divide by the samples of the whole batch.",
        "the gradients are as many times too large as there are micro-batches.",
    ),
    _gradient_mistake(
        "over_microbatches",
        [_weighted(lambda size, problem: 1 / len(problem.sizes))],
        "the sums are divided by the number of micro-batches. `stage.loss` gives a sum over "
        "samples: divide by the samples of the whole batch.",
        "the sums are divided by the number of micro-batches; divide by the samples.",
    ),
    _gradient_mistake(
        "over_numbers",
        [_weighted(lambda size, problem: 1 / sum(y.size for y in problem.targets))],
        "the sums are divided by how many numbers the targets hold. A sample is a row: divide by "
        "the samples of the whole batch.",
        "the sums are divided by how many numbers the targets hold; divide by the samples.",
    ),
    _gradient_mistake(
        "divided_on_each_rank",
        [_per_stage],
        "only the last rank is right; each rank before it has divided once more. Divide where the "
        "loss is, and nowhere else.",
        "each rank divides once more; divide where the loss is, and nowhere else.",
    ),
    _gradient_mistake(
        "not_cleared",
        [lambda problem: totals(problem, added(problem), "never")],
        "the gradient of the step before is still in it. Call `stage.zero_grad()` before the first "
        "action.",
        "the gradient of the step before is still in it.",
    ),
    _gradient_mistake(
        "cleared_each_time",
        [lambda problem: totals(problem, added(problem), "each")],
        "only the micro-batch of the last backward is left: `stage.zero_grad()` inside the loop "
        "forgets those before it.",
        "only the micro-batch of the last backward is left.",
    ),
    _gradient_mistake(
        "cleared_each_forward",
        [lambda problem: totals(problem, added(problem), "forwards")],
        "only the backwards after the last forward are left: `stage.zero_grad()` with every "
        "forward forgets those before it.",
        "only the backwards after the last forward are left.",
    ),
    _gradient_mistake(
        "cleared_in_the_end",
        [lambda problem: totals(problem, added(problem), "end")],
        "nothing is left: the gradients are cleared after the last action, before anyone used "
        "them.",
        "nothing is left of the gradients.",
    ),
    _gradient_mistake(
        "one_buffer",
        [
            lambda problem: totals(problem, added(problem, keeps="latest"), "once"),
            lambda problem: totals(problem, added(problem, keeps="latest", loss_of="kept"), "once"),
        ],
        "a backward uses the kept values of the latest forward, whichever micro-batch that was. "
        "Keep them by micro-batch.",
        "a backward uses the kept values of the latest forward.",
    ),
    _gradient_mistake(
        "one_loss_gradient",
        [lambda problem: totals(problem, added(problem, loss_of="latest"), "once")],
        "on the last rank every backward starts from the loss of the latest forward. Keep the "
        "gradient of the loss by micro-batch too.",
        "on the last rank a backward starts from the loss of the latest forward.",
    ),
    _gradient_mistake(
        "ones_for_the_received",
        [lambda problem: totals(problem, added(problem, gradient="ones"), "once")],
        "before the last rank backwards start from ones: that is the gradient of the sum of y. Use "
        "the received gradient.",
        "before the last rank backwards start from ones; use the received gradient.",
    ),
    _gradient_mistake(
        "stack",
        [lambda problem: totals(problem, added(problem, keeps="last", loss_of="kept"), "once")],
        "a backward uses the newest kept values. That is right only where backwards come in "
        "reverse. Keep them by micro-batch.",
        "a backward uses the newest kept values, which are not always its own.",
    ),
)
RAGGED = (
    _gradient_mistake(
        "equal_weights",
        [_weighted(lambda size, problem: 1 / size / len(problem.sizes))],
        "every micro-batch counts alike, though sizes differ: the mean of means is not the mean. "
        "Divide each sum by the samples of the whole batch.",
        "every micro-batch counts alike, though sizes differ.",
    ),
    _gradient_mistake(
        "first_size",
        [
            _weighted(lambda size, problem: 1 / problem.sizes[0] / len(problem.sizes)),
            _weighted(lambda size, problem: 1 / problem.sizes[-1] / len(problem.sizes)),
        ],
        "the samples are counted as the number of micro-batches times the size of one of them; "
        "sizes differ. Add the sizes up.",
        "the samples are counted as if all micro-batches had one size.",
    ),
    Mistake(
        "loss_of_some",
        lambda answers: all(
            not isinstance(got, StudentError)
            and wrong_gradients(case, got) is None
            and not number_problem(got.run.results[-1])
            and (got.run.results[-1] < problem_of(case).loss * (1 - TOLERANCE))
            for case, got in answers
        ),
        lambda case, got: (
            f"{case}: the gradients are right, and the loss that the last rank returns, "
            f"{shown(got.run.results[-1])}, is too small; the mean over the batch is "
            f"{shown(problem_of(case).loss)}. Does it add up those of all micro-batches?"
        ),
        "the gradients are right, and the loss that the last rank returns is too small.",
    ),
    Mistake(
        "loss_not_divided",
        lambda answers: all(
            not isinstance(got, StudentError)
            and wrong_gradients(case, got) is None
            and close(got.run.results[-1], problem_of(case).loss * sum(problem_of(case).sizes))
            for case, got in answers
        ),
        lambda case, got: (
            f"{case}: the gradients are right; the last rank returns the sum of the losses, and "
            "their mean is asked."
        ),
        "the gradients are right; the loss is the sum over the batch, its mean is asked.",
    ),
)
