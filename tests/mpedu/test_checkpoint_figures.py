import pytest
from pictures import assert_labels_are_apart, dots, line

from mpedu.cost import gpipe_peak_activation
from mpedu.plot import (
    checkpoint_run_figure,
    gpipe_memory_figure,
    recompute_figure,
    sawtooth_figure,
)
from mpedu.recompute import backward_with_checkpoints, best_segment_length


def backward(layers, x, n_segments):
    return backward_with_checkpoints(layers, x, n_segments).x_gradient


def steps(picture, label):
    return [y for _, y in line(picture, label)]


def test_the_best_length_is_marked_and_called_so():
    picture = recompute_figure(best_segment_length, 64)
    assert dots(picture) == [(8, 16)]
    assert line(picture, "ceil(n / s) + s")[0] == (1, 65)
    assert "segments of 8: 16 activations held; no length needs fewer" in picture.text
    assert "From all 65 held at 64 forwards to 2 held at 2144 forwards" in picture.alt
    assert_labels_are_apart(picture.figure)


def test_another_length_is_marked_where_it_is_and_told_what_is_possible():
    picture = recompute_figure(lambda n: n // 2, 64)
    assert dots(picture) == [(32, 34)]
    assert "16 are possible" in picture.text


@pytest.mark.parametrize("n_layers", [1, 2, 1000])
def test_any_chain_can_be_drawn(n_layers):
    assert_labels_are_apart(recompute_figure(best_segment_length, n_layers).figure)
    assert_labels_are_apart(sawtooth_figure(backward, n_layers, (1,)).figure)


@pytest.mark.parametrize("given", [0, 65, 8.5, True, None, "8"])
def test_what_is_no_length_is_refused(given):
    with pytest.raises(ValueError, match="is no segment length; give a whole number, 1 to 64"):
        recompute_figure(lambda n: given, 64)


def test_the_sawtooth_is_what_the_function_holds():
    picture = sawtooth_figure(backward, 16, (1, 4))
    assert steps(picture, "all held") == [*range(1, 17), *reversed(range(16))]
    assert (max(steps(picture, "1 segment")), max(steps(picture, "4 segments"))) == (17, 8)
    assert len(steps(picture, "4 segments")) == 3 * 16
    assert "4 segments: 8 at most" in picture.alt and "over" not in picture.alt
    assert_labels_are_apart(picture.figure)


def test_a_function_that_holds_everything_is_told_so():
    def hoards(layers, x, n_segments):
        ys = [x]
        for layer in layers:
            ys.append(layer.forward(ys[-1]))
        gradient = 1.0
        for i in reversed(range(len(layers))):
            gradient = layers[i].backward(ys[i], ys[i + 1], gradient)
        return gradient

    picture = sawtooth_figure(hoards, 16, (4,))
    assert "4 segments: 16 at most, over 8" in picture.text


@pytest.mark.parametrize("n_segments", [(), (1, 2, 3, 4), (0,), (1.5,)])
def test_numbers_of_segments_that_cannot_be_are_refused(n_segments):
    with pytest.raises(ValueError, match="n_segments"):
        sawtooth_figure(backward, 16, n_segments)


def test_gpipes_memory_is_drawn_with_and_without_checkpoints():
    picture = gpipe_memory_figure(gpipe_peak_activation, 64, 16, 4)
    held = line(picture, "inputs of stages held")
    assert (held[0], held[7], held[-1]) == ((1, 320), (8, 96), (64, 68))
    assert {y for _, y in line(picture, "without checkpoints")} == {256}
    assert dots(picture) == [(2, 192)]
    assert "checkpoints hold less from M = 2 on; M = 64: 68 against 256" in picture.text
    assert_labels_are_apart(picture.figure)


def test_a_function_for_which_checkpoints_never_pay_is_told_so():
    picture = gpipe_memory_figure(lambda *sizes: 7, 4)
    assert "checkpoints never hold less" in picture.alt


@pytest.mark.parametrize("gives", [None, -1, float("nan"), True, "7"])
def test_what_is_no_number_of_activations_is_refused_with_the_call(gives):
    with pytest.raises(ValueError, match=r"<lambda>\(64, 16, 4, 1, False\) gave "):
        gpipe_memory_figure(lambda *sizes: gives)


def test_a_run_shows_its_three_lists():
    picture = checkpoint_run_figure([2, 2, 1], [1, 2, 3, 2, 1], [0, 1e-3, 1], "run 7")
    left, middle, right = picture.figure.axes
    assert [bar.get_height() for bar in left.patches] == [2, 2, 1]
    assert list(middle.lines[0].get_ydata()) == [1, 2, 3, 2, 1]
    drawn = [(round(b.get_x() + b.get_width() / 2), b.get_height()) for b in right.patches]
    assert drawn == [(1, 1e-3), (2, 1)]
    assert picture.text.splitlines() == [
        "run 7",
        "forwards of each layer: 2 2 1",
        "activations held: 1 2 3 2 1",
        "error of each layer's gradient: 0 0.001 1",
        "5 forwards; 3 held at most; worst gradient 1 off",
    ]
    assert_labels_are_apart(picture.figure)


def test_an_error_of_rounding_is_grey_and_below_the_line():
    right = checkpoint_run_figure([1, 1, 1], [1], [9e-7, 1e-6, 0]).figure.axes[2]
    rounding, wrong = right.patches
    assert rounding.get_facecolor() != wrong.get_facecolor() and not rounding.get_hatch()
    assert list(right.lines[0].get_ydata()) == [9e-7, 9e-7]


def test_a_sound_run_has_no_bar_of_an_error():
    picture = checkpoint_run_figure([1], [0, 0], [0.0])
    assert not picture.figure.axes[2].patches
    assert_labels_are_apart(picture.figure)


@pytest.mark.parametrize(
    "lists", [([], [1], [0]), ([1], [-1], [0]), ([1], [1], [float("inf")]), ([1], [1], ["0"])]
)
def test_lists_that_cannot_be_drawn_are_refused(lists):
    with pytest.raises(ValueError, match="cannot be drawn; give numbers of 0 or more"):
        checkpoint_run_figure(*lists)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: recompute_figure(best_segment_length, 0), "n_layers=0 is too small"),
        (lambda: recompute_figure(best_segment_length, 5000), "n_layers=5000 is too many to draw"),
        (lambda: sawtooth_figure(backward, 5000), "n_layers=5000 is too many to draw"),
        (lambda: gpipe_memory_figure(gpipe_peak_activation, 5000), "n_samples=5000 is too many"),
        (lambda: gpipe_memory_figure(gpipe_peak_activation, 4, 0), "n_layers=0 is too small"),
    ],
)
def test_too_much_or_nothing_to_draw_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
