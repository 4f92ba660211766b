"""What the ranks of the benchmark run: engines checked against one process, and timed in turns."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mpedu.bench.engines import Batch, Engine, Stages, Step, Task
from mpedu.bench.figures import HALVES, ONE_PROCESS, WHOLE_BACKWARD, Size
from mpedu.comm import Comm
from mpedu.deferred import WeightQueue, deferring, opened
from mpedu.memory import LiveBytes
from mpedu.model import GPTStage, count_targets, token_loss

N_WARM_UP = 2  # steps of each engine before one counts: in the first, ranks agree on shapes


class Lap(NamedTuple):
    """One step of an engine on one rank: its ends, and the CPU time of the process, in seconds."""

    start_s: float
    end_s: float
    cpu_s: float


Laps = dict[str, list[Lap]]


class Checked(NamedTuple):
    """On one rank, by engine: how far gradients are from one process's; by size, bytes at most."""

    differences: dict[str, float]
    peaks: dict[Size, dict[str, int]]


def alone(model: GPTStage, size: Size, batch: Batch) -> Step:
    """One process without an engine: the micro-batches one after the other."""
    n_targets = count_targets(batch[1])

    def step() -> None:
        parts = (whole.tensor_split(size.n_microbatches) for whole in batch)
        for inputs, targets in zip(*parts, strict=True):
            torch.autograd.backward(token_loss(model(inputs), targets) / n_targets)

    return step


def check(comm: Comm, task: Task, engines: Mapping[str, Engine]) -> Checked:
    """Gradients against those of one process, over all sizes, and what each engine holds at most.

    Of each parameter the largest difference over the largest entry, and of these the largest;
    infinite where there is no gradient, or no number in it. Bytes: of all tensors that an engine
    and a step of it make on this rank, gradients among them.
    """
    model, placed = task.model(comm), _placed(comm, task, engines)
    worst = dict.fromkeys(engines, 0.0)
    peaks: dict[Size, dict[str, int]] = {}
    for size in task.sizes:
        batch = task.batch(size, comm.device)
        peaks[size] = {ONE_PROCESS: _peak_bytes([model], partial(alone, model, size, batch))}
        right = dict(model.named_parameters())
        for name, engine in engines.items():
            stages = placed[engine.placement]
            peaks[size][name] = _peak_bytes(
                stages.values(), partial(engine.make, comm, stages, size, batch)
            )
            for stage in stages.values():
                for of, parameter in stage.named_parameters():
                    found = _difference(parameter.grad, right[of].grad)
                    worst[name] = max(worst[name], found)
    return Checked(worst, peaks)


def _peak_bytes(modules: Iterable[nn.Module], make: Callable[[], Step]) -> int:
    """Of the last of some steps; torch's first step may drop gradients it finds."""
    made = LiveBytes()
    with made:
        step = make()
        for _ in range(N_WARM_UP):
            for module in modules:
                module.zero_grad()
            made.peak_bytes = made.live_bytes
            step()
    return made.peak_bytes


def _placed(comm: Comm, task: Task, engines: Mapping[str, Engine]) -> dict[str, Stages]:
    """This rank's stages in every placement that is needed; engines of one placement share them."""
    return {name: task.stages(comm, name) for name in {e.placement for e in engines.values()}}


def _difference(gradient: Tensor | None, right: Tensor | None) -> float:
    if gradient is None or right is None:
        return math.inf
    found = float((gradient - right).abs().max() / right.abs().max())
    return math.inf if math.isnan(found) else found


def race(
    comm: Comm, task: Task, engines: Mapping[str, Engine], n_repetitions: int
) -> tuple[dict[Size, Laps], float]:
    """Every timed step on this rank, by size and engine; CPU seconds of it all.

    The engines take turns. Each repetition begins with the next of them, and every other one goes
    backwards, so that none always follows the same one. ONE_PROCESS, and a backward whole and in
    halves, run on rank 0 while the others wait. What is done goes to `comm.report`: (size, number
    of repetitions).
    """
    model, placed = task.model(comm), _placed(comm, task, engines)
    found: dict[Size, Laps] = {}
    for size in task.sizes:
        batch = task.batch(size, comm.device)
        steps = {
            name: engine.make(comm, placed[engine.placement], size, batch)
            for name, engine in engines.items()
        }
        steps |= _steps_alone(comm, model, size, batch)
        used: dict[str, list[GPTStage]] = {  # backwards by themselves add up, as in a step
            name: [*placed[engine.placement].values()] for name, engine in engines.items()
        } | {ONE_PROCESS: [model], WHOLE_BACKWARD: [], HALVES: []}
        laps: Laps = {name: [] for name in steps}
        for repetition in range(-N_WARM_UP, n_repetitions):
            for name in turns(list(steps), repetition):
                for module in used[name]:
                    module.zero_grad()
                lap = _timed(comm, steps[name])
                if repetition >= 0 and (comm.rank == 0 or name in engines):
                    laps[name].append(lap)
            if comm.rank == 0 and repetition >= 0:
                comm.report((size, repetition + 1))
        found[size] = laps
    return found, time.process_time()


def _timed(comm: Comm, step: Step) -> Lap:
    """One step that all ranks start together; on a GPU until it has done the work."""
    on_gpu = comm.device != "cpu"
    comm.barrier()
    if on_gpu:
        torch.cuda.synchronize()
    start_s, cpu_s = time.perf_counter(), time.process_time()
    result = step()
    if on_gpu:
        torch.cuda.synchronize()
    if isinstance(result, Lap):  # it has timed a part of itself
        return result
    return Lap(start_s, time.perf_counter(), time.process_time() - cpu_s)


def _steps_alone(comm: Comm, model: GPTStage, size: Size, batch: Batch) -> dict[str, Step]:
    """What rank 0 does by itself; nothing on the others."""
    if comm.rank:
        return dict.fromkeys((ONE_PROCESS, WHOLE_BACKWARD, HALVES), lambda: None)
    part = tuple(whole.tensor_split(size.n_microbatches)[0] for whole in batch)

    def backward(queue: WeightQueue | None) -> Lap:
        with deferring(queue):
            loss = token_loss(model(part[0]), part[1])
        return _timed_backward(comm, loss, queue)

    return {
        ONE_PROCESS: alone(model, size, batch),
        WHOLE_BACKWARD: lambda: backward(None),
        HALVES: lambda: backward(WeightQueue()),
    }


def _timed_backward(comm: Comm, loss: Tensor, queue: WeightQueue | None) -> Lap:
    """A backward of one micro-batch, with a queue in its two halves one after the other."""
    if comm.device != "cpu":
        torch.cuda.synchronize()
    start_s, cpu_s = time.perf_counter(), time.process_time()
    with opened(queue):
        torch.autograd.backward(loss)
    if queue is not None:
        queue.drain()
    if comm.device != "cpu":
        torch.cuda.synchronize()
    return Lap(start_s, time.perf_counter(), time.process_time() - cpu_s)


def turns(names: list[str], repetition: int) -> list[str]:
    """The order of the engines in a repetition."""
    first = repetition % len(names)
    order = names[first:] + names[:first]
    return order if repetition % 2 else order[::-1]
