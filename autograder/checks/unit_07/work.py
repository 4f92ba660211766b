"""The stages that unit 07's programs run, served by the judge, and what they did there.

A stage is one layer y = tanh(x W); the loss of a sample is half its squared error. It keeps x and y
side by side, [samples, 2 d]: something else than what came in. What a rank has its stage do is
known here, whatever its program says of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from autograder.checks.programs import Ran
from autograder.diagnosis import Case, StudentError, Subject
from autograder.programs import RanksRun, Served
from autograder.worker.ranks import HELD
from mpedu.schedule import Schedule
from mpedu.simulated import Wire

Array = np.ndarray[Any, np.dtype[np.float64]]
FORWARD_S, BACKWARD_S = 1.0, 2.0
TOLERANCE = 1e-9  # far above what floats do here, far below any mistake


@dataclass(frozen=True, eq=False)
class Problem:
    """Work for a pipeline with one stage per rank.

    name: of the schedule, for messages. layers: [d, d] by stage. inputs, targets: [samples, d] by
    micro-batch. left: by stage, the gradient that the step before has left.
    """

    name: str
    schedule: Schedule
    layers: Sequence[Array]
    inputs: Sequence[Array]
    targets: Sequence[Array]
    left: Sequence[Array]
    link: Wire

    @property
    def n_ranks(self) -> int:
        """Ranks, each with one stage."""
        return len(self.layers)

    @property
    def sizes(self) -> list[int]:
        """Samples of each micro-batch."""
        return [len(x) for x in self.inputs]

    @cached_property
    def xs(self) -> list[list[Array]]:
        """By stage, then by micro-batch: its input; behind the last stage the outputs."""
        found = [list(self.inputs)]
        for layer in self.layers:
            found.append([np.tanh(x @ layer) for x in found[-1]])
        return found

    def kept(self, stage: int, microbatch: int) -> Array:
        """What that stage keeps of that micro-batch: its input and its output, side by side."""
        return np.hstack([self.xs[stage][microbatch], self.xs[stage + 1][microbatch]])

    @cached_property
    def gradients(self) -> list[list[Array]]:
        """By stage, then by micro-batch: the gradient of the batch's mean loss for its output.

        One before: for its input. So number s is for the input of stage s.
        """
        n_samples = sum(self.sizes)
        found = [[(y - t) / n_samples for y, t in zip(self.xs[-1], self.targets, strict=True)]]
        for stage in reversed(range(self.n_ranks)):
            pairs = zip(self.xs[stage + 1], found[0], strict=True)
            found.insert(0, [(g * (1 - y * y)) @ self.layers[stage].T for y, g in pairs])
        return found

    @cached_property
    def loss(self) -> float:
        """The mean loss of the batch."""
        pairs = zip(self.xs[-1], self.targets, strict=True)
        return sum(_loss(y, t) for y, t in pairs) / sum(self.sizes)

    @cached_property
    def due(self) -> list[Array]:
        """By stage, the gradient of its weights."""
        return [
            sum(
                x.T @ (g * (1 - y * y))
                for x, y, g in zip(*self.xs[s : s + 2], self.gradients[s + 1], strict=True)
            )
            for s in range(self.n_ranks)
        ]


def _loss(y: Array, targets: Array) -> float:
    return float(((y - targets) ** 2).sum()) / 2


def near(got: Any, due: Array) -> bool:
    """Whether something is that array, but for rounding."""
    if not isinstance(got, np.ndarray) or got.shape != due.shape or got.dtype.kind not in "fiu":
        return False
    return bool(np.allclose(got, due, rtol=TOLERANCE, atol=TOLERANCE))


@dataclass
class Ledger:
    """What one rank has had its stage do.

    done: (kind, micro-batch) in order; None for an input or kept values of no micro-batch.
    gradient: what the stage holds of its weights. most_held: of how many forwards what they kept
    was still there when a backward began, at most.
    """

    problem: Problem
    rank: int
    done: list[tuple[str, int | None]] = field(default_factory=list)
    most_held: int = 0

    def __post_init__(self) -> None:
        self.layer = self.problem.layers[self.rank]
        self.gradient = self.problem.left[self.rank].copy()

    @property
    def served(self) -> Served:
        """The stage, for the program."""
        methods: dict[str, Callable[..., tuple[Any, float]]] = {
            "forward": self._forward,
            "backward": self._backward,
            "loss": self._loss,
            "zero_grad": self._zero_grad,
            HELD: self._told_held,
        }
        return Served("stage", methods)

    def _told_held(self, _: int, method: Any, counts: Any) -> tuple[Any, float]:
        if method == "backward" and isinstance(counts, dict):
            n_held = counts.get("forward", 0)
            self.most_held = max(self.most_held, n_held if type(n_held) is int else 0)
        return None, 0.0

    def _forward(self, _: int, x: Any) -> tuple[Any, float]:
        self._require("x", x)
        self.done.append(("F", self._which(x)))
        with np.errstate(all="ignore"):
            y = np.tanh(x @ self.layer)
            return (y, np.hstack([x, y])), FORWARD_S

    def _backward(self, _: int, kept: Any, gradient: Any) -> tuple[Any, float]:
        self._require("kept", kept, 2, ": what `stage.forward` gave as kept")
        self._require("the gradient", gradient)
        if len(kept) != len(gradient):
            raise ValueError(f"the gradient has {len(gradient)} rows, and kept {len(kept)}")
        x, y = np.hsplit(kept, 2)
        self.done.append(("B", self._which(x)))
        with np.errstate(all="ignore"):
            inner = gradient * (1 - y**2)
            self.gradient = self.gradient + x.T @ inner
            return inner @ self.layer.T, BACKWARD_S

    def _loss(self, _: int, y: Any, targets: Any) -> tuple[Any, float]:
        if self.rank != self.problem.n_ranks - 1:
            raise ValueError("only the last stage has a loss")
        self._require("y", y)
        self._require("targets", targets)
        if y.shape != targets.shape:
            raise ValueError(f"y has {len(y)} rows, and the targets {len(targets)}")
        return (_loss(y, targets), y - targets), 0.0

    def _zero_grad(self, _: int) -> tuple[Any, float]:
        self.gradient = np.zeros_like(self.gradient)
        return None, 0.0

    def _require(self, what: str, x: Any, n_parts: int = 1, of: str = "") -> None:
        d = n_parts * len(self.layer)
        fits = isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] == d
        if not fits or x.dtype.kind not in "fiu":
            kind = f"an array {list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__
            raise ValueError(f"{what} is {kind}; an array of numbers [samples, {d}] is asked{of}")

    def _which(self, x: Array) -> int | None:
        own = self.problem.xs[self.rank]
        return next((m for m, due in enumerate(own) if near(x, due)), None)


class Ended(NamedTuple):
    """A program's run, and what the stage of each rank did."""

    run: RanksRun
    ledgers: list[Ledger]
    in_sent: Sequence[int] = ()  # of a single forward or backward: requests in `sent`, by rank


