import math
from dataclasses import replace

import pytest
import torch
from small_runs import losses_of, small

from mpedu.alone import Alone
from mpedu.checkpoint import Checkpoint, latest_checkpoint
from mpedu.model import GPTConfig, build_stage, count_targets, token_loss
from mpedu.train import train
from mpedu.training import CHECKPOINTS, WARM_UP_STEPS, Plan, TrainConfig, Trainer, about_run, run_of

STEPS = 12  # more than the warm-up takes
FP32 = 5e-6


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module")
def serial(place):
    """Four blocks, unequal micro-batches, dropout: the losses of the serial run."""
    return losses_of(cut(place, pp=1), STEPS)


def cut(place, **given):
    return small(place, n_layers=4, dropout=0.2, n_samples=7, **given)


@pytest.mark.parametrize(
    ("pp", "schedule"),
    [(2, "1f1b"), (4, "1f1b"), (2, "gpipe"), (4, "gpipe"), (3, "naive")],
)
def test_losses_are_those_of_the_serial_run_bit_for_bit(place, serial, pp, schedule):
    assert losses_of(cut(place, pp=pp, schedule=schedule), STEPS) == serial


def test_the_serial_run_is_a_plain_training_loop(place):
    config = small(place, pp=1)
    model = build_stage(config.model, 1, 0, config.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda done: min(1, (done + 1) / WARM_UP_STEPS)
    )
    corpus, expected = config.load_corpus(), []
    for step in range(1, STEPS + 1):
        inputs, targets = corpus.batch(step, config.n_samples, config.n_tokens, config.seed)
        optimiser.zero_grad()
        loss = token_loss(model(inputs), targets) / count_targets(targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimiser.step()
        rates.step()
        expected.append(loss.item())
    assert losses_of(config, STEPS) == pytest.approx(expected, rel=FP32)
    assert expected[-1] < expected[0] - 0.1


@pytest.mark.parametrize(("clip_norm", "scaled"), [(0.5, True), (1e6, False)])
def test_gradients_are_scaled_to_the_norm_and_no_further(place, clip_norm, scaled):
    config = small(place, pp=1, clip_norm=clip_norm)
    trainer = Trainer(Alone(), config, config.make_schedule())
    seen = []
    trainer.optimiser.register_step_pre_hook(
        lambda *_: seen.append([p.grad.clone() for _, p in trainer.parameters()])
    )
    trainer.run(config.load_corpus(), 1)
    given = torch.cat([p.grad.flatten() for _, p in trainer.parameters()]).double().norm()
    assert trainer.update(1) == pytest.approx(float(given)) and given > 0.5
    used = torch.cat([gradient.flatten() for gradient in seen[0]]).double().norm()
    assert float(used) == pytest.approx(clip_norm if scaled else float(given), rel=FP32)
    assert all(p.grad is None for _, p in trainer.parameters())


@pytest.mark.parametrize("pp", [1, 2])
def test_a_run_goes_on_bit_for_bit(place, tmp_path, pp):
    config = small(place, pp=pp, dropout=0.2)
    undisturbed = losses_of(config, 9)
    first = losses_of(config, 5, folder=tmp_path, save_every=2)
    resume = latest_checkpoint(tmp_path / CHECKPOINTS)
    assert (first, resume.step) == (undisturbed[:5], 5)
    assert run_of(resume) == (config, Plan(5, 2, tmp_path))
    assert train(config, Plan(9), resume).losses == undisturbed


def test_dropout_and_seed_change_the_losses(place):
    plain = losses_of(small(place), 3)
    assert losses_of(small(place, dropout=0.2), 3) != plain != losses_of(small(place, seed=1), 3)


@pytest.mark.parametrize(("n_steps", "saved"), [(2, [2]), (5, [3, 5]), (6, [3, 6])])
def test_checkpoints_are_planned_at_intervals_and_at_the_end(tmp_path, n_steps, saved):
    plan = Plan(n_steps, 3, tmp_path)
    assert [step for step in range(1, n_steps + 1) if plan.saves(step)] == saved
    assert not replace(plan, folder=None).saves(n_steps)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pp": 0}, "pp=0 is too small; give pp >= 1"),
        ({"pp": 5}, "pp=5 with n_layers=4: .* give pp <= 4 or n_layers >= 5"),
        ({"schedule": "zigzag"}, "schedule='zigzag' is unknown; choose one of naive, gpipe, 1f1b"),
        ({"n_microbatches": 17}, "16 samples cannot be split into 17 micro-batches; .* or fewer"),
        ({"n_microbatches": 2.0}, "n_microbatches=2.0 is not a whole number"),
        ({"seed": -1}, "seed=-1 is too small; give seed >= 0"),
        ({"seed": "a"}, "seed='a' is not a whole number"),
        ({"learning_rate": math.nan}, "learning_rate=nan is out of range; give a number above 0"),
        ({"learning_rate": math.inf}, "learning_rate=inf is out of range"),
        ({"learning_rate": 1e31}, "learning_rate=1e[+]31 is out of range; .* up to 1e[+]30"),
        ({"learning_rate": 0}, "learning_rate=0 is out of range"),
        ({"clip_norm": -1.0}, "clip_norm=-1.0 is out of range"),
        ({"device_clock_ms": 0.0}, "device_clock_ms=0.0 is out of range"),
        ({"model": GPTConfig(vocab_size=255)}, "vocab_size=255: a byte needs 256"),
    ],
)
def test_what_cannot_be_trained_is_told_with_its_numbers(given, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        TrainConfig(**given)


@pytest.mark.parametrize("given", [{}, {"n_samples": 10**6}, {"pp": 1}])
def test_a_run_that_memory_cannot_hold_is_told(place, given):
    config = small(place, **given)
    trainers = [build_stage(config.model, config.pp, stage) for stage in range(config.pp)]
    n_parameters = sum(p.numel() for stage in trainers for p in stage.parameters() if p.dim() > 1)
    needed = 16 * (n_parameters + config.n_samples * config.n_tokens)
    config.require_memory(needed)
    with pytest.raises(ValueError, match=f" make {n_parameters:,} parameters, .* this machine has"):
        config.require_memory(needed - 1)


@pytest.mark.parametrize("given", [{"n_steps": 0}, {"save_every": 0}, {"n_steps": 1.5}])
def test_a_plan_needs_whole_numbers_above_zero(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        Plan(**given)


def test_emulated_devices_take_twice_as_long_backward():
    assert TrainConfig().costs is None
    costs = TrainConfig(device_clock_ms=4.0).costs
    assert (costs.forward_s, costs.backward_s) == (0.004, 0.008)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda about: about.pop("config"), "KeyError: 'config'"),
        (lambda about: about.update(config=[]), "TypeError"),
        (lambda about: about["config"].pop("pp") and about["config"].update(x=1), "TypeError"),
        (lambda about: about["config"].update(pp=9), "pp=9 with n_layers=4"),
        (lambda about: about["config"].update(seed="a"), "seed='a' is not a whole number"),
        (lambda about: about["config"]["model"].update(n_heads=3), "not divisible by n_heads=3"),
        (lambda about: about.update(losses=[1.0]), "1 losses of 2 steps"),
        (lambda about: about.update(n_steps=None), "n_steps=None is not a whole number"),
    ],
)
def test_a_checkpoint_of_no_known_run_is_told_in_a_sentence(tmp_path, damage, said):
    about = about_run(TrainConfig(), Plan(), "a1b2", [1.0, 0.5])
    path = tmp_path / CHECKPOINTS / "step-000002"
    assert run_of(Checkpoint(path, 2, about)) == (TrainConfig(), Plan(folder=tmp_path))
    damage(about)
    with pytest.raises(
        ValueError, match=r"is of no run that this version knows .*; start anew"
    ) as e:
        run_of(Checkpoint(path, 2, about))
    assert said in str(e.value) and "\n" not in str(e.value)
