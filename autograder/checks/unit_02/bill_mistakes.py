"""The typical mistakes of unit 02's `memory_bill` with parameters, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_02
from autograder.checks.unit_02.bill_answers import form_problem, wrong_rank
from autograder.diagnosis import Answers, Case, Miss, Mistake, each
from mpedu.published import ModelConfig

PerRank = Callable[[ModelConfig, int, int], Sequence[float]]  # of one part, in bytes


def bill_mistake(id: str, parts: Sequence[str], formulas: Sequence[PerRank], why: str) -> Mistake:
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


def _either(id: str, formulas: Sequence[PerRank], why: str) -> list[Mistake]:
    """One mistake of parameters in several forms."""
    return [bill_mistake(id, ["parameters"], [formula], why) for formula in formulas]


def _parameters(
    layers: Callable[[int, int], Sequence[int]] = oracle_02.layers_of,
    first: Callable[[ModelConfig, int], int] | None = None,
    last: Callable[[ModelConfig, int], int] | None = None,
    all_ranks: Callable[[ModelConfig], int] = lambda config: 0,
    each_layer: Callable[[ModelConfig], int] = lambda config: config.layer_parameters,
) -> PerRank:
    """Parameter bytes with other layers on the ranks, or other parts at the ends or on all."""

    def per_rank(config: ModelConfig, n_stages: int, n_held: int) -> Sequence[float]:
        counts = layers(config.n_layers, n_stages)
        held = [n * each_layer(config) + all_ranks(config) for n in counts]
        held[0] += _embedding(config, n_stages) if first is None else first(config, n_stages)
        held[-1] += _head(config, n_stages) if last is None else last(config, n_stages)
        return [2 * n for n in held]

    return per_rank


def _embedding(config: ModelConfig, n_stages: int) -> int:
    return config.vocabulary_parameters + config.position_parameters


def _head(config: ModelConfig, n_stages: int) -> int:
    if n_stages == 1 and config.tied_embeddings:
        return config.norm_parameters
    return config.norm_parameters + config.vocabulary_parameters


def _matrix_alone(config: ModelConfig, n_stages: int) -> int:
    return _head(config, n_stages) - config.norm_parameters


def _with_norms(n: int) -> Callable[[ModelConfig], int]:
    """A layer with n norms more than it has."""
    return lambda config: config.layer_parameters + n * config.norm_parameters


def _no_more(config: ModelConfig, n_stages: int) -> int:
    return 0


def _total(config: ModelConfig, n_stages: int) -> int:
    return sum(oracle_02.parameters_of(config, n_stages))


def _dropped(n_layers: int, n_stages: int) -> list[int]:
    return [n_layers // n_stages] * n_stages


def _remainder_last(n_layers: int, n_stages: int) -> list[int]:
    size = n_layers // n_stages
    return [size] * (n_stages - 1) + [n_layers - size * (n_stages - 1)]


def _remainder_first(n_layers: int, n_stages: int) -> list[int]:
    return _remainder_last(n_layers, n_stages)[::-1]


def _smaller_first(n_layers: int, n_stages: int) -> list[int]:
    return oracle_02.layers_of(n_layers, n_stages)[::-1]


def times(n_bytes: float) -> PerRank:
    """So many bytes for every parameter of the rank."""
    return lambda config, n_stages, n_held: [
        n_bytes * n for n in oracle_02.parameters_of(config, n_stages)
    ]


_WHOLE_MODEL = "Every rank holds its own layers only; you give it the whole model."
SHARED = (
    bill_mistake(
        "whole_model",
        ["parameters"],
        [lambda c, k, h: [2 * _total(c, k)] * k],
        _WHOLE_MODEL,
    ),
    bill_mistake(
        "equal_shares",
        ["parameters"],
        [lambda c, k, h: [2 * _total(c, k) // k] * k],
        "You share parameters out evenly. Layers are not cut: embedding and output matrix make the "
        "first and the last rank heavier.",
    ),
)
LAYERS = (
    bill_mistake(
        "remainder_dropped",
        ["parameters"],
        [_parameters(_dropped)],
        "Layers are lost where n_stages does not divide n_layers.",
    ),
    bill_mistake(
        "remainder_last",
        ["parameters"],
        [_parameters(_remainder_last)],
        "All left-over layers are on the last rank; counts differ by at most 1, larger first.",
    ),
    bill_mistake(
        "smaller_first",
        ["parameters"],
        [_parameters(_smaller_first)],
        "The larger counts of layers come first; yours come last.",
    ),
    bill_mistake(
        "remainder_first",
        ["parameters"],
        [_parameters(_remainder_first)],
        "All left-over layers are on the first rank; counts differ by at most 1.",
    ),
)
ENDS = (
    bill_mistake(
        "no_matrix",
        ["parameters"],
        [_parameters(last=lambda c, k: c.norm_parameters)],
        "Exactly one vocabulary matrix is missing on the last rank, in every case: the output "
        "matrix.",
    ),
    bill_mistake(
        "no_embedding",
        ["parameters"],
        [_parameters(first=lambda c, k: c.position_parameters)],
        "Exactly one vocabulary matrix is missing on the first rank, in every case: the embedding.",
    ),
    *_either(
        "embedding_everywhere",
        [
            _parameters(first=_no_more, all_ranks=lambda c: _embedding(c, 2)),
            _parameters(
                first=lambda c, k: c.position_parameters,
                all_ranks=lambda c: c.vocabulary_parameters,
            ),
        ],
        "Every rank has an embedding in your bill; it lies on the first rank only.",
    ),
    *_either(
        "positions_on_last",
        [
            _parameters(last=lambda c, k: _head(c, k) + c.position_parameters),
            _parameters(
                first=lambda c, k: c.vocabulary_parameters,
                last=lambda c, k: _head(c, k) + c.position_parameters,
            ),
        ],
        "The last rank has the table of positions in your bill; it lies on the first rank only.",
    ),
    *_either(
        "norms_again",
        [
            _parameters(each_layer=_with_norms(n), last=last)
            for n in (1, 2)
            for last in (None, _matrix_alone)
        ],
        "You add norms for every layer; layer_parameters holds these already. Only the final norm "
        "comes on top.",
    ),
    bill_mistake(
        "norm_everywhere",
        ["parameters"],
        [
            _parameters(
                all_ranks=lambda c: c.norm_parameters,
                last=_matrix_alone,
            )
        ],
        "Every rank has a final norm in your bill; it lies on the last rank only.",
    ),
    bill_mistake(
        "layers_only",
        ["parameters"],
        [_parameters(first=lambda c, k: 0, last=lambda c, k: 0)],
        "Those are the layers alone: the first rank has the embedding, the last norm and output "
        "matrix too.",
    ),
    bill_mistake(
        "no_head",
        ["parameters"],
        [_parameters(last=lambda c, k: 0)],
        "The last rank has the final norm and the output matrix too.",
    ),
    bill_mistake(
        "no_final_norm",
        ["parameters"],
        [_parameters(last=_matrix_alone)],
        "One norm is missing: it stands before the output matrix, on the last rank.",
    ),
    bill_mistake(
        "no_positions",
        ["parameters"],
        [_parameters(first=lambda c, k: c.vocabulary_parameters)],
        "Where positions are learned, their table lies on the first rank too.",
    ),
    bill_mistake(
        "head_on_first",
        ["parameters"],
        [_parameters(first=lambda c, k: _embedding(c, k) + _head(c, k), last=lambda c, k: 0)],
        "The output matrix is used by the last rank, not by the first.",
    ),
)
SIZES = (
    bill_mistake(
        "parameters_counted",
        ["parameters"],
        [times(1)],
        "Those are numbers of parameters; each takes 2 bytes.",
    ),
    bill_mistake(
        "float32_parameters",
        ["parameters"],
        [times(4)],
        "Weights are kept in 2 bytes here; the copy in 4 bytes belongs to the optimiser.",
    ),
)
# Of all of them the first that explains the answers is told.
EVEN = (*SHARED, *ENDS, *SIZES)
UNEVEN = (*EVEN, *LAYERS)
_NOT_OF_TIED = ("no_matrix", "no_embedding", "no_head", "layers_only", "head_on_first")
APART_FROM_TIED = tuple(m for m in (*ENDS, *SIZES) if m.id not in _NOT_OF_TIED)
TIED = (
    bill_mistake(
        "no_copy",
        ["parameters"],
        [_parameters(last=lambda c, k: c.norm_parameters)],
        "A matrix cannot lie on two ranks at once: the last one needs a copy of its own.",
    ),
    bill_mistake(
        "two_on_one",
        ["parameters"],
        [_parameters(last=lambda c, k: c.norm_parameters + c.vocabulary_parameters)],
        "On a single rank the tied matrix exists once.",
    ),
)


def explained(told: Answers, others: Answers, among: Sequence[Mistake]) -> bool:
    """Whether the same mistake explains both: then it has been paid for with the first."""
    answered = not any(isinstance(got, Miss) for _, got in [*told, *others])
    return answered and any(m.matches(told) and m.matches(others) for m in among)
