"""The engines that `./course bench pipeline` times, and the rank programs that time and check them.

All of them work on the same stage, so that nothing differs but how they move data and wait.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mpedu.bench.figures import GOALS, ONE_PROCESS, Size
from mpedu.comm import Comm
from mpedu.families import gpipe, one_f_one_b
from mpedu.keyed import keyed_generator
from mpedu.model import GPTConfig, GPTStage, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import Schedule

MODEL = GPTConfig(vocab_size=512, n_layers=8, d_model=256, n_positions=64)
N_WARM_UP = 2  # steps of each engine before one counts: in the first, ranks agree on shapes
Batch = tuple[Tensor, Tensor]
Spans = dict[str, list[tuple[float, float]]]
Step = Callable[[], object]
Engine = Callable[[Comm, GPTStage, Size, Batch], Step]  # makes, on a rank, the step to be timed


@dataclass(frozen=True)
class Task:
    """What every engine has to do: a step of `config`, cut into `n_ranks` stages, at each size."""

    sizes: tuple[Size, ...] = (Size(8, 4), Size(16, 8))
    n_ranks: int = 2
    config: GPTConfig = MODEL

    def batch(self, size: Size) -> Batch:
        """(inputs, targets), both int64 [n_samples, n_positions], the same wherever it is drawn."""
        shape = (2, size.n_samples, self.config.n_positions)
        drawn = torch.randint(self.config.vocab_size, shape, generator=keyed_generator("bench"))
        return drawn[0], drawn[1]


def ours(family: Callable[[int, int], Schedule]) -> Engine:
    """The engine of this package, on the schedule of a family."""

    def make(comm: Comm, stage: GPTStage, size: Size, batch: Batch) -> Step:
        schedule = family(comm.size, size.n_microbatches)
        engine = PipelineEngine(schedule, comm, {comm.rank: stage}, token_loss, count_targets)
        return lambda: engine.run(batch if comm.rank == 0 else None)

    return make


def torchs(schedule_class: str) -> Engine:
    """That of torch.distributed.pipelining, on the process group of all ranks.

    Set to do no more than ours: the loss is divided instead of all gradients after the step, and
    the outputs are not gathered.
    """

    def make(comm: Comm, stage: GPTStage, size: Size, batch: Batch) -> Step:
        from torch.distributed import pipelining

        n_targets = count_targets(batch[1])
        schedule: Any = getattr(pipelining, schedule_class)(
            pipelining.PipelineStage(stage, comm.rank, comm.size, torch.device("cpu")),
            size.n_microbatches,
            lambda y, targets: token_loss(y, targets) / n_targets,
            scale_grads=False,
        )
        inputs = batch[:1] if comm.rank == 0 else ()
        if comm.rank < comm.size - 1:
            return lambda: schedule.step(*inputs, return_outputs=False)
        return lambda: schedule.step(*inputs, target=batch[1], losses=[], return_outputs=False)

    return make


def engines() -> dict[str, Engine]:
    """What is timed, by the names that the goals use."""
    one, all_first = GOALS
    return {
        one.engine: ours(one_f_one_b),
        one.peer: torchs("Schedule1F1B"),
        all_first.engine: ours(gpipe),
        all_first.peer: torchs("ScheduleGPipe"),
    }


def alone(model: GPTStage, size: Size, batch: Batch) -> Step:
    """One process without an engine: the micro-batches one after the other."""
    n_targets = count_targets(batch[1])

    def step() -> None:
        parts = (whole.tensor_split(size.n_microbatches) for whole in batch)
        for inputs, targets in zip(*parts, strict=True):
            torch.autograd.backward(token_loss(model(inputs), targets) / n_targets)

    return step


def differences(comm: Comm, task: Task, engines: Mapping[str, Engine]) -> dict[str, float]:
    """Per engine, over all sizes, how far this rank's gradients are from those of one process.

    Of each parameter the largest difference over the largest entry, and of these the largest;
    infinite where there is no gradient, or no number in it.
    """
    stage, model = build_stage(task.config, comm.size, comm.rank), build_stage(task.config, 1, 0)
    worst = dict.fromkeys(engines, 0.0)
    for size in task.sizes:
        batch = task.batch(size)
        model.zero_grad()
        alone(model, size, batch)()
        right = dict(model.named_parameters())
        for name, engine in engines.items():
            step = engine(comm, stage, size, batch)
            for _ in range(N_WARM_UP):  # torch's first step may drop gradients it finds
                stage.zero_grad()
                step()
            for of, parameter in stage.named_parameters():
                found = _difference(parameter.grad, right[of].grad)
                worst[name] = max(worst[name], found)
    return worst


def _difference(gradient: Tensor | None, right: Tensor | None) -> float:
    if gradient is None or right is None:
        return math.inf
    found = float((gradient - right).abs().max() / right.abs().max())
    return math.inf if math.isnan(found) else found


def race(
    comm: Comm, task: Task, engines: Mapping[str, Engine], n_repetitions: int
) -> tuple[dict[Size, Spans], float]:
    """(start, end) of every timed step on this rank, by size and engine; CPU time of it all. In s.

    The engines take turns. Each repetition begins with the next of them, and every other one goes
    backwards, so that none always follows the same one. ONE_PROCESS works on rank 0 while the
    others wait. What is done goes to `comm.report`: (size, number of repetitions).
    """
    stage, model = build_stage(task.config, comm.size, comm.rank), build_stage(task.config, 1, 0)
    found = {}
    for size in task.sizes:
        batch = task.batch(size)
        steps = {name: engine(comm, stage, size, batch) for name, engine in engines.items()}
        steps[ONE_PROCESS] = alone(model, size, batch) if comm.rank == 0 else lambda: None
        spans: Spans = {name: [] for name in steps}
        for repetition in range(-N_WARM_UP, n_repetitions):
            for name in turns(list(steps), repetition):
                stage.zero_grad()
                model.zero_grad()
                comm.barrier()
                start_s = time.perf_counter()
                steps[name]()
                if repetition >= 0:
                    spans[name].append((start_s, time.perf_counter()))
            if comm.rank == 0 and repetition >= 0:
                comm.report((size, repetition + 1))
        found[size] = spans
    return found, time.process_time()


def turns(names: list[str], repetition: int) -> list[str]:
    """The order of the engines in a repetition."""
    first = repetition % len(names)
    order = names[first:] + names[:first]
    return order if repetition % 2 else order[::-1]
