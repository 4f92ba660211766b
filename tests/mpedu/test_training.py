import math
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from pipelines import error
from small_runs import losses_of, metrics, small

from mpedu.alone import Alone
from mpedu.checkpoint import Checkpoint, latest_checkpoint
from mpedu.mesh import Mesh
from mpedu.model import GPTConfig, build_stage, count_targets, token_loss
from mpedu.train import train
from mpedu.train_config import CHECKPOINTS, DTYPES, Plan, TrainConfig, about_run, run_of
from mpedu.training import WARM_UP_STEPS, Trainer

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


class Trained(NamedTuple):
    losses: list
    norms: list
    weights: dict


def trained(config, folder, n_steps=20):
    """Losses, gradient norms, and the weights at the end."""
    losses = losses_of(config, n_steps, folder=folder)
    checkpoint, weights = latest_checkpoint(folder / CHECKPOINTS), {}
    assert len(checkpoint.about["files"]) == config.pp  # the data ranks hold the same
    for rank in range(config.pp):
        for name, x in checkpoint.load(rank).items():
            assert torch.equal(x, weights.setdefault(name, x))  # copies of a tied one
    return Trained(losses, [word["gradient_norm"] for word in metrics(folder)], weights)


@pytest.fixture(scope="module", params=[False, True], ids=["own head", "tied"])
def serial_in_float64(request, place, tmp_path_factory):
    """The serial run of 11 samples, more of which a part of the ranks takes, and its config."""
    config = small(place, pp=1, n_layers=4, n_samples=11, dtype="float64")
    config = replace(config, model=replace(config.model, tied=request.param))
    return config, trained(config, tmp_path_factory.mktemp("serial"))


@pytest.mark.parametrize(
    ("pp", "dp", "schedule"),
    [(2, 2, "1f1b"), (2, 2, "zbv"), (2, 2, "interleaved"), (1, 2, "gpipe")],
)
def test_data_ranks_train_as_the_serial_run_does(serial_in_float64, tmp_path, pp, dp, schedule):
    config, serial = serial_in_float64
    found = trained(replace(config, pp=pp, dp=dp, schedule=schedule), tmp_path)
    assert found.losses == pytest.approx(serial.losses, rel=1e-9, abs=0)
    assert found.norms == pytest.approx(serial.norms, rel=1e-9, abs=0)
    assert len(set(serial.losses)) == 20 and max(serial.norms) > config.clip_norm
    assert found.weights.keys() == serial.weights.keys()
    for name, weight in serial.weights.items():
        if name.startswith("model."):
            assert error(found.weights[name], weight) <= 1e-9, name


def test_data_ranks_drop_what_the_serial_run_drops_in_the_same_microbatches(place):
    shared = {"n_layers": 2, "dropout": 0.2, "n_samples": 8, "dtype": "float64"}
    serial = losses_of(small(place, pp=1, n_microbatches=4, **shared), 3)
    found = losses_of(small(place, pp=1, dp=2, n_microbatches=2, **shared), 3)
    assert found == pytest.approx(serial, rel=1e-9, abs=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_data_ranks_on_gpus_train_as_on_the_cpu(place):
    config = small(place, dp=2, n_samples=9, dtype="float64")
    on_cpu = train(config, Plan(5), use_gpus=False).losses
    assert losses_of(config, 5) == pytest.approx(on_cpu, rel=1e-9, abs=0)


@pytest.mark.parametrize(("clip_norm", "scaled"), [(0.5, True), (1e6, False)])
def test_gradients_are_scaled_to_the_norm_and_no_further(place, clip_norm, scaled):
    config = small(place, pp=1, clip_norm=clip_norm)
    trainer = Trainer(Mesh(Alone()), config, config.make_schedule())
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


@pytest.mark.parametrize(
    ("pp", "dp", "cut"), [(1, 1, "even"), (2, 1, "even"), (2, 1, (1, 2)), (2, 2, (1, 2))]
)
def test_a_run_goes_on_bit_for_bit(place, tmp_path, pp, dp, cut):
    shared = {"n_layers": 3, "dropout": 0.2, "n_samples": 9, "dtype": DTYPES[dp - 1]}
    config = small(place, pp=pp, dp=dp, cut=cut, **shared)
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
        (
            {"n_microbatches": 17},
            "16 samples .* into 17 micro-batches; give n_microbatches <= 16, ",
        ),
        (
            {"n_microbatches": 9, "dp": 2},
            "16 samples over dp=2 data ranks cannot be split into 9 micro-batches; "
            "give n_microbatches <= 8, or n_samples >= 18",
        ),
        (
            {"n_samples": 2, "dp": 3},
            "2 samples over dp=3 data ranks cannot be split into 8 micro-batches; "
            "give dp <= 2, or n_samples >= 24",
        ),
        ({"pp": 2, "dp": 200, "n_samples": 1600}, "pp=2 with dp=200: 400 ranks are too many for"),
        ({"dp": 0}, "dp=0 is too small; give dp >= 1"),
        ({"dtype": "float16"}, "dtype='float16' is unknown; choose float32 or float64"),
        (
            {"cut": (3, 2)},
            "cut=3,2 is 5 blocks in 2 stages, and the run has 4 blocks in 2 stages; ",
        ),
        ({"cut": (4,), "pp": 2}, "cut=4 is 4 blocks in 1 stage, .*; give 2 numbers, together 4"),
        ({"cut": (4, 0)}, "cut=4,0: a stage takes a whole number of blocks, 1 or more"),
        ({"cut": (2.5, 1.5)}, "cut=2.5,1.5: a stage takes a whole number of blocks, 1 or more"),
        ({"cut": 2}, "cut=2 is unknown; give 'even', or the blocks of each stage"),
        ({"cut": "thirds"}, "cut='thirds' is unknown; give 'even', or the blocks of each stage"),
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


@pytest.mark.parametrize(
    "given", [{}, {"n_samples": 10**6}, {"pp": 1}, {"dp": 2, "n_samples": 8}, {"dtype": "float64"}]
)
def test_a_run_that_memory_cannot_hold_is_told(place, given):
    config = small(place, **given)
    trainers = [build_stage(config.model, config.pp, stage) for stage in range(config.pp)]
    n_parameters = sum(p.numel() for stage in trainers for p in stage.parameters() if p.dim() > 1)
    held = config.dp * 4 * config.torch_dtype.itemsize * n_parameters
    needed = held + 16 * config.n_samples * config.n_tokens
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
