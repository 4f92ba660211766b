from functools import cache

import pytest
import torch
from pipelines import (
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

from mpedu.families import SCHEDULES, one_f_one_b, zbv, zero_bubble_h1
from mpedu.keyed import Key
from mpedu.launch import run_ranks
from mpedu.model import count_targets
from mpedu.schedule import stage_to_rank

TOLERANCE = {torch.float64: 1e-10, torch.float32: 5e-6}
FLOATS = (torch.float64, torch.float32)
PLAIN = ("naive", "gpipe", "1f1b")  # without chunks and halves: nothing of theirs is left out


def fewest(schedule, n_ranks):
    """The micro-batches that a schedule must have at least."""
    return 2 * n_ranks if schedule == "dualpipe-v" else 1


def tasks(n_ranks):
    """What is done on so many ranks: each schedule with M below, at and above the ranks' number."""
    for schedule in SCHEDULES:
        is_plain, least = schedule in PLAIN, fewest(schedule, n_ranks)
        few = max(3, least)
        for n_microbatches in sorted({max(m, least) for m in (1, 3, 8)}):
            for dtype in FLOATS if is_plain else FLOATS[:1]:
                yield Task(schedule, "gpt", n_microbatches, dtype)
        yield Task(schedule, "mlp", few)
        yield Task(schedule, "dropout", few)
        for model in ("gpt", "dropout", "aux"):
            for steps in ("accumulate", "sgd", "adamw") if is_plain else ("sgd",):
                yield Task(schedule, model, few, steps=steps)
    if n_ranks == 2:
        for schedule in ("looped-bfs", "interleaved", "interleaved-zero-bubble"):
            yield Task(schedule, "gpt", 5, steps="accumulate", n_chunks=4)


CASES = [
    pytest.param(n_ranks, task, id=f"K{n_ranks}-{task}")
    for n_ranks in (1, 2, 4)
    for task in tasks(n_ranks)
]


@cache
def results(n_ranks):
    """Every task on so many ranks, in one run: by task, the outcome on each rank."""
    due = list(tasks(n_ranks))

    def program(comm):
        torch.manual_seed(1000 + comm.rank)  # must not matter
        return [engine_outcome(comm, task) for task in due]

    parts = run_ranks(program, n_ranks, timeout_s=300.0).results
    return dict(zip(due, zip(*parts, strict=True), strict=True))


@cache
def serial(n_ranks):
    """Every task in one process and without the engine, by number of stages and task."""
    due = {
        (len(stage_to_rank(task.make_schedule(n_ranks))), task.serial) for task in tasks(n_ranks)
    }

    def program(_):
        return {(n_stages, task): serial_outcome(task, n_stages) for n_stages, task in due}

    return run_ranks(program, 1, timeout_s=300.0).results[0]


@pytest.mark.parametrize(("n_ranks", "task"), CASES)
def test_a_pipeline_computes_what_the_serial_model_computes(n_ranks, task):
    n_stages = len(stage_to_rank(task.make_schedule(n_ranks)))
    whole = serial(n_ranks)[n_stages, task.serial]
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


@pytest.mark.parametrize("model", ["mlp", "gpt"])
@pytest.mark.parametrize("family", [one_f_one_b, zero_bubble_h1, zbv])
def test_each_backward_runs_the_hooks_of_each_parameter_once(family, model):
    schedule = family(2, 8)

    def program(comm):
        engine = engine_for(comm, schedule, model)
        calls = {}
        for number, stage in engine.stages.items():
            for name, parameter in stage.named_parameters():
                calls[number, name] = []

                def counted(parameter, name=(number, name)):
                    calls[name].append(parameter.grad is not None)

                parameter.register_post_accumulate_grad_hook(counted)
        engine.run(batch_of(model, 8))
        return calls

    for calls in run_ranks(program, 2).results:
        assert calls
        assert all(found == [True] * 8 for found in calls.values()), calls


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
