import pytest
import torch
from torch import nn

from mpedu.memory import HeldBytes, LiveBytes


def model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh())


def test_held_is_what_backward_needs_without_parameters_and_each_storage_once():
    net, x = model(), torch.randn(4, 8)
    with HeldBytes(ignore=[*net.parameters(), x]) as held:
        y = net(x)
        # what ReLU saves and what the second layer saves is one tensor
        assert held.live_bytes == held.peak_bytes == 4 * (4 * 16 + 4 * 8)
        y.sum().backward()
    assert held.live_bytes == 0
    assert held.peak_bytes == 4 * (4 * 16 + 4 * 8)


def test_held_ends_with_the_graph_when_there_is_no_backward():
    net, x = model(), torch.randn(4, 8)
    with HeldBytes() as held:
        y = net(x)
        assert held.live_bytes > 0
        del y
    assert held.live_bytes == 0


def test_held_leaves_gradients_as_they_are():
    net, x = model(), torch.randn(4, 8)
    net(x).square().sum().backward()
    want = [p.grad for p in net.parameters()]
    net.zero_grad()
    with HeldBytes():
        net(x).square().sum().backward()
    assert all(torch.equal(p.grad, w) for p, w in zip(net.parameters(), want, strict=True))


def test_held_is_put_down_to_keys_and_a_shared_storage_to_each():
    shared = torch.randn(10, requires_grad=True)
    current = "a"
    with HeldBytes(key=lambda: current) as held:
        a = shared * shared
        current = "b"
        b = (shared * shared) * 2 * shared
        assert held.by_key() == {"a": 40, "b": 80}
        assert held.live_bytes == 80
        del b
        assert held.by_key() == {"a": 40}
        del a
    assert held.by_key() == {}


def test_held_can_be_told_later_what_does_not_count():
    x, y = torch.randn(10, requires_grad=True), torch.randn(10)
    with HeldBytes(ignore=[x]) as held:
        held.ignore(y[3:])
        kept = x * y
        assert held.live_bytes == 0
    del kept


def test_live_counts_storages_until_their_last_view_has_gone():
    with LiveBytes() as live:
        a = torch.empty(100)
        b = a[3:].view(-1).t()
        c = a + 1
        assert live.live_bytes == 800
        del a
        assert live.live_bytes == 800
        c.add_(1)
        del b
        assert live.live_bytes == 400
        c = c.detach()
        assert live.live_bytes == 400
        del c
        assert live.live_bytes == 0
    assert live.peak_bytes == 800


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_live_bears_tensors_without_numbers(shape):
    with LiveBytes() as live:
        kept = [torch.zeros(shape) for _ in range(3)]
        assert live.live_bytes == 0
    assert len(kept) == 3


def test_live_counts_what_was_made_inside_only_and_gradients_too():
    net, x = model(), torch.randn(4, 8)
    with LiveBytes() as live:
        net(x).sum().backward()
        assert live.live_bytes == sum(4 * p.numel() for p in net.parameters())
        net.zero_grad()
        assert live.live_bytes == 0
