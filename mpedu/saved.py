"""What torch saves for a backward, with checkpoints and without, in one process and on ranks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint_sequential

from mpedu.comm import Comm
from mpedu.faults import require_at_least
from mpedu.launch import run_ranks
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.mesh import Mesh
from mpedu.model import GPTConfig
from mpedu.plot.text import table
from mpedu.schedule import Schedule
from mpedu.train_config import TrainConfig
from mpedu.training import Trainer

Function = Callable[[Tensor], Tensor]
_CHOICES = ("none", "block", "stage")  # of `checkpointed_runs`
_N_TOKENS, _WIDTH = 16, 32  # of the chains in one process
_DROPPED = 0.2


class Said(str):
    """Words that print as they are, also where a value's repr is printed."""

    def __repr__(self) -> str:
        return str(self)


def tanh_beside_torch(tanh: Function) -> Said:
    """How a tanh with a backward of its own compares with torch's: its gradient, and what it saves.

    tanh(x) for x [tokens, d_model].
    """
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(_N_TOKENS, _WIDTH, dtype=torch.float64, generator=generator)
    x.requires_grad_()
    with HeldBytes() as held:
        y = tanh(x)
        n_saved = held.live_bytes / _n_bytes(x)
    gradient = torch.randn(y.shape, dtype=y.dtype, generator=generator)  # that for y
    (own,) = torch.autograd.grad(y, x, gradient)
    (due,) = torch.autograd.grad(torch.tanh(x), x, gradient)
    off = float((own - due).abs().max())
    return Said(f"off by {off:.1g} from torch's gradient; {n_saved:g} activation(s) saved")


def torch_holds(n_layers: int, n_segments: int) -> int:
    """Activations that torch holds after the forward of a chain of tanh, the input of one included.

    n_segments: of `torch.utils.checkpoint.checkpoint_sequential`, which cuts n_layers // n_segments
    at a time and keeps its last segment; 0 for none.
    """
    require_at_least(1, n_layers=n_layers)
    x = torch.zeros(_N_TOKENS, _WIDTH).requires_grad_()
    layers = nn.Sequential(*(nn.Tanh() for _ in range(n_layers)))
    with HeldBytes() as held:
        if n_segments:
            y = checkpoint_sequential(  # type: ignore[no-untyped-call]
                layers, n_segments, x, use_reentrant=False
            )
        else:
            y = layers(x)
        n_held = held.live_bytes / _n_bytes(x)
    y.sum().backward()
    return round(n_held)


def checkpoint_beside_plain(checkpoint: Callable[[Function, Tensor], Tensor]) -> Said:
    """How `checkpoint(function, x)` compares with `function(x)`: gradients, and what is saved.

    Once without dropout, once with it.
    """
    lines = []
    for dropped in (0.0, _DROPPED):
        torch.manual_seed(1)
        layers = [
            nn.Sequential(nn.Linear(_WIDTH, _WIDTH), nn.Tanh(), nn.Dropout(dropped))
            for _ in range(4)
        ]
        model = nn.Sequential(*layers).double()
        x = torch.randn(_N_TOKENS, _WIDTH, dtype=torch.float64).requires_grad_()
        plain = _gradients(model, x, model)
        own = _gradients(partial(checkpoint, model), x, model)
        off = max(float((a - b).abs().max()) for a, b in zip(own, plain, strict=True))
        words = f"dropout {dropped:g}" if dropped else "without dropout"
        lines.append(f"{words}: gradients off by {off:.1g}")
    return Said("\n".join(["", *lines]))


def _gradients(function: Function, x: Tensor, model: nn.Module) -> list[Tensor]:
    """Of x and of the weights; zeros where none came."""
    tensors = [x, *model.parameters()]
    for tensor in tensors:
        tensor.grad = None
    torch.manual_seed(2)
    y = function(x)
    torch.manual_seed(3)  # as after other work: whoever draws a mask anew gets another one
    y.sum().backward()  # type: ignore[no-untyped-call]
    return [torch.zeros_like(t) if t.grad is None else t.grad for t in tensors]


class _Step(NamedTuple):
    """The most bytes of tensors in one rank's step, and its gradients by stage and name."""

    peak_bytes: int
    gradients: dict[int, dict[str, Tensor]]


def memory_on_ranks(schedule: Schedule, n_layers: int = 8, timeout_s: float = 120.0) -> str:
    """A table of one training step on real ranks for each choice of what is run again.

    By choice of `checkpointed_runs`: the most bytes of tensors on each rank beside its weights and
    gradients, and the largest relative difference of a gradient from that without checkpoints.
    """
    n_microbatches = 1 + max(action.microbatch for actions in schedule for action in actions)
    model = GPTConfig(n_layers=n_layers, d_model=64, n_heads=4, n_positions=64)
    configs = [
        TrainConfig(
            pp=len(schedule),
            n_microbatches=n_microbatches,
            n_samples=2 * n_microbatches,
            model=model,
            checkpoint=choice,
        )
        for choice in _CHOICES
    ]
    ran = run_ranks(_steps, len(schedule), schedule, configs, timeout_s=timeout_s).results
    rows = []
    for at, choice in enumerate(_CHOICES):
        held = [f"{steps[at].peak_bytes / 1e6:.2f} MB" for steps in ran]
        off = max(_difference(steps[at], steps[0]) for steps in ran)
        rows.append([choice, *held, f"{off:.0e}" if off else "0"])
    heads = ["checkpoint", *(f"rank {rank}" for rank in range(len(ran))), "gradients off by"]
    return table(heads, rows)


def _steps(comm: Comm, schedule: Schedule, configs: Sequence[TrainConfig]) -> list[_Step]:
    return [_step(comm, schedule, config) for config in configs]


def _step(comm: Comm, schedule: Schedule, config: TrainConfig) -> _Step:
    trainer = Trainer(Mesh(comm, config.pp), config, schedule)
    corpus = config.load_corpus() if 0 in trainer.stages else None
    trainer.run(corpus, 1)  # makes the gradients
    for _, parameter in trainer.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()
    with LiveBytes() as live:
        trainer.run(corpus, 1)
    return _Step(
        live.peak_bytes,
        {
            stage: {
                name: p.grad.detach().cpu().clone()
                for name, p in module.named_parameters()
                if p.grad is not None
            }
            for stage, module in trainer.stages.items()
        },
    )


def _difference(step: _Step, plain: _Step) -> float:
    return max(
        float((gradient - due).abs().max() / due.abs().max())
        for stage, named in plain.gradients.items()
        for name, due in named.items()
        for gradient in [step.gradients[stage][name]]
    )


def _n_bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()
