import pytest
import torch
from torch.utils.checkpoint import checkpoint

from mpedu.keyed import Key, dropout, keyed_generator

KEY = Key(seed=5, step=3, microbatch=1)


def draw(*numbers):
    return torch.rand(8, generator=keyed_generator(*numbers))


def ones(*shape):
    return torch.ones(shape or (64, 64), dtype=torch.float64)


def test_equal_keys_draw_the_same_numbers():
    assert torch.equal(draw(1, 2, "head"), draw(1, 2, "head"))


# The numbers of today: a change of the rule would silently break resumed runs and stored results.
def test_the_rule_from_key_to_seed_stays():
    assert keyed_generator(1, 2, "head").initial_seed() == 3016247204574878157


@pytest.mark.parametrize(
    "other", [(1, 3, "head"), (2, 1, "head"), (1, 2), (1, "2", "head"), (12, "head"), (1, 2, "")]
)
def test_another_key_draws_other_numbers(other):
    assert not torch.equal(draw(1, 2, "head"), draw(*other))


def test_keys_that_read_alike_when_joined_are_told_apart():
    keys = [(1, 23), (12, 3), (123,), ("1", 23), ("1, 23",), (-1, 23)]
    assert len({keyed_generator(*key).initial_seed() for key in keys}) == len(keys)


def test_a_number_of_another_integer_type_is_the_same_key():
    steps = torch.tensor(7), torch.arange(8).numpy()[7], 7
    assert len({keyed_generator(0, step).initial_seed() for step in steps}) == 1


def test_a_fraction_is_no_key():
    with pytest.raises(TypeError):
        keyed_generator(0, 1.5)


def test_the_mask_is_the_same_wherever_it_is_drawn():
    assert torch.equal(dropout(ones(), 0.3, KEY, "2.ffn"), dropout(ones(), 0.3, KEY, "2.ffn"))


@pytest.mark.parametrize(
    ("key", "layer"),
    [
        (KEY._replace(seed=6), "2.ffn"),
        (KEY._replace(step=4), "2.ffn"),
        (KEY._replace(microbatch=2), "2.ffn"),
        (Key(5, 1, 3), "2.ffn"),
        (KEY, "3.ffn"),
    ],
)
def test_another_place_in_the_run_draws_an_unrelated_mask(key, layer):
    kept, other = dropout(ones(), 0.5, KEY, "2.ffn") > 0, dropout(ones(), 0.5, key, layer) > 0
    # 4096 fair coins: two masks agree in half of them, deviation 0.0078
    assert abs((kept == other).double().mean() - 0.5) < 0.05


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_the_share_and_keeps_the_mean(p):
    y = dropout(ones(400, 400), p, KEY, 0)
    kept = y != 0
    assert torch.allclose(y[kept], ones(1) / (1 - p))
    # 160000 draws of deviation sqrt(p (1 - p)): five deviations of their mean
    assert abs(kept.double().mean() - (1 - p)) < 5 * (p * (1 - p) / 160_000) ** 0.5


def test_the_gradient_goes_through_the_kept_numbers_only():
    x = torch.linspace(1, 2, 600, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.4, KEY, 0)
    y.sum().backward()
    assert torch.equal(x.grad == 0, y == 0)
    assert torch.allclose(x.grad, (y / x).detach())


def test_no_two_types_of_number_draw_different_masks():
    masks = [
        dropout(ones().to(dtype), 0.3, KEY, 0) != 0
        for dtype in (torch.float64, torch.float32, torch.bfloat16)
    ]
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


def test_the_mask_does_not_follow_the_memory_layout():
    x = ones(6, 9)
    turned = x.T.contiguous().T
    assert torch.equal(dropout(turned, 0.5, KEY, 0), dropout(x, 0.5, KEY, 0))


@pytest.mark.parametrize(("p", "key"), [(0, KEY), (0.0, None), (0.5, None)])
def test_without_a_key_or_a_share_nothing_is_dropped(p, key):
    x = ones(3)
    assert dropout(x, p, key, 0) is x


@pytest.mark.parametrize("p", [-0.1, 1, 1.0, 2, float("nan")])
def test_a_share_outside_0_to_1_is_refused_with_its_value(p):
    with pytest.raises(ValueError, match=rf"dropout={p!r} is not a share in \[0, 1\); give 0"):
        dropout(ones(3), p, KEY, 0)


def test_the_global_random_state_is_neither_read_nor_changed():
    torch.manual_seed(1)
    first, state = dropout(ones(), 0.3, KEY, 0), torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(dropout(ones(), 0.3, KEY, 0), first)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recomputed_forward_has_the_same_mask(use_reentrant):
    grads = []
    for run in (lambda f, x: f(x), lambda f, x: checkpoint(f, x, use_reentrant=use_reentrant)):
        x = torch.linspace(1, 2, 99, requires_grad=True)
        run(lambda x: dropout(torch.sin(x), 0.3, KEY, 0).square().sum(), x).backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_on_the_meta_device_only_the_shape_comes_back():
    x = torch.empty(2, 3, device="meta", requires_grad=True)
    y = dropout(x, 0.5, KEY, 0)
    assert (y.shape, y.device.type, y.requires_grad) == ((2, 3), "meta", True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_mask_is_drawn_there():
    x = torch.ones(64, 64, device="cuda")
    y = dropout(x, 0.3, KEY, 0)
    assert torch.equal(y, dropout(x, 0.3, KEY, 0))
    assert 0.6 < (y > 0).float().mean() < 0.8
