"""A small GPT cut into pipeline stages: every cut has the same parameters, names and outputs."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mpedu.deferred import Linear
from mpedu.faults import require_at_least
from mpedu.keyed import Key, dropout, keyed_generator, require_dropout

IGNORE = -100  # a target that has no loss; torch's own default


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a small GPT; ValueError where they do not fit. `d_ff` None is 4 * d_model."""

    vocab_size: int = 256
    n_layers: int = 4
    d_model: int = 128
    n_heads: int = 4
    n_positions: int = 128
    d_ff: int | None = None
    dropout: float = 0.0

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


def layers_of_stage(n_layers: int, n_stages: int, stage: int) -> range:
    """The blocks of `stage`: consecutive, their counts differ by at most 1, larger ones first.

    The last stage has the head to compute besides its blocks, so it takes no block too many.
    """
    require_at_least(1, n_layers=n_layers, n_stages=n_stages)
    require_at_least(0, stage=stage)
    if n_stages > n_layers:
        raise ValueError(
            f"n_stages={n_stages} with n_layers={n_layers}: a stage would have no layer; "
            f"give n_stages <= {n_layers} or n_layers >= {n_stages}"
        )
    if stage >= n_stages:
        raise ValueError(f"stage={stage} does not exist: n_stages={n_stages} is 0..{n_stages - 1}")
    n_each, n_larger = divmod(n_layers, n_stages)
    start = stage * n_each + min(stage, n_larger)
    return range(start, start + n_each + (stage < n_larger))


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

    Parameters carry the names of the whole model ("blocks.3.ffn.up.weight") in every cut.
    Build it with `build_stage`, which gives every cut the same initial values.
    """

    def __init__(self, config: GPTConfig, n_stages: int, stage: int) -> None:
        super().__init__()
        self.config, self.n_stages, self.stage = config, n_stages, stage
        layers = layers_of_stage(config.n_layers, n_stages, stage)
        if self.is_first:
            self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
            self.position_embedding = nn.Embedding(config.n_positions, config.d_model)
        self.blocks = nn.ModuleDict({str(layer): Block(config, layer) for layer in layers})
        if self.is_last:
            self.final_norm = nn.LayerNorm(config.d_model)
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
        if self.is_first:
            x = self.token_embedding(x) + self.position_embedding.weight[: x.shape[1]]
        for block in self.blocks.values():
            x = block(x, key)
        return self.head(self.final_norm(x)) if self.is_last else x

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


def build_stage(
    config: GPTConfig,
    n_stages: int,
    stage: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> GPTStage:
    """Stage `stage` of `n_stages` on the CPU; a parameter's values follow from seed and name alone.

    GPT-2's rule (Radford et al. 2019, section 2.3): normal with deviation 0.02, divided by
    sqrt(2 * n_layers) where a layer adds to the residual; biases 0, norms 1. Drawn in float32,
    then cast. torch's global random state is left as it was. ValueError of `layers_of_stage`.
    """
    with torch.random.fork_rng(devices=[]):
        built = GPTStage(config, n_stages, stage)
    residual_std = 0.02 / math.sqrt(2 * config.n_layers)
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            std = residual_std if name.endswith(("out.weight", "down.weight")) else 0.02
            nn.init.normal_(parameter, std=std, generator=keyed_generator(seed, "init", name))
    return built.to(dtype)


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