Answer = Ended | StudentError


class Pipelines:
    """A subject whose programs run a `Problem`: an answer is `Ended`, or why there is none."""

    def __init__(self, subject: Subject) -> None:
        self._ran = Ran(subject)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The program of that name: on a problem it gives an `Answer`."""
        return lambda problem: self._run(name, problem)

    def _run(self, name: str, problem: Problem) -> Answer:
        ledgers = [Ledger(problem, rank) for rank in range(problem.n_ranks)]
        given = [_GIVEN[name](one) for one in ledgers]
        program = _COUNTED.get(name, name)
        got = getattr(self._ran, program)(problem.n_ranks, given, problem.link)
        if isinstance(got, StudentError):
            return got
        return _counted(got, ledgers) if program in _COUNTED.values() else Ended(got, ledgers)


def _counted(run: RanksRun, ledgers: list[Ledger]) -> Ended:
    """A run of a program that gives (result, requests in `sent`) on every rank."""
    results, in_sent = [], []
    for one in run.results:
        counted = isinstance(one, tuple) and len(one) == 2 and type(one[1]) is int
        results.append(one[0] if counted else one)
        in_sent.append(one[1] if counted else 0)
    return Ended(run._replace(results=results), ledgers, in_sent)


def _forward(one: Ledger) -> tuple[Any, ...]:
    """Of micro-batch 0; x on the first rank."""
    return one.served, one.problem.inputs[0].copy() if one.rank == 0 else None


def _backward(one: Ledger) -> tuple[Any, ...]:
    """Of micro-batch 0; the gradient on the last rank."""
    problem, is_last = one.problem, one.rank == one.problem.n_ranks - 1
    gradient = problem.gradients[-1][0].copy() if is_last else None
    return one.served, problem.kept(one.rank, 0), gradient


def _list(one: Ledger) -> tuple[Any, ...]:
    """The whole schedule; inputs on the first rank, targets on the last."""
    problem, is_last = one.problem, one.rank == one.problem.n_ranks - 1
    inputs = [x.copy() for x in problem.inputs] if one.rank == 0 else []
    targets = [t.copy() for t in problem.targets] if is_last else []
    return list(problem.schedule[one.rank]), one.served, (inputs, targets)


# The notebook's programs that count what is in `sent`.
_COUNTED = {"stage_forward": "forward_counted", "stage_backward": "backward_counted"}
_GIVEN: dict[str, Callable[[Ledger], tuple[Any, ...]]] = {
    "stage_forward": _forward,
    "stage_backward": _backward,
    "run_actions": _list,
}


def problem_of(case: Case) -> Problem:
    """What a case asks."""
    problem: Problem = case.args[0]
    return problem
