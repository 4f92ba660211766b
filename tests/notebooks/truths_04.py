"""What the numbers and formulas of unit 04 are compared with.

Backwards run on counted layers, lengths tried one after the other, PyTorch's own checkpoints, and a
walk through GPipe's list: the notebook's solutions and the checks' truths are used nowhere.
"""

import json
from functools import cache
from pathlib import Path

from autograder.exercise import Draw, find_exercise
from autograder.local import LocalSubject
from mpedu.activations import block_numbers
from mpedu.families import gpipe
from mpedu.held import counted_pass
from mpedu.model import GPTConfig
from mpedu.saved import torch_holds

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "04-checkpointing" / "04-checkpointing.ipynb"
MINUTES = {"A": 5, "B": 9, "C": 32, "D": 10, "E": 8, "F": 12, "G": 4, "H": 17, "I": 3}
ROUNDING = 9e-7  # of a healthy gradient
DEEPSEEK = 61  # layers


def points(*cells):
    """Points the notebook gives for these graded cells, for all but the written one without any."""
    marks = {
        cell["id"]: cell["metadata"].get("nbgrader", {})
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    }
    wanted = cells or [id for id in marks if id.startswith("check-")]
    return sum(marks[id]["points"] for id in wanted)


def group(exercise, number):
    """Points of one group of an exercise's check, told by what an empty notebook misses."""
    found = find_exercise(exercise)
    return found.run(LocalSubject({}, found.names), Draw(b""))[number].points


def dealt(n, parts):
    """So many things dealt out one by one: counts that differ by at most 1, larger first."""
    return [len(range(part, n, parts)) for part in range(parts)]


def checkpointed(layers, x, n_segments, keep_last=False, lengths=None):
    """A backward that holds its checkpoints until each is used, and one segment."""
    lengths = lengths or dealt(len(layers), n_segments)
    n_segments = len(lengths)
    ends = [sum(lengths[:part]) for part in range(n_segments + 1)]
    inputs = {0: x}
    for at in range(ends[-2]):
        x = layers[at].forward(x)
        if at + 1 in ends:
            inputs[at + 1] = x
    if not keep_last:
        for at in range(ends[-2], len(layers)):
            x = layers[at].forward(x)
    del x
    gradient = 1.0
    for part in reversed(range(n_segments)):
        kept = [inputs.pop(ends[part])]
        for at in range(ends[part], ends[part + 1]):
            kept.append(layers[at].forward(kept[-1]))
        for at in reversed(range(ends[part], ends[part + 1])):
            y = kept.pop()
            gradient = layers[at].backward(kept[-1], y, gradient)
            del y
    return gradient


def plain(layers, x, _):
    """A backward that keeps everything."""
    kept = [x]
    for layer in layers:
        kept.append(layer.forward(kept[-1]))
    gradient = 1.0
    for layer in reversed(layers):
        y = kept.pop()
        gradient = layer.backward(kept[-1], y, gradient)
    return gradient


def from_x(layers, x, _):
    """A backward that keeps x alone: forward once, then for every layer from x again."""
    y = x
    for layer in layers:
        y = layer.forward(y)
    gradient = 1.0
    for end in range(len(layers), 0, -1):
        y = x
        for layer in layers[:end]:
            before, y = y, layer.forward(y)
        gradient = layers[end - 1].backward(before, y, gradient)
    return gradient


@cache
def held(n_layers, n_segments):
    """Activations held at the peak, x among them, and one more for the output that is dropped."""
    return counted_pass(checkpointed, n_layers, n_segments).peak + 1


def longest_first(n_layers):
    """Lengths k, k-1, k-2 .. of segments, from the least k that covers all layers."""
    longest = next(k for k in range(1, n_layers + 1) if k * (k + 1) // 2 >= n_layers)
    lengths = []
    while sum(lengths) < n_layers:
        lengths.append(min(longest - len(lengths), n_layers - sum(lengths)))
    return lengths


@cache
def held_unequal(n_layers):
    """Activations held at the peak, x among them, with segments longest first."""

    def backward(layers, x, _):
        return checkpointed(layers, x, None, lengths=longest_first(n_layers))

    return counted_pass(backward, n_layers, 1).peak + 1


def forwards(backward, n_layers, n_segments=1):
    """Forwards of all layers together."""
    return sum(counted_pass(backward, n_layers, n_segments).forwards)


def again(n_layers, n_segments, keep_last=False):
    """Forwards on top of the first pass."""

    def backward(layers, x, n_segments):
        return checkpointed(layers, x, n_segments, keep_last)

    return forwards(backward, n_layers, n_segments) - n_layers


def with_length(n_layers, length):
    """What segments of a length hold, the last one shorter: checkpoints and one segment."""
    return len(range(0, n_layers, length)) + length


def best(n_layers):
    """The smallest length that holds least, all tried."""
    held_by = {length: with_length(n_layers, length) for length in range(1, n_layers + 1)}
    return min(length for length, n in held_by.items() if n == min(held_by.values()))


def gpipe_peak(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    """The most units on the fullest stage, walked through GPipe's list."""
    pieces, layers = dealt(n_samples, n_microbatches), dealt(n_layers, n_stages)[0]
    now = most = 0
    for action in gpipe(n_stages, n_microbatches)[0]:
        inside = layers * pieces[action.microbatch]
        kept = pieces[action.microbatch] if checkpoint else inside
        if action.kind == "F":
            now += kept
            most = max(most, now)
        else:
            most = max(most, now + (inside if checkpoint else 0))
            now -= kept
    return most


def stage_inputs(kept, again=0):
    """What a rank of section G holds, in inputs of a micro-batch: inputs kept, blocks again."""
    return kept + again * int(block_over_input())


def block_over_input():
    """Numbers that a block of our GPT leaves for its backward, over those of its input."""
    config = GPTConfig(n_layers=8, d_model=64, n_heads=4, n_positions=64)
    return sum(block_numbers(config).values()) / config.d_model


def torch_s(n_segments):
    """What PyTorch holds of 64 layers."""
    return torch_holds(64, n_segments)
