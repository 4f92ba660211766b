"""Bytes of activations that our GPT holds for backward: of a stage, and of a rank under a schedule.

GPipe's O(N + L/K * N/M) with the constants of `mpedu.model`, counted in storages as torch saves
them, each once: exact on the CPU for what is held between actions (a GPU's attention saves a few
numbers per token more). Not counted: parameters, the batch, messages that wait, and what lives
within one layer's forward or backward only, such as the gradient on its way.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mpedu.calls import even_sizes
from mpedu.cut import layers_of_stage
from mpedu.faults import require_at_least
from mpedu.recompute import checkpointed_runs
from mpedu.schedule import Action, Schedule, actions_of


class Sizes(Protocol):
    """What counts of a model; a `mpedu.model.GPTConfig` is one."""

    @property
    def vocab_size(self) -> int:
        """Logits of a token."""

    @property
    def n_layers(self) -> int:
        """Blocks in all."""

    @property
    def d_model(self) -> int:
        """Numbers of a token between two layers."""

    @property
    def n_heads(self) -> int:
        """Heads of an attention."""

    @property
    def ffn_width(self) -> int:
        """Numbers of a token inside a feed-forward layer."""

    @property
    def dropout(self) -> float:
        """The share that is dropped; 0 draws no masks."""

    @property
    def tied(self) -> bool:
        """Whether the head uses the token embedding's weight."""


def block_numbers(config: Sizes) -> dict[str, int]:
    """Numbers per token that one block's forward leaves, by component.

    residual: the inputs of both norms. norms: their outputs, mean and deviation. attention: query,
    key and value, their mix, and a logarithm per head. ffn: before and after the GELU.
    8 d_model + 2 d_ff + n_heads + 4, or 16 times the block's input and a little more; dropout adds
    two masks. So a checkpoint before every block holds less than one every sqrt(n) blocks, a rule
    for layers that leave no more than their input, up to 256 of them.
    """
    d, f = config.d_model, config.ffn_width
    return {
        "residual": 2 * d,
        "norms": 2 * d + 4,
        "attention": 4 * d + config.n_heads,
        "ffn": 2 * f,
        "dropout": 2 * d if config.dropout else 0,
    }


def owed_numbers(config: Sizes) -> int:
    """Numbers per token that one block's weight products wait with between I and W.

    The inputs of the four linear layers and the gradients of their outputs: 8 d_model + 2 d_ff. So
    I frees next to nothing of a block, and checkpoints save memory until I only.
    """
    return 8 * config.d_model + 2 * config.ffn_width


def activation_bytes(
    config: Sizes,
    n_stages: int,
    stage: int,
    n_tokens: int,
    checkpoint: str | int = "none",
    itemsize: int = 4,
    layers: range | None = None,
) -> dict[str, int]:
    """Bytes that a stage's forward leaves for its backward, by component.

    n_tokens: of the micro-batch, samples times tokens. checkpoint: see `checkpointed_runs`.
    layers: the stage's blocks, None for those of `layers_of_stage`.
    Components of `block_numbers`, of the last stage's final norm too; checkpoints: inputs that are
    held to run the rest again; loss: the last stage's logarithms of probabilities, and one number
    per micro-batch.
    """
    require_at_least(1, n_tokens=n_tokens, itemsize=itemsize)
    own = _Stage.of(config, n_stages, stage, checkpoint, layers)
    numbers = {name: n_tokens * n for name, n in own.held_numbers().items()}
    numbers["loss"] += own.is_last
    return {name: itemsize * n for name, n in numbers.items()}


def held_activation_bytes(
    config: Sizes,
    schedule: Schedule,
    n_samples: int,
    n_tokens: int,
    checkpoint: str | int = "none",
    itemsize: int = 4,
    layers: Sequence[range] | None = None,
) -> list[list[int]]:
    """What each rank holds after each action of its list, in bytes.

    n_samples: of the batch, cut into the schedule's micro-batches; n_tokens: of a sample. layers:
    the blocks of every stage, None for those of `layers_of_stage`. After I the weight products hold
    what they need until W.
    """
    walked = _walks(config, schedule, n_samples, n_tokens, checkpoint, itemsize, layers)
    return [[step.after for step in steps] for steps in walked]


def peak_activation_bytes(
    config: Sizes,
    schedule: Schedule,
    n_samples: int,
    n_tokens: int,
    checkpoint: str | int = "none",
    itemsize: int = 4,
    layers: Sequence[range] | None = None,
) -> list[int]:
    """The most each rank holds, in bytes, also within the backward that runs segments again.

    Arguments as of `held_activation_bytes`.
    """
    walked = _walks(config, schedule, n_samples, n_tokens, checkpoint, itemsize, layers)
    return [max((step.peak for step in steps), default=0) for steps in walked]


