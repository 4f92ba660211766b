"""Data ranks: together they compute what one process computes on all their samples.

Faults of other engines that these cases would show: gradients divided again at every accumulation
(pytorch/torchtitan#1733), a sum of losses normalised in the metrics only, so that gradients are
larger by the number of tokens (pytorch/torchtitan#2972), every earlier stage rescaling its
gradients (deepspeedai/DeepSpeed#8152). Context parallelism, whose loss scaling has been another
(NVIDIA/Megatron-LM#673), is no part of this course.
"""

from functools import cache

import pytest
import torch
from data_ranks import Task, assert_equal_to_serial, engine_outcome, serial_outcome
from pipelines import batch_of, chained, loss_of, stage_for, stages_for, weighted_loss

from mpedu.families import gpipe, make_schedule, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.mesh import Mesh
from mpedu.model import IGNORE, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.pipeline.sums import SMALL_BYTES, _groups
from mpedu.ranks.errors import RankError

FP64, FP32 = 1e-10, 5e-6
SIMULATED = [
    Task(schedule, model, pp, dp, 3, steps)
    for schedule, model, pp, dp in (
        ("1f1b", "gpt", 1, 2),
        ("gpipe", "gpt", 2, 2),
        ("1f1b", "gpt", 3, 2),
        ("zero-bubble-h1", "gpt", 4, 2),
        ("interleaved", "gpt", 2, 3),
        ("zbv", "gpt", 2, 2),
        ("1f1b", "aux", 2, 3),
        ("gpipe", "dropout", 2, 2),
        ("1f1b", "mlp", 2, 4),
    )
    for steps in ("one", "accumulate", "sgd", "adamw")
]
REAL = [
    Task("1f1b", "gpt", 2, 2, 5, "sgd"),
    Task("1f1b", "gpt", 2, 2, 5, "sgd", torch.float32),
    Task("zero-bubble-h1", "gpt", 2, 2, 3, "accumulate"),
    Task("interleaved", "gpt", 2, 2, 3, "adamw"),
    Task("gpipe", "aux", 1, 4, 3, "sgd"),
    Task("zbv", "gpt", 2, 2, 8, "one"),
]


@cache
def serial(task):
    return serial_outcome(task)


@pytest.mark.parametrize("task", SIMULATED, ids=str)
def test_data_ranks_and_pipelines_compute_what_the_serial_model_computes(task):
    run = run_ranks(engine_outcome, task.pp * task.dp, task, machine="simulated")
    assert_equal_to_serial(task, run.results, serial(task), FP64)


@cache
def on_processes(check_messages):
    def program(comm):
        torch.manual_seed(1000 + comm.rank)  # must not matter
        return [engine_outcome(comm, task) for task in REAL]

    results = run_ranks(program, 4, check_messages=check_messages).results
    return dict(zip(REAL, zip(*results, strict=True), strict=True))


@pytest.mark.parametrize("check_messages", [True, False])
@pytest.mark.parametrize("task", REAL, ids=str)
def test_so_do_processes(task, check_messages):
    found = on_processes(check_messages)[task]
    assert_equal_to_serial(task, found, serial(task), FP64 if task.dtype.itemsize == 8 else FP32)


def test_every_stage_has_the_gradient_norm_of_the_serial_model():
    task = Task("1f1b", "gpt", 3, 2)
    run = run_ranks(engine_outcome, 6, task, machine="simulated")
    whole = serial(task).tensors
    for rank, outcome in enumerate(run.results):
        names = [name for name in outcome.tensors if name.startswith("gradient of ")]
        found, due = (
            torch.cat([tensors[name].flatten() for name in names]).norm()
            for tensors in (outcome.tensors, whole)
        )
        assert names and found / due == pytest.approx(1, rel=FP64), rank


# ---- when sums start, and how many there are ----


