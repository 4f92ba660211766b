"""Layers whose weight products wait, against torch's own, which computes them at once."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from mpedu.deferred import Linear, WeightQueue, current_queue, deferring, linear, opened
from mpedu.keyed import keyed_generator
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.model import GPTConfig, build_stage

DOUBLE = torch.float64


def drawn(*shape, dtype=DOUBLE, name="x"):
    values = torch.randn(shape, dtype=DOUBLE, generator=keyed_generator(name, *shape))
    return values.to(dtype)


class Twice(nn.Module):
    """One layer, used for its input and again for its output."""

    def __init__(self, kind):
        super().__init__()
        self.layer = kind(4, 4)

    def forward(self, x):
        return self.layer(torch.tanh(self.layer(x)))


class Shared(nn.Module):
    """Two layers with one weight."""

    def __init__(self, kind):
        super().__init__()
        self.one, self.other = kind(4, 4), kind(4, 4)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.other(torch.tanh(self.one(x)))


class Wrapped(nn.Module):
    """A layer between two functions."""

    def __init__(self, kind, before=lambda x: x, after=lambda y: y, bias=True):
        super().__init__()
        self.layer, self.before, self.after = kind(4, 5, bias=bias), before, after

    def forward(self, x):
        return self.after(self.layer(self.before(x)))


class Recomputed(nn.Module):
    def __init__(self, kind, use_reentrant=False):
        super().__init__()
        self.inner, self.use_reentrant = Twice(kind), use_reentrant

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=self.use_reentrant)


class Computed(nn.Module):
    """A weight that is no parameter: it is computed from one."""

    def __init__(self, kind):
        super().__init__()
        self.layer, self.scale = kind(4, 5), nn.Parameter(torch.ones(5, 1))

    def forward(self, x):
        multiply = linear if isinstance(self.layer, Linear) else F.linear
        return multiply(x, self.layer.weight * self.scale, self.layer.bias)


def frozen(kind, *names):
    module = Wrapped(kind)
    for name in names:
        module.layer.get_parameter(name).requires_grad_(False)
    return module


def turned(y):
    return y.transpose(0, 1) if y.dim() > 2 else y * 1.0


MODULES = {
    "one": Wrapped,
    "without bias": lambda kind: Wrapped(kind, bias=False),
    "used twice": Twice,
    "shared weight": Shared,
    "recomputed": Recomputed,
    "recomputed, reentrant": lambda kind: Recomputed(kind, use_reentrant=True),
    "input not contiguous": lambda kind: Wrapped(kind, before=turned),
    "gradient not contiguous": lambda kind: Wrapped(kind, after=turned),
    "gradient expanded": lambda kind: Wrapped(kind, after=lambda y: y.sum(-1, keepdim=True)),
    "frozen": lambda kind: frozen(kind, "weight", "bias"),
    "frozen weight": lambda kind: frozen(kind, "weight"),
    "frozen bias": lambda kind: frozen(kind, "bias"),
    "computed weight": Computed,
    "two in a row": lambda kind: nn.Sequential(kind(4, 6), nn.Tanh(), kind(6, 4)),
    "residual": lambda kind: Wrapped(kind, after=lambda y: y + y.detach().sum()),
}
SHAPES = [(3, 4), (2, 3, 4), (4,), (0, 4), (2, 1, 3, 4)]


def made(build, kind, dtype=DOUBLE):
    module = build(kind).to(dtype)
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(drawn(*p.shape, name=name))
    return module


def whole(module, x):
    """Gradients of one backward: of x and of each parameter."""
    y = module(x)
    y.backward(drawn(*y.shape, name="y").to(y.dtype))
    return x.grad, {name: p.grad for name, p in module.named_parameters()}


def halves(module, x):
    """The same by a backward in halves, and which parameters had gradients between the two."""
    queue = WeightQueue()
    with deferring(queue):
        y = module(x)
    assert current_queue() is None
    if y.requires_grad:
        with opened(queue):
            y.backward(drawn(*y.shape, name="y").to(y.dtype))
    early = {name for name, p in module.named_parameters() if p.grad is not None}
    queue.drain()
    return x.grad, {name: p.grad for name, p in module.named_parameters()}, early


def assert_same(got, want, tolerance=1e-12):
    assert (got is None) == (want is None)
    if want is not None:
        assert got.dtype == want.dtype and got.shape == want.shape
        assert torch.allclose(got, want, rtol=tolerance, atol=tolerance)


# without a gradient to x, torch's reentrant checkpoint gives none at all, nor do frozen weights
OF_PARAMETERS = [name for name in MODULES if name not in ("recomputed, reentrant", "frozen")]
AT_ONCE = ("frozen", "frozen weight", "computed weight")  # all in the first half


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("name", "needs_x"), [*((n, True) for n in MODULES), *((n, False) for n in OF_PARAMETERS)]
)
def test_both_halves_together_are_the_whole_backward(name, needs_x, shape):
    ours, torchs = made(MODULES[name], Linear), made(MODULES[name], nn.Linear)
    for step in range(2):  # the second adds to the first
        x_gradient, gradients, early = halves(ours, drawn(*shape).requires_grad_(needs_x))
        want_x, want = whole(torchs, drawn(*shape).requires_grad_(needs_x))
        assert_same(x_gradient, want_x)
        assert gradients.keys() == want.keys()
        for key in want:
            assert_same(gradients[key], want[key])
        if step == 0:
            there = {key for key, gradient in gradients.items() if gradient is not None}
            assert early == (there if name in AT_ONCE else set())


@pytest.mark.parametrize("name", MODULES)
def test_each_hook_of_a_parameter_runs_once_and_sees_its_gradient(name):
    module, calls = made(MODULES[name], Linear), []
    for key, p in module.named_parameters():
        if p.requires_grad:
            p.register_hook(lambda g, key=key: calls.append((key, "hook", g is not None)))
            p.register_post_accumulate_grad_hook(
                lambda p, key=key: calls.append((key, "post", p.grad is not None))
            )
    halves(module, drawn(2, 3, 4).requires_grad_())
    trained = [key for key, p in module.named_parameters() if p.requires_grad]
    assert sorted(calls) == sorted(
        (key, kind, True) for key in trained for kind in ("hook", "post")
    )


@pytest.mark.parametrize("name", ["one", "used twice", "recomputed", "frozen weight"])
def test_autocast_gives_what_torchs_layer_gives(name):
    ours, torchs = (made(MODULES[name], kind, torch.float32) for kind in (Linear, nn.Linear))
    x = drawn(2, 3, 4, dtype=torch.float32)
    found = []
    for module, run in ((ours, halves), (torchs, whole)):
        with torch.autocast("cpu", torch.bfloat16):
            found.append(run(module, x.clone().requires_grad_()))
    outside = made(MODULES[name], Linear, torch.float32)
    queue, own = WeightQueue(), x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16), deferring(queue):
        y = outside(own)
    assert y.dtype == torch.bfloat16
    with opened(queue):  # as the engine does it: the backward knows of no autocast
        y.backward(drawn(*y.shape, name="y").to(y.dtype))
    queue.drain()
    found.append((own.grad, {key: p.grad for key, p in outside.named_parameters()}))
    want_x, want = found[1]
    # torch adds the two gradients of a weight used twice in the shorter type, ours in float32
    tolerance = 1e-6 if name in ("one", "frozen weight") else 0.02
    for x_gradient, gradients, *_ in found:
        assert x_gradient.dtype == torch.float32
        assert_same(x_gradient, want_x, 1e-6)
        for key in want:
            assert_same(gradients[key], want[key], tolerance)


def copies():
    return saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x)


@pytest.mark.parametrize("hooks", [HeldBytes, copies])
def test_who_has_a_hand_in_what_is_saved_does_not_hide_the_parameters(hooks):
    with hooks():
        _, gradients, early = halves(made(Twice, Linear), drawn(3, 4).requires_grad_())
    _, want = whole(made(Twice, nn.Linear), drawn(3, 4).requires_grad_())
    assert not early
    for name, gradient in want.items():
        assert_same(gradients[name], gradient)


def test_without_a_queue_or_gradients_it_is_torchs_layer():
    module, x = made(Wrapped, Linear), drawn(3, 4)
    assert type(module(x).grad_fn) is type(made(Wrapped, nn.Linear)(x).grad_fn)
    with deferring(WeightQueue()), torch.no_grad():
        assert not module(x).requires_grad


def test_outside_its_half_a_backward_is_refused():
    module, queue = made(Wrapped, Linear), WeightQueue()
    with deferring(queue):
        y = module(drawn(3, 4).requires_grad_())
    with pytest.raises(
        RuntimeError, match="ran backward outside its I; give the stage torch's own"
    ):
        y.sum().backward()


def test_a_second_derivative_is_refused():
    module, queue, x = made(Wrapped, Linear), WeightQueue(), drawn(3, 4).requires_grad_()
    with deferring(queue):
        y = torch.tanh(module(x))
    with opened(queue):
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first.sum().backward()


def test_a_weight_changed_between_forward_and_backward_is_told():
    module, queue, x = made(Wrapped, Linear), WeightQueue(), drawn(3, 4).requires_grad_()
    with deferring(queue):
        y = module(x)
    with torch.no_grad():
        module.layer.weight.mul_(2.0)
    with opened(queue), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_queues_of_two_microbatches_do_not_mix():
    module, torchs = made(Twice, Linear), made(Twice, nn.Linear)
    xs, queues = [drawn(3, 4, name=n) for n in "ab"], [WeightQueue(), WeightQueue()]
    ys = []
    for x, queue in zip(xs, queues, strict=True):
        with deferring(queue):
            ys.append(module(x))
    for i in (1, 0):
        with opened(queues[i]):
            ys[i].sum().backward()
    sums = []
    for i in (0, 1):
        queues[i].drain()
        torchs(xs[i]).sum().backward()
        sums.append((module.layer.weight.grad.clone(), torchs.layer.weight.grad.clone()))
    for got, want in sums:
        assert_same(got, want)
    queues[0].drain()
    assert_same(module.layer.weight.grad, sums[1][1])


@pytest.mark.parametrize("needs_x", [True, False])
@pytest.mark.parametrize("names", [(), ("weight",), ("weight", "bias")], ids=str)
def test_it_holds_for_backward_what_torchs_layer_holds(names, needs_x):
    found = []
    for kind in (Linear, nn.Linear):
        module = frozen(kind, *names)
        x = torch.zeros(50, 4).requires_grad_(needs_x)
        with HeldBytes(ignore=module.parameters()) as held, deferring(WeightQueue()):
            y = module(x)
            found.append(held.live_bytes)
        del y
    assert found[0] == found[1]


def test_what_waits_is_freed_by_its_half():
    module, queue = Wrapped(Linear), WeightQueue()
    with LiveBytes() as live:
        x = torch.zeros(1000, 4, requires_grad=True)
        before = live.live_bytes
        with deferring(queue):
            loss = module(x).square().sum()
        with opened(queue):
            loss.backward()
        waiting = live.live_bytes
        queue.drain()
        del loss
        after = live.live_bytes
    gradients = sum(p.nbytes for p in module.parameters())
    assert waiting >= before + x.nbytes + 1000 * 5 * 4  # the gradients of x and of y
    assert after == before + x.nbytes + gradients


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_of_one_stage_fires_each_hook_once(tied):
    config = GPTConfig(vocab_size=17, n_layers=2, d_model=8, n_heads=2, n_positions=9, tied=tied)
    stage, queue, calls = build_stage(config, 1, 0), WeightQueue(), []
    for key, p in stage.named_parameters():
        p.register_post_accumulate_grad_hook(lambda _, key=key: calls.append(key))
    with deferring(queue):
        y = stage(torch.zeros(2, 5, dtype=torch.int64))
    with opened(queue):
        y.sum().backward()
    early = len(calls)
    queue.drain()
    assert sorted(calls) == sorted(key for key, _ in stage.named_parameters())
    assert 0 < early < len(calls)
