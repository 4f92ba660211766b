"""Engines on real ranks beside the serial model, on micro-batches of any shape; no pytest here."""

from dataclasses import replace

import torch
from pipelines import Layer, error
from small_gpt import SMALL, moved
from torch import nn

from mpedu.launch import run_ranks
from mpedu.model import IGNORE, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import stage_to_rank

DOUBLE = torch.float64
LONG = replace(SMALL, n_layers=8, n_positions=64)


def gpt(number, n_stages, config=LONG, **options):
    return moved([build_stage(config, n_stages, number, dtype=DOUBLE, **options)])[0]


def ids(n_samples, n_tokens, seed=0):
    """(inputs, targets) of a GPT; fewer and fewer targets count."""
    drawn = torch.Generator().manual_seed(seed)
    inputs, targets = torch.randint(17, (2, n_samples, n_tokens), generator=drawn)
    counted = torch.rand(targets.shape, generator=drawn)
    targets[counted > torch.linspace(0.95, 0.3, n_samples)[:, None]] = IGNORE
    return inputs, targets


def engine_of(comm, schedule, stage_of, loss, count, **options):
    owner = stage_to_rank(schedule)
    own = [number for number, rank in owner.items() if rank == comm.rank]
    stages = {number: stage_of(number, len(owner)) for number in own}
    return PipelineEngine(schedule, comm, stages, loss, count, **options)


def gradients_of(stages):
    return {f"{k}.{name}": p.grad for k, s in stages.items() for name, p in s.named_parameters()}


def on_ranks(schedules, stage_of, batches, loss=token_loss, count=count_targets):
    """By name of a schedule, (loss of each batch, gradients of all of them), on real ranks."""
    n_ranks = len(next(iter(schedules.values())))

    def program(comm):
        found = {}
        for name, schedule in schedules.items():
            engine = engine_of(comm, schedule, stage_of, loss, count)
            losses = [engine.run(batch if 0 in engine.stages else None).loss for batch in batches]
            found[name] = losses, gradients_of(engine.stages)
        return found

    parts = run_ranks(program, n_ranks).results
    joined = {}
    for name in schedules:
        losses = [part[name][0] for part in parts]
        assert all(other == losses[0] for other in losses)
        joined[name] = losses[0], {k: g for part in parts for k, g in part[name][1].items()}
    return joined


def in_one_process(n_stages, stage_of, batches, loss=token_loss, count=count_targets):
    """The same of the serial model; a batch is its micro-batches."""
    stages = {number: stage_of(number, n_stages) for number in range(n_stages)}
    losses = []
    for batch in batches:
        total = sum(loss(nn.Sequential(*stages.values())(x), targets) for x, targets in batch)
        total = total / sum(count(targets) for _, targets in batch)
        total.backward()
        losses.append(float(total.detach()))
    return losses, gradients_of(stages)


def assert_alike(got, want):
    assert all(abs(a - b) <= 1e-10 * abs(b) for a, b in zip(got[0], want[0], strict=True))
    assert got[1].keys() == want[1].keys()
    for name, gradient in want[1].items():
        assert error(got[1][name], gradient) <= 1e-10, name


def weighted(y, targets):
    return (y * targets).sum()


def layer(number, n_stages):
    return Layer(number)
