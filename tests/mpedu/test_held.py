"""Counted layers: what a backward holds, what it runs again, and what it gives to whom."""

import gc

import numpy as np
import pytest

from mpedu.held import Ledger, Misuse, counted_pass, run_counted, tanh_chain, units_held
from mpedu.recompute import backward_with_checkpoints


def plain(layers, x, n_segments):
    kept = [x]
    for layer in layers:
        kept.append(layer.forward(kept[-1]))
    gradient = 1.0
    for layer in reversed(layers):
        y = kept.pop()
        gradient = layer.backward(kept[-1], y, gradient)
    return gradient


def test_a_plain_backward_holds_one_activation_per_layer_and_runs_each_once():
    made = counted_pass(plain, 5, 1)
    assert made.held == [1, 2, 3, 4, 5, 5, 4, 3, 2, 1] and made.peak == 5
    assert made.forwards == [1] * 5 and made.backwards == [4, 3, 2, 1, 0] and not made.misuses
    assert units_held(plain, 3, 1) == [1, 2, 3, 3, 2, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_numpy_layers_have_the_gradient_of_the_sum_of_their_outputs(seed):
    x = np.random.default_rng(seed).normal(size=(3, 4))
    layers = tanh_chain(4, 4, seed)
    gradient = plain(layers, x, 1)

    def total(x):
        for layer in layers:
            x = layer.forward(x)
        return x.sum()

    for array, found in ((x, gradient), (layers[1].weight, layers[1].weight_gradient)):
        for at in ((0, 0), (2, 3)):
            kept, step = array[at], 1e-6
            array[at] = kept + step
            above = total(x)
            array[at] = kept - step
            below = total(x)
            array[at] = kept
            assert found[at] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("n_segments", [1, 2, 3, 7])
def test_what_is_computed_again_gives_the_same_gradients_to_the_last_bit(n_segments):
    x = np.random.default_rng(2).normal(size=(3, 4))
    once, again = tanh_chain(7, 4), tanh_chain(7, 4)
    checkpointed = backward_with_checkpoints(again, x, n_segments)
    assert np.array_equal(plain(once, x, 1), checkpointed.x_gradient)
    for one, other in zip(once, again, strict=True):
        assert np.array_equal(one.weight_gradient, other.weight_gradient)


def test_forwards_that_begin_elsewhere_are_counted():
    def run(layers, x, n_segments):
        for layer in (*layers, *layers[2:], layers[0], layers[0]):
            x = layer.forward(x)

    assert counted_pass(run, 3, 1).n_restarts == 3
    assert counted_pass(plain, 3, 1).n_restarts == 0


def test_an_activation_is_held_as_long_as_anything_has_its_name():
    kept = []

    def hoards(layers, x, n_segments):
        kept.append(layers[0].forward(x))
        return plain(layers, x, n_segments)

    held = units_held(hoards, 2, 1)
    assert held == [1, 2, 3, 3, 2]


def test_names_in_a_circle_are_held_until_the_circle_is_found():
    def circular(layers, x, n_segments):
        circle = [layers[0].forward(x)]
        circle.append(circle)
        del circle
        gc.collect()  # inside a function that counts: nothing is sent from where it falls
        return plain(layers, x, n_segments)

    assert units_held(circular, 2, 1) == [1, 1, 2, 2, 1]


def first_misuse(backward, n_layers=3):
    ledger = Ledger(n_layers)
    result = run_counted(backward, ledger, n_layers, 1)
    return ledger.run.misuses[0], ledger.pass_of(result)


def test_a_layer_run_on_the_input_of_another_is_noted_and_no_gradient_comes_of_it():
    def skips(layers, x, n_segments):
        return plain(layers[1:], x, 1)

    misuse, made = first_misuse(skips)
    assert misuse == Misuse("forward", 1, "x", "the input of layer 0") and made is None


@pytest.mark.parametrize(
    ("arguments", "what", "given"),
    [
        (lambda x, y: (y, y, 1.0), "x", "the last output"),
        (lambda x, y: (x, x, 1.0), "y", "the input of layer 0"),
    ],
)
def test_a_backward_with_the_wrong_activations_is_noted(arguments, what, given):
    def wrong(layers, x, n_segments):
        return layers[0].backward(*arguments(x, layers[0].forward(x)))

    assert first_misuse(wrong, 1) == (Misuse("backward", 0, what, given), None)


def test_a_backward_out_of_order_and_one_that_runs_twice_are_noted():
    def first_layer_first(layers, x, n_segments):
        return layers[0].backward(x, layers[0].forward(x), 1.0)

    def twice(layers, x, n_segments):
        y = layers[0].forward(x)
        layers[0].backward(x, y, 1.0)
        return layers[0].backward(x, y, 1)

    assert first_misuse(first_layer_first)[0] == Misuse("backward", 0, "gradient", "1.0")
    assert first_misuse(twice, 1)[0] == Misuse("backward", 0, "again", "")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer, x: layer.forward(3), "layer 0.forward needs an activation as x; it got 3"),
        (lambda layer, x: layer.backward(x, None, 1.0), "an activation as y; it got a NoneType"),
        (lambda layer, x: layer.backward(x, x, 2.0), "1.0 to begin with as gradient; it got 2.0"),
        (lambda layer, x: layer.backward(x, x, x), "as gradient; it got a Activation"),
    ],
)
def test_an_argument_of_another_kind_is_refused_in_one_sentence(call, message):
    with pytest.raises(TypeError, match=message):
        counted_pass(lambda layers, x, n: call(layers[0], x), 1, 1)


def test_a_name_that_was_dropped_has_no_value_any_more():
    ledger = Ledger(2)
    x = ledger.begin()
    y = ledger.forward(0, x)
    with pytest.raises(KeyError):
        ledger.forward(1, y, [y])


def test_x_is_held_by_the_caller_whoever_says_that_it_was_dropped():
    ledger = Ledger(1)
    x = ledger.begin()
    assert ledger.backward(0, x, ledger.forward(0, x, [x]), None, [x])


def test_a_new_beginning_forgets_every_name():
    ledger = Ledger(2)
    y = ledger.forward(0, ledger.begin())
    ledger.begin()
    with pytest.raises(KeyError):
        ledger.forward(1, y)
    assert ledger.run.forwards == [0, 0]


@pytest.mark.parametrize("layer", [-1, 2])
def test_a_layer_that_is_not_there_is_refused(layer):
    ledger = Ledger(2)
    with pytest.raises(IndexError, match=f"there is no layer {layer}; there are 2"):
        ledger.forward(layer, ledger.begin())


def test_what_is_no_gradient_comes_back_as_it_is():
    ledger = Ledger(1)
    assert run_counted(lambda layers, x, n: "text", ledger, 1, 1) == "text"
    assert ledger.pass_of("text") is None and ledger.pass_of(True) is None


@pytest.mark.parametrize("n_layers", [0, -1])
def test_a_chain_without_layers_is_refused(n_layers):
    with pytest.raises(ValueError, match=f"n_layers={n_layers}"):
        tanh_chain(n_layers)
    with pytest.raises(ValueError, match=f"n_layers={n_layers}"):
        counted_pass(plain, n_layers, 1)
