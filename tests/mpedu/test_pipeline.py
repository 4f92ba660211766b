from functools import cache

import pytest
import torch
from pipelines import (
    FAMILIES,
    SEED,
    Task,
    assert_equal,
    batch_of,
    chained,
    engine_for,
    engine_outcome,
    ranges,
    serial_outcome,
    stages_for,
)

from mpedu.families import one_f_one_b
from mpedu.keyed import Key
from mpedu.launch import run_ranks
from mpedu.model import count_targets

TOLERANCE = {torch.float64: 1e-10, torch.float32: 5e-6}
FLOATS = (torch.float64, torch.float32)
TASKS = [
    Task(family, model, n_microbatches, dtype)
    for family in FAMILIES
    for model, dtypes in (("gpt", FLOATS), ("mlp", FLOATS[:1]), ("dropout", FLOATS[:1]))
    for n_microbatches in (1, 3, 8)
    for dtype in dtypes
] + [
    Task(family, model, 3, dtype, steps)
    for family in FAMILIES
    for model, dtypes in (("gpt", FLOATS), ("dropout", FLOATS[:1]), ("aux", FLOATS[:1]))
    for steps in ("accumulate", "sgd", "adamw")
    for dtype in dtypes
]


@cache
def results(n_ranks):
    """Every task on so many ranks, in one run: by task, the outcome on each rank."""

    def program(comm):
        torch.manual_seed(1000 + comm.rank)  # must not matter
        return [engine_outcome(comm, task) for task in TASKS]

    return dict(zip(TASKS, zip(*run_ranks(program, n_ranks).results, strict=True), strict=True))


@cache
def serial(n_stages):
    """Every task in one process and without the engine."""
    alike = {task._replace(family="") for task in TASKS}

    def program(_):
        return {task: serial_outcome(task, n_stages) for task in alike}

    return run_ranks(program, 1).results[0]


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize("n_ranks", [1, 2, 4])
def test_a_pipeline_computes_what_the_serial_model_computes(n_ranks, task):
    whole = serial(n_ranks)[task._replace(family="")]
    assert_equal(results(n_ranks)[task], whole, TOLERANCE[task.dtype])


def test_the_seed_of_a_rank_is_neither_read_nor_changed():
    def program(comm):
        losses = []
        for seed in (0, comm.rank + 1):
            engine = engine_for(comm, one_f_one_b(2, 3), "dropout")
            torch.manual_seed(seed)
            state = torch.get_rng_state()
            losses.append(engine.run(batch_of("dropout", 3), SEED).loss)
            assert torch.equal(torch.get_rng_state(), state)
        return [*losses, engine.run(batch_of("dropout", 3), SEED, step=1).loss]

    first, second = run_ranks(program, 2).results
    assert first == second
    assert first[0] == first[1] != first[2]


def test_each_backward_runs_the_hooks_of_each_parameter_once():
    def program(comm):
        engine = engine_for(comm, one_f_one_b(2, 8), "mlp")
        calls = {}
        for name, parameter in engine.stages[comm.rank].named_parameters():
            calls[name] = 0

            def counted(_, name=name):
                calls[name] += 1

            parameter.register_post_accumulate_grad_hook(counted)
        engine.run(batch_of("mlp", 8))
        return calls

    for calls in run_ranks(program, 2).results:
        assert calls and set(calls.values()) == {8}


def test_every_rank_learns_the_loss_and_the_number_of_targets_that_count_and_its_own_aux():
    inputs, targets = batch_of("aux", 3)
    stages = stages_for("aux", 2)
    aux = sum(chained(stages, inputs[cut], Key(0, 0, 0))[1] for cut in ranges(7, 3))

    def program(comm):
        first = engine_for(comm, one_f_one_b(2, 3), "aux").run((inputs, targets))
        second = engine_for(comm, one_f_one_b(2, 3), "gpt").run(batch_of("gpt", 3))
        return first.loss, first.aux, first.n_tokens, second.loss, second.aux, second.n_tokens

    results = run_ranks(program, 2).results
    assert [r[:1] + r[2:] for r in results[:1]] == [r[:1] + r[2:] for r in results[1:]]
    assert results[0][1] != 0 != results[1][1]
    assert results[0][1] + results[1][1] == pytest.approx(float(aux.detach()), rel=1e-12)
    assert results[0][2] == 7
    assert results[0][4:] == (0.0, count_targets(batch_of("gpt", 3)[1]))
