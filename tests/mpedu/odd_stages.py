"""Legal stages that an engine may get wrong, each in a pipeline of four; no pytest in here."""

import torch
from pipelines import Layer, ranges, weighted_loss
from torch import nn
from torch.utils.checkpoint import checkpoint

N_MICROBATCHES = 5


class Apply(nn.Module):
    """A stage without parameters."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class After(Layer):
    """A layer, and `function` of its output."""

    def __init__(self, number, function):
        super().__init__(number)
        self.function = function

    def forward(self, x):
        return self.function(super().forward(x))


class Constant(nn.Module):
    """Ignores its input but for its shape."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.arange(6, dtype=torch.float64))

    def forward(self, x):
        return torch.zeros_like(x) + self.p


class Running(nn.Module):
    """Normalises by its micro-batch and keeps running statistics, one of them by assignment."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6, dtype=torch.float64)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.norm(x.flatten(0, 1)).view_as(x)


class Keeps(Layer):
    """Keeps a view of every input for later."""

    def __init__(self, number):
        super().__init__(number)
        self.seen = []

    def forward(self, x):
        if torch.is_grad_enabled():
            self.seen.append(x.detach())
        return super().forward(x)


class Wide(Layer):
    """Its output is a slice of a wider tensor."""

    def forward(self, x):
        return torch.cat([super().forward(x), x], dim=-1)[..., :6]


class Unused(Layer):
    """Has a parameter that it never uses."""

    def __init__(self, number):
        super().__init__(number)
        self.idle = nn.Parameter(torch.zeros(3))


class Recomputed(Layer):
    """Keeps its input alone and computes the rest again in backward."""

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def frozen(stage):
    return stage.requires_grad_(False)


def shifted(ids):
    return (ids + 3) % 17


def embedding():
    return nn.Embedding(17, 6, _weight=torch.arange(102).double().view(17, 6) / 100)


def turn(x):
    return x.transpose(0, 1)


def at(**odd):
    """Four stages, ordinary ones but for those given by name: `first second third last`."""
    names = ("first", "second", "third", "last")
    return lambda: [odd[n]() if n in odd else Layer(k) for k, n in enumerate(names)]


ODD = {
    "identity first": at(first=nn.Identity),
    "identity": at(second=nn.Identity),
    "identities": at(second=nn.Identity, third=nn.Identity),
    "identity last": at(last=nn.Identity),
    "view": at(
        second=lambda: Apply(lambda x: x.flatten(1)), third=lambda: nn.Unflatten(1, (-1, 6))
    ),
    "view of a layer": at(second=lambda: After(1, lambda x: x.view(-1, 6)[None])),
    "not contiguous": at(second=lambda: After(1, turn), third=lambda: After(2, turn)),
    "expanded": at(second=lambda: After(1, lambda x: x.mean(1, keepdim=True).expand_as(x))),
    "slice of a wider one": at(second=lambda: Wide(1), last=lambda: Wide(3)),
    "ignores its input": at(second=Constant),
    "constant": at(second=lambda: Apply(torch.zeros_like)),
    "constant last": at(last=Constant),
    "frozen": at(second=lambda: frozen(Layer(1)), third=lambda: frozen(Layer(2))),
    "frozen first": at(first=lambda: frozen(Layer(0))),
    "frozen last": at(last=lambda: frozen(Layer(3))),
    "running statistics": at(second=Running, last=Running),
    "keeps its inputs": at(second=lambda: Keeps(1), third=lambda: Keeps(2)),
    "unused parameter": at(third=lambda: Unused(2)),
    "recomputed": at(first=lambda: Recomputed(0), third=lambda: Recomputed(2)),
    "integers": at(first=lambda: Apply(shifted), second=embedding),
    "embedding": at(first=embedding),
}


def odd_batch(name):
    """Integers where the first stage takes them."""
    drawn = torch.Generator().manual_seed(1)
    shape = (11, 4)
    targets = torch.randn(11 * 4 * 6, dtype=torch.float64, generator=drawn)
    targets = targets.view(*shape, 6) * (10.0 ** torch.arange(11))[:, None, None]
    if name in ("integers", "embedding"):
        return torch.randint(17, shape, generator=drawn), targets / 1e5
    x = torch.randn(*shape, 6, dtype=torch.float64, generator=drawn)
    return x.requires_grad_(), targets / 1e5


def odd_loss(y, targets):
    return weighted_loss(y.reshape(targets.shape), targets)


def remains(stages):
    """By name, all that a run leaves in these stages; None for a gradient that never came."""
    left = {}
    for number, stage in stages.items():
        left |= {f"{number}.{name}.grad": p.grad for name, p in stage.named_parameters()}
        left |= {f"{number}.{name}": b for name, b in stage.named_buffers()}
        left |= {f"{number}.seen.{i}": x for i, x in enumerate(getattr(stage, "seen", []))}
    return left


def odd_serial(name):
    """A step of one micro-batch after the other."""
    stages = ODD[name]()
    inputs, targets = odd_batch(name)
    outputs = []
    for cut in ranges(11, N_MICROBATCHES):
        y = inputs[cut]
        for stage in stages:
            y = stage(y)
        outputs.append(y.detach().flatten().clone())
        (odd_loss(y, targets[cut]) / 44).backward()
    ends = {"outputs": torch.cat(outputs), "input gradient": inputs.grad}
    return remains(dict(enumerate(stages))) | ends
