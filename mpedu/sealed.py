"""Training runs with one planted fault: a small model, really run, action by action.

Each stage is one layer y = tanh(x W) of `N_FEATURES` features; the loss of a sample is half its
squared error. A rank runs its list in order and takes whatever arrives on a link first, so a list
in another order than its neighbour's meets the wrong messages.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mpedu.faults import require_at_least
from mpedu.runs import CAUSES, RunReport
from mpedu.schedule import Action, Schedule, all_needs, run_order

N_FEATURES, N_STEPS, LEARNING_RATE = 3, 5, 0.3

Array = np.ndarray[Any, np.dtype[np.float64]]


class _Piece(NamedTuple):
    """Samples and targets, each [n_samples, N_FEATURES], and the weight of their mean loss."""

    x: Array
    targets: Array
    weight: float


class _Done(NamedTuple):
    """One step: the mean loss of each piece, and per stage the gradient [N_FEATURES, N_FEATURES].

    `added` holds what each piece changed in it, measured before and after.
    """

    losses: list[float]
    gradients: list[Array]
    added: list[dict[int, Array]]


def sealed_run(
    cause: str,
    schedule: Schedule,
    sizes: Sequence[int],
    rng: np.random.Generator,
    stage: int | None = None,
) -> RunReport:
    """The report of a run with that cause planted; data and initial weights are drawn from `rng`.

    `schedule` is legal, of one stage per rank; `sizes` are the samples of each micro-batch;
    `stage` is the one that "order_differs" turns round, the last if None.
    ValueError for an unknown cause, and for one that would change nothing with these sizes.
    """
    sizes = tuple(sizes)
    shares = _weights_of("none", sizes)
    planted = _weights_of(cause, sizes)
    layers, teacher = [_drawn(rng, N_FEATURES) for _ in schedule], _drawn(rng, N_FEATURES)
    x = rng.normal(size=(sum(sizes), N_FEATURES))
    targets = np.tanh(x @ teacher)
    if cause == "order_differs":
        turned = len(schedule) - 1 if stage is None else stage
        schedule = _one_stage_reversed(schedule, sizes, turned)
    spans = [slice(*span) for span in pairwise([0, *np.cumsum(sizes)])]
    pieces = [_Piece(x[s], targets[s], w) for s, w in zip(spans, planted, strict=True)]
    losses, added = _train(layers, _order_of(schedule), pieces, shares, cause)
    serial = _serial_order(len(schedule))
    serial_losses, _ = _train(layers, serial, [_Piece(x, targets, 1.0)], [1.0], "none")
    ratios = []
    for m, piece in enumerate(pieces):
        alone = _step(layers, serial, [piece._replace(weight=1.0)])
        ratios.append(_ratio([one.get(m) for one in added], alone.gradients))
    return RunReport(schedule, sizes, tuple(ratios), losses, serial_losses)


def _drawn(rng: np.random.Generator, n_features: int) -> Array:
    """Weights [n_features, n_features] that neither blow up nor fade."""
    return rng.normal(scale=1.2 / n_features**0.5, size=(n_features, n_features))


def _weights_of(cause: str, sizes: tuple[int, ...]) -> list[float]:
    """The weight of each micro-batch's mean loss; ValueError where the cause cannot be planted."""
    require_at_least(2, n_microbatches=len(sizes))
    require_at_least(1, size=min(sizes))
    if cause not in CAUSES:
        raise ValueError(f"cause={cause!r} is unknown; choose one of {', '.join(CAUSES)}")
    n_microbatches, n_samples = len(sizes), sum(sizes)
    if cause == "loss_not_divided":
        return [1.0] * n_microbatches
    if cause == "divided_twice":
        return [size / n_samples / n_microbatches for size in sizes]
    if cause == "equal_weights":
        if len(set(sizes)) == 1:
            raise ValueError(f"equal weights are right for equal sizes, {sizes}; give others")
        return [1 / n_microbatches] * n_microbatches
    return [size / n_samples for size in sizes]


