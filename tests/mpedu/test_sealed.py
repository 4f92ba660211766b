import numpy as np
import pytest
import torch

from mpedu.families import gpipe, naive
from mpedu.runs import CAUSES
from mpedu.schedule import Action
from mpedu.sealed import LEARNING_RATE, N_STEPS, sealed_run
from mpedu.validate import validate_schedule

RAGGED, EVEN = (3, 3, 2, 2), (3, 3, 3)
K = 3


def drawn(n_stages, n_samples, seed):
    """Layers, inputs and targets as `sealed_run` draws them, as tensors."""
    rng = np.random.default_rng(seed)
    layers = [rng.normal(scale=1.2 / 3**0.5, size=(3, 3)) for _ in range(n_stages)]
    teacher = rng.normal(scale=1.2 / 3**0.5, size=(3, 3))
    x = rng.normal(size=(n_samples, 3))
    layers = [torch.tensor(layer, requires_grad=True) for layer in layers]
    return layers, torch.tensor(x), torch.tensor(np.tanh(x @ teacher))


def forward(layers, x):
    for layer in layers:
        x = torch.tanh(x @ layer)
    return x


def piece_losses(layers, x, targets, sizes):
    """The mean loss of each piece: half the squared error of a sample."""
    errors = (forward(layers, x) - targets).split(list(sizes))
    return [(error**2).sum() / 2 / len(error) for error in errors]


def trained(sizes, weigh, seed=0, clears=True):
    """The losses of training by autograd on what `weigh` makes of the mean losses."""
    layers, x, targets = drawn(K, sum(sizes), seed)
    optimiser = torch.optim.SGD(layers, lr=LEARNING_RATE)
    losses = []
    for _ in range(N_STEPS):
        pieces = piece_losses(layers, x, targets, sizes)
        losses.append(
            sum(z * float(p.detach()) for z, p in zip(sizes, pieces, strict=True)) / sum(sizes)
        )
        if clears:
            optimiser.zero_grad()
        weigh(pieces).backward()
        optimiser.step()
    return losses


def mean_of_batch(sizes):
    return lambda pieces: sum(z * p for z, p in zip(sizes, pieces, strict=True)) / sum(sizes)


PLANTED = {
    "none": lambda sizes: mean_of_batch(sizes),
    "loss_not_divided": lambda sizes: sum,
    "divided_twice": lambda sizes: lambda pieces: mean_of_batch(sizes)(pieces) / len(sizes),
    "equal_weights": lambda sizes: lambda pieces: sum(pieces) / len(pieces),
    "only_last_microbatch": lambda sizes: lambda pieces: pieces[-1] * sizes[-1] / sum(sizes),
    "gradients_not_cleared": lambda sizes: mean_of_batch(sizes),
}


TRAINED = [(c, z) for c in PLANTED for z in (RAGGED, EVEN) if (c, z) != ("equal_weights", EVEN)]


@pytest.mark.parametrize(("cause", "sizes"), TRAINED)
def test_a_run_trains_as_autograd_does_with_the_same_fault(cause, sizes):
    run = sealed_run(cause, gpipe(K, len(sizes)), sizes, np.random.default_rng(0))
    planted = trained(sizes, PLANTED[cause](sizes), clears=cause != "gradients_not_cleared")
    assert run.losses == pytest.approx(planted, rel=1e-12)
    assert run.serial_losses == pytest.approx(trained(sizes, mean_of_batch(sizes)), rel=1e-12)


RATIOS = {
    "none": [0.3, 0.3, 0.2, 0.2],
    "loss_not_divided": [1, 1, 1, 1],
    "divided_twice": [0.075, 0.075, 0.05, 0.05],
    "equal_weights": [0.25] * 4,
    "only_last_microbatch": [0, 0, 0, 0.2],
    "gradients_not_cleared": [0.3, 0.3, 0.2, 0.2],
}


@pytest.mark.parametrize("cause", RATIOS)
def test_a_ratio_is_the_weight_with_which_a_microbatch_counted(cause):
    run = sealed_run(cause, gpipe(K, 4), RAGGED, np.random.default_rng(0))
    assert run.gradient_ratios == pytest.approx(RATIOS[cause], abs=1e-12)


