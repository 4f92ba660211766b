"""Training a small GPT on a pipeline: what every rank runs, and what it tells of each step."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mpedu.checkpoint import Checkpoint, save_checkpoint
from mpedu.comm import Comm
from mpedu.corpus import Corpus, load_corpus
from mpedu.families import SCHEDULES
from mpedu.faults import require_at_least
from mpedu.model import GPTConfig, build_stage, count_targets, layers_of_stage, token_loss
from mpedu.pipeline import PipelineEngine, StepResult
from mpedu.schedule import Schedule, stage_to_rank
from mpedu.simulate import Costs, Span

Loss = Callable[[Tensor, Tensor], Tensor]
BYTES = 256  # a byte is a token
WARM_UP_STEPS = 10


@dataclass(frozen=True)
class TrainConfig:
    """What a training run's losses depend on, and how it is cut; ValueError if it cannot be.

    pp: pipeline ranks, one stage each; 1 is the serial run. schedule: a name in SCHEDULES.
    n_samples: samples in a batch, of n_tokens bytes each; corpus: a file, or None for the standard
    library's sources. forward_ms: emulates devices on which a micro-batch's forward takes so long.
    """

    pp: int = 2
    schedule: str = "1f1b"
    n_microbatches: int = 8
    n_samples: int = 16
    learning_rate: float = 1e-3
    clip_norm: float = 1.0
    seed: int = 0
    corpus: str | None = None
    forward_ms: float | None = None
    model: GPTConfig = field(default_factory=lambda: GPTConfig(n_positions=64))

    def __post_init__(self) -> None:
        counts = ("pp", "n_microbatches", "n_samples")
        require_at_least(1, **{name: getattr(self, name) for name in counts})
        if self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise ValueError(f"schedule={self.schedule!r} is unknown; choose one of {known}")
        if self.n_microbatches > self.n_samples:
            raise ValueError(
                f"{self.n_samples} samples cannot be split into {self.n_microbatches} "
                f"micro-batches; give --microbatches {self.n_samples} or fewer, or more --samples"
            )
        layers_of_stage(self.model.n_layers, self.pp, 0)
        for name in ("learning_rate", "clip_norm", "forward_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name}={value!r} is out of range; give a number above 0")
        if self.model.vocab_size < BYTES:
            raise ValueError(f"vocab_size={self.model.vocab_size}: a byte needs {BYTES}")

    @property
    def n_tokens(self) -> int:
        """Bytes in a sample."""
        return self.model.n_positions

    @property
    def costs(self) -> Costs | None:
        """Of the emulated devices, backward twice the forward; None for real ones."""
        if self.forward_ms is None:
            return None
        return Costs(self.forward_ms / 1000, 2 * self.forward_ms / 1000)

    def make_schedule(self) -> Schedule:
        """The schedule as a list."""
        return SCHEDULES[self.schedule](self.pp, self.n_microbatches)

    def load_corpus(self) -> Corpus:
        """The text, long enough for one sample; ValueError otherwise."""
        corpus = load_corpus(None if self.corpus is None else Path(self.corpus))
        corpus.batch(0, 1, self.n_tokens)
        return corpus

    def as_words(self) -> dict[str, Any]:
        """As plain data, for a file."""
        return asdict(self)

    @classmethod
    def from_words(cls, words: dict[str, Any]) -> "TrainConfig":
        """What `as_words` gave."""
        known = {name: words[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "model": GPTConfig(**words["model"])})


class StepReport(NamedTuple):
    """What one rank tells of one step; times are those of `time.perf_counter`."""

    rank: int
    step: int
    loss: float
    n_tokens: int
    gradient_norm: float
    peak_in_flight: int
    spans: list[Span]
    start_s: float
    end_s: float

    @classmethod
    def of(cls, rank: int, step: int, result: StepResult, norm: float) -> "StepReport":
        """The report on an engine's result."""
        peak = result.peak_in_flight
        when = (result.spans, result.start_s, result.end_s)
        return cls(rank, step, result.loss, result.n_tokens, norm, peak, *when)


def train_rank(
    comm: Comm,
    config: TrainConfig,
    n_steps: int,
    folder: Path | None,
    save_every: int,
    resume: Checkpoint | None,
) -> None:
    """One rank of a training run up to step `n_steps`; reports each step to its starter.

    folder: where checkpoints go, every `save_every` steps and at the end; None for none.
    """
    corpus = config.load_corpus()
    trainer = Trainer(comm, config, config.make_schedule())
    first = 1
    if resume is not None:
        trainer.load(resume.load(comm.rank))
        first = resume.step + 1
    about = {"config": config.as_words(), "corpus": corpus.digest}
    for step in range(first, n_steps + 1):
        batch = corpus.batch(step, config.n_samples, config.n_tokens, config.seed)
        result = trainer.engine.run(batch, config.seed, step)
        comm.report(StepReport.of(comm.rank, step, result, trainer.update(step)))
        if folder is not None and (step == n_steps or step % save_every == 0):
            save_checkpoint(folder, comm, step, trainer.tensors(), about)


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
        self.optimiser = torch.optim.AdamW(
            [parameter for _, parameter in self.parameters()], lr=config.learning_rate
        )

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Every parameter of this rank with its name in the whole model."""
        for stage in self.stages.values():
            yield from stage.named_parameters()

    def update(self, number: int) -> float:
        """The optimiser's step `number`, from 1 on, which uses the gradients up; their norm."""
        norm = self._clip()
        warm_up = min(1.0, number / WARM_UP_STEPS)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * warm_up
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    def _clip(self) -> float:
        """Scales all ranks' gradients so that their common norm is at most `clip_norm`; the norm.

        Summed stage by stage in float64, so that it hardly depends on how the model is cut.
        """
        gradients = [p.grad for _, p in self.parameters() if p.grad is not None]
        squares = torch.zeros((), dtype=torch.float64, device=self.comm.device)
        for gradient in gradients:
            squares += gradient.double().square().sum()
        norm = math.sqrt(float(self.comm.all_reduce(squares)))
        if norm > self.config.clip_norm:
            torch._foreach_mul_(gradients, self.config.clip_norm / norm)
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
            state = {
                key: tensors[f"adam.{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq")
            }
            on = {
                key: value if key == "step" else value.to(parameter.device)
                for key, value in state.items()
            }
            self.optimiser.state[parameter] = on
