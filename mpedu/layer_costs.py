"""What a layer costs on this machine, measured, so that stages can be cut evenly by time."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from mpedu.cut import balanced_layers
from mpedu.faults import require_at_least
from mpedu.model import GPTConfig, GPTStage, build_stage, token_loss


class LayerCosts(NamedTuple):
    """Seconds of a forward and a backward of one micro-batch; the head's with the loss.

    A block's are those of one that is run again for its backward, where blocks are.
    """

    embedding_s: float
    block_s: float
    head_s: float

    def cut(self, n_layers: int, n_stages: int) -> list[range]:
        """The blocks of each stage, for `build_stage`, such that the slowest is fastest."""
        costs = [self.block_s] * n_layers
        return balanced_layers(costs, n_stages, self.embedding_s, self.head_s)


def measure_layers(
    config: GPTConfig,
    n_samples: int,
    n_tokens: int | None = None,
    device: str = "cpu",
    n_repetitions: int = 15,
    dtype: torch.dtype = torch.float32,
    checkpoint: str | int = "none",
) -> LayerCosts:
    """What the parts of a model cost for a micro-batch of so many samples and tokens.

    Timed in turns, each at its fastest, on three stages of one block: the first has the embedding
    too, the last the head. n_tokens: None is `config.n_positions`. checkpoint: of `build_stage`.
    """
    require_at_least(1, n_samples=n_samples, n_repetitions=n_repetitions)
    shape = (n_samples, config.n_positions if n_tokens is None else n_tokens)
    small = replace(config, n_layers=3)
    stages = [
        build_stage(small, 3, number, dtype=dtype, checkpoint=checkpoint).to(device)
        for number in range(3)
    ]
    ids = torch.zeros(shape, dtype=torch.int64, device=device)
    x = torch.zeros((*shape, config.d_model), device=device, dtype=dtype, requires_grad=True)
    gradient = torch.zeros_like(x)

    def loss(logits: Tensor) -> None:
        torch.autograd.backward(token_loss(logits, ids))

    def middle(y: Tensor) -> None:
        torch.autograd.backward(y, gradient)

    runs = list(zip(stages, (ids, x, x), (middle, middle, loss), strict=True))
    times = [[_seconds(*run) for run in runs] for _ in range(n_repetitions + 1)][1:]
    first_s, block_s, last_s = (min(column) for column in zip(*times, strict=True))
    return LayerCosts(max(0.0, first_s - block_s), block_s, max(0.0, last_s - block_s))


def _seconds(stage: GPTStage, x: Tensor, backward: Callable[[Tensor], None]) -> float:
    if x.is_cuda:
        torch.cuda.synchronize()
    start_s = time.perf_counter()
    backward(stage(x))
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start_s
