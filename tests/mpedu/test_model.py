import math

import pytest
import torch
from small_gpt import (
    DROPPING,
    SMALL,
    chained,
    gradients,
    moved,
    parameters_of,
    reference,
    reference_loss,
    stages_of,
    tokens,
)
from torch.utils.checkpoint import checkpoint

from mpedu.keyed import Key, keyed_generator
from mpedu.model import (
    IGNORE,
    GPTConfig,
    GPTStage,
    build_stage,
    count_targets,
    layers_of_stage,
    token_loss,
)

KEY = Key(seed=0, step=2, microbatch=1)
FP64_RTOL = 1e-10


def test_outputs_and_all_gradients_equal_a_model_written_out():
    stages = moved(stages_of(SMALL, 2))
    copies = {n: p.detach().clone().requires_grad_() for n, p in parameters_of(stages).items()}
    x, targets = tokens()
    y, expected = chained(stages, x), reference(copies, x, SMALL)
    assert torch.allclose(y, expected, rtol=FP64_RTOL, atol=FP64_RTOL)
    token_loss(y, targets).backward()
    reference_loss(expected, targets).backward()
    for name, grad in gradients(stages).items():
        # keys shift all scores of a query alike: their bias has a gradient of 0 but for rounding
        scale = float(copies[name].grad.abs().max())
        assert scale > 1e-3, name
        assert float((grad - copies[name].grad).abs().max()) <= FP64_RTOL * scale, name


@pytest.mark.parametrize("n_stages", [1, 2, 3, 4])
def test_every_split_starts_from_the_same_named_parameters(n_stages):
    whole, split = (parameters_of(stages_of(SMALL, n, torch.float32)) for n in (1, n_stages))
    assert list(whole) == list(split)
    assert all(torch.equal(whole[name], split[name]) for name in whole)
    assert {"token_embedding.weight", "position_embedding.weight", "head.weight"} <= set(split)
    assert {"blocks.3.attention.qkv.weight", "final_norm.weight"} <= set(split)


@pytest.mark.parametrize("config", [SMALL, DROPPING], ids=["plain", "dropout"])
@pytest.mark.parametrize("n_stages", [2, 3, 4])
def test_every_split_has_the_same_outputs_and_gradients(n_stages, config):
    whole, split = (moved(stages_of(config, n)) for n in (1, n_stages))
    x, targets = tokens()
    y, expected = chained(split, x, KEY), chained(whole, x, KEY)
    assert torch.equal(y, expected)
    token_loss(y, targets).backward()
    token_loss(expected, targets).backward()
    pairs = gradients(split), gradients(whole)
    assert all(torch.equal(pairs[0][name], pairs[1][name]) for name in pairs[1])


@pytest.mark.parametrize("position", [1, 4, 6])
def test_a_later_token_changes_nothing_earlier(position):
    stages = moved(stages_of(SMALL, 2))
    x, _ = tokens()
    changed = x.clone()
    changed[:, position] = (changed[:, position] + 1) % 17
    before, after = chained(stages, x), chained(stages, changed)
    assert torch.allclose(before[:, :position], after[:, :position], rtol=1e-12, atol=1e-12)
    assert ((before - after)[:, position:].abs().amax(-1) > 1e-6).all()


def test_samples_do_not_see_each_other():
    stages = moved(stages_of(SMALL, 1))
    x, _ = tokens()
    alone = torch.cat([chained(stages, sample[None]) for sample in x])
    assert torch.allclose(chained(stages, x), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "key", [None, KEY._replace(step=3), KEY._replace(microbatch=0), KEY._replace(seed=1)]
)
def test_dropout_follows_the_key(key):
    stages = stages_of(DROPPING, 1)
    x, _ = tokens()
    y = chained(stages, x, KEY)
    assert torch.equal(chained(stages, x, KEY), y)
    assert not torch.allclose(chained(stages, x, key), y)


def test_every_residual_branch_drops_by_a_mask_of_its_own():
    x, masks = torch.ones(4, 9, 12, dtype=torch.float64), set()
    for layer in range(4):
        block = build_stage(DROPPING, 4, layer, dtype=torch.float64).blocks[str(layer)]
        branches = [block.attention.out, block.ffn.down]
        for branch in branches:
            for linear in branches:
                torch.nn.init.zeros_(linear.weight)
                torch.nn.init.constant_(linear.bias, float(linear is branch))
            # one branch adds 1 everywhere, the other nothing: what is added is the mask
            masks.add(tuple((block(x, KEY) - x).flatten().tolist()))
    assert len(masks) == 8
    assert all({round(value, 9) for value in mask} == {0.0, round(1 / 0.7, 9)} for mask in masks)