class _Walked(NamedTuple):
    """Bytes held at most while an action runs, and after it."""

    peak: int
    after: int


class _Stage(NamedTuple):
    """A stage in numbers per token. end: what stands behind its blocks, of the last stage only."""

    block: dict[str, int]
    owed: int  # of a block, between I and W
    end: dict[str, int]
    end_owed: int
    d_model: int
    n_blocks: int
    runs: list[range]
    whole: bool  # the checkpoint is the stage's input
    is_first: bool
    is_last: bool

    @classmethod
    def of(
        cls,
        config: Sizes,
        n_stages: int,
        stage: int,
        checkpoint: str | int,
        layers: range | None = None,
    ) -> "_Stage":
        d, is_last = config.d_model, stage == n_stages - 1
        n_blocks = len(layers or layers_of_stage(config.n_layers, n_stages, stage))
        return cls(
            block_numbers(config),
            owed_numbers(config),
            {"residual": d, "norms": d + 2, "loss": config.vocab_size} if is_last else {},
            # a head tied to its own stage's embedding leaves nothing for W
            d + config.vocab_size if is_last and not (config.tied and stage == 0) else 0,
            d,
            n_blocks,
            checkpointed_runs(checkpoint, n_blocks),
            checkpoint == "stage",
            stage == 0,
            is_last,
        )

    def held_numbers(self) -> dict[str, int]:
        """What the forward leaves, by component."""
        n_blocks = 0 if self.runs else self.n_blocks
        held = {name: n_blocks * n for name, n in self.block.items()} | {"loss": 0}
        for name, n in self.end.items():
            if name == "loss" or not self.whole:
                held[name] += n
        return {"checkpoints": self.d_model * self._n_checkpoints(), **held}

    def _n_checkpoints(self) -> int:
        """The first stage's input is token ids, of the batch."""
        return 0 if self.whole and self.is_first else len(self.runs)

    def more_numbers(self, split: bool) -> int:
        """What a backward that runs segments again holds at most, beyond what the forward left.

        From the last segment to the first: those behind it have let go of their checkpoints, and
        where the backward is split they owe their weight products. Its own checkpoint is the input
        of its first block.
        """
        block, end = sum(self.block.values()), sum(self.end.values())
        end_owed = self.end_owed if split else 0
        if self.whole:
            loss = self.end.get("loss", 0)  # let go of before the stage is run again
            shared = 0 if self.is_first else self.d_model
            return self.n_blocks * block + max(end - loss, end_owed) - shared - loss
        most, more = 0, end_owed - end
        for run in reversed(self.runs):
            most = max(most, more + len(run) * block - self.d_model)
            more += (len(run) * self.owed if split else 0) - self.d_model
        return most

    def all_owed(self) -> int:
        """What the weight products hold after I."""
        return self.n_blocks * self.owed + self.end_owed


def _walks(
    config: Sizes,
    schedule: Schedule,
    n_samples: int,
    n_tokens: int,
    checkpoint: str | int,
    itemsize: int,
    layers: Sequence[range] | None,
) -> list[list[_Walked]]:
    require_at_least(1, n_samples=n_samples, n_tokens=n_tokens, itemsize=itemsize)
    acts = [action for _, action in actions_of(schedule)]
    n_stages = 1 + max(action.stage for action in acts)
    n_microbatches = 1 + max(action.microbatch for action in acts)
    cut: Sequence[range | None] = layers or [None] * n_stages
    stages = [
        _Stage.of(config, n_stages, number, checkpoint, own)
        for number, own in zip(range(n_stages), cut, strict=True)
    ]
    tokens = [n * n_tokens for n in even_sizes(n_samples, n_microbatches)]
    return [
        [_Walked(itemsize * peak, itemsize * after) for peak, after in _walk(own, stages, tokens)]
        for own in schedule
    ]


def _walk(
    actions: Sequence[Action], stages: Sequence[_Stage], tokens: Sequence[int]
) -> list[_Walked]:
    """One rank's list, in numbers."""
    held, walked = 0, []
    for kind, number, microbatch in actions:
        stage, n = stages[number], tokens[microbatch]
        left = n * sum(stage.held_numbers().values()) + stage.is_last
        before = held
        peak = before + (n * max(0, stage.more_numbers(kind == "I")) if kind in "BI" else 0)
        if kind == "F":
            held += left
        elif kind == "W":
            held -= n * stage.all_owed()
        else:
            held += (n * stage.all_owed() if kind == "I" else 0) - left
        walked.append(_Walked(max(peak, held), held))
    return walked
