"""The typical mistakes of unit 05's `ready`, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_05
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Miss, Mistake
from mpedu.schedule import Action

_SHOWN = 8


def no_bool(said: str, name: str, got: Any) -> Diagnosis | None:
    """What keeps an answer from being True or False."""
    if isinstance(got, bool):
        return None
    back = "None came back: is a return missing?" if got is None else f"{shown(got)} came back;"
    return Diagnosis(
        "no_bool",
        f"{said}: {back} True or False is asked.",
        f"{name} gives neither True nor False.",
    )


def moment(case: Case) -> str:
    """A call of `ready` in words."""
    action, done, n_stages = case.args
    near = [a for a in done if a.microbatch == action.microbatch]
    words = ", ".join(map(str, sorted(near, key=lambda a: (a.kind == "B", a.stage))[:_SHOWN]))
    more = " .." if len(near) > _SHOWN else ""
    return f"ready of {action}, n_stages={n_stages}, done with it: {words or 'nothing'}{more}"


def differs_ready(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with one answer, None where it is right."""
    problem = no_bool(moment(case), "ready", got)
    if problem or got == oracle_05.ready(*case.args):
        return problem
    action = case.args[0]
    look = "Which message does it wait for, and from whom?"
    general = (
        f"{'a forward' if action.kind == 'F' else 'a backward'} is said to be "
        f"{'ready' if got else 'not ready'} and is not so."
    )
    return Diagnosis(
        "differs", f"{moment(case)}; it gives {got}, expected {not got}. {look}", general
    )


Rule = Callable[[Action, list[Action], int], bool]


def _ready(id: str, rule: Rule, why: str, general: str) -> Mistake:
    """A mistake that gives `rule` of every moment."""

    def matches(answers: Answers) -> bool:
        return all(type(got) is bool and got == rule(*case.args) for case, got in answers)

    return Mistake(id, matches, lambda case, got: f"{moment(case)}; it gives {got}. {why}", general)


def _forward(action: Action, done: list[Action]) -> bool:
    return oracle_05.ready(action._replace(kind="F"), done, action.stage + 1)


def _own(action: Action, done: list[Action]) -> bool:
    return action._replace(kind="F") in done


def _backward_if(rule: Rule) -> Rule:
    """Right of forwards, another rule for backwards."""
    return lambda action, done, n: (
        _forward(action, done) if action.kind == "F" else rule(action, done, n)
    )


def _any_microbatch(action: Action, done: list[Action], n_stages: int) -> bool:
    numbers = {a.microbatch for a in done} | {action.microbatch}
    moved = (action._replace(microbatch=m) for m in numbers)
    return any(oracle_05.ready(one, done, n_stages) for one in moved)


def _from_before(action: Action, done: list[Action], n_stages: int) -> bool:
    before = action._replace(stage=action.stage - 1)
    return _own(action, done) and (action.stage == 0 or before in done)


def _stages_seen(action: Action, done: list[Action], n_stages: int) -> bool:
    seen = 1 + max([a.stage for a in done], default=0)
    return oracle_05.ready(action, done, seen)


def _end_reached(action: Action, done: list[Action], n_stages: int) -> bool:
    return Action("F", n_stages - 1, action.microbatch) in done


READY = (
    _ready(
        "always_ready",
        lambda action, done, n: True,
        "You say so of everything; look for what the action needs among the actions done.",
        "everything is said to be ready.",
    ),
    _ready(
        "never_ready",
        lambda action, done, n: False,
        "You say so of everything; the first forward of all, for one, needs nothing.",
        "nothing is said to be ready.",
    ),
    _ready(
        "turned_round",
        lambda action, done, n: not oracle_05.ready(action, done, n),
        "True and False are the wrong way round.",
        "True and False are the wrong way round.",
    ),
    _ready(
        "own_stage_alone",
        lambda action, done, n: action.kind == "F" or _own(action, done),
        "You look at the action's own stage alone. What arrives from a neighbour counts too: with "
        "this rule each list is legal, and together they wait for ever.",
        "only the action's own stage is looked at; what arrives from a neighbour counts too.",
    ),
    _ready(
        "own_forward_alone",
        _backward_if(lambda action, done, n: _own(action, done)),
        "A backward needs more than its own forward: the gradient, from the stage after.",
        "a backward needs more than its own forward: the gradient of the stage after.",
    ),
    _ready(
        "end_reached",
        _backward_if(_end_reached),
        "That the forward has reached the last stage is not enough: the gradient must have come "
        "back as far as the stage after.",
        "a forward at the last stage is not enough; the gradient must have come back.",
    ),
    _ready(
        "gradient_from_before",
        _backward_if(_from_before),
        "Gradients come from the stage after, not from the one before.",
        "gradients come from the stage after, not from the one before.",
    ),
    _ready(
        "no_last_stage",
        lambda action, done, n: oracle_05.ready(action, done, action.stage + 2),
        "The last stage, n_stages - 1, waits for no other gradient: it makes the first one.",
        "the last stage waits for no gradient from elsewhere: it makes the first one.",
    ),
    _ready(
        "last_without_forward",
        _backward_if(
            lambda action, done, n: action.stage == n - 1 or oracle_05.ready(action, done, n)
        ),
        "On the last stage too a backward needs its own forward.",
        "on the last stage too a backward needs its own forward.",
    ),
    _ready(
        "no_first_stage",
        lambda action, done, n: (
            oracle_05.ready(action, done, n) and (action.kind == "B" or action.stage > 0)
        ),
        "Stage 0 waits for nobody with a forward: its input is the batch.",
        "the first stage waits for nobody with a forward: its input is the batch.",
    ),
    _ready(
        "any_microbatch",
        _any_microbatch,
        "What is done of another micro-batch does not count.",
        "what is done of another micro-batch does not count.",
    ),
    _ready(
        "stages_seen",
        _stages_seen,
        "You take the last stage seen in `done` for the last of all; n_stages says which it is.",
        "the last stage seen among the actions done is taken for the last of all.",
    ),
)


def explained(
    mistakes: Sequence[Mistake],
    answers: Answers,
    differs: Callable[[Case, Any], Diagnosis | None],
) -> list[Mistake]:
    """The mistakes that explain all these answers, told alike in every group of them."""
    wrong = [
        (case, got) for case, got in answers if not isinstance(got, Miss) and differs(case, got)
    ]
    told = [(one, one.text(*wrong[0])) for one in mistakes if wrong and one.matches(answers)]
    return [
        one._replace(matches=lambda _: True, text=lambda *_, text=text: text) for one, text in told
    ]