def test_a_model_in_evaluation_drops_nothing():
    (stage,) = stages_of(DROPPING, 1)
    x, _ = tokens()
    without = stage(x)
    assert torch.equal(stage.eval()(x, KEY), without)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recomputed_stage_gives_bit_equal_gradients(use_reentrant):
    x, targets = tokens()
    runs = [moved(stages_of(DROPPING, 2, torch.float32)) for _ in range(2)]
    token_loss(chained(runs[0], x, KEY), targets).backward()
    h = runs[1][0](x, KEY)
    y = checkpoint(runs[1][1], h, KEY, use_reentrant=use_reentrant)
    token_loss(y, targets).backward()
    pairs = gradients(runs[0]), gradients(runs[1])
    assert all(torch.equal(pairs[0][name], pairs[1][name]) for name in pairs[0])


def test_torchs_global_random_state_is_neither_read_nor_changed():
    x, _ = tokens()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    y = chained(stages_of(DROPPING, 2), x, KEY)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(chained(stages_of(DROPPING, 2), x, KEY), y)


def test_what_crosses_a_boundary_is_contiguous_and_owns_its_memory():
    x, _ = tokens()
    for stage in stages_of(DROPPING, 3):
        x = stage(x, KEY)
        assert x.is_contiguous()
        assert not x._is_view()
        assert x.untyped_storage().nbytes() == x.numel() * x.element_size()


def test_a_dry_run_without_data_gives_the_shape_of_every_stage():
    x, shapes = torch.empty(5, 8, dtype=torch.int64, device="meta"), []
    for stage in stages_of(DROPPING, 2, torch.float32):
        named = {name: p.to("meta") for name, p in stage.named_parameters()}
        x = torch.func.functional_call(stage, named, (x, KEY))
        shapes.append((tuple(x.shape), x.dtype, x.device.type))
    assert shapes == [((5, 8, 12), torch.float32, "meta"), ((5, 8, 17), torch.float32, "meta")]


def test_initial_values_have_the_deviations_of_gpt_2():
    config = GPTConfig(n_layers=8)
    (stage,) = stages_of(config, 1, torch.float32)
    p = {name: value.detach() for name, value in stage.named_parameters()}
    for name in ("token_embedding.weight", "blocks.7.attention.qkv.weight", "head.weight"):
        assert math.isclose(float(p[name].std()), 0.02, rel_tol=0.03), name
    for name in ("blocks.0.attention.out.weight", "blocks.7.ffn.down.weight"):
        assert math.isclose(float(p[name].std()), 0.02 / 4, rel_tol=0.03), name
    assert all(not value.any() for name, value in p.items() if name.endswith("bias"))
    norms = [value for name, value in p.items() if name.endswith("norm.weight")]
    assert len(norms) == 17
    assert all((value == 1).all() for value in norms)


def test_layers_and_seeds_start_from_different_values():
    config, name = GPTConfig(n_layers=2), "blocks.0.ffn.up.weight"
    values = [dict(build_stage(config, 1, 0, seed).named_parameters()) for seed in (0, 1)]
    assert not torch.equal(values[0][name], values[1][name])
    assert not torch.equal(values[0][name], values[0]["blocks.1.ffn.up.weight"])


def test_a_wider_type_holds_the_same_initial_values():
    single, double = (build_stage(SMALL, 2, 1, dtype=d) for d in (torch.float32, torch.float64))
    for p, q in zip(single.parameters(), double.parameters(), strict=True):
        assert q.dtype == torch.float64
        assert torch.equal(p.double(), q)


@pytest.mark.parametrize("n_layers", range(1, 14))
def test_stages_share_the_layers_without_gap_and_evenly(n_layers):
    for n_stages in range(1, n_layers + 1):
        parts = [layers_of_stage(n_layers, n_stages, stage) for stage in range(n_stages)]
        assert [layer for part in parts for layer in part] == list(range(n_layers))
        counts = [len(part) for part in parts]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] - counts[-1] <= 1


