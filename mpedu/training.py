"""Training a small GPT on a pipeline: what every rank runs, and what it tells of each step."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mpedu.checkpoint import Checkpoint, save_checkpoint
from mpedu.comm import Comm
from mpedu.corpus import Corpus, load_corpus
from mpedu.families import make_schedule
from mpedu.faults import require_at_least
from mpedu.model import GPTConfig, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine, StepResult
from mpedu.schedule import Schedule, stage_to_rank
from mpedu.simulate import Costs

Loss = Callable[[Tensor, Tensor], Tensor]
BYTES = 256  # a byte is a token
WARM_UP_STEPS = 10
LARGEST = 1e30  # of a rate: float32 holds it and what AdamW makes of it
CHECKPOINTS = "checkpoints"  # their place in the folder of a run


@dataclass(frozen=True)
class TrainConfig:
    """What a training run's losses depend on, and how it is cut; ValueError if it cannot be.

    pp: pipeline ranks; 1 is the serial run. schedule: a name in `families.SCHEDULES`; n_chunks:
    stages per rank, where the schedule leaves that open, None is 2.
    n_samples: samples in a batch, of n_tokens bytes each; corpus: a file, or None for the standard
    library's sources. device_clock_ms: emulates devices on which a forward takes so long.
    """

    pp: int = 2
    schedule: str = "1f1b"
    n_chunks: int | None = None
    n_microbatches: int = 8
    n_samples: int = 16
    learning_rate: float = 1e-3
    clip_norm: float = 1.0
    seed: int = 0
    corpus: str | None = None
    device_clock_ms: float | None = None
    model: GPTConfig = field(default_factory=lambda: GPTConfig(n_positions=64))

    def __post_init__(self) -> None:
        counts = ("pp", "n_microbatches", "n_samples")
        require_at_least(1, **{name: getattr(self, name) for name in counts})
        require_at_least(0, seed=self.seed)
        n_stages = 1 + max(action.stage for actions in self.make_schedule() for action in actions)
        if self.n_microbatches > self.n_samples:
            raise ValueError(
                f"{self.n_samples} samples cannot be split into {self.n_microbatches} "
                f"micro-batches; give {self.n_samples} micro-batches or fewer, or more samples"
            )
        if n_stages > (n_layers := self.model.n_layers):
            n_chunks = n_stages // self.pp
            raise ValueError(
                f"pp={self.pp} with n_layers={n_layers}"
                + f" and {n_chunks} stages per rank" * (n_chunks > 1)
                + f": a stage would have no layer; give pp <= {n_layers // n_chunks} "
                f"or n_layers >= {n_stages}"
            )
        for name in ("learning_rate", "clip_norm", "device_clock_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LARGEST:
                raise ValueError(
                    f"{name}={value!r} is out of range; give a number above 0, up to {LARGEST:g}"
                )
        if self.model.vocab_size < BYTES:
            raise ValueError(f"vocab_size={self.model.vocab_size}: a byte needs {BYTES}")

    @property
    def n_tokens(self) -> int:
        """Bytes in a sample."""
        return self.model.n_positions

    @property
    def costs(self) -> Costs | None:
        """Of the emulated devices, backward twice the forward; None for real ones."""
        if self.device_clock_ms is None:
            return None
        return Costs(self.device_clock_ms / 1000, 2 * self.device_clock_ms / 1000)

    def require_memory(self, n_bytes: int) -> None:
        """Nothing; ValueError when parameters and batch alone need more than `n_bytes`.

        float32 parameters, gradients and AdamW's two moments; biases and activations add to it.
        """
        model = self.model
        block = model.d_model * (4 * model.d_model + 2 * model.ffn_width)
        ends = model.d_model * (2 * model.vocab_size + model.n_positions)
        n_parameters = model.n_layers * block + ends
        needed = 4 * 4 * n_parameters + 2 * 8 * self.n_samples * self.n_tokens
        if needed > n_bytes:
            raise ValueError(
                f"n_layers={model.n_layers} and d_model={model.d_model} make {n_parameters:,} "
                f"parameters, which need {needed // 10**6:,} MB with AdamW's state and a batch of "
                f"{self.n_samples * self.n_tokens:,} bytes of text; this machine has "
                f"{n_bytes // 10**6:,} MB: give a smaller model or batch"
            )

    def make_schedule(self) -> Schedule:
        """The schedule as a list."""
        return make_schedule(self.schedule, self.pp, self.n_microbatches, self.n_chunks)

    def load_corpus(self) -> Corpus:
        """The text, long enough for one sample; ValueError otherwise."""
        corpus = load_corpus(None if self.corpus is None else Path(self.corpus))
        corpus.batch(0, 1, self.n_tokens)
        return corpus


@dataclass(frozen=True)
class Plan:
    """How long a run trains, and what it keeps: the losses do not depend on it.

    folder: takes metrics.jsonl, and a checkpoint every `save_every` steps and at the end; None
    keeps nothing.
    """

    n_steps: int = 200
    save_every: int = 50
    folder: Path | None = None

    def __post_init__(self) -> None:
        require_at_least(1, n_steps=self.n_steps, save_every=self.save_every)

    @property
    def checkpoints(self) -> Path | None:
        """The folder of the checkpoints."""
        return None if self.folder is None else self.folder / CHECKPOINTS

    def saves(self, step: int) -> bool:
        """Whether there is a checkpoint after this step."""
        return self.folder is not None and (step == self.n_steps or step % self.save_every == 0)


def about_run(config: TrainConfig, plan: Plan, digest: str, losses: list[float]) -> dict[str, Any]:
    """What a checkpoint says of its run. The text counts by its digest, wherever it lies.

    losses: of all steps so far, since a killed run may have saved a step and not told of it.
    """
    return {
        "config": {**asdict(config), "corpus": digest},
        "corpus_file": config.corpus,
        "n_steps": plan.n_steps,
        "save_every": plan.save_every,
        "losses": losses,
    }


def run_of(checkpoint: Checkpoint) -> tuple[TrainConfig, Plan]:
    """The run that a checkpoint is of; ValueError where it says too little, or nonsense."""
    about = checkpoint.about
    try:
        words = {**about["config"], "corpus": about["corpus_file"]}
        if len(about["losses"]) != checkpoint.step:
            raise ValueError(f"{len(about['losses'])} losses of {checkpoint.step} steps")
        plan = Plan(about["n_steps"], about["save_every"], checkpoint.path.parents[1])
        return TrainConfig(**{**words, "model": GPTConfig(**words["model"])}), plan
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"checkpoint {checkpoint.path} is of no run that this version knows "
            f"({type(error).__name__}: {error}); start anew in another folder"
        ) from None


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
    trainer = Trainer(comm, config, config.make_schedule())
    corpus = config.load_corpus() if comm.rank == 0 else None  # has stage 0, which reads the batch
    losses: list[float] = []
    if resume is not None:
        trainer.load(resume.load(comm.rank))
        losses = list(resume.about["losses"])
    for step in range(len(losses) + 1, plan.n_steps + 1):
        result = trainer.run(corpus, step)
        norm = trainer.update(step)
        comm.report(StepReport(step, result, norm, time.perf_counter()))
        if not math.isfinite(result.loss):
            return  # on every rank alike; nothing is saved, and the ledger tells why
        losses.append(result.loss)
        if plan.checkpoints is not None and plan.saves(step):
            about = about_run(config, plan, corpus.digest, losses) if corpus else {}
            save_checkpoint(plan.checkpoints, comm, step, trainer.tensors(), about)


class Trainer:
    """This rank's stages, their optimiser, and the engine that fills their gradients."""

    def __init__(
        self, comm: Comm, config: TrainConfig, schedule: Schedule, loss: Loss = token_loss
    ) -> None:
        self.comm, self.config = comm, config
        owner = stage_to_rank(schedule)
        self.stages = {
            stage: build_stage(config.model, len(owner), stage, config.seed).to(comm.device)
            for stage, rank in owner.items()
            if rank == comm.rank
        }
        self.engine = PipelineEngine(
            schedule, comm, self.stages, loss, count_targets, costs=config.costs
        )

    @cached_property
    def optimiser(self) -> torch.optim.AdamW:
        """Made at first use: the first of a process takes torch a second."""
        parameters = [parameter for _, parameter in self.parameters()]
        return torch.optim.AdamW(parameters, lr=self.config.learning_rate)

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Every parameter of this rank with its name in the whole model."""
        for stage in self.stages.values():
            yield from stage.named_parameters()

    def run(self, corpus: Corpus | None, number: int) -> StepResult:
        """Forward and backward of step `number`, from 1 on; corpus: where stage 0 is, to read."""
        config, batch = self.config, None
        if corpus is not None:
            batch = corpus.batch(number, config.n_samples, config.n_tokens, config.seed)
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

        A sum per layer, added up in one order: it is the same however the model is cut.
        """
        n_layers = self.config.model.n_layers
        squares = torch.zeros(n_layers + 2, dtype=torch.float64, device=self.comm.device)
        gradients = {name: p.grad for name, p in self.parameters() if p.grad is not None}
        for name, gradient in gradients.items():
            squares[_layer(name, n_layers)] += gradient.double().square().sum()
        norm = math.sqrt(float(self.comm.all_reduce(squares).sum()))
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
