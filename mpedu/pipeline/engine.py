"""The engine: every rank runs its list of a `Schedule`, action by action, on real tensors.

One engine for every schedule: what it does follows from the list alone. GPipe (Huang et al. 2019,
section 2.2), 1F1B (Narayanan et al. 2021, section 2.2.1) and a student's list differ in order only.
"""

import hashlib
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from mpedu.comm import Comm
from mpedu.keyed import Key
from mpedu.pipeline.announce import Announcer
from mpedu.pipeline.batches import Batch
from mpedu.pipeline.boxes import N_AHEAD
from mpedu.pipeline.stages import Stage, takes_key, with_buffers
from mpedu.pipeline.step import Setup, Step, StepResult
from mpedu.pipeline.sums import GradientSums, Tied
from mpedu.pipeline.traffic import messages, unsent_limit
from mpedu.schedule import Schedule, actions_of, stage_to_rank
from mpedu.simulate import Costs
from mpedu.validate import validate_schedule


class PipelineEngine:
    """Runs one rank of a pipeline of `schedule`; the same on every rank but for `stages`.

    stages: this rank's stages by their number. A stage is called stage(x, key) where its second
    argument is required or named `key` (a `mpedu.keyed.Key`), else stage(x), and returns y or
    (y, aux), aux being a scalar. For inputs of one shape y is always of one shape and dtype, which
    a run on zeros finds before the first step. A stage must not change x in place. Its buffers, as
    running statistics, change once for each micro-batch, also where a checkpoint runs it again.
    loss(y, targets): the SUMMED loss of a micro-batch. count(targets): how many targets count.
    Backward runs from sum of losses / count of the whole batch, plus aux_weight / n_microbatches
    times the sum of aux; gradients add up in the parameters' .grad.
    data: the ranks that run the same stages on samples of their own (`Mesh.data`). "The whole
    batch" is then that of all of them, over which gradients and loss are summed, aux averaged.
    tied: parameters with a copy in several stages, {"table.weight": (0, 3)}: the gradient of each
    copy is that of all; stages of one rank hold one parameter.
    costs: emulate devices on which actions take so long; see `DeviceClock`.
    Where a backward is split, W computes the weight products of our layers (`mpedu.deferred`), I
    all the rest; of a stage without such layers I does everything, and its W nothing.
    ValueError before any message: a schedule that is not legal, or of another number of ranks;
    stages that are not the rank's; and before any step: parameters of data ranks, or copies, that
    are not alike.
    """

    def __init__(
        self,
        schedule: Schedule,
        comm: Comm,
        stages: Mapping[int, Stage],
        loss: Callable[[Tensor, Tensor], Tensor],
        count: Callable[[Tensor], int],
        aux_weight: float = 0.0,
        costs: Costs | None = None,
        keep_outputs: bool = False,
        data: Comm | None = None,
        tied: Tied | None = None,
    ) -> None:
        data = None if data is None or data.size == 1 else data
        _check(schedule, comm, stages, data)
        self.schedule, self.comm, self.stages = schedule, comm, dict(stages)
        owner = stage_to_rank(schedule)
        n_microbatches = 1 + max(action.microbatch for _, action in actions_of(schedule))
        own = schedule[comm.rank]
        n_data, place = (1, 0) if data is None else (data.size, data.rank)
        self._first_key = place * n_microbatches  # no two data ranks draw the same dropout
        sent = messages(schedule)
        self._setup = Setup(
            schedule,
            comm,
            self.stages,
            loss,
            costs,
            keep_outputs,
            last_stage=len(owner) - 1,
            aux_scale=aux_weight / (n_microbatches * n_data),
            takes_key={number: takes_key(stage) for number, stage in stages.items()},
            buffered={number: with_buffers(stage) for number, stage in stages.items()},
            split=frozenset((a.stage, a.microbatch) for a in own if a.kind == "I"),
            announcer=Announcer(comm, owner, self.stages, n_microbatches, count, data),
            sums=GradientSums(own, owner, comm, self.stages, data, tied or {}),
            limit=unsent_limit(schedule, N_AHEAD),
            outgoing={m.sender: m for m in sent if m.link.source == comm.rank},
            incoming={m.receiver: m for m in sent if m.link.destination == comm.rank},
            channels=comm.channels({m.link for m in sent}),
        )

    def run(self, batch: Batch | None, seed: int = 0, step: int = 0) -> StepResult:
        """One step: every action of this rank's list. Every rank calls it.

        batch: (inputs, targets), both [n_samples, ...], this pipeline's own; read on the rank of
        stage 0, None elsewhere will do. Micro-batches take the samples in order; sizes differ by at
        most 1, larger first. Or a list of such pairs, one for each micro-batch, of any lengths.
        seed, step: go into the `Key` of each micro-batch, counted on over the data ranks.
        ValueError, on every rank: a batch that is neither, fewer samples than micro-batches, no
        target that counts.
        """
        setup = self._setup
        announced = setup.announcer.announce(batch, stamp=setup.costs is not None)
        return Step(setup, announced, batch, Key(seed, step, self._first_key)).run()


def _check(schedule: Schedule, comm: Comm, stages: Mapping[int, Stage], data: Comm | None) -> None:
    faults = validate_schedule(schedule)
    if faults:
        raise ValueError(f"this schedule cannot run: {faults[0].text}")
    if len(schedule) != comm.size:
        raise ValueError(
            f"the schedule has lists for {len(schedule)} ranks and {comm.size} run; "
            f"start {len(schedule)} ranks, or make a schedule for {comm.size}"
        )
    due = sorted(stage for stage, rank in stage_to_rank(schedule).items() if rank == comm.rank)
    if sorted(stages) != due:
        raise ValueError(
            f"rank {comm.rank} was given stages {sorted(stages)}; its list works on stages {due}"
        )
    digest = hashlib.sha256(repr(schedule).encode()).digest()
    number = int.from_bytes(digest[:7], "big")
    for ranks in (comm, data):
        if ranks is not None:
            highest, lowest = ranks.all_reduce(torch.tensor([number, -number]), "max").tolist()
            if highest != -lowest:
                raise ValueError(
                    "the ranks were given different schedules; give every rank the same"
                )
