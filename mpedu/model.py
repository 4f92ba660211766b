"""A small GPT cut into pipeline stages: every cut has the same parameters, names and outputs."""

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from mpedu.cut import layers_of_stage
from mpedu.deferred import Linear, linear
from mpedu.faults import require_at_least
from mpedu.keyed import Key, dropout, keyed_generator, require_dropout
from mpedu.recompute import checkpointed_runs

TOKENS = "token_embedding.weight"  # the parameter that a tied head uses too
IGNORE = -100  # a target that has no loss; torch's own default


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a small GPT; ValueError where they do not fit. `d_ff` None is 4 * d_model.

    tied: the head uses the token embedding's weight (Press and Wolf 2017) instead of its own.
    """

    vocab_size: int = 256
    n_layers: int = 4
    d_model: int = 128
    n_heads: int = 4
    n_positions: int = 128
    d_ff: int | None = None
    dropout: float = 0.0
    tied: bool = False

    def __post_init__(self) -> None:
        counts = ("vocab_size", "n_layers", "d_model", "n_heads", "n_positions", "ffn_width")
        require_at_least(1, **{name: getattr(self, name) for name in counts})
        require_dropout(self.dropout)
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model={self.d_model} is not divisible by n_heads={self.n_heads}; "
                "every head takes the same number of columns"
            )

    @property
    def ffn_width(self) -> int:
        """Columns inside the feed-forward layer: `d_ff`, or 4 * d_model where that is None."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff


