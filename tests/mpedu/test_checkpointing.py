"""Stages that hold less and run again: the gradients are bit-equal, also of a split backward."""

import pytest
import torch
from small_gpt import (
    DROPPING,
    SMALL,
    chained,
    gradients,
    moved,
    parameters_of,
    tokens,
)
from small_runs import losses_of, small

from mpedu.deferred import WeightQueue, deferring, opened
from mpedu.families import make_schedule
from mpedu.keyed import Key
from mpedu.memory import HeldBytes
from mpedu.model import build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.simulated import run_simulated
from mpedu.train_config import TrainConfig

KEY = Key(seed=0, step=2, microbatch=1)
MODES = ("block", "sqrt", "stage", 1, 3)
CONFIGS = {"plain": SMALL, "dropout": DROPPING}


def stages_of(config, n_stages, checkpoint, dtype=torch.float64):
    options = {"dtype": dtype, "checkpoint": checkpoint}
    return moved([build_stage(config, n_stages, stage, **options) for stage in range(n_stages)])


def assert_same(got, want):
    assert got.keys() == want.keys()
    assert all(got[name] is not None and torch.equal(got[name], want[name]) for name in want)


def one_pass(config, n_stages, checkpoint, split=False):
    """(held bytes after the forward, outputs, gradients) of a model of so many stages."""
    stages = stages_of(config, n_stages, checkpoint)
    x, targets = tokens()
    queue = WeightQueue() if split else None
    parameters = parameters_of(stages)
    with HeldBytes(ignore=[*parameters.values(), x, targets]) as held:
        with deferring(queue):
            y = chained(stages, x, KEY)
        n_held = held.live_bytes
        with opened(queue):
            token_loss(y, targets).backward()
        if queue is not None:
            assert all(p.grad is None for name, p in parameters.items() if "qkv" in name)
            queue.drain()
        assert held.live_bytes == 0
    return n_held, y.detach(), gradients(stages)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("n_stages", [1, 2, 4])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_gradients_are_bit_equal_and_less_is_held(config, n_stages, split):
    plain_bytes, want_y, want = one_pass(config, n_stages, "none")
    for checkpoint in ("none", *MODES):
        n_held, y, got = one_pass(config, n_stages, checkpoint, split)
        assert torch.equal(y, want_y)
        assert_same(got, want)
        assert n_held == plain_bytes if checkpoint == "none" else n_held < 0.4 * plain_bytes


def test_token_ids_need_no_gradient_for_the_stage_that_takes_them_to_be_run_again():
    # torch's older way of checkpointing gives such a stage no gradient at all
    x, _ = tokens()
    for checkpoint in MODES:
        (stage,) = stages_of(SMALL, 2, checkpoint)[:1]
        y = stage(x, KEY)
        assert y.requires_grad
        y.sum().backward()
        assert stage.token_embedding.weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    "checkpoint, starts", [("none", 4), ("block", 8), ("sqrt", 8), ("stage", 8), (3, 8)]
)
def test_every_block_runs_once_more_at_most(checkpoint, starts):
    (stage,) = stages_of(DROPPING, 1, checkpoint)
    started = []
    for name, block in stage.blocks.items():
        block.register_forward_pre_hook(lambda *_, name=name: started.append(name))
    x, targets = tokens()
    token_loss(stage(x, KEY), targets).backward()
    assert len(started) == starts
    assert set(started) == set("0123")


def test_without_a_gradient_nothing_is_held_and_nothing_runs_again():
    (plain,), (stage,) = (stages_of(DROPPING, 1, checkpoint) for checkpoint in ("none", "block"))
    x, _ = tokens()
    with torch.no_grad(), HeldBytes() as held:
        assert torch.equal(stage(x, KEY), plain(x, KEY))
        assert torch.equal(stage.eval()(x, KEY), plain.eval()(x, KEY))
    assert held.peak_bytes == 0


