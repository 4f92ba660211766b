from functools import cache

import pytest
import torch
from pipelines import Layer, batch_of, engine_for, loss_of, stage_for, weighted_loss

from mpedu.families import gpipe, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine
from mpedu.ranks.errors import RankError
from mpedu.schedule import Action

N_RANKS = 3
GOOD = one_f_one_b(N_RANKS, 3)


def swapped(schedule):
    """Rank 1 with its first two entries changed about."""
    first, second, *others = schedule[1]
    return [schedule[0], [second, first, *others], *schedule[2:]]


def half_a_backward():
    return [[Action(kind, stage, 0) for kind in "FI"] for stage in range(N_RANKS)]


def made(comm, schedule, stages=None):
    stages = {comm.rank: Layer(comm.rank)} if stages is None else stages
    return PipelineEngine(schedule, comm, stages, weighted_loss, len)


def with_batch(change, schedule=GOOD, model="gpt"):
    def run(comm):
        batch = batch_of(model, 3)
        engine = engine_for(comm, schedule, model)
        engine.run(change(*batch) if comm.rank == 0 else batch)

    return run


def different(comm):
    return made(comm, gpipe(N_RANKS, 3) if comm.rank == 1 else GOOD)


def left_out(inputs, targets):
    return inputs, torch.full_like(targets, -100)


BAD = {
    "illegal schedule": (
        lambda comm: made(comm, swapped(one_f_one_b(N_RANKS, 1))),
        "this schedule cannot run: stage 1: 1B0 stands before 1F0",
    ),
    "no schedule": (lambda comm: made(comm, []), "the schedule is empty"),
    "other number of ranks": (
        lambda comm: made(comm, gpipe(2, 3)),
        "lists for 2 ranks and 3 run; start 2 ranks, or make a schedule for 3",
    ),
    "different schedules": (different, "the ranks were given different schedules"),
    "half a backward": (
        lambda comm: made(comm, half_a_backward()),
        "this schedule cannot run: stage 0 never runs W0",
    ),
    "no stages": (
        lambda comm: made(comm, GOOD, {}),
        "was given stages []; its list works on stages [",
    ),
    "a stage too many": (
        lambda comm: made(comm, GOOD, dict.fromkeys(range(4), Layer(0))),
        "was given stages [0, 1, 2, 3]; its list works on stages [",
    ),
    "too few samples": (
        with_batch(lambda x, t: (x[:2], t[:2])),
        "2 samples cannot be split into 3 micro-batches",
    ),
    "no samples": (
        with_batch(lambda x, t: (x[:0], t[:0])),
        "0 samples cannot be split into 3 micro-batches",
    ),
    "nothing counts": (with_batch(left_out), "no target of this batch counts"),
    "other lengths": (
        with_batch(lambda x, t: (x, t[:-1])),
        "the batch has 7 inputs and 6 targets; give one for each",
    ),
    "too few micro-batches": (
        with_batch(lambda x, t: [(x, t)] * 2),
        "the batch has 2 micro-batches and the schedule 3; give one (inputs, targets) for each",
    ),
    "a micro-batch of other lengths": (
        with_batch(lambda x, t: [(x, t), (x[1:], t), (x, t)]),
        "micro-batch 1 has 6 inputs and 7 targets; give one for each",
    ),
    "an empty micro-batch": (
        with_batch(lambda x, t: [(x, t), (x, t), (x[:0], t[:0])]),
        "micro-batch 2 has no samples; give at least one",
    ),
    "targets of two dtypes": (
        with_batch(lambda x, t: [(x, t), (x, t.int()), (x, t)]),
        "the micro-batches have targets of int32 and int64; give one dtype",
    ),
    "no micro-batches": (with_batch(lambda x, t: []), "nor a list of such pairs, one for each"),
    "no batch": (with_batch(lambda x, t: None), "rank 0 holds stage 0 and got no batch"),
    "no tensors": (
        with_batch(lambda x, t: (x.tolist(), t)),
        "the batch is not (inputs, targets), two tensors",
    ),
    "one tensor": (with_batch(lambda x, t: x), "the batch is not (inputs, targets), two tensors"),
    "a number": (
        with_batch(lambda x, t: (torch.tensor(3), t)),
        "the batch is not (inputs, targets), two tensors",
    ),
}


