"""Models cut into stages, their batches, and steps of the engine and of the serial model.

The serial steps know nothing of the engine. Imported by ranks too: no pytest in here.
"""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import torch
from small_gpt import DROPPING, SMALL, moved
from torch import nn

from mpedu.families import make_schedule
from mpedu.keyed import Key, keyed_generator
from mpedu.model import IGNORE, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import stage_to_rank

AUX_WEIGHT = 0.3
SEED = 5


class Task(NamedTuple):
    """What to compute with the engine and with the serial model.

    schedule: a name in `SCHEDULES`, n_chunks as there.
    steps: "one", "accumulate" (three without zero_grad), or an optimiser's name (five of it).
    """

    schedule: str
    model: str
    n_microbatches: int
    dtype: torch.dtype = torch.float64
    steps: str = "one"
    n_chunks: int | None = None

    def __str__(self):
        dtype = str(self.dtype).removeprefix("torch.")
        chunks = f"-V{self.n_chunks}" if self.n_chunks else ""
        name = f"{self.schedule}{chunks}-{self.model}-M{self.n_microbatches}"
        return f"{name}-{dtype}-{self.steps}"

    @property
    def serial(self):
        """The same for the serial model, whatever the schedule."""
        return self._replace(schedule="", n_chunks=None)

    def make_schedule(self, n_ranks):
        return make_schedule(self.schedule, n_ranks, self.n_microbatches, self.n_chunks)


class Outcome(NamedTuple):
    """Everything that must be equal; `tensors` by name."""

    losses: list
    tensors: dict


def random(*name, shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64, generator=keyed_generator(*name)).to(dtype)


class Layer(nn.Module):
    """One stage on floats, [samples, tokens, 6] to the same."""

    def __init__(self, number, dtype=torch.float64):
        super().__init__()
        # small enough that sixteen layers do not make large errors of rounding
        self.w = nn.Parameter(0.5 * random("w", number, shape=(6, 6), dtype=dtype))
        self.b = nn.Parameter(random("b", number, shape=(6,), dtype=dtype))

    def forward(self, x):
        return torch.tanh(x @ self.w + self.b)


class WithAux(nn.Module):
    """A stage that also returns an aux loss, which is no sum over samples."""

    def __init__(self, stage, number):
        super().__init__()
        self.stage, self.number = stage, number

    def forward(self, x, key=None):
        y = self.stage(x, key) if self.number == 0 else self.stage(x)
        return y, (self.number + 1) * y.square().mean().sqrt()


class First(nn.Module):
    """Token ids to floats, so that stage 0 of "aux" takes integers."""

    def __init__(self, dtype):
        super().__init__()
        self.table = nn.Parameter(random("table", shape=(17, 6), dtype=dtype))

    def forward(self, x, key):
        return self.table[x]


def stage_for(model, n_stages, number, dtype=torch.float64):
    if model in ("gpt", "dropout"):
        config = DROPPING if model == "dropout" else SMALL
        config = replace(config, n_layers=max(config.n_layers, n_stages))
        return moved([build_stage(config, n_stages, number, dtype=torch.float64)])[0].to(dtype)
    if model == "aux":
        return WithAux(First(dtype) if number == 0 else Layer(number, dtype), number)
    layers = (Layer(layer, dtype) for layer in range(max(6, n_stages))[number::n_stages])
    return nn.Sequential(*layers)


def stages_for(model, n_stages, dtype=torch.float64):
    return [stage_for(model, n_stages, number, dtype) for number in range(n_stages)]


def weighted_loss(y, targets):
    return (y * targets).sum()


def loss_of(model):
    return (token_loss, count_targets) if model in ("gpt", "dropout") else (weighted_loss, len)


