"""The typical mistakes of unit 02's `memory_bill`, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_02
from autograder.checks.unit_02.bill_answers import form_problem, wrong_rank
from autograder.diagnosis import Case, Mistake, each
from autograder.oracle_02 import ACTIVATION_BYTES
from mpedu.published import ModelConfig

PerRank = Callable[[ModelConfig, int, int], Sequence[float]]  # of one part, in bytes


def _mistake(id: str, parts: Sequence[str], formulas: Sequence[PerRank], why: str) -> Mistake:
    """Seen when the formulas, one for each part, give all the bytes of every answer."""

    def matches(case: Case, got: Any) -> bool:
        if form_problem(case, got):
            return False
        return all(
            [bill[part] for bill in got] == list(formula(*case.args))
            for part, formula in zip(parts, formulas, strict=True)
        )

    return Mistake(
        id, each(matches), lambda case, got: f"{wrong_rank(case, got, parts)} {why}", why
    )


def _parameters(
    layers: Callable[[int, int], Sequence[int]] = oracle_02.layers_of,
    first: Callable[[ModelConfig, int], int] | None = None,
    last: Callable[[ModelConfig, int], int] | None = None,
    n_bytes: int = 2,
) -> PerRank:
    """Parameter bytes with other layers on the ranks, or other parts at the ends."""

    def per_rank(config: ModelConfig, n_stages: int, n_held: int) -> Sequence[float]:
        held = [n * config.layer_parameters for n in layers(config.n_layers, n_stages)]
        held[0] += _embedding(config, n_stages) if first is None else first(config, n_stages)
        held[-1] += _head(config, n_stages) if last is None else last(config, n_stages)
        return [n_bytes * n for n in held]

    return per_rank


def _embedding(config: ModelConfig, n_stages: int) -> int:
    return config.vocabulary_parameters + config.position_parameters


def _head(config: ModelConfig, n_stages: int) -> int:
    if n_stages == 1 and config.tied_embeddings:
        return config.norm_parameters
    return config.norm_parameters + config.vocabulary_parameters


def _total(config: ModelConfig, n_stages: int) -> int:
    return sum(oracle_02.parameters_of(config, n_stages))


def _dropped(n_layers: int, n_stages: int) -> list[int]:
    return [n_layers // n_stages] * n_stages


def _remainder_last(n_layers: int, n_stages: int) -> list[int]:
    size = n_layers // n_stages
    return [size] * (n_stages - 1) + [n_layers - size * (n_stages - 1)]


def _smaller_first(n_layers: int, n_stages: int) -> list[int]:
    return oracle_02.layers_of(n_layers, n_stages)[::-1]


def _times(n_bytes: float) -> PerRank:
    """So many bytes for every parameter of the rank."""
    return lambda config, n_stages, n_held: [
        n_bytes * n for n in oracle_02.parameters_of(config, n_stages)
    ]


def _activations(
    layers: Callable[[int, int], Sequence[float]], each_held: bool = True
) -> Callable[[int], PerRank]:
    """Activation bytes with other layers, or of one sequence only, at some bytes a number."""
    return lambda n_bytes: (
        lambda config, n_stages, n_held: [
            n * n_bytes * config.n_positions * config.d_model * (n_held if each_held else 1)
            for n in layers(config.n_layers, n_stages)
        ]
    )


_WHOLE_MODEL = "Every rank holds its own layers only; you give it the whole model."
PARAMETERS = (
    _mistake(
        "whole_model",
        ["parameters"],
        [lambda c, k, h: [2 * _total(c, k)] * k],
        _WHOLE_MODEL,
    ),
    _mistake(
        "equal_shares",
        ["parameters"],
        [lambda c, k, h: [2 * _total(c, k) // k] * k],
        "You share parameters out evenly. Layers are not cut: embedding and output matrix make the "
        "first and the last rank heavier.",
    ),
    _mistake(
        "remainder_dropped",
        ["parameters"],
        [_parameters(_dropped)],
        "Layers are lost where n_stages does not divide n_layers.",
    ),
    _mistake(
        "remainder_last",
        ["parameters"],
        [_parameters(_remainder_last)],
        "All left-over layers are on the last rank; counts differ by at most 1, larger first.",
    ),
    _mistake(
        "smaller_first",
        ["parameters"],
        [_parameters(_smaller_first)],
        "The larger counts of layers come first; yours come last.",
    ),
    _mistake(
        "layers_only",
        ["parameters"],
        [_parameters(first=lambda c, k: 0, last=lambda c, k: 0)],
        "Those are the layers alone: the first rank has the embedding, the last norm and output "
        "matrix too.",
    ),
    _mistake(
        "no_head",
        ["parameters"],
        [_parameters(last=lambda c, k: 0)],
        "The last rank has the final norm and the output matrix too.",
    ),
    _mistake(
        "no_final_norm",
        ["parameters"],
        [_parameters(last=lambda c, k: _head(c, k) - c.norm_parameters)],
        "One norm is missing: it stands before the output matrix, on the last rank.",
    ),
    _mistake(
        "no_positions",
        ["parameters"],
        [_parameters(first=lambda c, k: c.vocabulary_parameters)],
        "Where positions are learned, their table lies on the first rank too.",
    ),
    _mistake(
        "head_on_first",
        ["parameters"],
        [_parameters(first=lambda c, k: _embedding(c, k) + _head(c, k), last=lambda c, k: 0)],
        "The output matrix is used by the last rank, not by the first.",
    ),
    _mistake(
        "parameters_counted",
        ["parameters"],
        [_times(1)],
        "Those are numbers of parameters; each takes 2 bytes.",
    ),
    _mistake(
        "float32_parameters",
        ["parameters"],
        [_times(4)],
        "Weights are kept in 2 bytes here; the copy in 4 bytes belongs to the optimiser.",
    ),
)
_STATES = ["gradients", "optimiser"]
STATES = (
    _mistake(
        "weights_only",
        _STATES,
        [_times(0), _times(0)],
        "Gradients and Adam's states outweigh the weights: 2 and 12 bytes beside their 2.",
    ),
    _mistake(
        "moments_only",
        _STATES,
        [_times(2), _times(8)],
        "Those are the two moments; in mixed precision the optimiser keeps the weights in float32 "
        "as well.",
    ),
    _mistake(
        "half_moments",
        _STATES,
        [_times(2), _times(4)],
        "You keep the moments in 2 bytes; float32 weights and two float32 moments are asked.",
    ),
    _mistake(
        "float32_gradients",
        _STATES,
        [_times(4), _times(12)],
        "Gradients are as large as the weights they belong to, 2 bytes each.",
    ),
    _mistake(
        "states_of_all_16",
        _STATES,
        [_times(2), _times(16)],
        "The 16 bytes are all together: weights and gradients are 4 of them already.",
    ),
)
_OF_RANK = _activations(oracle_02.layers_of)
_PART = ["activations"]
ACTIVATIONS = (
    _mistake(
        "one_sequence",
        _PART,
        [_activations(oracle_02.layers_of, each_held=False)(ACTIVATION_BYTES)],
        "That is one sequence; the rank holds n_held of them at once.",
    ),
    _mistake(
        "all_layers",
        _PART,
        [_activations(lambda n, k: [n] * k)(ACTIVATION_BYTES)],
        "A rank keeps activations of its own layers only.",
    ),
    _mistake(
        "one_layer",
        _PART,
        [_activations(lambda n, k: [1] * k)(ACTIVATION_BYTES)],
        "That is one layer; backward needs the inside of every layer of the rank.",
    ),
    _mistake(
        "boundary_only",
        _PART,
        [_activations(lambda n, k: [1] * k)(2)],
        "That is the one tensor that crosses the boundary; backward needs what lies inside the "
        "layers.",
    ),
    _mistake(
        "outputs_only",
        _PART,
        [_OF_RANK(2)],
        "You keep one tensor a layer; 34 bytes a token and column are kept, for backward needs "
        "what lies inside.",
    ),
    _mistake(
        "bytes_twice",
        _PART,
        [_OF_RANK(2 * ACTIVATION_BYTES)],
        "34 are bytes already, not numbers of 2 bytes each.",
    ),
)
TIED = (
    _mistake(
        "no_copy",
        ["parameters"],
        [_parameters(last=lambda c, k: c.norm_parameters)],
        "A matrix cannot lie on two ranks at once: the last one needs a copy of its own.",
    ),
    _mistake(
        "two_on_one",
        ["parameters"],
        [_parameters(last=lambda c, k: c.norm_parameters + c.vocabulary_parameters)],
        "On a single rank the tied matrix exists once.",
    ),
)
