"""The chain in NumPy: its gradients, its counts, and both against torch's checkpoint_sequential."""

import json
from math import isqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

from mpedu.held import tanh_chain, units_held
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.recompute import (
    backward_from_input,
    backward_with_checkpoints,
    best_segment_length,
    checkpointed_runs,
    peak_units,
    recompute_forwards,
    segments,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/checkpoint_memory.json").read_text())
CASES = ORACLE["cases"]
TABLE = {16: (4, 8), 64: (8, 16), 61: (7, 16), 100: (10, 20)}  # n: (best length, units)
SIZES = [(n, k) for n in (1, 2, 3, 7, 13) for k in range(n + 1)]


def ran(function, n, *arguments, **options):
    """What `function` gives for n layers of tanh, and the gradients of their weights."""
    drawn = np.random.default_rng(n)
    x, gradient = drawn.normal(size=(2, 3, 5))
    layers = tanh_chain(n, 5, seed=n)
    got = function(layers, x, *arguments, gradient=gradient, **options)
    return got, [layer.weight_gradient for layer in layers]


def by_torch(layers, x, gradient):
    """(y, gradient of x) and those of the weights by torch's own autograd."""
    weights = [torch.tensor(layer.weight, requires_grad=True) for layer in layers]
    leaf = y = torch.tensor(x, requires_grad=True)
    for w in weights:
        y = torch.tanh(y @ w)
    y.backward(torch.tensor(gradient))
    for layer, w in zip(layers, weights, strict=True):
        layer.weight_gradient = w.grad.numpy()
    return y.detach(), leaf.grad


@pytest.mark.parametrize("n", sorted({n for n, _ in SIZES}))
def test_gradients_are_those_of_autograd(n):
    got, weights = ran(backward_with_checkpoints, n, 0)
    (y, x_gradient), want = ran(by_torch, n)
    assert np.allclose(got.y, y, rtol=1e-12, atol=1e-14)
    assert np.allclose(got.x_gradient, x_gradient, rtol=1e-10, atol=1e-14)
    assert np.allclose(weights, want, rtol=1e-10, atol=1e-14)
    assert all(np.abs(w).max() > 1e-6 for w in weights)


@pytest.mark.parametrize("keep_last", [False, True])
@pytest.mark.parametrize("n, n_segments", SIZES)
def test_checkpoints_change_no_bit_of_a_gradient(n, n_segments, keep_last):
    plain, want = ran(backward_with_checkpoints, n, 0)
    got, weights = ran(backward_with_checkpoints, n, n_segments, keep_last=keep_last)
    assert np.array_equal(got.y, plain.y) and np.array_equal(got.x_gradient, plain.x_gradient)
    assert np.array_equal(weights, want)
    assert got.n_forwards == n + recompute_forwards(n, n_segments, keep_last)
    assert got.stored[-1] == 0


@pytest.mark.parametrize("n, n_segments", SIZES)
def test_as_much_is_held_as_the_formula_says(n, n_segments):
    got, _ = ran(backward_with_checkpoints, n, n_segments)
    but_x = peak_units(n, n_segments) - (n_segments > 0)
    # of uneven segments the last is a shorter one
    assert max(got.stored) == but_x - (n_segments > 0 and n % n_segments > 0)


@pytest.mark.parametrize("n, n_segments", SIZES)
def test_a_count_from_outside_agrees(n, n_segments):
    """Activations that are alive at all; y, the caller's, is one of them."""

    def backward(layers, x, n_segments):
        return backward_with_checkpoints(layers, x, n_segments).x_gradient

    held = units_held(backward, n, n_segments)
    got, _ = ran(backward_with_checkpoints, n, n_segments)
    assert len(held) == len(got.stored)
    assert all(0 <= a - b <= 2 for a, b in zip(held, got.stored, strict=True))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_least_memory_takes_a_square_of_forwards(n):
    got, weights = ran(backward_from_input, n)
    plain, want = ran(backward_with_checkpoints, n, 0)
    assert np.array_equal(got.y, plain.y) and np.array_equal(got.x_gradient, plain.x_gradient)
    assert np.array_equal(weights, want)
    assert max(got.stored) == min(n, 2)
    assert got.n_forwards == n + n * (n + 1) // 2


def test_the_best_length_is_the_table_and_no_other_is_better():
    for n, (length, units) in TABLE.items():
        assert (best_segment_length(n), peak_units(n, -(-n // length))) == (length, units)
    for n in range(1, 200):
        sums = {s: -(-n // s) + s for s in range(1, n + 1)}
        best = best_segment_length(n)
        assert best == min(s for s in sums if sums[s] == min(sums.values()))
        assert sums[best] <= 2 * isqrt(n) + 2


@pytest.mark.parametrize("n, n_segments", [(n, k) for n, k in SIZES if k])
def test_segments_cover_the_layers_evenly(n, n_segments):
    runs = segments(n, n_segments)
    assert [layer for run in runs for layer in run] == list(range(n))
    lengths = [len(run) for run in runs]
    assert lengths == sorted(lengths, reverse=True) and lengths[0] - lengths[-1] <= 1
    assert len(runs) == n_segments


@pytest.mark.parametrize(
    "checkpoint, n_blocks, lengths",
    [
        ("none", 4, []),
        ("block", 4, [1, 1, 1, 1]),
        ("sqrt", 7, [2, 2, 2, 1]),
        ("sqrt", 16, [4, 4, 4, 4]),
        ("stage", 5, [5]),
        (1, 3, [1, 1, 1]),
        (3, 7, [3, 3, 1]),
        (9, 4, [4]),
    ],
)
def test_runs_of_blocks_follow_the_word_or_the_length(checkpoint, n_blocks, lengths):
    runs = checkpointed_runs(checkpoint, n_blocks)
    assert [len(run) for run in runs] == lengths
    assert [block for run in runs for block in run] == list(range(n_blocks)) * bool(lengths)


def name(case):
    return f"{case['kind']}-{case['n']}-{case['segments']}"


@pytest.mark.parametrize("case", [c for c in CASES if c["kind"] == "tanh"], ids=name)
def test_the_chain_holds_and_runs_what_torch_does(case):
    n, n_segments = case["n"], case["segments"]
    got, _ = ran(backward_with_checkpoints, n, n_segments, keep_last=True)
    assert got.stored[n - 1] == case["saved_after_forward_in_activations"]
    assert got.n_forwards == case["layer_starts"]
    assert recompute_forwards(n, n_segments, keep_last=True) == case["recomputed_layer_starts"]
    # the gradient on its way and one to come stand beside what is held
    assert max(got.stored) == int(case["peak_live_in_activations"]) - 2


@pytest.mark.parametrize("case", CASES, ids=name)
def test_bytes_counted_in_torch_are_those_of_other_counters(case):
    d = case["d"]
    one = nn.Tanh if case["kind"] == "tanh" else lambda: nn.Sequential(nn.Linear(d, d), nn.ReLU())
    net = nn.Sequential(*(one() for _ in range(case["n"])))
    x = torch.randn(case["B"], d, requires_grad=True)

    def forward():
        options = {"use_reentrant": False, "preserve_rng_state": False}
        n_segments = case["segments"]
        return checkpoint_sequential(net, n_segments, x, **options) if n_segments else net(x)

    with HeldBytes(ignore=net.parameters()) as held:
        y = forward()
        assert held.live_bytes == case["saved_after_forward_bytes"]
        y.sum().backward()  # makes the gradients
        assert held.live_bytes == 0
    del y
    with LiveBytes() as live:
        y = forward()
        loss = y.sum()
        loss.backward()
    assert live.peak_bytes == case["peak_live_bytes"]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: segments(3, 4), "n_segments=4 with n_layers=3: .* give n_segments <= 3"),
        (lambda: segments(0, 1), "n_layers=0 is too small"),
        (lambda: peak_units(3, -1), "n_segments=-1 is too small"),
        (lambda: best_segment_length(0), "n_layers=0 is too small"),
        (lambda: recompute_forwards(2, 3), "n_segments=3 with n_layers=2"),
        (lambda: backward_with_checkpoints([], 0, 0), "n_layers=0 is too small"),
        (lambda: checkpointed_runs("all", 2), "checkpoint='all' is unknown; give 'none', 'block'"),
        (lambda: checkpointed_runs(0, 2), "checkpoint=0 is unknown; .* or a number of blocks >= 1"),
        (lambda: checkpointed_runs(True, 2), "checkpoint=True is unknown"),
    ],
)
def test_what_is_no_cut_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
