"""Unit 07, a real pipeline: its exercises and what their answers must do."""

from autograder.checks.subjects import Answered, Bounded, outcomes, same_miss
from autograder.checks.unit_07 import cause_mistakes as causes
from autograder.checks.unit_07 import pass_mistakes as passes
from autograder.checks.unit_07 import record_mistakes as records
from autograder.checks.unit_07 import run_mistakes as runs
from autograder.checks.unit_07 import steps_mistakes as steps
from autograder.checks.unit_07.cases import chains, drawn_lists, known_lists, ragged_lists
from autograder.checks.unit_07.texts import GUESSES as GUESSES
from autograder.checks.unit_07.texts import HINTS
from autograder.checks.unit_07.work import Pipelines
from autograder.diagnosis import Answers, Case, Subject, examine
from autograder.exercise import Draw, exercise

SLUG = "real-pipeline"
MOST_OF_CAUSE = 100  # parts an answer may have


@exercise(
    "stage_forward",
    title="E1 One forward: take, compute, pass on",
    points=3,
    names=["forward_counted"],
    evidence="served",
    hints=HINTS["stage_forward"],
)
def stage_forward(subject: Subject, draw: Draw) -> None:
    """y of the whole chain on every rank, what its backward needs, a message that no one awaits."""
    cases = chains(draw, "stage_forward")
    answers: Answers = []
    with draw.group("y on every rank", points=1):
        answers = outcomes(Pipelines(subject), cases)
        examine(Answered(answers), cases, passes.wrong_y, passes.FORWARD)
    with draw.group("what the backward needs", points=1):
        same_miss(draw)
        examine(Answered(answers), cases, passes.wrong_kept, passes.FORWARD)
    with draw.group("a message on each link, waited for later", points=1):
        if draw.groups[0].diagnosis:
            same_miss(draw)
        examine(Answered(answers), cases, passes.wrong_messages(1), passes.FORWARD)


@exercise(
    "stage_backward",
    title="E2 One backward: take, differentiate, pass back",
    points=3,
    names=["backward_counted"],
    evidence="served",
    hints=HINTS["stage_backward"],
)
def stage_backward(subject: Subject, draw: Draw) -> None:
    """The gradient for x on every rank, made of the received one, and passed to the rank before."""
    cases = chains(draw, "stage_backward")
    answers: Answers = []
    with draw.group("the gradient for x on every rank", points=2):
        answers = outcomes(Pipelines(subject), cases)
        examine(Answered(answers), cases, passes.wrong_x_gradient, passes.BACKWARD)
    with draw.group("a message on each link, waited for later", points=1):
        same_miss(draw)
        examine(Answered(answers), cases, passes.wrong_messages(-1), passes.BACKWARD)


@exercise(
    "run_actions",
    title="E3 Run any list",
    points=5,
    evidence="served",
    hints=HINTS["run_actions"],
)
def run_actions(subject: Subject, draw: Draw) -> None:
    """The gradients and the loss of the whole batch, by the work that the list says, in its order.

    What was done is seen where the stages are served: gradients alone do not show it.
    """
    programs = Pipelines(subject)
    known, ragged, drawn = known_lists(draw), ragged_lists(draw), drawn_lists(draw)
    with draw.group("gradients of the whole batch", points=2):
        examine(programs, known, runs.wrong_gradients, runs.GRADIENTS)
    with draw.group("pieces of different size, and the loss", points=1):
        same_miss(draw)
        examine(programs, ragged, runs.wrong_loss, (*runs.GRADIENTS, *runs.RAGGED))
    with draw.group("the list as it stands", points=2):
        stuck = draw.groups[0].diagnosis
        if stuck and stuck.id in ("unwritten", "missing", "sends_block"):
            same_miss(draw)
        examine(programs, drawn, records.wrong_record, records.RECORD)


@exercise(
    "run_actions_fast",
    title="E3 Run any list: its time",
    points=2,
    names=["run_actions"],
    evidence="served",
    hints=HINTS["run_actions_fast"],
)
def run_actions_fast(subject: Subject, draw: Draw) -> None:
    """Right gradients, in the time that the list takes on the model clock."""
    examine(
        Pipelines(subject), known_lists(draw), records.other_time, (*runs.GRADIENTS, *records.CLOCK)
    )


@exercise(
    "minibatch_steps",
    title="E4 The same as instructions",
    points=4,
    names=["all_steps"],
    hints=HINTS["minibatch_steps"],
)
def minibatch_steps(subject: Subject, draw: Draw) -> None:
    """Which instructions a stage needs, in an order that works, and the one that reduces."""
    k, m = (draw.int(3, 6), draw.int(2, 9)) if draw.secret else (3, 4)
    sizes = [(0, 2, 2), (1, 2, 2), (0, k, m), (k - 1, k, m), (1, k, m + 1), (0, 1, m), (0, 1, 1)]
    cases = [Case("all_steps", one) for one in sizes]
    answers = outcomes(Bounded(subject, steps.MOST_OF_STEPS), cases)
    for label, differs in steps.GROUPS.items():
        with draw.group(label, points=1):
            examine(Answered(answers), cases, differs)


@exercise(
    "engine_cause",
    title="E5 What is wrong with this engine",
    points=3,
    hints=HINTS["engine_cause"],
)
def engine_cause(subject: Subject, draw: Draw) -> None:
    """Which of eight causes the record, the gradients and the memory of a run speak for."""
    causes.ASKED.examine(Bounded(subject, MOST_OF_CAUSE), draw, causes.KNOWN)
