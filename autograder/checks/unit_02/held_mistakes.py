"""The typical mistakes of unit 02's `memory_bill` beside parameters, and what they draw."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from autograder import oracle_02
from autograder.checks.unit_02.bill_answers import form_problem, wrong_rank
from autograder.checks.unit_02.bill_mistakes import PerRank, bill_mistake, times
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Mistake
from autograder.oracle_02 import ACTIVATION_BYTES
from mpedu.published import ModelConfig


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


_STATES = ["gradients", "optimiser"]
STATES = (
    bill_mistake(
        "weights_only",
        _STATES,
        [times(0), times(0)],
        "Gradients and Adam's states outweigh the weights: 2 and 12 bytes beside their 2.",
    ),
    bill_mistake(
        "moments_only",
        _STATES,
        [times(2), times(8)],
        "Those are the two moments; in mixed precision the optimiser keeps the weights in float32 "
        "as well.",
    ),
    bill_mistake(
        "half_moments",
        _STATES,
        [times(2), times(4)],
        "You keep the moments in 2 bytes; float32 weights and two float32 moments are asked.",
    ),
    bill_mistake(
        "float32_gradients",
        _STATES,
        [times(4), times(12)],
        "Gradients are as large as the weights they belong to, 2 bytes each.",
    ),
    bill_mistake(
        "states_of_all_16",
        _STATES,
        [times(2), times(16)],
        "The 16 bytes are all together: weights and gradients are 4 of them already.",
    ),
)


def _factors(more: Callable[[ModelConfig], float]) -> PerRank:
    """Activation bytes times something else; compared as whole numbers."""
    right = _activations(oracle_02.layers_of)(ACTIVATION_BYTES)
    return lambda c, k, h: [round(n * more(c)) for n in right(c, k, h)]


_OTHER_FACTOR = "all activations are off by one and the same factor: look at the constant."


def _ratios(answers: Answers) -> set[Fraction]:
    """Activations over what is due, of all ranks; empty where an answer is no bill."""
    if any(form_problem(case, got) for case, got in answers):
        return set()
    return {
        Fraction(bill["activations"], right["activations"])
        for case, got in answers
        for bill, right in zip(got, oracle_02.memory_bill(*case.args), strict=True)
    }


def _same_factor(answers: Answers) -> bool:
    return len(_ratios(answers)) == 1


def _factor_text(case: Case, got: Any) -> str:
    (ratio,) = _ratios([(case, got)])
    return (
        f"{wrong_rank(case, got, _PART)} In every case, on every rank, yours is "
        f"{shown(ratio)} times what is due: look at the constant."
    )


_OF_RANK = _activations(oracle_02.layers_of)
_PART = ["activations"]
ACTIVATIONS = (
    bill_mistake(
        "one_sequence",
        _PART,
        [_activations(oracle_02.layers_of, each_held=False)(ACTIVATION_BYTES)],
        "That is one sequence; the rank holds n_held of them at once.",
    ),
    bill_mistake(
        "all_layers",
        _PART,
        [_activations(lambda n, k: [n] * k)(ACTIVATION_BYTES)],
        "A rank keeps activations of its own layers only.",
    ),
    bill_mistake(
        "one_layer",
        _PART,
        [_activations(lambda n, k: [1] * k)(ACTIVATION_BYTES)],
        "That is one layer; backward needs the inside of every layer of the rank.",
    ),
    bill_mistake(
        "boundary_only",
        _PART,
        [_activations(lambda n, k: [1] * k)(2)],
        "That is the one tensor that crosses the boundary; backward needs what lies inside the "
        "layers.",
    ),
    bill_mistake(
        "outputs_only",
        _PART,
        [_OF_RANK(2)],
        "You keep one tensor a layer; 34 bytes a token and column are kept, for backward needs "
        "what lies inside.",
    ),
    bill_mistake(
        "bytes_twice",
        _PART,
        [_OF_RANK(2 * ACTIVATION_BYTES)],
        "34 are bytes already, not numbers of 2 bytes each.",
    ),
    bill_mistake(
        "no_tokens",
        _PART,
        [_factors(lambda c: 1 / c.n_positions)],
        "n_positions is missing: 34 bytes are those of one token and column.",
    ),
    bill_mistake(
        "no_columns",
        _PART,
        [_factors(lambda c: 1 / c.d_model)],
        "d_model is missing: 34 bytes are those of one token and column.",
    ),
    Mistake("other_factor", _same_factor, _factor_text, _OTHER_FACTOR),
)
