"""Activation checkpointing on a chain of layers: less is held, and forwards run twice.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", section 4; on layers as those of
`mpedu.held`, in NumPy, so that every activation held can be counted. `mpedu.model` does the same to
real stages. A unit is the output of one layer, or a checkpoint: the input of a run of layers, a
segment.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

from mpedu.arrays import Array
from mpedu.calls import even_sizes
from mpedu.faults import require_at_least

NAMED = ("none", "block", "sqrt", "stage")


class Layer(Protocol):
    """One layer of a chain, which adds the gradient of its weights to what it has of it."""

    def forward(self, x: Array) -> Array:
        """y."""

    def backward(self, x: Array, y: Array, gradient: Array | float) -> Array:
        """The gradient of x, from that of y."""


class Backward(NamedTuple):
    """A forward and a backward through a chain.

    stored: units held after each forward and each backward of a layer, in the order they ran,
    without x and y, which are the caller's. n_forwards: of layers, those that ran again too.
    """

    y: Array
    x_gradient: Array
    stored: list[int]
    n_forwards: int


def segments(n_layers: int, n_segments: int) -> list[range]:
    """The layers cut into runs whose lengths differ by at most 1, longer ones first.

    ValueError where a segment would have no layer.
    """
    require_at_least(1, n_layers=n_layers, n_segments=n_segments)
    if n_segments > n_layers:
        raise ValueError(
            f"n_segments={n_segments} with n_layers={n_layers}: a segment would have no layer; "
            f"give n_segments <= {n_layers}"
        )
    return _ranges(even_sizes(n_layers, n_segments))


def peak_units(n_layers: int, n_segments: int) -> int:
    """Units that suffice: one checkpoint for each segment, and the longest segment run again.

    Without segments (0) all layers. n = 64 in 8 segments: 16.
    """
    require_at_least(1, n_layers=n_layers)
    if n_segments == 0:
        return n_layers
    return n_segments + max(map(len, segments(n_layers, n_segments)))


def best_segment_length(n_layers: int) -> int:
    """The length s for which ceil(n / s) checkpoints and s layers run again are the fewest units.

    About sqrt(n); of lengths with equal sums the smallest.
    """
    require_at_least(1, n_layers=n_layers)
    return min(range(1, n_layers + 1), key=lambda s: -(-n_layers // s) + s)


def recompute_forwards(n_layers: int, n_segments: int, keep_last: bool = False) -> int:
    """Forwards of layers that run a second time, all in all.

    n_segments: 0 is without checkpoints. keep_last: the last segment is not run again, as in
    torch's `checkpoint_sequential`: its backward follows its forward at once. (A pipeline stage
    runs other micro-batches between them.)
    """
    require_at_least(1, n_layers=n_layers)
    if n_segments == 0:
        return 0
    last = segments(n_layers, n_segments)[-1]
    return n_layers - (len(last) if keep_last else 0)


def backward_with_checkpoints(
    layers: Sequence[Layer],
    x: Array,
    n_segments: int,
    gradient: Array | float = 1.0,
    keep_last: bool = False,
) -> Backward:
    """Forward that holds the inputs of `n_segments` segments only, and backward segment by segment.

    gradient: that of y. n_segments: 0 holds the output of every layer. keep_last: as in
    `recompute_forwards`. The gradients are those without checkpoints, bit for bit.
    """
    runs = segments(len(layers), n_segments) if n_segments else [range(len(layers))]
    kept = [not n_segments or (keep_last and run is runs[-1]) for run in runs]
    chain = _Chain(layers, x)
    for run, keep in zip(runs, kept, strict=True):
        y = chain.forward(run, keep)
    for run, keep in zip(reversed(runs), reversed(kept), strict=True):
        if not keep:
            chain.forward(run, keep=True)
        gradient = chain.backward(run, gradient)
    return Backward(y, gradient, chain.stored, chain.n_forwards)


def backward_from_input(
    layers: Sequence[Layer], x: Array, gradient: Array | float = 1.0
) -> Backward:
    """The least memory: only x is held, and every layer's backward runs the chain up to it again.

    2 units, and n (n + 1) / 2 forwards besides the first n: O(1) and O(n^2).
    """
    chain = _Chain(layers, x)
    y = chain.forward(range(len(layers)), keep=False)
    for i in reversed(range(len(layers))):
        chain.forward(range(i), keep=False)
        chain.forward(range(i, i + 1), keep=True)
        gradient = chain.backward(range(i, i + 1), gradient)
        if i > 0:
            del chain.held[i]
    return Backward(y, gradient, chain.stored, chain.n_forwards)


class _Chain:
    """Runs layers, holds activations, and counts both. held[i] is the input of layer i."""

    def __init__(self, layers: Sequence[Layer], x: Array) -> None:
        require_at_least(1, n_layers=len(layers))
        self.layers = layers
        self.held = {0: x}
        self.stored: list[int] = []
        self.n_forwards = 0

    def forward(self, run: range, keep: bool) -> Array:
        """The run's output, held where another layer takes it; keep: holds every output."""
        x = self.held[run.start]
        for i in run:
            x = self.layers[i].forward(x)
            self.n_forwards += 1
            if keep or i + 1 == run.stop < len(self.layers):
                self.held[i + 1] = x
            self._note()
        return x

    def backward(self, run: range, gradient: Array | float) -> Array | float:
        """The gradient of the run's input; lets go of the outputs."""
        for i in reversed(run):
            gradient = self.layers[i].backward(self.held[i], self.held[i + 1], gradient)
            del self.held[i + 1]
            self._note()
        return gradient

    def _note(self) -> None:
        self.stored.append(len(self.held) - 1)


def checkpointed_runs(checkpoint: str | int, n_blocks: int) -> list[range]:
    """The runs of a stage's blocks that each are run again as one; none for "none".

    checkpoint: "none"; "block", every block for itself; an int, runs of so many blocks, the last
    takes what is left; "sqrt", runs of `best_segment_length`; "stage", all blocks, and whatever
    else the stage does: it holds its input only (GPipe, Huang et al. 2019, section 2.3).
    ValueError for anything else.
    """
    if checkpoint == "none":
        return []
    if checkpoint in NAMED:
        lengths = {"block": 1, "sqrt": best_segment_length(n_blocks), "stage": n_blocks}
        length = lengths[str(checkpoint)]
    elif isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint >= 1:
        length = checkpoint
    else:
        raise ValueError(
            f"checkpoint={checkpoint!r} is unknown; give {', '.join(map(repr, NAMED))}, "
            "or a number of blocks >= 1"
        )
    return _ranges([min(length, n_blocks - at) for at in range(0, n_blocks, length)])


def _ranges(sizes: Sequence[int]) -> list[range]:
    """Consecutive ranges of these sizes, from 0."""
    return [range(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]
