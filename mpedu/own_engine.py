"""An engine of the reader's own on real ranks, for a notebook cell: `train_actions`, `try_torch`.

The engine is a rank program `run_actions(comm, actions, stage, (inputs, targets)) -> loss`. It
sends NumPy arrays, and its stage is an `ArrayStage` of a small GPT: the program that runs on NumPy
stages runs here unchanged.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpedu.array_stage import ArrayStage
from mpedu.arrays import Array
from mpedu.comm import Comm
from mpedu.corpus import load_corpus
from mpedu.faults import require_at_least
from mpedu.launch import run_ranks
from mpedu.ledger import EMULATED
from mpedu.memory import HeldBytes
from mpedu.model import GPTConfig, GPTStage, build_stage, count_targets, token_loss
from mpedu.pipeline import to_torch_pipelining
from mpedu.plot import Picture, overlay
from mpedu.schedule import Action, Schedule, actions_of
from mpedu.simulate import Span, Timeline, simulate
from mpedu.validate import validate_schedule

RunActions = Callable[[Comm, list[Action], Any, Any], float | None]
TorchStep = Callable[[Comm, GPTStage, Tensor | None, Tensor | None, int], None]
Named = dict[str, Tensor]
Batch = tuple[Array, Array]  # inputs and targets, int64 [samples, tokens]
LEARNING_RATE = 0.05
DTYPE = torch.float64  # so that another order of sums does not hide a fault


class OwnSteps(NamedTuple):
    """What a few training steps of an engine gave, beside the same steps in one process.

    records: by rank, what the stage did in the last step. losses, serial_losses: of every step.
    gradients: by stage, the largest relative difference to one process in the first step; weights:
    the same of the weights after the last one. most_held, held_bytes: by rank, the most
    micro-batches of which the engine kept something, and the most bytes that backwards will need.
    n_parameters: by rank. timeline: of the last step. The stages are numbered like the ranks.
    """

    schedule: Schedule
    records: Schedule
    losses: list[float]
    serial_losses: list[float]
    gradients: list[float]
    weights: list[float]
    most_held: list[int]
    held_bytes: list[int]
    n_parameters: list[int]
    timeline: Timeline
    is_emulated: bool

    def __str__(self) -> str:
        n_steps = len(self.losses)
        done = "is the list" if self.records == self.schedule else "is NOT the list"
        lines = [f"real ranks: {len(self.schedule)} processes; what they did {done}"]
        if self.is_emulated:
            lines.append(EMULATED)
        lines += [
            "rank   parameters   kept at most   for backwards   gradients   weights",
            *(
                f"{rank:4}{n:13,}{held:15}{n_bytes / 1e6:13.2f} MB{gradient:12.1e}{weight:10.1e}"
                for rank, (n, held, n_bytes, gradient, weight) in enumerate(self._rows())
            ),
            "(differences to one process, relative: gradients of the first step, weights after "
            f"{n_steps} step{'s' * (n_steps > 1)})",
            f"loss in step {n_steps}: {self.losses[-1]:.6f}; one process: "
            f"{self.serial_losses[-1]:.6f}",
        ]
        return "\n".join(lines)

    def _rows(self) -> Any:
        bill = self.n_parameters, self.most_held, self.held_bytes
        return zip(*bill, self.gradients, self.weights, strict=True)

    def picture(self) -> Picture:
        """The timeline below the one predicted from the list."""
        title = f"Your engine on {len(self.schedule)} processes"
        title += f"; {EMULATED}" if self.is_emulated else ", last step"
        return overlay(simulate(self.schedule), self.timeline, title)


def train_actions(
    run_actions: RunActions,
    schedule: Schedule,
    n_steps: int = 5,
    device_clock_ms: float | None = None,
    timeout_s: float = 120.0,
) -> OwnSteps:
    """What `n_steps` steps of gradient descent give when `run_actions` runs `schedule`.

    schedule: legal, one stage per rank. The batch of real text has one sample more than two per
    micro-batch, so that their sizes differ. device_clock_ms: emulates devices on which a forward
    takes so long, and a backward twice that; the samples are then one per micro-batch.
    ValueError for a schedule that cannot run, or is not of F and B alone, one stage per rank;
    RankError where a rank failed.
    """
    require_at_least(1, n_steps=n_steps)
    faults = validate_schedule(schedule, n_stages=len(schedule))
    if faults:
        raise ValueError(f"this schedule cannot run: {faults[0].text}")
    others = sorted({action.kind for _, action in actions_of(schedule)} - {"F", "B"})
    if others:
        raise ValueError(f"the schedule holds {', '.join(others)}; give one of F and B alone")
    n_microbatches = 1 + max(action.microbatch for _, action in actions_of(schedule))
    emulated = device_clock_ms is not None
    config = _config(len(schedule), emulated)
    n_samples = n_microbatches if emulated else 2 * n_microbatches + 1
    corpus = load_corpus()
    batches = [
        tuple(x.numpy() for x in corpus.batch(step, n_samples, config.n_positions))
        for step in range(n_steps)
    ]
    device_s = device_clock_ms / 1000 if device_clock_ms is not None else None
    given = run_actions, schedule, config, batches, device_s
    ran = run_ranks(_rank, len(schedule), *given, timeout_s=timeout_s).results
    alone = run_ranks(_serial, 1, config, batches, timeout_s=timeout_s, use_gpus=False).results[0]
    spans = [span for one in ran for span in one.spans]
    start_s = min(span.start_s for span in spans)
    moved = [s._replace(start_s=s.start_s - start_s, end_s=s.end_s - start_s) for s in spans]
    return OwnSteps(
        schedule,
        [[Action(s.kind, s.stage, s.microbatch) for s in one.spans] for one in ran],
        list(ran[-1].losses),
        alone.losses,
        [_difference(one.gradients, alone.gradients) for one in ran],
        [_difference(one.weights, alone.weights) for one in ran],
        [one.most_held for one in ran],
        [one.held_bytes for one in ran],
        [one.n_parameters for one in ran],
        Timeline(moved, len(schedule)),
        emulated,
    )


def _config(n_stages: int, emulated: bool = False) -> GPTConfig:
    # Emulated devices need a model whose real work fits into the emulated time.
    width, n_layers = (16, n_stages) if emulated else (64, max(4, n_stages))
    return GPTConfig(n_layers=n_layers, d_model=width, n_heads=4, n_positions=32)


class _Ran(NamedTuple):
    """What one rank gave: losses of all steps, the rest of the first or last one."""

    losses: list[Any]
    gradients: Named
    weights: Named
    spans: list[Span]
    most_held: int = 0
    held_bytes: int = 0
    n_parameters: int = 0


def _rank(
    comm: Comm,
    run_actions: RunActions,
    schedule: Schedule,
    config: GPTConfig,
    batches: list[Batch],
    device_s: float | None,
) -> _Ran:
    module = build_stage(config, comm.size, comm.rank, dtype=DTYPE).to(comm.device)
    optimiser = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    own: list[Action] = list(schedule[comm.rank])
    losses: list[Any] = []
    gradients: Named = {}
    n_microbatches = len(own) // 2
    held = HeldBytes(ignore=module.parameters())
    for inputs, targets in batches:
        stage = ArrayStage(module, comm, own, device_s)
        x = np.array_split(inputs, n_microbatches) if comm.rank == 0 else []
        y = np.array_split(targets, n_microbatches) if comm.rank == comm.size - 1 else []
        comm.barrier()  # all begin the step at once, so that its timeline shows no other waiting
        with held:
            losses.append(run_actions(comm, own, stage, (x, y)))
        gradients = gradients or _copies(module, of_gradient=True)
        optimiser.step()
    n_parameters = sum(parameter.numel() for parameter in module.parameters())
    weights = _copies(module)
    last = stage.spans, stage.most_held, held.peak_bytes, n_parameters
    return _Ran(losses, gradients, weights, *last)


def _serial(comm: Comm, config: GPTConfig, batches: list[Batch]) -> _Ran:
    """The same steps with the whole model and the whole batch."""
    module = build_stage(config, 1, 0, dtype=DTYPE)
    optimiser = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    losses: list[float] = []
    gradients: Named = {}
    for inputs, targets in batches:
        module.zero_grad()
        loss = token_loss(module(torch.from_numpy(inputs)), torch.from_numpy(targets))
        (loss / targets.size).backward()
        losses.append(loss.item() / targets.size)
        gradients = gradients or _copies(module, of_gradient=True)
        optimiser.step()
    return _Ran(losses, gradients, _copies(module), [])


def _copies(module: GPTStage, of_gradient: bool = False) -> Named:
    values = {
        name: (parameter.grad if of_gradient else parameter)
        for name, parameter in module.named_parameters()
    }
    return {name: x.detach().cpu().clone() for name, x in values.items() if x is not None}


def _difference(found: Named, expected: Named) -> float:
    """The largest difference of any parameter's, relative to the largest number of its own."""
    if not found:
        return float("nan")
    return max(
        float((x - expected[name]).abs().max() / expected[name].abs().max())
        for name, x in found.items()
    )


