"""Right answers to all of unit 04, each in a manner of its own."""

from autograder.bank import Answer

_FULL = {
    "backward_with_checkpoints": 4,
    "backward_memory": 3,
    "best_segment_length": 3,
    "recompute_forwards": 2,
    "gpipe_peak_activation": 5,
    "memory_cause": 3,
}
# What the set-up cell of the notebook holds, for the check to run the function with.
PROGRAM = """
from mpedu.held import run_counted


def on_device(comm, device, n_layers, n_segments):
    return run_counted(backward_with_checkpoints, device, n_layers, n_segments)
"""


def _right(id: str, source: str) -> Answer:
    full = {exercise: (points, "") for exercise, points in _FULL.items()}
    return Answer(id, f"{PROGRAM}\n{source}", full)


_LISTS = """
def backward_with_checkpoints(layers, x, n_segments):
    if not 1 <= n_segments <= len(layers):
        raise ValueError(f"n_segments={n_segments} for {len(layers)} layers")
    ends = [i * len(layers) // n_segments for i in range(n_segments + 1)]
    segments = [layers[ends[i] : ends[i + 1]] for i in range(n_segments)]
    inputs = []
    for segment in segments:
        inputs.append(x)
        for layer in segment:
            x = layer.forward(x)
    gradient = 1.0
    for segment in reversed(segments):
        kept = [inputs.pop()]
        for layer in segment:
            kept.append(layer.forward(kept[-1]))
        for layer in reversed(segment):
            y = kept.pop()
            gradient = layer.backward(kept[-1], y, gradient)
    return gradient


def best_segment_length(n_layers):
    if n_layers < 1:
        raise ValueError(f"n_layers={n_layers}")
    return min(range(1, n_layers + 1), key=lambda length: -(-n_layers // length) + length)


def recompute_forwards(n_layers, n_segments, keep_last=False):
    return n_layers - n_layers // n_segments if keep_last else n_layers


def gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    if not 1 <= n_stages <= n_layers:
        raise ValueError(f"n_stages={n_stages} for {n_layers} layers")
    if not 1 <= n_microbatches <= n_samples:
        raise ValueError(f"n_microbatches={n_microbatches} for {n_samples} samples")
    layers = -(-n_layers // n_stages)
    if not checkpoint:
        return n_samples * layers
    return n_samples + layers * -(-n_samples // n_microbatches)


def memory_cause(forwards, held, gradient_errors):
    wrong = [error for error in gradient_errors if error > 1e-4]
    if wrong and all(abs(error - 1) < 1e-6 for error in wrong):
        return "no_gradient"
    if wrong:
        return "mask_redrawn"
    if max(held) >= len(forwards):
        return "keeps_everything"
    if max(forwards) < 3:
        return "none"
    return "checkpointed_twice" if set(forwards) <= {1, 3} else "restarts_at_zero"
"""
_RECURSIVE = """
import math


def _back(layers, x, gradient, y=None):
    # through a whole segment, innermost layer first
    if not layers:
        return gradient
    first, *rest = layers
    y = first.forward(x)
    gradient = _back(rest, y, gradient)
    return first.backward(x, y, gradient)


def _segments(layers, n_segments):
    size, larger = divmod(len(layers), n_segments)
    at = 0
    for place in range(n_segments):
        end = at + size + (place < larger)
        yield layers[at:end]
        at = end


def backward_with_checkpoints(layers, x, n_segments):
    if n_segments < 1 or n_segments > len(layers):
        raise ValueError("n_segments=%d" % n_segments)

    def of(segments, x):
        first, *rest = segments
        if not rest:
            return _back(first, x, 1.0)
        y = x
        for layer in first:
            y = layer.forward(y)
        gradient = of(rest, y)
        del y
        return _back(first, x, gradient)

    return of(list(_segments(layers, n_segments)), x)


def best_segment_length(n_layers):
    if n_layers <= 0:
        raise ValueError(f"n_layers is {n_layers}")
    best, least = None, math.inf
    for length in range(n_layers, 0, -1):
        held = math.ceil(n_layers / length) + length
        if held <= least:
            best, least = length, held
    return best


def recompute_forwards(n_layers, n_segments, keep_last=False):
    sizes = [n_layers // n_segments + (i < n_layers % n_segments) for i in range(n_segments)]
    return sum(sizes[:-1] if keep_last else sizes)


def gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    if n_stages < 1 or n_stages > n_layers:
        raise ValueError(f"{n_stages} stages")
    if n_microbatches < 1 or n_microbatches > n_samples:
        raise ValueError(f"{n_microbatches} pieces")
    per_stage = max(len(range(s, n_layers, n_stages)) for s in range(n_stages))
    pieces = [len(range(m, n_samples, n_microbatches)) for m in range(n_microbatches)]
    inside = pieces[0] * per_stage if checkpoint else sum(pieces) * per_stage
    return inside + sum(pieces) * bool(checkpoint)


def memory_cause(forwards, held, gradient_errors):
    n = len(forwards)
    if gradient_errors[0] > 0.01:
        return "no_gradient" if sum(forwards) == n else "mask_redrawn"
    if max(held) > n - 1:
        return "keeps_everything"
    if max(forwards) == 2:
        return "none"
    if forwards[0] == 3 == forwards[n // 2] == max(forwards):
        return "checkpointed_twice"
    return "restarts_at_zero"
"""
_LAST_KEPT = """
import numpy as np


def backward_with_checkpoints(layers, x, n_segments):
    n = len(layers)
    if n_segments not in range(1, n + 1):
        raise ValueError(f"give 1 to {n} segments, not {n_segments}")
    bounds = np.linspace(0, n, n_segments + 1).astype(int).tolist()
    kept = {0: x}
    for at in range(bounds[-2]):
        x = layers[at].forward(x)
        if at + 1 in bounds:
            kept[at + 1] = x
    del x
    gradient = 1
    for first, end in zip(bounds[-2::-1], bounds[:0:-1]):
        for at in range(first, end):
            kept[at + 1] = layers[at].forward(kept[at])
        for at in range(end - 1, first - 1, -1):
            gradient = layers[at].backward(kept[at], kept[at + 1], gradient)
            del kept[at + 1]
    return gradient


def best_segment_length(n_layers):
    if n_layers < 1:
        raise ValueError(f"{n_layers} layers")
    lengths = np.arange(1, n_layers + 1)
    return int(lengths[np.argmin(-(-n_layers // lengths) + lengths)])


def recompute_forwards(n_layers, n_segments, keep_last=False):
    last = n_layers // n_segments
    return n_layers - last * int(keep_last)


def gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    for value, most in ((n_stages, n_layers), (n_microbatches, n_samples)):
        if not 0 < value <= most:
            raise ValueError(f"{value} does not fit {most}")
    layers = int(np.ceil(n_layers / n_stages))
    piece = int(np.ceil(n_samples / n_microbatches))
    return n_samples + piece * layers if checkpoint else n_samples * layers


def memory_cause(forwards, held, gradient_errors):
    errors, forwards = np.array(gradient_errors), np.array(forwards)
    off = errors[errors > 1e-5]
    if off.size:
        return "no_gradient" if np.allclose(off, 1.0, atol=1e-9) else "mask_redrawn"
    if np.max(held) >= forwards.size:
        return "keeps_everything"
    if forwards.max() <= 2:
        return "none"
    steps = np.unique(forwards)
    return "restarts_at_zero" if 2 in steps else "checkpointed_twice"
"""
_CLASSES = """
import numpy as np


def backward_with_checkpoints(layers, x, n_segments):
    from dataclasses import dataclass, field
    from itertools import accumulate, pairwise
    from typing import Any
    n = len(layers)
    if not (0 < n_segments <= n):
        raise ValueError("n_segments=%d, but n_layers=%d" % (n_segments, n))

    @dataclass
    class Segment:
        layers: list
        start: Any = None
        outputs: list = field(default_factory=list)

        def skim(self):
            a = self.start
            for layer in self.layers:
                a = layer.forward(a)
            return a

        def fill(self):
            self.outputs = [self.start]
            for layer in self.layers:
                self.outputs += [layer.forward(self.outputs[-1])]

        def back(self, g):
            for layer in reversed(self.layers):
                g = layer.backward(self.outputs[-2], self.outputs[-1], g)
                self.outputs.pop()
            self.outputs, self.start = [], None
            return g

    q, r = divmod(n, n_segments)
    bounds = list(accumulate([q + (i < r) for i in range(n_segments)], initial=0))
    segs = [Segment(list(layers[a:b])) for a, b in pairwise(bounds)]
    segs[0].start = x
    for one, two in pairwise(segs):
        two.start = one.skim()
    g = 1.0
    while segs:
        s = segs.pop()
        s.fill()
        g = s.back(g)
    return g


def best_segment_length(n_layers: int) -> int:
    if n_layers < 1:
        raise ValueError(f"n_layers={n_layers} < 1")
    def better(s, best, best_held):
        if s * s > 4 * n_layers + 4 or s > n_layers:
            return best
        held = (n_layers - 1) // s + 1 + s
        return better(s + 1, *((s, held) if held < best_held else (best, best_held)))
    return better(1, 1, n_layers + 1)


def recompute_forwards(n_layers: int, n_segments: int, keep_last: bool = False) -> int:
    from collections import Counter
    c = Counter(i % n_segments for i in range(n_layers))
    if keep_last:
        del c[n_segments - 1]
    return c.total()


def gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    from fractions import Fraction
    from math import ceil
    if n_stages < 1:
        raise ValueError(f"too few stages: {n_stages}")
    if n_layers < n_stages:
        raise ValueError(f"{n_layers} layers on {n_stages} stages")
    if n_microbatches < 1:
        raise ValueError(f"too few pieces: {n_microbatches}")
    if n_samples < n_microbatches:
        raise ValueError(f"{n_samples} samples in {n_microbatches} pieces")
    own = ceil(Fraction(n_layers, n_stages))
    piece = ceil(Fraction(n_samples, n_microbatches))
    return n_samples + own * piece if checkpoint else own * n_samples


def memory_cause(forwards, held, gradient_errors):
    f, h, e = map(np.asarray, (forwards, held, gradient_errors))
    checks = [
        ("no_gradient", (e > 9e-7).any() and f.max() == 1),
        ("mask_redrawn", (e > 9e-7).any()),
        ("keeps_everything", h.max() >= f.size),
        ("checkpointed_twice", f.max() == 3 and set(f.tolist()) <= {1, 3}),
        ("restarts_at_zero", f.max() > 2),
        ("none", True),
    ]
    return next(name for name, found in checks if found)
"""
RIGHT: tuple[Answer, ...] = (
    _right("lists", _LISTS),
    _right("recursive", _RECURSIVE),
    _right("last_kept", _LAST_KEPT),
    _right("classes", _CLASSES),
)