@pytest.mark.parametrize(
    ("n_layers", "n_stages", "stage", "message"),
    [
        (4, 8, 0, "n_stages=8 with n_layers=4: .* give n_stages <= 4 or n_layers >= 8"),
        (4, 2, 2, r"stage=2 does not exist: n_stages=2 is 0\.\.1"),
        (4, 2, -1, "stage=-1 is too small"),
        (4, 0, 0, "n_stages=0 is too small"),
        (0, 1, 0, "n_layers=0 is too small"),
    ],
)
def test_a_stage_without_layers_is_refused_with_the_numbers(n_layers, n_stages, stage, message):
    with pytest.raises(ValueError, match=message):
        layers_of_stage(n_layers, n_stages, stage)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 10, "n_heads": 4}, "d_model=10 is not divisible by n_heads=4"),
        ({"n_layers": 0}, "n_layers=0 is too small"),
        ({"vocab_size": 2.5}, "vocab_size=2.5 is not a whole number"),
        ({"d_ff": 0}, "ffn_width=0 is too small"),
        ({"n_heads": 0}, "n_heads=0 is too small"),
        ({"dropout": 1.0}, "dropout=1.0 is not a share in"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_their_values(sizes, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**sizes)


def test_the_feed_forward_layer_is_four_times_as_wide_unless_said_otherwise():
    (stage,) = stages_of(GPTConfig(d_model=8, n_heads=2), 1)
    assert stage.blocks["0"].ffn.up.weight.shape == (32, 8)
    (stage,) = stages_of(GPTConfig(d_model=8, n_heads=2, d_ff=5), 1)
    assert stage.blocks["0"].ffn.up.weight.shape == (5, 8)


@pytest.mark.parametrize(
    ("stage", "x", "message"),
    [
        (0, torch.zeros(2, 3), r"stage 0 got torch.float32 \[2, 3\]; give int64 \[samples, tok"),
        (0, torch.zeros(3, dtype=torch.int64), r"stage 0 got torch.int64 \[3\]; give int64"),
        (1, torch.zeros(2, 3, 5), r"stage 1 got .* \[2, 3, 5\]; give float \[samples, tokens, 12"),
        (1, torch.zeros(2, 3, dtype=torch.int64), "stage 1 got torch.int64"),
        (0, torch.zeros(2, 10, dtype=torch.int64), "10 tokens per sample with n_positions=9"),
    ],
)
def test_an_input_of_another_stage_is_refused(stage, x, message):
    with pytest.raises(ValueError, match=message):
        build_stage(SMALL, 2, stage)(x)


def test_the_loss_is_a_sum_over_the_targets_that_count():
    logits, targets = (
        torch.randn(3, 7, 17, generator=keyed_generator("logits")).double(),
        tokens()[1],
    )
    targets[0, 2:] = IGNORE
    logs = logits.softmax(-1).log()
    places = [(s, t) for s in range(3) for t in range(7) if targets[s, t] >= 0]
    expected = -sum(logs[s, t, targets[s, t]] for s, t in places)
    assert torch.allclose(token_loss(logits, targets), expected, rtol=FP64_RTOL)
    assert count_targets(targets) == len(places) == 16


def test_pieces_of_a_batch_add_up_to_its_loss():
    logits, (_, targets) = (
        torch.randn(3, 7, 17, generator=keyed_generator("logits")).double(),
        tokens(),
    )
    pieces = zip(logits.tensor_split(2), targets.tensor_split(2), strict=True)
    total = sum(token_loss(*piece) for piece in pieces)
    assert torch.allclose(total, token_loss(logits, targets), rtol=FP64_RTOL)


def test_a_batch_without_targets_has_no_loss_and_no_gradient():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    targets = torch.full((2, 3), IGNORE)
    loss = token_loss(logits, targets)
    loss.backward()
    assert (float(loss.detach()), count_targets(targets)) == (0.0, 0)
    assert not logits.grad.any()


def test_a_stage_is_an_ordinary_module():
    stage = build_stage(SMALL, 2, 1)
    other = build_stage(SMALL, 2, 1, seed=1)
    assert isinstance(stage, GPTStage)
    other.load_state_dict(stage.state_dict())
    x = torch.ones(1, 2, 12)
    assert torch.equal(stage(x), other(x))
