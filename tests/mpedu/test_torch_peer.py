"""Our stages under torch.distributed.pipelining: the gradients are those of our engine."""

from functools import cache

import pytest
import torch
from pipelines import error, stage_for

from mpedu.alone import Alone
from mpedu.families import make_schedule
from mpedu.launch import run_ranks
from mpedu.model import IGNORE, count_targets, token_loss
from mpedu.pipeline import PipelineEngine, to_torch_pipelining
from mpedu.pipeline.torch_peer import PLACEMENTS
from mpedu.schedule import stage_to_rank

OURS = {  # the schedule that is like torch's class
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleaved1F1B": "interleaved",
    "ScheduleInterleavedZeroBubble": "interleaved-zero-bubble",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipe-v",
}
CHUNKS = {"straight": (None,), "looped": (2, 3), "v": (None,)}
CASES = [
    (name, n_chunks, n_microbatches)
    for name, placement in PLACEMENTS.items()
    for n_chunks in CHUNKS[placement]
    for n_microbatches in (1, 3, 8)
]


def refused(name, n_microbatches, n_ranks):
    """Where torch takes no such numbers."""
    least = {"Schedule1F1B": n_ranks, "ScheduleDualPipeV": 2 * n_ranks}.get(name, 1)
    return n_microbatches < least


def batch_for(n_microbatches, step):
    drawn = torch.Generator().manual_seed(step)
    inputs, targets = torch.randint(17, (2, 2 * n_microbatches, 7), generator=drawn)
    targets[:, ::3] = IGNORE
    return inputs, targets


def stages_on(comm, n_chunks, name, n_ranks):
    ours = make_schedule(OURS[name], n_ranks, 2 * n_ranks, n_chunks)
    owner = stage_to_rank(ours)
    return {k: stage_for("gpt", len(owner), k) for k, rank in owner.items() if rank == comm.rank}


def of_both(comm, name, n_chunks, n_microbatches):
    """(loss, gradients) of two steps of torch's engine and of ours; torch's refusal."""
    stages = stages_on(comm, n_chunks, name, comm.size)
    try:
        torchs = to_torch_pipelining(comm, stages, name, n_microbatches, token_loss, count_targets)
    except ValueError as error:
        return str(error)
    schedule = make_schedule(OURS[name], comm.size, n_microbatches, n_chunks)
    ours = PipelineEngine(schedule, comm, stages, token_loss, count_targets)
    found = []
    for step in (torchs, lambda batch: ours.run(batch).loss):
        for number in range(2):
            for stage in stages.values():
                stage.zero_grad()
            loss = step(batch_for(n_microbatches, number))
        of_step = {f"{k}.{n}": p.grad for k, s in stages.items() for n, p in s.named_parameters()}
        found.append((loss, of_step))
    return found


@cache
def results(n_ranks):
    def program(comm):
        return [of_both(comm, *case) for case in CASES]

    parts = run_ranks(program, n_ranks, timeout_s=300.0, check_messages=False).results
    return dict(zip(CASES, zip(*parts, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("n_ranks", [2, 4])
def test_torchs_schedule_gives_the_gradients_of_ours(n_ranks, case):
    name, _, n_microbatches = case
    for found in results(n_ranks)[case]:
        if refused(name, n_microbatches, n_ranks):
            assert "microbatches" in found
            continue
        (torch_loss, torchs), (our_loss, ours) = found
        assert torch_loss in (None, pytest.approx(our_loss, rel=1e-12))
        assert torchs.keys() == ours.keys()
        for key, gradient in ours.items():
            assert error(torchs[key], gradient) <= 1e-10, key
    if not refused(name, n_microbatches, n_ranks):
        assert [f[0][0] is not None for f in results(n_ranks)[case]].count(True) == 1


def test_what_torch_cannot_run_is_told():
    def said(comm, *arguments, batch=None):
        try:
            step = to_torch_pipelining(comm, *arguments, token_loss, count_targets)
            step(batch)
        except ValueError as error:
            return str(error)
        return "nothing"

    def program(comm):
        own = {comm.rank: stage_for("gpt", 2, comm.rank)}
        return [
            said(comm, own, "ScheduleGpipe", 4),
            said(comm, own, "ScheduleZBVZeroBubble", 4),
            said(comm, {}, "ScheduleLoopedBFS", 4),
            said(comm, own, "ScheduleGPipe", 4, batch=tuple(torch.zeros(2, 10, 7).long())),
        ]

    for rank, (unknown, place, none, uneven) in enumerate(run_ranks(program, 2).results):
        assert unknown.startswith("schedule_class='ScheduleGpipe' is unknown; choose one of Sched")
        assert place.startswith(
            f"rank {rank} was given stages [{rank}]; ScheduleZBVZeroBubble puts"
        )
        assert none.endswith(f"puts stages [{rank}] there")
        assert uneven.startswith("10 samples in 4 micro-batches: torch needs them of one size")
    with pytest.raises(ValueError, match="needs real ranks, and this is a Alone"):
        to_torch_pipelining(
            Alone(), {0: stage_for("gpt", 1, 0)}, "ScheduleGPipe", 4, token_loss, count_targets
        )
