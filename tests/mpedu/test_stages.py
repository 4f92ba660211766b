import subprocess
import sys
from itertools import combinations, pairwise

import pytest
import torch
from torch import nn

from mpedu.cut import balanced_layers, cut_layers, layers_of_stage
from mpedu.keyed import Key, keyed_generator
from mpedu.layer_costs import LayerCosts, measure_layers
from mpedu.memory import LiveBytes
from mpedu.model import GPTConfig, build_stage
from mpedu.pipeline.stages import Spec, output_specs, takes_key, unpacked

FLOAT, DOUBLE = torch.float32, torch.float64


def spec(*shape, dtype=FLOAT):
    return Spec(shape, dtype)


def test_output_specs_come_in_the_order_of_the_inputs_from_one_run_each():
    runs = []

    def stage(x):
        runs.append(tuple(x.shape))
        return x.double().sum(1)

    inputs = [spec(3, 4), spec(3, 4), spec(2, 4), spec(3, 4)]
    want = [spec(n, dtype=DOUBLE) for n in (3, 3, 2, 3)]
    known = {}
    assert output_specs(stage, 0, inputs, "cpu", known) == want
    assert output_specs(stage, 0, [*inputs, spec(1, 4)], "cpu", known) == [
        *want,
        spec(1, dtype=DOUBLE),
    ]
    assert runs == [(3, 4), (2, 4), (1, 4)]