@cache
def sentences():
    """By case, what each rank said; then a good step, whose loss shows that nothing is left."""

    def program(comm):
        said = {}
        for name, (run, _) in BAD.items():
            try:
                run(comm)
            except ValueError as error:
                said[name] = str(error)
        engine = engine_for(comm, GOOD, "gpt")
        for batch in (None, batch_of("gpt", 3)):
            try:
                said["loss"] = engine.run(batch).loss
            except ValueError:
                continue
        return said

    return run_ranks(program, N_RANKS, wait_s=20.0).results


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_on_every_rank_in_one_sentence(name):
    for said in sentences():
        assert BAD[name][1] in said[name]
        assert "\n" not in said[name]


def test_a_refused_batch_leaves_the_engine_usable():
    assert len({said["loss"] for said in sentences()}) == 1


def raises(x):
    raise RuntimeError("my stage is broken")


STAGES = {
    "no tensor": (lambda x: None, "ValueError: stage 1 returned NoneType; a stage returns y or"),
    "a list": (lambda x: [x], "ValueError: stage 1 returned list"),
    "three": (lambda x: (x, x.sum(), x), "ValueError: stage 1 returned tuple"),
    "aux no tensor": (lambda x: (x, 0.5), "ValueError: stage 1 returned float as aux"),
    "aux no number": (lambda x: (x, x[:, 0, 0]), "ValueError: stage 1 returned a tensor ["),
    "raises": (raises, "RuntimeError: my stage is broken"),
}


@pytest.mark.parametrize(
    ("name", "rank"), [*((name, 1) for name in STAGES), ("no tensor", 2), ("aux no number", 2)]
)
def test_a_stage_that_cannot_be_run_ends_the_run_and_is_named(name, rank):
    stage, sentence = STAGES[name]

    def program(comm):
        own = {comm.rank: stage if comm.rank == rank else Layer(comm.rank)}
        made(comm, GOOD, own).run(batch_of("mlp", 3))

    with pytest.raises(RankError) as caught:
        run_ranks(program, N_RANKS, wait_s=20.0)
    text = str(caught.value)
    assert text.startswith(f"rank {rank} failed: {sentence.replace('stage 1', f'stage {rank}')}")


def test_a_stage_that_fails_in_a_later_step_on_one_rank_is_named():
    def program(comm):
        engine = engine_for(comm, GOOD, "mlp")
        for step in range(4):
            if step == 2 and comm.rank == 1:
                engine.stages[1][0].forward = raises
            engine.run(batch_of("mlp", 3), step=step)
            comm.report((comm.rank, step))

    reports = []
    with pytest.raises(RankError, match="rank 1 failed: RuntimeError: my stage is broken"):
        run_ranks(program, N_RANKS, wait_s=20.0, on_report=lambda _, value: reports.append(value))
    assert {step for _, step in reports} == {0, 1}


def test_one_rank_with_wrong_stages_is_named():
    def program(comm):
        made(comm, GOOD, {0: Layer(0)} if comm.rank == 2 else None)

    with pytest.raises(RankError, match=r"rank 2 failed: .* was given stages \[0\]; its list"):
        run_ranks(program, N_RANKS, wait_s=20.0)


def test_a_loss_that_is_not_one_number_is_refused():
    def program(comm):
        _, count = loss_of("mlp")
        stages = {comm.rank: stage_for("mlp", 2, comm.rank)}
        engine = PipelineEngine(gpipe(2, 3), comm, stages, lambda y, t: (y * t).sum(-1), count)
        engine.run(batch_of("mlp", 3))

    with pytest.raises(RankError, match=r"rank 1 failed: .*loss returned a tensor \[3, 7\]; give"):
        run_ranks(program, 2, wait_s=20.0)


@pytest.mark.parametrize(
    "changed", [lambda y: y.float(), lambda y: y[:1], lambda y: torch.cat([y, y])]
)
def test_an_output_unlike_the_announced_one_is_refused_where_it_was_made(changed):
    def program(comm):
        def stage(x):
            return changed(x) if x.mean() < 0 else x * 1.0

        stages = {comm.rank: stage if comm.rank == 0 else torch.nn.Identity()}
        engine = PipelineEngine(
            one_f_one_b(2, 2), comm, stages, lambda y, t: y.sum(), lambda t: t.numel()
        )
        x = torch.cat([torch.ones(2, 3), -torch.ones(2, 3)]).double()
        engine.run((x, x))

    with pytest.raises(RankError, match=r"rank 0 failed: .* stage 0 gave .* micro-batch 1"):
        run_ranks(program, 2)