def test_torchs_random_state_is_neither_used_nor_changed():
    (stage,) = stages_of(DROPPING, 1, "block")
    x, targets = tokens()
    before = torch.get_rng_state()
    token_loss(stage(x, KEY), targets).backward()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_second_backward_runs_again_too():
    (stage,) = stages_of(DROPPING, 1, "sqrt")
    x, targets = tokens()
    loss = token_loss(stage(x, KEY), targets)
    loss.backward(retain_graph=True)
    once = {name: grad.clone() for name, grad in gradients([stage]).items()}
    loss.backward()
    assert_same(gradients([stage]), {name: 2 * grad for name, grad in once.items()})


@pytest.mark.parametrize("checkpoint", ["all", 0, -1, 1.5, None])
def test_a_checkpoint_that_means_nothing_is_refused(checkpoint):
    with pytest.raises(ValueError, match="is unknown; give 'none', 'block', 'sqrt', 'stage', or"):
        build_stage(SMALL, 2, 1, checkpoint=checkpoint)


def trained(comm, name, n_microbatches, checkpoint):
    """Five steps of one rank: losses, parameters, and what is held after each step."""
    schedule = make_schedule(name, comm.size, n_microbatches)
    n_stages = 1 + max(action.stage for actions in schedule for action in actions)
    own = sorted({action.stage for action in schedule[comm.rank]})
    options = {"dtype": torch.float64, "checkpoint": checkpoint}
    stages = {number: build_stage(DROPPING, n_stages, number, **options) for number in own}
    engine = PipelineEngine(schedule, comm, stages, token_loss, count_targets)
    parameters = parameters_of(stages.values())
    optimiser = torch.optim.SGD(parameters.values(), lr=0.1, momentum=0.9)
    batch = tokens(6)
    losses, left, peaks = [], [], []
    for step in range(5):
        with HeldBytes(ignore=[*parameters.values(), *batch]) as held:
            result = engine.run(batch if 0 in own else None, 0, step)
        left.append(held.live_bytes)
        peaks.append(held.peak_bytes)
        losses.append(result.loss)
        optimiser.step()
        optimiser.zero_grad()
    return losses, {name: p.detach() for name, p in parameters.items()}, left, peaks


# one schedule with whole backwards, one with split ones, one with two stages on a rank
@pytest.mark.parametrize("name", ["1f1b", "zero-bubble-h1", "zbv"])
def test_five_steps_of_the_engine_are_the_same_and_leave_nothing(name):
    n_ranks = 2

    def run(checkpoint):
        return run_simulated(trained, n_ranks, (name, 3, checkpoint)).results

    plain = run("none")
    for checkpoint in ("block", "stage"):
        for (losses, got, left, peaks), (want_losses, want, _, want_peaks) in zip(
            run(checkpoint), plain, strict=True
        ):
            assert losses == want_losses
            assert_same(got, want)
            assert left == [0] * 5
            assert len(set(peaks)) == 1 and peaks[0] < 0.5 * want_peaks[0]


def test_training_has_the_losses_of_the_serial_run_bit_for_bit(tmp_path):
    serial = losses_of(small(tmp_path, pp=1, dropout=0.2), 3)
    config = small(tmp_path, pp=2, schedule="zero-bubble-h1", dropout=0.2, checkpoint="block")
    assert losses_of(config, 3) == serial


def test_a_training_run_with_a_checkpoint_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="checkpoint='all' is unknown"):
        TrainConfig(checkpoint="all")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_on_a_gpu_the_second_run_finds_the_queue_of_the_first(split):
    def gradients_of(checkpoint):
        (stage,) = stages_of(DROPPING, 1, checkpoint)
        stage.cuda()
        x, targets = (part.cuda() for part in tokens())
        queue = WeightQueue() if split else None
        with deferring(queue):
            loss = token_loss(stage(x, KEY), targets)
        with opened(queue):
            loss.backward()
        if queue is not None:
            queue.drain()
        return gradients([stage])

    want = gradients_of("none")
    for checkpoint in MODES:
        assert_same(gradients_of(checkpoint), want)
