"""Training with stages of any cut, measured or asked for: the same losses, told and kept."""

import re
import signal
from dataclasses import replace
from functools import partial

import pytest
import torch
from pipelines import error
from small_runs import command, small

from mpedu import layer_costs
from mpedu import train as module
from mpedu.__main__ import main
from mpedu.alone import Alone
from mpedu.launch import run_ranks
from mpedu.layer_costs import LayerCosts
from mpedu.mesh import Mesh
from mpedu.model import GPTConfig
from mpedu.train_config import TrainConfig
from mpedu.training import Trainer


@pytest.fixture(autouse=True, scope="module")
def handler():
    """The signal handler that a command sets, set back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def five_steps(comm, config):
    """The gradients of each step and the weights after them, of this rank's stages."""
    mesh = Mesh(comm, config.pp, config.dp)
    trainer = Trainer(mesh, config, config.make_schedule())
    corpus, found = config.load_corpus() if 0 in trainer.stages else None, {}
    for step in range(1, 6):
        trainer.run(corpus, step)
        found |= {f"{name} at step {step}": p.grad.clone() for name, p in trainer.parameters()}
        trainer.update(step)
    sizes = {stage: len(module.blocks) for stage, module in trainer.stages.items()}
    return sizes, found | {name: p.detach() for name, p in trainer.parameters()}


@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize(
    ("schedule", "n_chunks", "cut"),
    [
        ("1f1b", None, (5, 1)),
        ("gpipe", None, (2, 4)),
        ("interleaved", 3, (1, 1, 1, 1, 1, 1)),
        ("interleaved", 2, (1, 3, 1, 1)),
        ("zbv", None, (1, 2, 1, 2)),
    ],
)
def test_any_cut_has_the_gradients_and_weights_of_the_serial_run(
    tmp_path, dp, schedule, n_chunks, cut
):
    config = small(tmp_path, pp=1, n_layers=6, n_samples=9, dtype="float64", n_microbatches=4)
    config = replace(config, model=replace(config.model, tied=True))
    _, expected = five_steps(Alone(), config)
    shared = {"schedule": schedule, "n_chunks": n_chunks, "cut": cut}
    config = replace(config, pp=2, dp=dp, **shared)
    sizes, found = {}, {}
    for of_rank, tensors in run_ranks(five_steps, 2 * dp, config, machine="simulated").results:
        sizes |= of_rank
        found |= tensors
    assert [size for _, size in sorted(sizes.items())] == list(cut) == config.n_blocks
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        assert error(found[name], x) <= 1e-10, name


def test_an_even_cut_has_one_name():
    model = GPTConfig(n_layers=7)
    assert TrainConfig(model=model, cut=(4, 3)) == TrainConfig(model=model)
    assert TrainConfig(model=model, cut=[3, 4]).cut == (3, 4)  # as a file holds it


# ---- the command ----


@pytest.mark.parametrize(("head_s", "blocks"), [(0.0, "4,4"), (2.0, "5,3"), (20.0, "7,1")])
def test_a_cut_by_cost_is_measured_told_and_kept(tmp_path, monkeypatch, capsys, head_s, blocks):
    asked = []

    def measured(*given):
        asked.append(given)
        return LayerCosts(0.0, 1.0, head_s)

    monkeypatch.setattr(module, "measured_costs", measured)
    words = ["--layers", 8, "--steps", 1, "--cut", "measured", "--cpu"]
    assert command(tmp_path, *words, "--out", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert f"pipeline: 2 ranks, 1f1b, blocks {blocks}\n" in said
    assert (
        "cut as measured: embedding 0.00 ms, a block 1000.00 ms, head and loss "
        f"{1000 * head_s:.2f} ms for a forward and backward of a micro-batch\n"
    ) in said
    ((config, use_gpus),) = asked
    assert (config.pp, config.model.n_layers, use_gpus) == (2, 8, False)
    capsys.readouterr()
    assert main(["train", "--resume", "--steps", "2", "--out", str(tmp_path / "run")]) == 0
    assert f"blocks {blocks}\n" in capsys.readouterr().out and len(asked) == 1


def test_layers_are_measured_on_a_rank_as_the_run_uses_them(tmp_path, monkeypatch):
    built = []
    real = layer_costs.build_stage

    def noted(*given, **more):
        built.append(more)
        return real(*given, **more)

    config = small(tmp_path, dp=2, n_samples=11, n_microbatches=3, dtype="float64", checkpoint=1)
    monkeypatch.setattr(layer_costs, "build_stage", noted)
    monkeypatch.setattr(module, "measure_layers", partial(module.measure_layers, n_repetitions=1))
    found = module._measure(Alone(), config)
    assert built == [{"dtype": torch.float64, "checkpoint": 1}] * 3
    assert found.block_s > 0 and min(found) >= 0
    monkeypatch.setattr(module, "measure_layers", lambda model, n_samples, **_: n_samples)
    assert module._measure(Alone(), config) == 2  # 6 or 5 samples in 3 micro-batches


def test_a_cut_by_cost_of_this_machine_trains(tmp_path, capsys):
    words = ["--layers", 4, "--steps", 2, "--cut", "measured"]
    assert command(tmp_path, *words) == 0
    said = capsys.readouterr().out
    cut = re.search(r"pipeline: 2 ranks, 1f1b, blocks (\d),(\d)\ncut as measured: ", said)
    assert sum(map(int, cut.groups())) == 4


def test_a_run_goes_on_with_its_own_cut_only(tmp_path, capsys):
    out = tmp_path / "run"
    shared = ["--layers", 3, "--out", out]
    assert command(tmp_path, *shared, "--steps", 1, "--cut", "1,2") == 0
    again = ["train", "--resume", "--steps", "2", "--out", str(out)]
    for cut, said in (
        ("2,1", "is of another run: --cut=[1, 2] there, --cut='even' here; ask for what it was"),
        ("even", "is of another run: --cut=[1, 2] there, --cut='even' here; ask for what it was"),
        ("measured", "--cut measured with --resume: a run goes on with the cut it was saved with"),
        ("1,1,1", "--cut=1,1,1 is 3 blocks in 3 stages, and the run has 3 blocks in 2 stages"),
    ):
        capsys.readouterr()
        assert main([*again, "--cut", cut]) == 2
        seen = capsys.readouterr().err
        assert said in seen and seen.count("\n") == 1
    assert main([*again, "--cut", "1,2"]) == 0
    assert "pipeline: 2 ranks, 1f1b, blocks 1,2\n" in capsys.readouterr().out
