"""The engines that `./course bench pipeline` times: ours and torch's, on the same stages.

Nothing differs between them but the order of the work and how they move data and wait.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mpedu.bench.figures import Size
from mpedu.comm import Comm
from mpedu.families import SCHEDULES, make_schedule
from mpedu.faults import require_at_least
from mpedu.keyed import keyed_generator
from mpedu.model import GPTConfig, GPTStage, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine, torch_peer

MODEL = GPTConfig(vocab_size=512, n_layers=8, d_model=256, n_positions=64)
WHOLE = "naive"  # takes the batch as one piece, whatever the micro-batches of the others
PLACEMENTS: dict[str, Callable[[int], list[int]]] = {  # the rank of each stage, by number of ranks
    "straight": lambda n: [*range(n)],
    "looped": lambda n: [*range(n), *range(n)],
    "v": lambda n: [*range(n), *reversed(range(n))],
}
TORCHS = {  # by class of torch.distributed.pipelining: our schedule like it
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleaved1F1B": "interleaved",
    "ScheduleInterleavedZeroBubble": "interleaved-zero-bubble",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipe-v",
}
Batch = tuple[Tensor, Tensor]
Stages = Mapping[int, GPTStage]
Step = Callable[[], object]
Make = Callable[[Comm, Stages, Size, Batch], Step]


class Engine(NamedTuple):
    """What is timed. make: makes, on a rank that holds the stages, the step to be timed.

    problem: why it cannot run on so many ranks with so many micro-batches; empty where it can.
    """

    name: str
    placement: str
    make: Make
    problem: Callable[[int, int], str] = lambda n_ranks, n_microbatches: ""


@dataclass(frozen=True)
class Task:
    """What every engine has to do: a step of `config`, on `n_ranks` ranks, at each size."""

    sizes: tuple[Size, ...] = (Size(8, 4), Size(16, 8), Size(16, 16))
    n_ranks: int = 2
    config: GPTConfig = MODEL
    use_gpus: bool = False

    def batch(self, size: Size, device: str = "cpu") -> Batch:
        """(inputs, targets), both int64 [n_samples, n_positions], the same wherever it is drawn."""
        shape = (2, size.n_samples, self.config.n_positions)
        drawn = torch.randint(self.config.vocab_size, shape, generator=keyed_generator("bench"))
        return drawn[0].to(device), drawn[1].to(device)

    def stages(self, comm: Comm, placement: str) -> Stages:
        """Those of this rank, on its device."""
        owner = PLACEMENTS[placement](comm.size)
        return {
            stage: build_stage(self.config, len(owner), stage).to(comm.device)
            for stage, rank in enumerate(owner)
            if rank == comm.rank
        }

    def model(self, comm: Comm) -> GPTStage:
        """The whole model, on this rank's device."""
        return build_stage(self.config, 1, 0).to(comm.device)


def ours(name: str) -> Engine:
    """The engine of this package, on a named schedule."""

    def n_pieces(size: Size) -> int:
        return 1 if name == WHOLE else size.n_microbatches

    def make(comm: Comm, stages: Stages, size: Size, batch: Batch) -> Step:
        schedule = make_schedule(name, comm.size, n_pieces(size))
        engine = PipelineEngine(schedule, comm, stages, token_loss, count_targets)
        return lambda: engine.run(batch if 0 in stages else None)

    def problem(n_ranks: int, n_microbatches: int) -> str:
        try:
            make_schedule(name, n_ranks, n_pieces(Size(0, n_microbatches)))
        except ValueError as error:
            return str(error)
        return ""

    n_chunks = SCHEDULES[name].n_chunks
    placement = {1: "straight", 2: "v", None: "looped"}[n_chunks]
    return Engine(f"mpedu {name}", placement, make, problem)


def torchs(schedule_class: str) -> Engine:
    """That of torch.distributed.pipelining, on the process group of all ranks."""

    def make(comm: Comm, stages: Stages, size: Size, batch: Batch) -> Step:
        step = torch_peer.to_torch_pipelining(
            comm, stages, schedule_class, size.n_microbatches, token_loss, count_targets
        )
        return lambda: step(batch)

    def problem(n_ranks: int, n_microbatches: int) -> str:
        if schedule_class == "ScheduleDualPipeV" and n_microbatches < 2 * n_ranks:
            return f"torch asks for at least {2 * n_ranks} micro-batches, one for each stage"
        if schedule_class == "Schedule1F1B" and n_microbatches < n_ranks:
            return f"torch asks for at least {n_ranks} micro-batches, one for each rank"
        n_rounds = max(1, n_microbatches // n_ranks)
        if "Interleaved" in schedule_class and n_microbatches % n_rounds:
            return f"torch asks for a multiple of its {n_rounds} rounds"
        return ""

    return Engine(f"torch {schedule_class}", torch_peer.PLACEMENTS[schedule_class], make, problem)


OURS = ("naive", "gpipe", "1f1b", "zero-bubble-h1", *[*TORCHS.values()][2:])
PEERS = {f"mpedu {like}": f"torch {name}" for name, like in TORCHS.items()}


def engines() -> dict[str, Engine]:
    """All that can be timed, by name."""
    return {each.name: each for each in [*map(ours, OURS), *map(torchs, TORCHS)]}


def chosen(names: Iterable[str]) -> dict[str, Engine]:
    """Those of these names, of which the last word will do; ValueError for an unknown one."""
    known = {engine.name.split()[1]: engine for engine in engines().values()}
    found = [known.get(name.strip().split(" ")[-1]) for name in names]
    for name, engine in zip(names, found, strict=True):
        if engine is None:
            raise ValueError(f"engine {name!r} is unknown; choose among {', '.join(known)}")
    return {engine.name: engine for engine in found if engine is not None}


def require_fit(task: Task, contestants: Iterable[Engine]) -> None:
    """Nothing; ValueError where one of the engines cannot do the task."""
    require_at_least(2, ranks=task.n_ranks)
    for engine in contestants:
        n_stages = len(PLACEMENTS[engine.placement](task.n_ranks))
        if n_stages > task.config.n_layers:
            raise ValueError(
                f"--ranks {task.n_ranks}: {engine.name} cuts the model into {n_stages} stages, and "
                f"it has {task.config.n_layers} blocks; give fewer ranks, or other --engines"
            )
    for size in task.sizes:
        require_at_least(1, samples=size.n_samples, microbatches=size.n_microbatches)
        if size.n_samples % size.n_microbatches:
            raise ValueError(
                f"{size}: torch needs micro-batches of one size; give samples that can be "
                "divided by the micro-batches"
            )
        for engine in contestants:
            problem = engine.problem(task.n_ranks, size.n_microbatches)
            if problem:
                raise ValueError(
                    f"{engine.name} cannot run {size} on {task.n_ranks} ranks: {problem}; "
                    "give other sizes, or other --engines"
                )
