"""The sealed runs of unit 04: backwards with a fault each, run on counted layers and in NumPy.

What is held and run again comes from a real function; gradient errors come from a small chain with
dropout, whose masks a fault may draw anew.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder import oracle, oracle_04
from autograder.checks.causes import LETTERS, SealedRuns
from mpedu.arrays import Array
from mpedu.held import counted_pass

Run = tuple[list[int], list[int], list[float]]  # forwards, held, gradient errors
CAUSES = (
    "none",
    "keeps_everything",
    "restarts_at_zero",
    "checkpointed_twice",
    "mask_redrawn",
    "no_gradient",
)
_OF_EACH = 4
_WIDTH, _TOKENS, _DROPPED = 6, 8, 0.1
_RARELY_DROPPED, _MILD = 0.02, 0.9  # with so little dropout no gradient is off by as much
_MOST_ROUNDING = 9e-7  # of a healthy gradient, relative


def _drawn(rng: random.Random) -> list[tuple[str, Run]]:
    """Each cause with its runs."""
    return [(cause, _run(cause, rng, n)) for cause in CAUSES for n in range(_OF_EACH)]


def _shown_runs(rng: random.Random) -> list[Run]:
    """One chain of 16 layers in four segments, a fault in each run."""
    causes = rng.sample(CAUSES[1:], len(LETTERS))
    return [made(cause, 16, 4, False, rng) for cause in causes]


def _run(cause: str, rng: random.Random, number: int) -> Run:
    """A run of several segments; every second one keeps its last, the first is a short one.

    The first also has little dropout, and the second no more segments than the first.
    """
    n_segments = rng.randint(3, 5) if number > 1 else 3
    length, more = (rng.randint(3, 5), rng.randint(0, 1)) if number else (3, 0)
    n_layers = n_segments * length + more
    return made(cause, n_layers, n_segments, number % 2 == 1, rng, is_mild=number == 0)


def made(
    cause: str,
    n_layers: int,
    n_segments: int,
    keep_last: bool,
    rng: random.Random,
    is_mild: bool = False,
) -> Run:
    """What a run with that fault shows; mild: redrawn masks put no gradient off by its length."""

    def backward(layers: Sequence[Any], x: Any, n_segments: int) -> Any:
        sizes = oracle.split_sizes(len(layers), n_segments)
        starts = [sum(sizes[:place]) for place in range(n_segments)]
        segments = [layers[at : at + n] for at, n in zip(starts, sizes, strict=True)]
        return _BACKWARDS[cause](segments, x, keep_last)

    done = counted_pass(backward, n_layers, n_segments)
    sizes = oracle.split_sizes(n_layers, n_segments)
    if cause == "mask_redrawn":
        errors = _mild_errors(sizes, rng) if is_mild else _errors(sizes, keep_last, rng)
    else:
        n_lost = sum(sizes[:-1]) if cause == "no_gradient" else 0
        errors = [1.0] * n_lost + _rounding(n_layers - n_lost, rng)
    return done.forwards, done.held, errors


def _keeping(segment: Sequence[Any], x: Any) -> list[Any]:
    """x and every output of the segment."""
    kept = [x]
    for layer in segment:
        kept.append(layer.forward(kept[-1]))
    return kept


def _through(segment: Sequence[Any], x: Any) -> Any:
    for layer in segment:
        x = layer.forward(x)
    return x


def _back(segment: Sequence[Any], kept: list[Any], gradient: Any) -> Any:
    """The gradient for kept[0], the rest of which is let go."""
    for layer in reversed(segment):
        y = kept.pop()
        gradient = layer.backward(kept[-1], y, gradient)
    return gradient


def _checkpointed(
    segments: Sequence[Sequence[Any]], x: Any, keep_last: bool, again: int = 1
) -> Any:
    """As it should be; `again`: how often a segment is run before its backward."""
    inputs = [x]
    for segment in segments[:-1]:
        inputs.append(_through(segment, inputs[-1]))
    gradient: Any = 1.0
    kept = _keeping(segments[-1], inputs[-1]) if keep_last else []
    if not keep_last:
        _through(segments[-1], inputs[-1])
    for segment in reversed(segments):
        first = inputs.pop()
        if not kept:
            for _ in range(again - 1):
                _through(segment, first)
            kept = _keeping(segment, first)
        gradient = _back(segment, kept, gradient)
        kept = []
    return gradient


def _keeps_everything(segments: Sequence[Sequence[Any]], x: Any, keep_last: bool) -> Any:
    """Interior outputs stay in a list, and segments are run again all the same.

    Or no segment is (`keep_last`): there is no checkpoint at all.
    """
    if keep_last:
        layers = [layer for segment in segments for layer in segment]
        return _back(layers, _keeping(layers, x), 1.0)
    all_outputs, inputs = [x], [x]
    for segment in segments:
        all_outputs += _keeping(segment, all_outputs[-1])[1:]
        inputs.append(all_outputs[-1])
    gradient: Any = 1.0
    for place in reversed(range(len(segments))):
        gradient = _back(segments[place], _keeping(segments[place], inputs[place]), gradient)
    return gradient


def _restarts(segments: Sequence[Sequence[Any]], x: Any, keep_last: bool) -> Any:
    """No checkpoints: every segment's input is computed from x, but for a last one that is kept."""
    kept: list[Any] = []
    first = _through([layer for segment in segments[:-1] for layer in segment], x)
    if keep_last:
        kept = _keeping(segments[-1], first)
    else:
        _through(segments[-1], first)
    gradient: Any = 1.0
    for place in reversed(range(len(segments))):
        if kept:
            gradient, kept = _back(segments[place], kept, gradient), []
            continue
        first = x
        for segment in segments[:place]:
            first = _through(segment, first)
        gradient = _back(segments[place], _keeping(segments[place], first), gradient)
    return gradient


