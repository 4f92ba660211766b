"""A batch as the engine takes it: two tensors that it splits, or one pair for each micro-batch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mpedu.pipeline.stages import Spec

# (inputs, targets), both [n_samples, ...], or a list of such pairs, which may differ in shape
Batch = tuple[Tensor, Tensor] | Sequence[tuple[Tensor, Tensor]]


def is_pair(batch: Any) -> bool:
    """Whether this is (inputs, targets), two tensors with an axis of samples."""
    return (
        isinstance(batch, (tuple, list))
        and len(batch) == 2
        and all(isinstance(part, Tensor) and part.dim() for part in batch)
    )


def batch_problem(batch: Any, n_microbatches: int) -> str:
    """Why a batch cannot be run, in a sentence; empty where it can."""
    if is_pair(batch):
        n_samples = len(batch[0])
        if unlike := _unlike("the batch", batch):
            return unlike
        if n_samples < n_microbatches:
            return (
                f"{n_samples} samples cannot be split into {n_microbatches} micro-batches; "
                "give at least as many samples as micro-batches"
            )
        return ""
    if not (isinstance(batch, (tuple, list)) and batch and all(map(is_pair, batch))):
        return (
            "the batch is not (inputs, targets), two tensors [n_samples, ...], nor a list of such "
            "pairs, one for each micro-batch; give one of them"
        )
    if len(batch) != n_microbatches:
        return (
            f"the batch has {len(batch)} micro-batches and the schedule {n_microbatches}; "
            "give one (inputs, targets) for each"
        )
    for number, pair in enumerate(batch):
        if unlike := _unlike(f"micro-batch {number}", pair):
            return unlike
        if not len(pair[0]):
            return f"micro-batch {number} has no samples; give at least one"
    dtypes = {str(targets.dtype).removeprefix("torch.") for _, targets in batch}
    if len(dtypes) > 1:
        return f"the micro-batches have targets of {' and '.join(sorted(dtypes))}; give one dtype"
    return ""


def _unlike(name: str, pair: tuple[Tensor, Tensor]) -> str:
    n_inputs, n_targets = map(len, pair)
    if n_inputs == n_targets:
        return ""
    return f"{name} has {n_inputs} inputs and {n_targets} targets; give one for each"


def microbatches(batch: Any, n_microbatches: int) -> tuple[list[Tensor], list[Tensor]]:
    """(inputs, targets) by micro-batch. Samples are taken in order, larger parts first."""
    if is_pair(batch):
        inputs, targets = (list(whole.tensor_split(n_microbatches)) for whole in batch)
        return inputs, targets
    return [pair[0] for pair in batch], [pair[1] for pair in batch]


def n_counted(batch: Any, count: Callable[[Tensor], int]) -> int:
    """How many targets count."""
    if is_pair(batch):
        return int(count(batch[1]))
    return sum(int(count(targets)) for _, targets in batch)


def flat_targets(batch: Any) -> Tensor:
    """All targets one after the other, [n_numbers] on the CPU, for the rank of the last stage."""
    if is_pair(batch):
        whole: Tensor = batch[1].detach().cpu().contiguous().view(-1)
        return whole
    return torch.cat([pair[1].detach().cpu().reshape(-1) for pair in batch])


def unflatten(flat: Tensor, specs: Sequence[Spec]) -> list[Tensor]:
    """What `flat_targets` has joined, by micro-batch."""
    parts = torch.split(flat, [spec.n_numbers for spec in specs])
    return [part.view(spec.shape) for part, spec in zip(parts, specs, strict=True)]
