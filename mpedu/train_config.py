"""What a training run is: its configuration, its plan, and what a checkpoint says of both."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from mpedu.checkpoint import Checkpoint
from mpedu.corpus import Corpus, load_corpus
from mpedu.cut import EVEN, cut_layers
from mpedu.families import make_schedule
from mpedu.faults import require_at_least
from mpedu.model import GPTConfig
from mpedu.ranks.board import MOST_RANKS
from mpedu.recompute import checkpointed_runs
from mpedu.schedule import Schedule, stage_to_rank
from mpedu.simulate import Costs

BYTES = 256  # a byte is a token
DTYPES = ("float32", "float64")
LARGEST = 1e30  # of a rate: float32 holds it and what AdamW makes of it
CHECKPOINTS = "checkpoints"  # their place in the folder of a run


@dataclass(frozen=True)
class TrainConfig:
    """What a training run's losses depend on, and how it is cut; ValueError if it cannot be.

    pp: pipeline ranks; dp: data ranks, which share each batch out as evenly as can be, and each run
    a pipeline on their part, in n_microbatches. 1 and 1 is the serial run. Dropout follows from the
    micro-batch: with it, dp ranks train as one with dp * n_microbatches of the same samples.
    schedule: a name in `families.SCHEDULES`; n_chunks: stages per rank, where the schedule leaves
    that open, None is 2. cut: blocks of each stage, as (3, 3, 2), or EVEN, which that is. dtype: of
    parameters and activations, a name in DTYPES. checkpoint: what backward runs again, see
    `checkpointed_runs`.
    n_samples: samples in a batch, of n_tokens bytes each; corpus: a file, or None for the standard
    library's sources. device_clock_ms: emulates devices on which a forward takes so long.
    """

    pp: int = 2
    dp: int = 1
    schedule: str = "1f1b"
    n_chunks: int | None = None
    cut: str | tuple[int, ...] = EVEN
    n_microbatches: int = 8
    n_samples: int = 16
    learning_rate: float = 1e-3
    clip_norm: float = 1.0
    seed: int = 0
    dtype: str = "float32"
    checkpoint: str | int = "none"
    corpus: str | None = None
    device_clock_ms: float | None = None
    model: GPTConfig = field(default_factory=lambda: GPTConfig(n_positions=64))

    def __post_init__(self) -> None:
        counts = ("pp", "dp", "n_microbatches", "n_samples")
        require_at_least(1, **{name: getattr(self, name) for name in counts})
        require_at_least(0, seed=self.seed)
        if self.n_ranks > MOST_RANKS:
            raise ValueError(
                f"pp={self.pp} with dp={self.dp}: {self.n_ranks} ranks are too many for one "
                f"machine; give at most {MOST_RANKS}"
            )
        n_stages = len(stage_to_rank(self.make_schedule()))
        if self.n_microbatches > (n_each := self.n_samples // self.dp):
            shared = f" over dp={self.dp} data ranks" * (self.dp > 1)
            fewer = f"n_microbatches <= {n_each}" if n_each else f"dp <= {self.n_samples}"
            raise ValueError(
                f"{self.n_samples} samples{shared} cannot be split into {self.n_microbatches} "
                f"micro-batches; give {fewer}, or n_samples >= {self.dp * self.n_microbatches}"
            )
        if n_stages > (n_layers := self.model.n_layers):
            n_chunks = n_stages // self.pp
            raise ValueError(
                f"pp={self.pp} with n_layers={n_layers}"
                + f" and {n_chunks} stages per rank" * (n_chunks > 1)
                + f": a stage would have no layer; give pp <= {n_layers // n_chunks} "
                f"or n_layers >= {n_stages}"
            )
        layers = cut_layers(n_layers, n_stages, self.cut)
        is_even = layers == cut_layers(n_layers, n_stages)  # one name for one cut
        object.__setattr__(self, "cut", EVEN if is_even else tuple(map(len, layers)))
        for name in ("learning_rate", "clip_norm", "device_clock_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LARGEST:
                raise ValueError(
                    f"{name}={value!r} is out of range; give a number above 0, up to {LARGEST:g}"
                )
        checkpointed_runs(self.checkpoint, n_layers)
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is unknown; choose {' or '.join(DTYPES)}")
        if self.model.vocab_size < BYTES:
            raise ValueError(f"vocab_size={self.model.vocab_size}: a byte needs {BYTES}")

    @property
    def n_ranks(self) -> int:
        """All of them."""
        return self.pp * self.dp

    @property
    def torch_dtype(self) -> torch.dtype:
        """Of parameters and activations."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

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

    @property
    def n_blocks(self) -> list[int]:
        """Of each stage."""
        n_stages = len(stage_to_rank(self.make_schedule()))
        return [len(layers) for layers in cut_layers(self.model.n_layers, n_stages, self.cut)]

    def require_memory(self, n_bytes: int) -> None:
        """Nothing; ValueError when parameters and batch alone need more than `n_bytes`.

        Parameters, gradients and AdamW's two moments on every data rank; biases and activations
        add to it.
        """
        model = self.model
        block = model.d_model * (4 * model.d_model + 2 * model.ffn_width)
        n_tables = 1 if model.tied else 2
        ends = model.d_model * (n_tables * model.vocab_size + model.n_positions)
        n_parameters = model.n_layers * block + ends
        each = 4 * self.torch_dtype.itemsize * n_parameters
        needed = self.dp * each + 2 * 8 * self.n_samples * self.n_tokens
        if needed > n_bytes:
            times = f" {self.dp} times" * (self.dp > 1)
            raise ValueError(
                f"n_layers={model.n_layers} and d_model={model.d_model} make {n_parameters:,} "
                f"parameters, which{times} need {needed // 10**6:,} MB with AdamW's state and a "
                f"batch of {self.n_samples * self.n_tokens:,} bytes of text; this machine has "
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