def test_a_stage_out_of_order_pairs_gradients_with_other_microbatches():
    """Two stages, the last turned round: the first gets the gradients in reversed order."""
    run = sealed_run("order_differs", gpipe(2, 3), EVEN, np.random.default_rng(5))
    layers, x, targets = drawn(2, 9, seed=5)
    first = torch.tanh(x @ layers[0])
    arriving = first.detach().requires_grad_()
    right = mean_of_batch(EVEN)(piece_losses(layers[1:], arriving, targets, EVEN))
    right.backward()
    crossed = torch.cat(arriving.grad.split(3)[::-1])
    pieces = piece_losses(layers, x, targets, EVEN)
    for m, ratio in enumerate(run.gradient_ratios):
        here = slice(3 * m, 3 * m + 3)
        serial = torch.autograd.grad(pieces[m], layers, retain_graph=True)
        y = torch.tanh(x[here] @ layers[0])
        (wrong,) = torch.autograd.grad(y, layers[0], crossed[here])
        given = [wrong, serial[1] / 3]
        along = sum((a * b).sum() for a, b in zip(given, serial, strict=True))
        assert ratio == pytest.approx(float(along / sum((s * s).sum() for s in serial)), rel=1e-9)


@pytest.mark.parametrize("sizes", [RAGGED, EVEN], ids=["ragged", "even"])
@pytest.mark.parametrize("stage", range(K))
def test_only_that_stage_is_out_of_order_and_only_among_equal_sizes(stage, sizes):
    schedule = gpipe(K, len(sizes))
    rng = np.random.default_rng(0)
    run = sealed_run("order_differs", schedule, sizes, rng, stage=stage)
    changed = [s for s in range(K) if run.schedule[s] != schedule[s]]
    assert changed == [stage] and schedule == gpipe(K, len(sizes))
    assert sorted(run.schedule[stage]) == sorted(schedule[stage])
    for before, after in zip(schedule[stage], run.schedule[stage], strict=True):
        assert before.kind == after.kind
        assert sizes[before.microbatch] == sizes[after.microbatch]
    assert {fault.kind for fault in validate_schedule(run.schedule)} == {"channel_order"}


def test_the_first_loss_is_the_serial_one_whatever_is_planted():
    runs = [sealed_run(c, gpipe(K, 4), RAGGED, np.random.default_rng(7)) for c in CAUSES]
    assert len(runs) == 7 and len({run.serial_losses for run in runs}) == 1
    for run in runs:
        assert run.losses[0] == pytest.approx(run.serial_losses[0], rel=1e-12)


def test_an_order_that_is_the_same_everywhere_changes_nothing():
    runs = []
    descending = [
        [*actions[:4], *(Action("B", stage, m) for m in (3, 2, 1, 0))]
        for stage, actions in enumerate(gpipe(K, 4))
    ]
    for schedule in (gpipe(K, 4), naive(K, 4), descending):
        runs.append(sealed_run("none", schedule, RAGGED, np.random.default_rng(1)))
    for run in runs:
        assert run.losses == pytest.approx(run.serial_losses, rel=1e-12)


@pytest.mark.parametrize(
    ("cause", "schedule", "sizes", "sentence"),
    [
        ("bad_luck", gpipe(2, 2), (1, 1), "cause='bad_luck' is unknown; choose one of none, "),
        ("equal_weights", gpipe(2, 2), (3, 3), "equal weights are right for equal sizes"),
        ("order_differs", gpipe(2, 2), (3, 2), "no two of the sizes"),
        ("order_differs", gpipe(1, 2), (3, 3), "n_stages=1"),
        ("order_differs", naive(2, 2), (3, 3), "cannot finish"),
        ("none", gpipe(2, 1), (3,), "n_microbatches=1"),
        ("none", gpipe(2, 2), (3, 0), "size=0"),
    ],
)
def test_a_cause_that_cannot_be_planted_is_refused(cause, schedule, sizes, sentence):
    with pytest.raises(ValueError, match=sentence):
        sealed_run(cause, schedule, sizes, np.random.default_rng(0))
