"""A head that uses the token embedding, also where the two are on different ranks.

Other engines have summed the two gradients in the wrong order, or lost the tie (NVIDIA/Megatron-LM
#844 and #656).
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
import torch
from pipelines import SEED, batch_of, error
from small_gpt import SMALL, moved, parameters_of, reference, stages_of, tokens
from small_runs import small

from mpedu.alone import Alone
from mpedu.families import make_schedule
from mpedu.launch import run_ranks
from mpedu.mesh import Mesh
from mpedu.model import TOKENS, build_stage, count_targets, share_tied, tied_stages, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import stage_to_rank
from mpedu.training import Trainer

TIED = replace(SMALL, tied=True)
FP64 = 1e-10
N_STEPS = 5


class Task(NamedTuple):
    schedule: str
    pp: int
    dp: int
    optimiser: str  # "none" adds gradients up

    def __str__(self):
        return "-".join(map(str, self))


PLACED = [("1f1b", 2), ("1f1b", 4), ("gpipe", 3), ("zero-bubble-h1", 2), ("zbv", 2)]
TASKS = [
    Task(schedule, pp, dp, optimiser)
    for schedule, pp in [*PLACED, ("interleaved", 2), ("zero-bubble-h1", 1)]
    for dp in (1, 2)
    for optimiser in ("sgd", "adamw", "none")
]
REAL = [Task("1f1b", 2, 2, "adamw"), Task("zero-bubble-h1", 2, 2, "sgd"), Task("zbv", 2, 2, "none")]
REAL_4 = [Task("1f1b", 4, 1, "sgd"), Task("zero-bubble-h1", 4, 1, "adamw")]


def trained(parameters, name, gradients_of):
    """Losses of five steps."""
    optimiser = None
    if name == "sgd":
        optimiser = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    elif name == "adamw":
        # with the usual eps a step magnifies the rounding of gradients that are truly zero
        optimiser = torch.optim.AdamW(parameters, lr=0.01, eps=1e-2)
    losses = []
    for number in range(N_STEPS):
        if optimiser is not None:
            optimiser.zero_grad()
        losses.append(gradients_of(number))
        if optimiser is not None:
            optimiser.step()
    return losses


@cache
def serial(dp, optimiser):
    """Losses, parameters and their gradients of the model in one piece, all batches at once."""
    (stage,) = moved(stages_of(TIED, 1))

    def gradients_of(number):
        batches = [batch_of("gpt", 3, number + 7 * d) for d in range(dp)]
        n_counted = sum(count_targets(targets) for _, targets in batches)
        loss = sum(token_loss(stage(x), targets) for x, targets in batches) / n_counted
        loss.backward()
        return loss.item()

    losses = trained(stage.parameters(), optimiser, gradients_of)
    return losses, {name: (p.detach(), p.grad) for name, p in stage.named_parameters()}


def of_rank(comm, task):
    """Losses, this rank's parameters and their gradients, by stage and name."""
    mesh = Mesh(comm, task.pp, task.dp)
    schedule = make_schedule(task.schedule, task.pp, 3)
    owner = stage_to_rank(schedule)
    stages = {
        s: moved([build_stage(TIED, len(owner), s, dtype=torch.float64)])[0]
        for s, rank in owner.items()
        if rank == mesh.pp.rank
    }
    share_tied(stages)
    engine = PipelineEngine(
        schedule,
        mesh.pp,
        stages,
        token_loss,
        count_targets,
        data=mesh.data,
        tied=tied_stages(TIED, len(owner)),
    )
    parameters = list({p: None for stage in stages.values() for p in stage.parameters()})

    def gradients_of(number):
        batch = batch_of("gpt", 3, number + 7 * mesh.data.rank) if 0 in stages else None
        return engine.run(batch, SEED, number).loss

    losses = trained(parameters, task.optimiser, gradients_of)
    found = {
        (s, n): (p.detach(), p.grad) for s, st in stages.items() for n, p in st.named_parameters()
    }
    return losses, found, len(parameters)


def assert_equal(task, by_rank):
    losses, whole = serial(task.dp, task.optimiser)
    seen, tables = set(), []
    for found_losses, found, _ in by_rank:
        assert found_losses == pytest.approx(losses, rel=FP64)
        for (stage, name), pair in found.items():
            for got, want in zip(pair, whole[name], strict=True):
                assert error(got, want) <= FP64, (stage, name)
            seen.add(name)
            if name == TOKENS:
                tables.append(pair)
    assert seen == whole.keys()
    n_stages = 1 + max(stage for _, found, _ in by_rank for stage, _ in found)
    assert len(tables) == task.dp * (1 if n_stages == 1 else 2)
    for pair in tables:
        assert all(torch.equal(x, y) for x, y in zip(pair, tables[0], strict=True))


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_copies_stay_bit_equal_and_are_the_serial_weight(task):
    run = run_ranks(of_rank, task.pp * task.dp, task, machine="simulated")
    assert_equal(task, run.results)
    # in a V both ends are on one rank: it holds one parameter, and no message carries its gradient
    whole = len(serial(task.dp, task.optimiser)[1])
    n_held = sum(n_parameters for _, _, n_parameters in run.results[:: task.dp])
    assert n_held == whole + (task.schedule != "zbv" and task.pp > 1)


