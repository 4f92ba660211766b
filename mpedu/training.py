"""Training a small GPT on pipelines: what every rank runs, and what it tells of each step."""

import math
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mpedu.checkpoint import Checkpoint, save_checkpoint
from mpedu.comm import Comm
from mpedu.corpus import Corpus
from mpedu.cut import cut_layers
from mpedu.mesh import Mesh
from mpedu.model import build_stage, count_targets, share_tied, tied_stages, token_loss
from mpedu.pipeline import PipelineEngine, StepResult
from mpedu.schedule import Schedule, stage_to_rank
from mpedu.train_config import Plan, TrainConfig, about_run

Loss = Callable[[Tensor, Tensor], Tensor]
WARM_UP_STEPS = 10


class StepReport(NamedTuple):
    """What one rank tells of one step: the engine's result, the norm of all ranks' gradients.

    updated_s: when the optimiser was done, of `time.perf_counter` as the times of the result.
    """

    step: int
    result: StepResult
    gradient_norm: float
    updated_s: float


def train_rank(comm: Comm, config: TrainConfig, plan: Plan, resume: Checkpoint | None) -> None:
    """One rank of a training run; reports each step to its starter.

    Ends early where the loss is no finite number; ValueError where nothing can be saved.
    """
    mesh = Mesh(comm, config.pp, config.dp)
    trainer = Trainer(mesh, config, config.make_schedule())
    corpus = config.load_corpus() if 0 in trainer.stages else None
    losses: list[float] = []
    if resume is not None:
        trainer.load(resume.load(mesh.pp.rank))
        losses = list(resume.about["losses"])
    for step in range(len(losses) + 1, plan.n_steps + 1):
        result = trainer.run(corpus, step)
        norm = trainer.update(step)
        comm.report(StepReport(step, result, norm, time.perf_counter()))
        if not math.isfinite(result.loss):
            return  # on every rank alike; nothing is saved, and the ledger tells why
        losses.append(result.loss)
        # The data ranks hold the same: the first of them saves it for all.
        if plan.checkpoints is not None and plan.saves(step) and mesh.place.dp == 0:
            about = about_run(config, plan, corpus.digest, losses) if corpus else {}
            save_checkpoint(plan.checkpoints, mesh.pp, step, trainer.tensors(), about)


class Trainer:
    """This rank's stages, their optimiser, and the engine that fills their gradients."""

    def __init__(
        self, mesh: Mesh, config: TrainConfig, schedule: Schedule, loss: Loss = token_loss
    ) -> None:
        self.mesh, self.config = mesh, config
        owner = stage_to_rank(schedule)
        n_stages, device = len(owner), mesh.world.device
        layers = cut_layers(config.model.n_layers, n_stages, config.cut)
        how = (config.seed, config.torch_dtype, config.checkpoint)
        self.stages = {
            stage: build_stage(config.model, n_stages, stage, *how, layers[stage])
            for stage, rank in owner.items()
            if rank == mesh.pp.rank
        }
        for stage in self.stages.values():
            stage.to(device)
        share_tied(self.stages)
        tied = tied_stages(config.model, n_stages)
        # Of the copies of a parameter, that in its first stage counts for the norm.
        self._copies = {name for name, (first, *_) in tied.items() if first not in self.stages}
        self.engine = PipelineEngine(
            schedule,
            mesh.pp,
            self.stages,
            loss,
            count_targets,
            costs=config.costs,
            data=mesh.data,
            tied=tied,
        )

    @cached_property
    def optimiser(self) -> torch.optim.AdamW:
        """Made at first use: the first of a process takes torch a second."""
        parameters = [parameter for _, parameter in self.parameters()]
        return torch.optim.AdamW(parameters, lr=self.config.learning_rate)

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Every parameter of this rank, once, with its name in the whole model."""
        stages = self.stages.values()
        yield from {n: p for stage in stages for n, p in stage.named_parameters()}.items()

    def run(self, corpus: Corpus | None, number: int) -> StepResult:
        """Forward and backward of step `number`, from 1 on; corpus: where stage 0 is, to read.

        Each data rank takes its part of the batch.
        """
        config, batch = self.config, None
        if corpus is not None:
            whole = corpus.batch(number, config.n_samples, config.n_tokens, config.seed)
            data = self.mesh.data
            inputs, targets = (x.tensor_split(data.size)[data.rank] for x in whole)
            batch = (inputs, targets)
        return self.engine.run(batch, config.seed, number)

    def update(self, number: int) -> float:
        """The optimiser's step `number`, from 1 on, which uses the gradients up; their norm."""
        norm = self._clip()
        warm_up = min(1.0, number / WARM_UP_STEPS)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * warm_up
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    @torch.no_grad()
    def _clip(self) -> float:
        """Scales all ranks' gradients so that their common norm is at most `clip_norm`; the norm.

        A sum per layer, added up in one order: it is the same however the model is cut. Every
        distinct parameter counts once: data ranks and copies hold the same.
        """
        n_layers = self.config.model.n_layers
        device = self.mesh.world.device
        squares = torch.zeros(n_layers + 2, dtype=torch.float64, device=device)
        gradients = {name: p.grad for name, p in self.parameters() if p.grad is not None}
        for name, gradient in gradients.items():
            if name in self._copies:
                continue
            squares[_layer(name, n_layers)] += gradient.double().square().sum()
        norm = math.sqrt(float(self.mesh.pp.all_reduce(squares).sum()))
        if norm > self.config.clip_norm:
            torch._foreach_mul_(list(gradients.values()), self.config.clip_norm / norm)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Everything this rank needs to go on bit for bit, by name."""
        found = {}
        for name, parameter in self.parameters():
            found[f"model.{name}"] = parameter.detach()
            for key, value in self.optimiser.state[parameter].items():
                found[f"adam.{key}.{name}"] = value
        return found

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Takes over what `tensors` gave."""
        for name, parameter in self.parameters():
            with torch.no_grad():
                parameter.copy_(tensors[f"model.{name}"])
            self.optimiser.state[parameter] = {
                key: tensors[f"adam.{key}.{name}"].to("cpu" if key == "step" else parameter.device)
                for key in ("step", "exp_avg", "exp_avg_sq")  # AdamW counts steps on the CPU
            }


def _layer(name: str, n_layers: int) -> int:
    """Where a parameter stands in the model: 0 embeds, 1 to n_layers are the blocks, then the end.

    A layer is on one rank, whatever the cut.
    """
    kind, number, *_ = name.split(".")
    if kind == "blocks":
        return 1 + int(number)
    return 0 if kind.endswith("embedding") else n_layers + 1
