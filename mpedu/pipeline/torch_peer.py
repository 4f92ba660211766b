"""The same stages under torch's own engine, torch.distributed.pipelining: a peer to compare with.

Written as the lecture shows it: a `PipelineStage` for each stage, a schedule over them, and on each
step the rank of stage 0 calls `schedule.step(x)`, that of the last stage `schedule.step(target=y)`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mpedu.comm import Comm
from mpedu.distributed import ProcessComm

# The classes of torch that put stages on ranks, and how: one each, in turns, or down and up.
PLACEMENTS = {
    "ScheduleGPipe": "straight",
    "Schedule1F1B": "straight",
    "ScheduleLoopedBFS": "looped",
    "ScheduleInterleaved1F1B": "looped",
    "ScheduleInterleavedZeroBubble": "looped",
    "ScheduleZBVZeroBubble": "v",
    "ScheduleDualPipeV": "v",
}


def to_torch_pipelining(
    comm: Comm,
    stages: Mapping[int, nn.Module],
    schedule_class: str,
    n_microbatches: int,
    loss: Callable[[Tensor, Tensor], Tensor],
    count: Callable[[Tensor], int],
) -> Callable[[tuple[Tensor, Tensor]], float | None]:
    """A function that makes one step, called on every rank of `comm` with the whole batch.

    stages: this rank's, by number; each returns a tensor alone. schedule_class: a name in
    `PLACEMENTS`. loss and count are those of `PipelineEngine`: gradients of sum of losses / count
    add up in .grad, and the step gives the loss on the rank of the last stage, None elsewhere.
    It does no more than ours: the loss is divided instead of all gradients after the step, and
    outputs are not gathered. torch's first step, which finds the shapes, drops the .grad it meets.
    ValueError: a class that torch has not, stages elsewhere than the class puts them, a machine
    without process groups, numbers that torch refuses, and in a step micro-batches of unequal size.
    """
    placement = _placement(comm, stages, schedule_class)
    from torch.distributed import pipelining  # takes torch a second to load

    n_stages, divisor = comm.size * len(stages), 1
    group, device = _group(comm), torch.device(comm.device)
    parts = [
        pipelining.PipelineStage(stages[number], number, n_stages, device, group=group)
        for number in sorted(stages)
    ]
    schedule: Any = getattr(pipelining, schedule_class)(
        parts[0] if placement == "straight" else parts,
        n_microbatches,
        lambda y, targets: loss(y, targets) / divisor,
        scale_grads=False,
    )

    def step(batch: tuple[Tensor, Tensor]) -> float | None:
        nonlocal divisor
        inputs, targets = batch
        if len(inputs) % n_microbatches:
            raise ValueError(
                f"{len(inputs)} samples in {n_microbatches} micro-batches: torch needs them of one "
                f"size; give a multiple of {n_microbatches} samples"
            )
        given: dict[str, Any] = {}
        if n_stages - 1 in stages:
            divisor, given = count(targets), {"target": targets, "losses": []}
        schedule.step(*([inputs] if 0 in stages else []), **given, return_outputs=False)
        return float(sum(loss.detach() for loss in given["losses"])) if given else None

    return step


def _group(comm: Comm) -> Any:
    """The process group of these ranks; None is all of them."""
    if not isinstance(comm, ProcessComm):
        raise ValueError(
            f"torch.distributed.pipelining needs real ranks, and this is a {type(comm).__name__}; "
            'run it with machine="processes", or under torchrun'
        )
    return comm.process_group


def _placement(comm: Comm, stages: Mapping[int, nn.Module], schedule_class: str) -> str:
    """How the class puts stages on ranks; ValueError where this rank holds others."""
    if schedule_class not in PLACEMENTS:
        raise ValueError(
            f"schedule_class={schedule_class!r} is unknown; choose one of {', '.join(PLACEMENTS)}"
        )
    placement, last = PLACEMENTS[schedule_class], 2 * comm.size - 1
    due = {
        "straight": [comm.rank],
        "looped": [comm.rank + comm.size * chunk for chunk in range(len(stages))],
        "v": [comm.rank, last - comm.rank],
    }[placement]
    if sorted(stages) != due or not due:
        raise ValueError(
            f"rank {comm.rank} was given stages {sorted(stages)}; {schedule_class} puts stages "
            f"{due or [comm.rank]} there"
        )
    return placement