def ranges(n_samples, n_microbatches):
    """The samples of each micro-batch: as even as can be, larger ones first."""
    starts = [0]
    for m in range(n_microbatches):
        starts.append(starts[-1] + n_samples // n_microbatches + (m < n_samples % n_microbatches))
    return [slice(a, b) for a, b in pairwise(starts)]


def batch_of(model, n_microbatches, step=0, dtype=torch.float64):
    """Another number of samples and of tokens in every step, not always divisible; the loss of a
    micro-batch is unlike that of every other, and one micro-batch has no target that counts."""
    n_samples = n_microbatches + 3 + (n_microbatches % 3 == 0) + step % 2
    shape = (n_samples, (7, 5, 8)[step % 3])
    cuts = ranges(n_samples, n_microbatches)
    drawn = keyed_generator("ids", step)
    ids = torch.randint(17, shape, generator=drawn)
    if model in ("gpt", "dropout"):
        targets = torch.randint(17, shape, generator=drawn)
        counted = torch.rand(shape, generator=drawn) < torch.linspace(0.9, 0.2, n_samples)[:, None]
        targets[~counted] = IGNORE
        if n_microbatches > 1:
            targets[cuts[1]] = IGNORE
        return ids, targets
    targets = random("targets", step, shape=(*shape, 6), dtype=dtype)
    for m, cut in enumerate(cuts):
        targets[cut] *= 10.0 ** (m % 4)
    if model == "aux":
        return ids, targets
    return random("x", step, shape=(*shape, 6), dtype=dtype).requires_grad_(), targets


def chained(stages, x, key):
    """(y, summed aux) of all stages."""
    total = 0.0
    for stage in stages:
        keyed = isinstance(stage, WithAux) or hasattr(stage, "token_embedding")
        keyed = keyed or hasattr(stage, "blocks")
        x = stage(x, key) if keyed else stage(x)
        if isinstance(x, tuple):
            x, aux = x
            total = total + aux
    return x, total


def serial_step(stages, task, step):
    """(loss, outputs, input gradient) of the model in one piece, on the whole batch at once.

    Where dropout or aux depend on the micro-batches, one of them after the other.
    """
    inputs, targets = batch_of(task.model, task.n_microbatches, step, task.dtype)
    loss_sum, count = loss_of(task.model)
    whole = [slice(0, len(inputs))]
    split = task.model in ("aux", "dropout")
    cuts = ranges(len(inputs), task.n_microbatches) if split else whole
    loss, outputs = 0.0, []
    for m, cut in enumerate(cuts):
        y, aux = chained(stages, inputs[cut], Key(SEED, step, m) if split else None)
        part = loss_sum(y, targets[cut]) / count(targets)
        (part + AUX_WEIGHT * aux / task.n_microbatches).backward()
        loss += float(part.detach())
        outputs.append(y.detach())
    return loss, torch.cat(outputs), inputs.grad


def outcome(task, stages, step):
    """Runs `step(number)` as `task.steps` says; what is to be compared of these stages."""
    parameters = {f"{k}.{name}": p for k, s in stages.items() for name, p in s.named_parameters()}
    n_steps = {"one": 1, "accumulate": 3}.get(task.steps, 5)
    optimiser = None
    if task.steps == "sgd":
        # a loss of thousands would drive tanh to where gradients are nothing but rounding
        lr = 0.05 if task.model in ("gpt", "dropout") else 1e-4
        optimiser = torch.optim.SGD(parameters.values(), lr, momentum=0.9)
    elif task.steps == "adamw":
        # with the usual eps an Adam step magnifies the rounding of gradients that are truly zero
        optimiser = torch.optim.AdamW(parameters.values(), lr=0.01, eps=1e-2)
    losses, tensors = [], {}
    for number in range(n_steps):
        if optimiser is not None:
            optimiser.zero_grad()
        loss, outputs, input_gradient = step(number)
        losses.append(loss)
        if outputs is not None:
            tensors[f"outputs {number}"] = outputs
        if input_gradient is not None:
            tensors[f"input gradient {number}"] = input_gradient
        if optimiser is not None:
            optimiser.step()
    for name, p in parameters.items():
        tensors[name] = p.detach()
        tensors[f"gradient of {name}"] = p.grad
    return Outcome(losses, tensors)


def serial_outcome(task, n_stages):
    stages = stages_for(task.model, n_stages, task.dtype)
    return outcome(task, dict(enumerate(stages)), lambda step: serial_step(stages, task, step))


def engine_for(comm, schedule, model, dtype=torch.float64, **options):
    """This rank's engine."""
    owner = stage_to_rank(schedule)
    stages = {
        number: stage_for(model, len(owner), number, dtype)
        for number, rank in owner.items()
        if rank == comm.rank
    }
    return PipelineEngine(schedule, comm, stages, *loss_of(model), AUX_WEIGHT, **options)


def engine_outcome(comm, task, schedule=None):
    """What this rank's stages come to."""
    schedule = schedule or task.make_schedule(comm.size)
    engine = engine_for(comm, schedule, task.model, task.dtype, keep_outputs=True)

    def step(number):
        batch = batch_of(task.model, task.n_microbatches, number, task.dtype)
        result = engine.run(batch if 0 in engine.stages else None, SEED, number)
        outputs = torch.cat(result.outputs) if result.outputs else None
        return result.loss, outputs, result.input_gradient

    return outcome(task, engine.stages, step)


def error(got, want):
    """The largest difference, relative to the largest number."""
    assert got.shape == want.shape and got.dtype == want.dtype
    assert torch.isfinite(got).all()
    scale = float(want.abs().max())
    return float((got - want).abs().max()) / scale if scale else float(got.abs().max())


def assert_equal(parts, whole, tolerance):
    """All ranks' outcomes together are the serial one."""
    tensors = {}
    for part in parts:
        assert not tensors.keys() & part.tensors.keys()
        tensors |= part.tensors
        worst = max(abs(a - b) / abs(b) for a, b in zip(part.losses, whole.losses, strict=True))
        assert worst <= tolerance
    assert tensors.keys() == whole.tensors.keys()
    for name, want in whole.tensors.items():
        assert want is not None, name
        assert error(tensors[name], want) <= tolerance, name
