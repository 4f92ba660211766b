"""What torch holds, compared with its own record, and what unit 04 shows of it."""

import json
import re
from pathlib import Path

import pytest
import torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from mpedu.families import gpipe
from mpedu.saved import (
    checkpoint_beside_plain,
    memory_on_ranks,
    tanh_beside_torch,
    torch_holds,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "checkpoint_memory.json").read_text())
CHAINS = [case for case in ORACLE["cases"] if case["kind"] == "tanh"]


@pytest.mark.parametrize("case", CHAINS, ids=lambda case: f"{case['n']}-{case['segments']}")
def test_torch_holds_what_its_record_says(case):
    recorded = case["saved_after_forward_in_activations"]
    assert torch_holds(case["n"], case["segments"]) == recorded


def test_sixty_four_layers_in_eight_segments_hold_fifteen():
    assert [torch_holds(64, s) for s in (0, 8, 2, 1, 64)] == [64, 15, 33, 64, 64]


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, _ = ctx.saved_tensors
        return gradient * (1 - x * x)


def test_a_tanh_of_ones_own_is_told_how_far_off_it_is_and_what_it_keeps():
    assert repr(tanh_beside_torch(torch.tanh)) == (
        "off by 0 from torch's gradient; 1 activation(s) saved"
    )
    told = tanh_beside_torch(Keeps.apply)
    assert re.fullmatch(r"off by [1-9]\S* from torch's gradient; 2 activation\(s\) saved", told)


def forgetful(function, x):
    return torch_checkpoint(function, x, use_reentrant=False, preserve_rng_state=False)


def mindful(function, x):
    return torch_checkpoint(function, x, use_reentrant=False)


def test_a_checkpoint_that_forgets_the_random_numbers_is_off_with_dropout_only():
    without, dropped = checkpoint_beside_plain(forgetful).splitlines()[1:]
    assert without == "without dropout: gradients off by 0"
    assert re.fullmatch(r"dropout 0\.2: gradients off by [1-9].*", dropped)
    assert "dropout 0.2: gradients off by 0" in checkpoint_beside_plain(mindful)


def test_a_checkpoint_without_gradients_is_off_everywhere():
    def records_nothing(function, x):
        with torch.no_grad():
            y = function(x)
        return y + 0 * x

    for line in checkpoint_beside_plain(records_nothing).splitlines()[1:]:
        assert not line.endswith("off by 0")


def test_on_ranks_checkpoints_lower_the_peak_and_change_no_gradient():
    heads, *rows = memory_on_ranks(gpipe(2, 2), n_layers=4).splitlines()
    assert heads.split() == "checkpoint rank 0 rank 1 gradients off by".split()
    choices = {row.split()[0]: row.split()[1:] for row in rows}
    assert list(choices) == ["none", "block", "stage"]
    assert all(row[-1] == "0" for row in choices.values())
    for rank in (0, 2):
        none, block, stage = (float(row[rank]) for row in choices.values())
        assert block < stage < none