def _one_stage_reversed(schedule: Schedule, sizes: tuple[int, ...], stage: int) -> Schedule:
    """The schedule with the backwards of one stage reversed, among micro-batches of one size.

    Of one size, since a gradient of another shape would stop the run.
    """
    if len(set(sizes)) == len(sizes):
        raise ValueError(f"no two of the sizes {sizes} are equal; an order needs two that are")
    require_at_least(2, n_stages=len(schedule))
    actions = schedule[stage]
    backwards = [action for action in actions if action.kind == "B"]
    left = {size: [a for a in backwards if sizes[a.microbatch] == size] for size in sizes}
    crossed = [a if a.kind == "F" else left[sizes[a.microbatch]].pop() for a in actions]
    return [crossed if s == stage else actions for s, actions in enumerate(schedule)]


def _order_of(schedule: Schedule) -> list[Action]:
    """All actions in an order in which the ranks can run them; ValueError if there is none."""
    order, stuck = run_order(schedule, all_needs(schedule, len(schedule)))
    if stuck:
        raise ValueError("this schedule cannot finish with a stage out of order; give gpipe")
    return [action for _, action in order]


def _serial_order(n_stages: int) -> list[Action]:
    """The whole model on one piece, by one process."""
    stages = range(n_stages)
    return [Action("F", s, 0) for s in stages] + [Action("B", s, 0) for s in reversed(stages)]


def _train(
    layers: list[Array], order: list[Action], pieces: list[_Piece], shares: list[float], cause: str
) -> tuple[tuple[float, ...], list[dict[int, Array]]]:
    """The loss before every update, and what each piece added to the gradient in the first step.

    The loss is the mean over all samples, whatever weights make the gradient.
    """
    gradients = [np.zeros_like(layer) for layer in layers]
    losses, steps = [], []
    for _ in range(N_STEPS):
        done = _step(layers, order, pieces, cause == "only_last_microbatch")
        steps.append(done)
        losses.append(sum(w * loss for w, loss in zip(shares, done.losses, strict=True)))
        kept = 1.0 if cause == "gradients_not_cleared" else 0.0
        gradients = [kept * g + new for g, new in zip(gradients, done.gradients, strict=True)]
        layers = [w - LEARNING_RATE * g for w, g in zip(layers, gradients, strict=True)]
    return tuple(losses), steps[0].added


def _step(
    layers: list[Array], order: list[Action], pieces: list[_Piece], overwrites: bool = False
) -> _Done:
    """Forward and backward of all pieces; the gradients begin at 0."""
    last = len(layers) - 1
    links: dict[tuple[str, int], deque[Array]] = defaultdict(deque)
    links["F", 0] = deque(piece.x for piece in pieces)
    held: dict[tuple[int, int], tuple[Array, Array]] = {}
    done = _Done([0.0] * len(pieces), [np.zeros_like(w) for w in layers], [{} for _ in layers])
    for kind, stage, m in order:
        piece = pieces[m]
        if kind == "F":
            x = piece.x if stage == 0 else links["F", stage].popleft()
            y = np.tanh(x @ layers[stage])
            held[stage, m] = x, y
            if stage == last:
                error = y - piece.targets
                done.losses[m] = float((error * error).sum()) / 2 / len(x)
                links["loss", m].append(error * (piece.weight / len(x)))
            else:
                links["F", stage + 1].append(y)
        else:
            x, y = held.pop((stage, m))
            arrived = links["loss", m] if stage == last else links["B", stage]
            inner = arrived.popleft() * (1 - y * y)
            if overwrites:
                done.added[stage].clear()
                done.gradients[stage] = np.zeros_like(layers[stage])
            before = done.gradients[stage]
            done.gradients[stage] = before + x.T @ inner
            done.added[stage][m] = done.gradients[stage] - before
            if stage > 0:
                links["B", stage - 1].append(inner @ layers[stage].T)
    return done


def _ratio(added: list[Array | None], serial: list[Array]) -> float:
    """What a micro-batch gave along its serial gradient, over the length of that; all stages."""
    along = sum(float((g * s).sum()) for g, s in zip(added, serial, strict=True) if g is not None)
    return along / sum(float((s * s).sum()) for s in serial)
