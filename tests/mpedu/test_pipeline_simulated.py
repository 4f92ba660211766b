"""The engine on simulated ranks: the same program, the same gradients as the serial model."""

import pytest
import torch
from pipelines import FAMILIES
from small_gpt import SMALL, chained, gradients, parameters_of, stages_of, tokens

from mpedu.model import count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.simulated import run_simulated


def trained(comm, family, config, n_stages, n_microbatches):
    """Two steps of SGD by one rank: losses, and this rank's parameters and gradients."""
    stage = stages_of(config, n_stages)[comm.rank]
    schedule = FAMILIES[family](n_stages, n_microbatches)
    engine = PipelineEngine(schedule, comm, {comm.rank: stage}, token_loss, count_targets)
    optimiser = torch.optim.SGD(stage.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        optimiser.zero_grad()
        losses.append(engine.run(tokens(6) if comm.rank == 0 else None).loss)
        optimiser.step()
    return losses, parameters_of([stage]), gradients([stage])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_stages", [1, 2, 4])
def test_two_steps_equal_the_serial_model(family, n_stages):
    run = run_simulated(trained, n_stages, (family, SMALL, n_stages, 3))
    stages = stages_of(SMALL, n_stages)
    optimiser = torch.optim.SGD([p for stage in stages for p in stage.parameters()], lr=0.1)
    x, targets = tokens(6)
    for step in range(2):
        optimiser.zero_grad()
        loss = token_loss(chained(stages, x), targets) / count_targets(targets)
        loss.backward()
        optimiser.step()
        for losses, _, _ in run.results:
            assert abs(losses[step] - loss.item()) <= 1e-12
    for place, whole in ((1, parameters_of(stages)), (2, gradients(stages))):
        found = {name: p for result in run.results for name, p in result[place].items()}
        assert found.keys() == whole.keys()
        for name, p in found.items():
            assert (p - whole[name]).abs().max() <= 1e-12
