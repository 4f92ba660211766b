"""An engine of the reader's own on real processes, right and wrong, and a step by torch."""

import pytest

from mpedu.families import gpipe, one_f_one_b, zero_bubble_h1
from mpedu.model import GPTConfig, GPTStage
from mpedu.own_engine import train_actions, try_torch

FLOAT64_RTOL = 1e-10


def run_actions(comm, actions, stage, batch):
    """A plain engine for one stage per rank."""
    inputs, targets = batch
    n_samples, held, sent, total = sum(map(len, targets)), {}, [], 0.0
    stage.zero_grad()
    for kind, _, m in actions:
        if kind == "F":
            x = inputs[m] if comm.rank == 0 else comm.recv(comm.rank - 1)
            y, kept = stage.forward(x)
            gradient = None
            if comm.rank < comm.size - 1:
                sent.append(comm.isend(y, comm.rank + 1))
            else:
                loss, gradient = stage.loss(y, targets[m])
                total, gradient = total + loss, gradient / n_samples
            held[m] = kept, gradient
        else:
            kept, gradient = held.pop(m)
            if gradient is None:
                gradient = comm.recv(comm.rank + 1)
            back = stage.backward(kept, gradient)
            if comm.rank > 0:
                sent.append(comm.isend(back, comm.rank - 1))
    for request in sent:
        request.wait()
    return total / n_samples if targets else None


def never_clearing(comm, actions, stage, batch):
    """Right but for the gradient of the step before."""
    stage.zero_grad = lambda: None
    return run_actions(comm, actions, stage, batch)


@pytest.fixture(scope="module")
def trained():
    return train_actions(run_actions, one_f_one_b(2, 3), n_steps=5)


def test_gradients_and_five_steps_are_those_of_one_process(trained):
    assert max(*trained.gradients, *trained.weights) < FLOAT64_RTOL
    assert trained.losses == pytest.approx(trained.serial_losses, rel=FLOAT64_RTOL)
    assert len(trained.losses) == 5 and trained.losses[-1] < trained.losses[0]


def test_the_record_and_the_memory_are_those_of_the_list(trained):
    assert trained.records == trained.schedule
    assert trained.most_held == [2, 1]
    assert all(n_bytes > 0 for n_bytes in trained.held_bytes)


def never_freeing(comm, actions, stage, batch):
    """Right but for what forwards leave behind, which is there until the end."""
    forward, everything = stage.forward, []

    def kept_for_good(x):
        everything.append(forward(x))
        return everything[-1]

    stage.forward = kept_for_good
    return run_actions(comm, actions, stage, batch)


def test_an_engine_that_frees_nothing_is_seen_to_keep_all():
    assert train_actions(never_freeing, one_f_one_b(2, 3), n_steps=1).most_held == [3, 3]


def test_no_rank_holds_the_parameters_of_another(trained):
    config = GPTConfig(n_layers=4, d_model=64, n_heads=4, n_positions=32)
    whole = sum(parameter.numel() for parameter in GPTStage(config, 1, 0).parameters())
    assert sum(trained.n_parameters) == whole


def test_it_prints_a_row_for_each_rank_and_draws_both_timelines(trained):
    text = str(trained)
    assert "what they did is the list" in text and "after 5 steps" in text
    assert "predicted" in trained.picture().text and "measured" in trained.picture().text


def test_a_fault_that_shows_from_the_second_step_on_is_seen_in_the_weights():
    ran = train_actions(never_clearing, gpipe(2, 2), n_steps=2, device_clock_ms=1)
    assert max(ran.gradients) < FLOAT64_RTOL < 1e-6 < max(ran.weights)
    assert ran.is_emulated and "kept at most" in str(ran)


def test_a_list_that_cannot_run_is_refused_before_any_rank_starts():
    with pytest.raises(ValueError, match="this schedule cannot run"):
        train_actions(run_actions, [gpipe(2, 2)[0], gpipe(2, 2)[1][:-1]])
    with pytest.raises(ValueError, match="F and B alone"):
        train_actions(run_actions, zero_bubble_h1(2, 2))


def torch_step(comm, module, x, targets, n_microbatches):
    import torch
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    def mean_loss(logits, targets):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    stage = PipelineStage(module, comm.rank, comm.size, torch.device(comm.device))
    schedule = ScheduleGPipe(stage, n_microbatches, loss_fn=mean_loss)
    if comm.rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=targets, losses=[])


def test_a_step_by_torch_has_the_gradients_of_one_process():
    beside = try_torch(torch_step)
    assert max(*beside.own, *beside.peer) < FLOAT64_RTOL
    assert "ScheduleGPipe" in str(beside)