class Logged:
    """A Comm that tells of its all-reduces."""

    def __init__(self, comm, log):
        self.comm, self.log = comm, log

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def all_reduce(self, x, op="sum", async_op=False):
        if async_op:
            self.log.append(x.numel())
        return self.comm.all_reduce(x, op, async_op)


class Watched(list):
    """A rank's list that tells when the engine has done an action."""

    log = None

    def __iter__(self):
        for action in super().__iter__():
            yield action
            if self.log is not None:
                self.log.append(action)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zero-bubble-h1", "interleaved", "zbv"])
def test_a_stage_is_summed_in_one_call_once_its_last_backward_is_done(name):
    schedule = make_schedule(name, 2, 3)
    n_stages = 1 + max(action.stage for actions in schedule for action in actions)

    def program(comm):
        mesh, log = Mesh(comm, 2, 2), []
        own = list(schedule)
        own[mesh.pp.rank] = watched = Watched(schedule[mesh.pp.rank])
        stages = {
            s: stage_for("gpt", n_stages, s) for s in {a.stage for a in schedule[mesh.pp.rank]}
        }
        data = Logged(mesh.data, log)
        engine = PipelineEngine(own, mesh.pp, stages, *loss_of("gpt"), data=data)
        log.clear()
        watched.log = log
        engine.run(batch_of("gpt", 3, step=mesh.data.rank) if 0 in stages else None)
        sizes = {s: sum(p.numel() for p in stage.parameters()) for s, stage in stages.items()}
        return log, sizes

    for rank, (log, sizes) in enumerate(run_ranks(program, 4, machine="simulated").results):
        actions, due = schedule[rank // 2], []
        for i, action in enumerate(actions):
            later = [a for a in actions[i + 1 :] if a.stage == action.stage and a.kind != "F"]
            # the watch speaks when the engine asks for the next action, after it has begun to sum
            due += [sizes[action.stage]] * (not later and action.kind != "F") + [action]
        due += [1] * (n_stages - 1 in sizes)  # the loss
        assert log == due


def test_small_parameters_of_a_dtype_go_together_and_large_ones_alone():
    sizes = [(3, torch.float32), (SMALL_BYTES // 4, torch.float32), (5, torch.float64)]
    sizes += [(7, torch.float32), (SMALL_BYTES // 8, torch.float64)]
    parameters = [torch.nn.Parameter(torch.zeros(n, dtype=dtype)) for n, dtype in sizes]
    groups = [[p.numel() for p in group] for group in _groups(parameters)]
    assert groups == [[3, 7], [5], [SMALL_BYTES // 4], [SMALL_BYTES // 8]]


class Wide(torch.nn.Module):
    """Parameters too large to go together, one that some data ranks never reach, one frozen."""

    def __init__(self):
        super().__init__()
        self.large = torch.nn.Parameter(torch.full((SMALL_BYTES // 8,), 0.5, dtype=torch.float64))
        self.rare = torch.nn.Parameter(torch.ones(1, 3, dtype=torch.float64))
        self.frozen = torch.nn.Parameter(torch.ones(2, dtype=torch.float64), requires_grad=False)

    def forward(self, x):
        y = x * self.large[: x.shape[1]] * self.frozen[0]
        return y * self.rare.sum() if x[0, 0] > 0 else y


def test_a_parameter_that_one_data_rank_does_not_reach_counts_as_zero_there():
    def program(comm):
        mesh, stage = Mesh(comm, dp=2), Wide()
        engine = PipelineEngine(
            gpipe(1, 2), mesh.pp, {0: stage}, weighted_loss, len, data=mesh.data
        )
        x = torch.ones(4, 2, dtype=torch.float64) * (1 - 2 * comm.rank)
        for _ in range(2):
            engine.run((x, x))
        return stage.large.grad, stage.rare.grad, stage.frozen.grad

    for large, rare, frozen in run_ranks(program, 2, machine="simulated").results:
        # 8 samples: y = 0.5 * x * 3 on rank 0, y = 0.5 * x on rank 1; d/d rare = 0.5 * x * x
        assert large[:2].tolist() == [2 * 4 * (3 + 1) / 8] * 2 and not large[2:].any()
        assert rare.tolist() == [[2 * 4 * 2 * 0.5 / 8] * 3]
        assert frozen is None


# ---- what is refused, on every rank ----


def engine_on(comm, moved_by=0, schedule=None, stage=None):
    mesh = Mesh(comm, comm.size // 2, 2)
    schedule = schedule or one_f_one_b(mesh.pp.size, 3)
    stages = {mesh.pp.rank: stage or stage_for("gpt", mesh.pp.size, mesh.pp.rank)}
    if moved_by:
        with torch.no_grad():
            next(stages[mesh.pp.rank].parameters()).add_(moved_by)
    return mesh, PipelineEngine(schedule, mesh.pp, stages, *loss_of("gpt"), data=mesh.data)


def refused(program, n_ranks):
    """The ValueError that each rank raises, None where it raises none."""

    def told(comm):
        try:
            program(comm)
        except ValueError as error:
            return str(error)

    return run_ranks(told, n_ranks, machine="simulated").results


def ignored(batch):
    return batch[0], torch.full_like(batch[1], IGNORE)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda batch: None, "data rank 1: rank 0 holds stage 0 and got no batch"),
        (lambda batch: (batch[0][:2], batch[1][:2]), "data rank 1: 2 samples cannot be split"),
    ],
)
def test_a_batch_that_one_data_rank_cannot_run_is_told_on_all(spoiled, said):
    def program(comm):
        mesh, engine = engine_on(comm)
        batch = batch_of("gpt", 3)
        engine.run(spoiled(batch) if mesh.data.rank == 1 else batch)

    assert [text[: len(said)] for text in refused(program, 4)] == [said] * 4


def test_a_data_rank_may_have_no_target_that_counts_but_not_all_of_them():
    def program(comm, ranks):
        mesh, engine = engine_on(comm)
        batch = batch_of("gpt", 3)
        return engine.run(ignored(batch) if mesh.data.rank in ranks else batch)

    results = run_ranks(program, 4, (1,), machine="simulated").results
    inputs, targets = batch_of("gpt", 3)
    y, _ = chained(stages_for("gpt", 2), inputs, None)
    n_counted = count_targets(targets)
    assert [result.n_tokens for result in results] == [n_counted] * 4
    loss = float(token_loss(y, targets).detach()) / n_counted
    assert [result.loss for result in results] == pytest.approx([loss] * 4, rel=FP64)
    said = refused(lambda comm: program(comm, (0, 1)), 4)
    assert said == ["no target of this batch counts; its loss would be divided by 0"] * 4


def test_data_ranks_that_start_apart_are_told():
    said = refused(lambda comm: engine_on(comm, moved_by=comm.rank % 2), 4)
    assert (
        said
        == ["the parameters of the data ranks differ; give every rank the same, as from one seed"]
        * 4
    )


def test_data_ranks_with_other_schedules_are_told():
    def program(comm):
        engine_on(comm, schedule=(gpipe, one_f_one_b)[comm.rank % 2](2, 3))

    assert set(refused(program, 4)) == {
        "the ranks were given different schedules; give every rank the same"
    }


def test_a_stage_whose_parameters_are_not_known_is_told():
    def program(comm):
        engine_on(comm, stage=lambda x: x)

    assert (
        refused(program, 2)
        == [
            "stage 0 is a function, and the gradients of its parameters are to be summed over "
            "ranks; make it an nn.Module, whose parameters are known"
        ]
        * 2
    )


def test_a_data_rank_that_dies_ends_the_others():
    def program(comm):
        _, engine = engine_on(comm)
        if comm.rank == 3:
            raise RuntimeError("gone")
        engine.run(batch_of("gpt", 3))

    with pytest.raises(RankError, match=r"(?s)rank 3 failed.*gone"):
        run_ranks(program, 4, timeout_s=20)
