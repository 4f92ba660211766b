from contextlib import nullcontext

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from mpedu.deferred import Linear, WeightQueue, deferring, opened


def copied():
    """What is saved for a backward comes back as another tensor, as from another memory."""
    return saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x)


def gradients(layers, x, split, way="as it is"):
    """Of x, then of every parameter, after one backward in one piece or in two."""
    x = x.clone().requires_grad_()
    queue = WeightQueue() if split else None
    with deferring(queue), copied() if way == "copied" else nullcontext():
        y = checkpoint(layers, x, use_reentrant=False) if way == "again" else layers(x)
    with opened(queue):
        y.square().sum().backward()
    if queue is not None:
        assert all(p.grad is None for p in layers.parameters())
        queue.drain()
    found = [x.grad, *(p.grad for p in layers.parameters())]
    layers.zero_grad()
    return found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("way", ["as it is", "copied", "again"])
def test_a_split_backward_gives_the_gradients_of_a_whole_one(way, bias):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        Linear(3, 4, bias=bias), torch.nn.Tanh(), Linear(4, 2, bias=bias)
    ).double()
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    whole = gradients(layers, x, split=False)
    halves = gradients(layers, x, split=True, way=way)
    assert len(whole) == len(halves) == (5 if bias else 3)
    for one, other in zip(whole, halves, strict=True):
        assert (one - other).abs().max() <= 1e-12
