"""The typical mistakes of unit 04's `gpipe_peak_activation`, and the sentences they draw."""

from typing import Any

from autograder import oracle_04
from autograder.checks.unit_04.segment_mistakes import differs_whole, whole_mistake
from autograder.checks.values import Formula, wrong_number
from autograder.diagnosis import Mistake

_truth = oracle_04.gpipe_peak_activation
differs_peak = differs_whole(
    _truth,
    "What does the fullest rank hold when its first backward begins?",
    "the peak is not that of the fullest rank.",
)


def _up(n: int, parts: int) -> int:
    """The largest of so many parts; in formulas n, d, k, m, c are the arguments in their order."""
    return -(-n // parts)


def _mistake(id: str, why: str, *formulas: Formula) -> Mistake:
    sentence = wrong_number(_truth)
    return whole_mistake(id, formulas, lambda case, got: f"{sentence(case, got)} {why}", why)


def _if(with_checkpoints: Formula) -> Formula:
    """Another formula with checkpoints, the right one without."""
    return lambda n, d, k, m, c: with_checkpoints(n, d, k, m) if c else _truth(n, d, k, m, c)


def _unless(without_checkpoints: Formula) -> Formula:
    """Another formula without checkpoints, the right one with."""
    return lambda n, d, k, m, c: _truth(n, d, k, m, c) if c else without_checkpoints(n, d, k, m)


def _floor(n: int, d: int, k: int, m: int, c: Any) -> int:
    return n + d // k * (n // m) if c else n * (d // k)


def _half_floor(n: int, d: int, k: int, m: int, c: Any) -> int:
    return n + d * n // (k * m) if c else n * d // k


PLAIN: tuple[Mistake, ...] = (
    _mistake(
        "one_piece_held",
        "That is one micro-batch. GPipe runs all forwards first, so all of them are held.",
        _unless(lambda n, d, k, m: _up(d, k) * _up(n, m)),
    ),
    _mistake(
        "whole_model",
        "That is a device with all layers; a rank has those of its stage.",
        _unless(lambda n, d, k, m: n * d),
        lambda n, d, k, m, c: n + d * _up(n, m) if c else n * d,
    ),
    _mistake(
        "pieces_counted",
        "You count micro-batches; each of them has several samples.",
        _unless(lambda n, d, k, m: m * _up(d, k)),
        lambda n, d, k, m, c: m + _up(d, k) if c else m * _up(d, k),
    ),
    _mistake(
        "checkpoints_ignored",
        "That is with checkpoints; without them every layer's output stays.",
        lambda n, d, k, m, c: n + _up(d, k) * _up(n, m),
    ),
    _mistake(
        "samples_forgotten",
        "Those are layers; each holds one activation for every sample.",
        _unless(lambda n, d, k, m: _up(d, k)),
    ),
)
CHECKPOINTED: tuple[Mistake, ...] = (
    _mistake(
        "no_n_term",
        "The inputs of the stage stay for all micro-batches, until each one's backward: that is "
        "the N term.",
        _if(lambda n, d, k, m: _up(d, k) * _up(n, m)),
    ),
    _mistake(
        "pieces_as_inputs",
        "You count one stage input per micro-batch; it is one for every sample in it.",
        _if(lambda n, d, k, m: m + _up(d, k) * _up(n, m)),
    ),
    _mistake(
        "one_input",
        "Only the input of one micro-batch is in it; those of all of them stay.",
        _if(lambda n, d, k, m: _up(n, m) + _up(d, k) * _up(n, m)),
    ),
    _mistake(
        "all_again_at_once",
        "You recompute the whole batch at once; it is one micro-batch at a time.",
        _if(lambda n, d, k, m: n + _up(d, k) * n),
    ),
    _mistake(
        "all_layers_again",
        "You recompute all the layers of the model; a rank has those of its stage.",
        _if(lambda n, d, k, m: n + d * _up(n, m)),
    ),
    _mistake(
        "as_without",
        "That is without checkpoints: inside a stage nothing stays but its input.",
        _if(lambda n, d, k, m: n * _up(d, k)),
    ),
    _mistake(
        "inputs_of_layers",
        "You keep the input of every layer of the stage; it is the stage's input alone.",
        _if(lambda n, d, k, m: n * _up(d, k) + _up(d, k) * _up(n, m)),
    ),
    _mistake(
        "one_layer_less",
        "One activation too few for each sample of the piece that is run again: its input waits "
        "among the others, and all the layers of the stage come on top.",
        _if(lambda n, d, k, m: n + (_up(d, k) - 1) * _up(n, m)),
    ),
    _mistake(
        "never_more",
        "With few pieces checkpoints hold more than none would: nothing takes the smaller of both.",
        _if(lambda n, d, k, m: min(n * _up(d, k), n + _up(d, k) * _up(n, m))),
    ),
    _mistake(
        "once_more_input",
        "The inputs are counted once too often, for the micro-batch that is recomputed.",
        _if(lambda n, d, k, m: n + (_up(d, k) + 1) * _up(n, m)),
    ),
)
ROUNDED: tuple[Mistake, ...] = (
    _mistake(
        "rounded_down",
        "The fullest rank decides, and its largest micro-batch: both are rounded up.",
        _floor,
        _half_floor,
        lambda n, d, k, m, c: n + d // k * _up(n, m) if c else n * (d // k),
        lambda n, d, k, m, c: n + _up(d, k) * (n // m) if c else n * _up(d, k),
    ),
    _mistake(
        "rounded_once",
        "Layers and samples are whole, each for itself: round up both, not their product.",
        lambda n, d, k, m, c: n + _up(d * n, k * m) if c else _up(n * d, k),
    ),
)