def _no_gradient(segments: Sequence[Sequence[Any]], x: Any, keep_last: bool) -> Any:
    """Nothing is recorded of all segments but the last, and none is run again."""
    for segment in segments[:-1]:
        x = _through(segment, x)
    return _back(segments[-1], _keeping(segments[-1], x), 1.0)


_BACKWARDS: dict[str, Callable[[Sequence[Sequence[Any]], Any, bool], Any]] = {
    "none": _checkpointed,
    "mask_redrawn": _checkpointed,
    "keeps_everything": _keeps_everything,
    "restarts_at_zero": _restarts,
    "checkpointed_twice": lambda segments, x, keep: _checkpointed(segments, x, keep, again=2),
    "no_gradient": _no_gradient,
}


def _mild_errors(sizes: Sequence[int], rng: random.Random) -> list[float]:
    """Those of redrawn masks that drop little: all wrong, and none as far off as one not there."""
    while True:
        errors = _errors(sizes, False, rng, _RARELY_DROPPED)
        if min(errors) > 0.01 and max(errors) < _MILD:
            return errors


def _errors(
    sizes: Sequence[int], keep_last: bool, rng: random.Random, dropped: float = _DROPPED
) -> list[float]:
    """The relative differences of the weights' gradients to plain training's, masks drawn anew.

    Each segment is run again from its own input with other masks, but for a last one that is kept.
    """
    n_layers, numbers = sum(sizes), np.random.default_rng(rng.getrandbits(64))
    weights = numbers.normal(size=(n_layers, _WIDTH, _WIDTH)) * _WIDTH**-0.5
    x = numbers.normal(size=(_TOKENS, _WIDTH))
    first, second = numbers.random((2, n_layers, _TOKENS, _WIDTH)) > dropped
    outputs = _outputs(weights, x, first, dropped)
    plain = _gradients(weights, [x, *outputs], first, dropped)
    n_again = n_layers - sizes[-1] if keep_last else n_layers
    masks = np.concatenate([second[:n_again], first[n_again:]])
    kept = [x]
    for at, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        start = outputs[at - 1] if at else x
        kept += _outputs(weights[at : at + size], start, masks[at:], dropped)
    faulty = _gradients(weights, kept, masks, dropped)
    off = [
        float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(faulty, plain, strict=True)
    ]
    return off[:n_again] + _rounding(n_layers - n_again, rng)


def _outputs(weights: Array, x: Array, masks: Array, dropped: float) -> list[Array]:
    """What each layer of a chain with dropout gives, the first of which gets x."""
    made = []
    for weight, mask in zip(weights, masks, strict=False):
        x = np.tanh(x @ weight) * mask / (1 - dropped)
        made.append(x)
    return made


def _gradients(weights: Array, kept: Sequence[Array], masks: Array, dropped: float) -> list[Array]:
    """Of every layer's weights, for the sum of the last outputs. kept: x and all outputs."""
    gradient = np.ones_like(kept[-1])
    found = []
    for layer in reversed(range(len(weights))):
        y = kept[layer + 1] * (1 - dropped)
        before_tanh = gradient * masks[layer] / (1 - dropped) * (1 - y * y)
        found.append(kept[layer].T @ before_tanh)
        gradient = before_tanh @ weights[layer].T
    return found[::-1]


def _rounding(n_layers: int, rng: random.Random) -> list[float]:
    """What the order of additions does to gradients that are right."""
    return [rng.uniform(0, _MOST_ROUNDING) for _ in range(n_layers)]


RUNS = SealedRuns("04", "memory_cause", _shown_runs, _drawn)


def n_wrong() -> int:
    """In how many of the notebook's runs some gradient is off by more than rounding."""
    return sum(max(errors) > oracle_04.HEALTHY_ERROR for _, _, errors in RUNS.shown.values())