@pytest.mark.parametrize("tasks", [REAL, REAL_4], ids=["pp 2, dp 2", "pp 4"])
def test_so_they_do_on_processes(tasks):
    results = run_ranks(lambda comm: [of_rank(comm, task) for task in tasks], 4).results
    for task, by_rank in zip(tasks, zip(*results, strict=True), strict=True):
        assert_equal(task, by_rank)


def test_a_tied_model_is_the_one_written_out_with_one_table():
    (stage,) = moved(stages_of(TIED, 1))
    copies = {n: p.detach().clone().requires_grad_() for n, p in parameters_of([stage]).items()}
    assert "head.weight" not in copies
    x, targets = tokens()
    expected = reference({**copies, "head.weight": copies[TOKENS]}, x, TIED)
    y = stage(x)
    assert torch.allclose(y, expected, rtol=FP64, atol=FP64)
    token_loss(y, targets).backward()
    token_loss(expected, targets).backward()
    assert error(stage.token_embedding.weight.grad, copies[TOKENS].grad) <= FP64


@pytest.mark.parametrize("n_stages", [1, 2, 3, 4])
def test_a_cut_has_a_second_copy_only_where_the_ends_are_apart(n_stages):
    stages = stages_of(TIED, n_stages)
    held = [name for stage in stages for name, _ in stage.named_parameters()]
    assert held.count(TOKENS) == (1 if n_stages == 1 else 2)
    assert tied_stages(TIED, n_stages) == ({} if n_stages == 1 else {TOKENS: (0, n_stages - 1)})
    assert tied_stages(SMALL, n_stages) == {}
    assert torch.equal(stages[0].token_embedding.weight, stages[-1].token_embedding.weight)


@pytest.mark.parametrize(("pp", "dp", "schedule"), [(2, 1, "1f1b"), (2, 2, "1f1b"), (2, 1, "zbv")])
def test_the_norm_counts_a_tied_weight_once(tmp_path, pp, dp, schedule):
    config = small(tmp_path, pp, 4, dp=dp, schedule=schedule, dtype="float64", n_samples=8)
    config = replace(config, model=replace(config.model, tied=True))

    def norm_of(mesh, config):
        trainer = Trainer(mesh, config, config.make_schedule())
        corpus = config.load_corpus() if 0 in trainer.stages else None
        trainer.run(corpus, 1)
        given = [p.grad.clone() for _, p in trainer.parameters()]
        return trainer.update(1), given

    alone = replace(config, pp=1, dp=1, schedule="1f1b")
    norm, gradients = norm_of(Mesh(Alone()), alone)
    assert norm == pytest.approx(float(torch.cat([g.flatten() for g in gradients]).norm()))

    def program(comm):
        return norm_of(Mesh(comm, pp, dp), config)[0]

    found = run_ranks(program, pp * dp, machine="simulated").results
    assert found == pytest.approx([norm] * (pp * dp), rel=FP64)


# ---- what is refused ----


def told(comm, change, schedule="1f1b"):
    order = make_schedule(schedule, 2, 3)
    owner = stage_to_rank(order)
    own = [s for s, rank in owner.items() if rank == comm.rank]
    stages = {s: build_stage(TIED, len(owner), s) for s in own}
    change(comm, stages)
    tied = tied_stages(TIED, len(owner))
    try:
        PipelineEngine(order, comm, stages, token_loss, count_targets, tied=tied)
    except ValueError as error:
        return str(error)
    return ""


def test_copies_that_start_apart_are_told():
    def change(comm, stages):
        with torch.no_grad():
            stages[comm.rank].token_embedding.weight[3, 4] += comm.rank

    assert (
        run_ranks(told, 2, change, machine="simulated").results
        == [
            "the parameters of stages [0, 1], tied by token_embedding.weight, differ; "
            "give every rank the same, as from one seed"
        ]
        * 2
    )


def test_two_parameters_for_one_weight_on_a_rank_are_told():
    said, other = run_ranks(told, 2, lambda comm, stages: None, "zbv", machine="simulated").results
    assert said == (
        "stages [0, 3] of rank 0 are tied by token_embedding.weight and hold two parameters; "
        "give both modules the same one"
    )
    assert other == ""
