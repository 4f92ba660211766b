"""Steps of engines on several data ranks, and of the serial model on all their batches.

Every data rank has another number of samples, of tokens, and of targets that count. Imported by
ranks too: no pytest in here.
"""

from typing import NamedTuple

import torch
from pipelines import (
    AUX_WEIGHT,
    SEED,
    assert_equal,
    batch_of,
    chained,
    loss_of,
    outcome,
    ranges,
    stage_for,
    stages_for,
)

from mpedu.families import make_schedule
from mpedu.keyed import Key
from mpedu.mesh import Mesh
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import stage_to_rank


class Task(NamedTuple):
    """What to compute on pp x dp ranks and in one process; steps: as in `pipelines.Task`."""

    schedule: str
    model: str
    pp: int
    dp: int
    n_microbatches: int = 3
    steps: str = "one"
    dtype: torch.dtype = torch.float64

    def __str__(self):
        return "-".join(map(str, self[:-1]))

    @property
    def n_stages(self):
        return len(stage_to_rank(self.make_schedule()))

    def make_schedule(self):
        return make_schedule(self.schedule, self.pp, self.n_microbatches)


def batch_on(task, step, data_rank):
    return batch_of(task.model, task.n_microbatches, step + 7 * data_rank, task.dtype)


def serial_outcome(task):
    """Of the model in one piece, on one data rank's batch after the other."""
    stages = stages_for(task.model, task.n_stages, task.dtype)
    loss_sum, count = loss_of(task.model)
    split = task.model in ("aux", "dropout")

    def step(number):
        batches = [batch_on(task, number, d) for d in range(task.dp)]
        n_counted = sum(count(targets) for _, targets in batches)
        loss, outputs = 0.0, []
        for d, (inputs, targets) in enumerate(batches):
            cuts = ranges(len(inputs), task.n_microbatches) if split else [slice(0, len(inputs))]
            for m, cut in enumerate(cuts):
                key = Key(SEED, number, d * task.n_microbatches + m) if split else None
                y, aux = chained(stages, inputs[cut], key)
                part = loss_sum(y, targets[cut]) / n_counted
                (part + AUX_WEIGHT * aux / (task.dp * task.n_microbatches)).backward()
                loss += float(part.detach())
                outputs.append(y.detach().flatten())
        gradients = [inputs.grad.flatten() for inputs, _ in batches if inputs.grad is not None]
        return loss, torch.cat(outputs), torch.cat(gradients) if gradients else None

    return outcome(task, dict(enumerate(stages)), step)


def engine_outcome(comm, task):
    """What this rank's stages come to."""
    mesh, schedule = Mesh(comm, task.pp, task.dp), task.make_schedule()
    own = [stage for stage, rank in stage_to_rank(schedule).items() if rank == mesh.pp.rank]
    stages = {s: stage_for(task.model, task.n_stages, s, task.dtype) for s in own}
    how = {"aux_weight": AUX_WEIGHT, "keep_outputs": True, "data": mesh.data}
    engine = PipelineEngine(schedule, mesh.pp, stages, *loss_of(task.model), **how)

    def step(number):
        batch = batch_on(task, number, mesh.data.rank) if 0 in own else None
        result = engine.run(batch, SEED, number)
        gradient = result.input_gradient
        return (
            result.loss,
            torch.cat([y.flatten() for y in result.outputs]) if result.outputs else None,
            None if gradient is None else gradient.flatten(),
        )

    return outcome(task, stages, step)


def assert_equal_to_serial(task, by_rank, whole, tolerance):
    """All data ranks hold the same bits, and are together the serial model."""
    parts = []
    for p in range(task.pp):
        same = by_rank[p * task.dp : (p + 1) * task.dp]
        tensors = {}
        for name, first in same[0].tensors.items():
            found = [part.tensors[name] for part in same]
            if name.startswith(("outputs", "input gradient")):
                tensors[name] = torch.cat(found)
            else:
                assert all(torch.equal(other, first) for other in found), name
                tensors[name] = first
        assert len({tuple(part.losses) for part in same}) == 1
        parts.append(same[0]._replace(tensors=tensors))
    assert_equal(parts, whole, tolerance)