class Attention(nn.Module):
    """Causal self-attention of several heads; [samples, tokens, d_model] to the same."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.qkv = Linear(config.d_model, 3 * config.d_model)
        self.out = Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Each token's mix of itself and the tokens before it; [samples, tokens, d_model]."""
        n_samples, n_tokens, _ = x.shape
        query, key, value = (
            part.view(n_samples, n_tokens, self.n_heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        y: Tensor = self.out(mixed.transpose(1, 2).reshape(x.shape))
        return y


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them; [samples, tokens, d_model] to the same."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.up = Linear(config.d_model, config.ffn_width)
        self.down = Linear(config.ffn_width, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Every token for itself; [samples, tokens, d_model]."""
        y: Tensor = self.down(F.gelu(self.up(x)))
        return y


class Block(nn.Module):
    """Attention and feed-forward, each added to its input and normalised before (pre-LN)."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.dropout = config.dropout
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.attention = Attention(config)
        self.ffn_norm = nn.LayerNorm(config.d_model)
        self.ffn = FeedForward(config)

    def forward(self, x: Tensor, key: Key | None) -> Tensor:
        """[samples, tokens, d_model] to the same; `key` draws the dropout, None is without."""
        change = self.attention(self.attention_norm(x))
        x = x + dropout(change, self.dropout, key, f"{self.layer}.attention")
        change = self.ffn(self.ffn_norm(x))
        return x + dropout(change, self.dropout, key, f"{self.layer}.ffn")


class GPTStage(nn.Module):
    """One pipeline stage of a GPT: a run of blocks; the first embeds, the last gives logits.

    Parameters carry the names of the whole model ("blocks.3.ffn.up.weight") in every cut; a tied
    head has a copy of the token embedding, under that name, where it is not in stage 0.
    Build it with `build_stage`, which gives every cut the same initial values.
    checkpoint: what is held for backward and what is run again, see `checkpointed_runs`; outputs
    and gradients do not depend on it, bit for bit.
    layers: its blocks, None for those of `layers_of_stage`.
    """

    def __init__(
        self,
        config: GPTConfig,
        n_stages: int,
        stage: int,
        checkpoint: str | int = "none",
        layers: range | None = None,
    ) -> None:
        super().__init__()
        self.config, self.n_stages, self.stage = config, n_stages, stage
        if layers is None:
            layers = layers_of_stage(config.n_layers, n_stages, stage)
        self.checkpoint = checkpoint
        names = list(map(str, layers))
        self._runs = [names[r.start : r.stop] for r in checkpointed_runs(checkpoint, len(names))]
        if self.is_first or (self.is_last and config.tied):
            self.token_embedding = _embedding(config.vocab_size, config.d_model)
        if self.is_first:
            self.position_embedding = _embedding(config.n_positions, config.d_model)
        self.blocks = nn.ModuleDict({str(layer): Block(config, layer) for layer in layers})
        if self.is_last:
            self.final_norm = nn.LayerNorm(config.d_model)
        if self.is_last and not config.tied:
            self.head = Linear(config.d_model, config.vocab_size, bias=False)

    @property
    def is_first(self) -> bool:
        """Whether this stage takes token ids."""
        return self.stage == 0

    @property
    def is_last(self) -> bool:
        """Whether this stage gives logits."""
        return self.stage == self.n_stages - 1

    def forward(self, x: Tensor, key: Key | None = None) -> Tensor:
        """[samples, tokens, d_model], contiguous; on the last stage [samples, tokens, vocab_size].

        x:   token ids, int64 [samples, tokens], on stage 0; elsewhere [samples, tokens, d_model]
        key: draws the dropout, in training mode; None is without
        ValueError where `x` is of another shape or type, or longer than `n_positions`.
        """
        self._require_input(x)
        if not self.training:
            key = None
        if self.checkpoint == "stage":
            return _run_again(self._run, x, key)
        return self._run(x, key)

    def _run(self, x: Tensor, key: Key | None) -> Tensor:
        if self.is_first:
            x = self.token_embedding(x) + self.position_embedding.weight[: x.shape[1]]
        if self.checkpoint in ("none", "stage"):
            x = self._run_blocks(x, key, self.blocks)
        else:
            for names in self._runs:
                x = _run_again(self._run_blocks, x, key, names)
        return self._logits(self.final_norm(x)) if self.is_last else x

    def _run_blocks(self, x: Tensor, key: Key | None, names: Iterable[str]) -> Tensor:
        for name in names:
            x = self.blocks[name](x, key)
        return x

    def _logits(self, x: Tensor) -> Tensor:
        if self.config.tied:
            # where the stage embeds too, the weight has one gradient, and I must have all of it
            multiply = F.linear if self.is_first else linear
            return multiply(x, self.token_embedding.weight)
        y: Tensor = self.head(x)
        return y

    def _require_input(self, x: Tensor) -> None:
        d_model, n_positions = self.config.d_model, self.config.n_positions
        if self.is_first:
            fits, takes = x.dim() == 2 and x.dtype == torch.int64, "int64 [samples, tokens]"
        else:
            fits = x.dim() == 3 and x.shape[-1] == d_model and x.is_floating_point()
            takes = f"float [samples, tokens, {d_model}]"
        if not fits:
            raise ValueError(f"stage {self.stage} got {x.dtype} {list(x.shape)}; give {takes}")
        # a single position would be broadcast over all tokens without a word
        if x.shape[1] > n_positions:
            raise ValueError(
                f"{x.shape[1]} tokens per sample with n_positions={n_positions}; "
                f"give at most {n_positions} tokens or a larger n_positions"
            )


def _run_again(function: Callable[..., Tensor], x: Tensor, *arguments: Any) -> Tensor:
    """function(x, *arguments), of which x alone is held for backward, which runs it again.

    Dropout by key is the same again; torch's own random numbers would not be.
    """
    options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
    y: Tensor = torch_checkpoint(function, x, *arguments, **options)
    return y


def _embedding(n_rows: int, d_model: int) -> nn.Embedding:
    # drawn by `build_stage`: torch's own draw would load half of torch on the meta device
    return nn.Embedding(n_rows, d_model, _weight=torch.empty(n_rows, d_model))


def build_stage(
    config: GPTConfig,
    n_stages: int,
    stage: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    checkpoint: str | int = "none",
    layers: range | None = None,
) -> GPTStage:
    """Stage `stage` of `n_stages` on the CPU; a parameter's values follow from seed and name alone.

    GPT-2's rule (Radford et al. 2019, section 2.3): normal with deviation 0.02, divided by
    sqrt(2 * n_layers) where a layer adds to the residual; biases 0, norms 1. Drawn in float32,
    then cast. torch's global random state is left as it was. Built on the meta device: no other
    stage is ever in memory, and of this one no more than itself and the parameter being drawn.
    checkpoint, layers: of `GPTStage`. ValueError of `layers_of_stage` and `checkpointed_runs`.
    """
    if checkpoint != "none":
        importlib.import_module("torch._dynamo")  # a second or two, or the first forward takes them
    with torch.device("meta"):
        built = GPTStage(config, n_stages, stage, checkpoint, layers)
    values = {
        name: _initial(config, seed, name, parameter.shape).to(dtype)
        for name, parameter in built.named_parameters()
    }
    built.load_state_dict(values, assign=True)
    return built


def _initial(config: GPTConfig, seed: int, name: str, shape: torch.Size) -> Tensor:
    if len(shape) == 1:
        return torch.zeros(shape) if name.endswith("bias") else torch.ones(shape)
    is_residual = name.endswith(("out.weight", "down.weight"))
    std = 0.02 / math.sqrt(2 * config.n_layers) if is_residual else 0.02
    return torch.empty(shape).normal_(std=std, generator=keyed_generator(seed, "init", name))


def tied_stages(config: GPTConfig, n_stages: int) -> dict[str, tuple[int, ...]]:
    """The stages that hold a copy of a parameter, by its name; none where nothing is tied."""
    return {TOKENS: (0, n_stages - 1)} if config.tied and n_stages > 1 else {}


def share_tied(stages: Mapping[int, GPTStage]) -> None:
    """Makes one copy of a tied weight whose stages are all among these, of one rank."""
    first, last = min(stages), max(stages)
    head = stages[last]
    if head.config.tied and first == 0 and head.is_last:
        head.token_embedding = stages[first].token_embedding


def token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy in nats, summed over the targets that are not IGNORE; a scalar.

    logits: [samples, tokens, vocab_size]
    targets: int64 [samples, tokens]
    A sum, so that micro-batches of any size add up and are divided once by `count_targets`.
    """
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="sum"
    )


def count_targets(targets: Tensor) -> int:
    """Targets that have a loss: those that are not IGNORE."""
    return int((targets != IGNORE).sum())