class TorchBeside(NamedTuple):
    """Gradients by torch.distributed.pipelining beside those of one process, relative, by stage.

    own: of the reader's step. peer: of `to_torch_pipelining` with `peer_class`.
    """

    own: list[float]
    peer: list[float]
    peer_class: str

    def __str__(self) -> str:
        names = "your torch_step, ScheduleGPipe", f"to_torch_pipelining, {self.peer_class}"
        return "\n".join(
            f"{name}: gradients differ from one process by "
            + ", ".join(f"{value:.1e} on stage {stage}" for stage, value in enumerate(values))
            for name, values in zip(names, (self.own, self.peer), strict=True)
        )

    def __repr__(self) -> str:
        return f"\n{self}"  # as a notebook shows what a function gives


def try_torch(
    torch_step: TorchStep, n_ranks: int = 2, n_microbatches: int = 4, timeout_s: float = 120.0
) -> TorchBeside:
    """How far one step by torch.distributed.pipelining is from the gradients of one process.

    torch_step(comm, module, x, targets, n_microbatches): runs on every rank with its stage of a
    small GPT; x is the batch on rank 0, targets on the last rank, None elsewhere.
    """
    config = _config(n_ranks)
    batch = load_corpus().batch(0, 2 * n_microbatches, config.n_positions)
    peer_class = "Schedule1F1B"
    given = torch_step, config, n_microbatches, batch, peer_class
    ran = run_ranks(_torch_rank, n_ranks, *given, timeout_s=timeout_s).results
    arrays = [tuple(x.numpy() for x in batch)]
    alone = run_ranks(_serial, 1, config, arrays, timeout_s=timeout_s, use_gpus=False).results[0]
    by_step = zip(*ran, strict=True)
    own, peer = ([_difference(one, alone.gradients) for one in step] for step in by_step)
    return TorchBeside(own, peer, peer_class)


def _torch_rank(
    comm: Comm,
    torch_step: TorchStep,
    config: GPTConfig,
    n_microbatches: int,
    batch: tuple[Tensor, Tensor],
    peer_class: str,
) -> tuple[Named, Named]:
    module = build_stage(config, comm.size, comm.rank, dtype=DTYPE).to(comm.device)
    inputs, targets = (x.to(comm.device) for x in batch)
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    torch_step(comm, module, inputs if first else None, targets if last else None, n_microbatches)
    own = _copies(module, of_gradient=True)
    module.zero_grad()
    stages = {comm.rank: module}
    peer = to_torch_pipelining(comm, stages, peer_class, n_microbatches, token_loss, count_targets)
    peer((inputs, targets))
    return own, _copies(module, of_gradient=True)
