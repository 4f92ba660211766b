"""Model and machine facts from `data/`, where every number stands with its source."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, NamedTuple

from mpedu.faults import require_at_least


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a dense decoder-only Transformer; ValueError where they do not fit.

    gated_ffn: three matrices instead of two (SwiGLU). biases: linear layers have biases and norms
    too (LayerNorm); without, norms have one weight per column (RMSNorm). learned_positions: a
    table [n_positions, d_model]. tied_embeddings: the output matrix is the input embedding.
    """

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    vocab_size: int
    n_positions: int
    gated_ffn: bool = False
    biases: bool = True
    learned_positions: bool = True
    tied_embeddings: bool = True

    def __post_init__(self) -> None:
        counts = (
            *("n_layers", "d_model", "n_heads", "n_kv_heads"),
            *("d_ff", "vocab_size", "n_positions"),
        )
        require_at_least(1, **{name: getattr(self, name) for name in counts})
        for whole, part in (("d_model", "n_heads"), ("n_heads", "n_kv_heads")):
            if getattr(self, whole) % getattr(self, part):
                raise ValueError(
                    f"{whole}={getattr(self, whole)} is not divisible by "
                    f"{part}={getattr(self, part)}; give a divisor"
                )

    @property
    def attention_parameters(self) -> int:
        """Of one layer: [d_model, d_model] for queries and output, less for grouped K and V."""
        d_kv = self.d_model // self.n_heads * self.n_kv_heads
        weights = 2 * self.d_model * (self.d_model + d_kv)
        return weights + self.biases * 2 * (self.d_model + d_kv)

    @property
    def ffn_parameters(self) -> int:
        """Of one layer: two matrices [d_model, d_ff], or three where gated."""
        n_inner = 1 + self.gated_ffn
        weights = (n_inner + 1) * self.d_model * self.d_ff
        return weights + self.biases * (n_inner * self.d_ff + self.d_model)

    @property
    def norm_parameters(self) -> int:
        """Of one norm; a layer has two, and one stands before the output."""
        return (1 + self.biases) * self.d_model

    @property
    def layer_parameters(self) -> int:
        """Of one layer: attention, feed-forward, two norms."""
        return self.attention_parameters + self.ffn_parameters + 2 * self.norm_parameters

    @property
    def vocabulary_parameters(self) -> int:
        """Of one matrix [vocab_size, d_model]."""
        return self.vocab_size * self.d_model

    @property
    def position_parameters(self) -> int:
        """Of the table of positions, 0 where none is learned."""
        return self.learned_positions * self.n_positions * self.d_model


class ParameterCount(NamedTuple):
    """Parameters of a model, and of it those that one token meets.

    active_without_embedding: less vocab_size * d_model once, also where the matrix is tied.
    components: by part; they sum to `total`.
    """

    total: int
    active: int
    active_without_embedding: int
    components: Mapping[str, int]


def count_parameters(config: ModelConfig) -> ParameterCount:
    """The parameters of a dense model, all of them active."""
    layers = config.n_layers
    components = {
        "embedding": config.vocabulary_parameters,
        "positions": config.position_parameters,
        "attention": layers * config.attention_parameters,
        "dense_ffn": layers * config.ffn_parameters,
        "norms": (2 * layers + 1) * config.norm_parameters,
        "output_head": 0 if config.tied_embeddings else config.vocabulary_parameters,
    }
    total = sum(components.values())
    return ParameterCount(total, total, total - config.vocabulary_parameters, components)


@dataclass(frozen=True)
class Hardware:
    """Published peaks of a device, and of the node and network around it.

    flops_per_s: dense, in bfloat16 (float16 where there is none). memory_bytes_per_s: of its own
    memory. link_bytes_per_s, latency_s: one way, to a device of the same node; between_...: its
    share of the network to other nodes. node_size: devices of a node.
    """

    name: str
    flops_per_s: float
    memory_bytes: int
    memory_bytes_per_s: float
    node_size: int
    link_bytes_per_s: float
    latency_s: float
    between_bytes_per_s: float
    between_latency_s: float


def model_names() -> list[str]:
    """The models that `load_model` knows, in alphabetical order."""
    return _names("models.toml")


def load_model(name: str) -> ModelConfig:
    """The model of that name, like "llama2-7b"; ValueError listing the known ones."""
    return ModelConfig(name, **_facts("models.toml", "model", name))


def hardware_names() -> list[str]:
    """The devices that `load_hardware` knows, in alphabetical order."""
    return _names("hardware.toml")


def load_hardware(name: str) -> Hardware:
    """The device of that name, like "a100-80gb"; ValueError listing the known ones."""
    facts = _facts("hardware.toml", "device", name)
    return Hardware(name, **facts | {"memory_bytes": int(facts["memory_bytes"])})


def _names(file: str) -> list[str]:
    return sorted(set(_tables(file)) - {"sources"})


def _facts(file: str, kind: str, name: str) -> dict[str, Any]:
    if name not in _names(file):
        raise ValueError(f"there is no {kind} {name!r}; known: {', '.join(_names(file))}")
    return {field: value for field, value in _tables(file)[name].items() if field != "source"}


@cache
def _tables(file: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(_path(file).read_text(encoding="utf-8"))


def _path(file: str) -> Path:
    """Beside the package in a checkout; where pip put it in an installation."""
    beside = Path(__file__).parents[1] / "data" / file
    if beside.is_file():
        return beside
    try:
        installed = files("mpedu") or []
    except PackageNotFoundError:
        installed = []
    for path in installed:
        if path.match(f"share/mpedu/{file}"):
            return Path(str(path.locate()))
    raise FileNotFoundError(
        f"{file} is neither in {beside.parent} nor installed with mpedu; "
        "use a complete checkout, or install the package again"
    )