class Restless(nn.Module):
    """Draws from the global generator, counts in a buffer, one more by assignment."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return torch.dropout(self.norm(self.layer(x)), 0.5, True)


def test_the_run_on_zeros_leaves_nothing_behind():
    stage = Restless()
    before = {name: value.clone() for name, value in stage.state_dict().items()}
    random_state = torch.get_rng_state()
    assert output_specs(stage, 0, [spec(3, 4)], "cpu", {}) == [spec(3, 5)]
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, before[name]) for name, value in stage.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in stage.parameters())
    assert stage.training


def keyed(x, key):
    return x


def keyed_optionally(x, key=None):
    return x


@pytest.mark.parametrize(
    ("stage", "takes"),
    [
        (lambda x: x, False),
        (nn.Linear(2, 2), False),
        (lambda *, x: x, False),
        (keyed, True),
        (keyed_optionally, True),
    ],
)
def test_a_stage_gets_the_key_where_it_has_a_place_for_it(stage, takes):
    assert takes_key(stage) is takes


def test_a_layer_with_further_arguments_of_its_own_gets_no_key():
    assert not takes_key(torch.nn.TransformerEncoderLayer(4, 1))
    assert not takes_key(lambda x, scale=2.0: x * scale)
    assert takes_key(lambda x, key=None: x)


def test_a_result_is_y_or_y_and_aux():
    y, aux = torch.zeros(2), torch.ones(1)
    assert unpacked(y, 0) == (y, None)
    assert unpacked((y, aux), 0) == (y, aux)


def test_a_key_reaches_the_run_on_zeros():
    keys = []

    def stage(x, key):
        keys.append(key)
        return x

    output_specs(stage, 0, [spec(1)], "cpu", {})
    assert keys == [Key(0, 0, 0)]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (None, "stage 3 returned NoneType; a stage returns y or"),
        ((1, torch.zeros(1)), "stage 3 returned int"),
        ((torch.zeros(2),) * 3, "stage 3 returned tuple"),
        ((torch.zeros(2), 0.5), "stage 3 returned float as aux; give a tensor of one number"),
        ((torch.zeros(2), torch.zeros(2)), r"stage 3 returned a tensor \[2\] as aux"),
    ],
)
def test_another_result_is_refused(made, sentence):
    with pytest.raises(ValueError, match=sentence):
        unpacked(made, 3)


LARGE = GPTConfig(vocab_size=300, n_layers=8, d_model=64, n_positions=32)


def bytes_of(stage):
    return sum(p.nbytes for p in stage.parameters())


@pytest.mark.parametrize("dtype", [FLOAT, DOUBLE])
@pytest.mark.parametrize("number", range(4))
def test_a_stage_is_built_with_no_layer_of_another_in_memory(number, dtype):
    with LiveBytes() as live:
        stage = build_stage(LARGE, 4, number, dtype=dtype)
    drawn = max(p.numel() for p in stage.parameters()) * 4  # in float32
    if dtype == FLOAT:
        assert live.peak_bytes == live.live_bytes == bytes_of(stage)
    else:
        assert bytes_of(stage) == live.live_bytes <= live.peak_bytes <= bytes_of(stage) + drawn


def test_the_peak_of_a_stage_cut_out_of_the_whole_model_would_be_seen():
    with LiveBytes() as live:
        model = build_stage(LARGE, 1, 0)
        del model
        stage = build_stage(LARGE, 4, 1)
    assert live.peak_bytes > 4 * bytes_of(stage)


def test_initial_values_are_those_drawn_by_name_and_nothing_of_torch_is_loaded_to_draw_them():
    weight = build_stage(LARGE, 4, 3, seed=2).blocks["7"].ffn.up.weight
    generator = keyed_generator(2, "init", "blocks.7.ffn.up.weight")
    assert torch.equal(weight, torch.empty(256, 64).normal_(std=0.02, generator=generator))
    code = (
        "import sys; from mpedu.model import GPTConfig, build_stage; before = set(sys.modules); "
        "build_stage(GPTConfig(), 2, 0); print(len(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert int(done.stdout) < 20, done.stderr


def dearest(costs, first, last, cuts):
    ends = [0, *cuts, len(costs)]
    loads = [sum(costs[a:b]) for a, b in pairwise(ends)]
    loads[0] += first
    loads[-1] += last
    return max(loads)


@pytest.mark.parametrize("seed", range(40))
def test_no_other_cut_has_a_cheaper_dearest_stage(seed):
    drawn = torch.rand(12, generator=keyed_generator(seed)).tolist()
    n_layers, n_stages = 3 + seed % 6, 1 + seed % 3
    costs, first, last = drawn[:n_layers], 2 * drawn[-1], 3 * drawn[-2]
    parts = balanced_layers(costs, n_stages, first, last)
    assert [layer for part in parts for layer in part] == list(range(n_layers))
    assert len(parts) == n_stages and all(parts)
    least = min(
        dearest(costs, first, last, cuts) for cuts in combinations(range(1, n_layers), n_stages - 1)
    )
    assert dearest(costs, first, last, [part.start for part in parts[1:]]) == pytest.approx(least)


def test_layers_of_one_cost_are_cut_as_without_costs():
    for n_layers in range(1, 12):
        for n_stages in range(1, n_layers + 1):
            even = [layers_of_stage(n_layers, n_stages, stage) for stage in range(n_stages)]
            assert balanced_layers([0.5] * n_layers, n_stages) == even


def test_a_heavy_head_takes_blocks_from_the_last_stage():
    costs = LayerCosts(embedding_s=0.0, block_s=1.0, head_s=2.0)
    assert costs.cut(8, 2) == [range(0, 5), range(5, 8)]
    assert costs._replace(head_s=20.0).cut(8, 2) == [range(0, 7), range(7, 8)]
    with pytest.raises(ValueError, match="n_stages=3 with n_layers=2"):
        costs.cut(2, 3)
    with pytest.raises(ValueError, match="a cost is a number of 0 or more"):
        balanced_layers([1.0, float("nan")], 2)


def test_another_cut_has_the_same_parameters():
    parts = cut_layers(8, 3, (5, 2, 1))
    assert parts == [range(0, 5), range(5, 7), range(7, 8)]
    stages = [build_stage(LARGE, 3, k, layers=part) for k, part in enumerate(parts)]
    whole = dict(build_stage(LARGE, 1, 0).named_parameters())
    found = {name: p for stage in stages for name, p in stage.named_parameters()}
    assert found.keys() == whole.keys()
    assert all(torch.equal(p, whole[name]) for name, p in found.items())
    assert [len(stage.blocks) for stage in stages] == [5, 2, 1]


def test_a_measured_block_costs_more_with_more_to_do():
    small = measure_layers(GPTConfig(n_positions=8, d_model=32), 1, n_repetitions=3)
    large = measure_layers(GPTConfig(n_positions=64, d_model=256), 4, n_repetitions=3)
    assert 0 < small.block_s < large.block_s  # a hundred times the work
    assert min(*small, *large) >= 0
