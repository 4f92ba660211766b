import math
import random

import pytest
from matplotlib import style
from pictures import assert_labels_are_apart, boxes_of, label_in, line

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.plot import loss_curve, overlay
from mpedu.plot.text import percent, seconds
from mpedu.simulate import Costs, Timeline, simulate

ENTROPY = "unigram entropy of the corpus: 3.2 nats"


def measured(schedule, seed=0):
    """A timeline as of real ranks: later than 0, slower here and there, in small seconds."""
    draw = random.Random(seed)
    timeline = simulate(schedule, Costs(1, 2, latency_s=0.2))
    spans = []
    for s in timeline.spans:
        end_s = s.end_s - draw.uniform(0.05, 0.4)
        spans.append(s._replace(start_s=700 + 0.005 * s.start_s, end_s=700 + 0.005 * end_s))
    return Timeline(spans, timeline.n_ranks)


def pair(schedule):
    return simulate(schedule), measured(schedule)


def falling(n_steps, start=5.5):
    return [start - 3 * i / n_steps for i in range(n_steps)]


@pytest.mark.parametrize("schedule", [one_f_one_b(4, 8), gpipe(2, 3), naive(1, 1)])
def test_overlay_draws_both_timelines_from_zero_at_equal_busy_times(schedule):
    predicted, ran = pair(schedule)
    picture = overlay(predicted, ran)
    scale = ran.busy_s / predicted.busy_s
    for kind in "FB":
        for panel, timeline, factor in ((0, predicted, scale), (1, ran, 1)):
            expected = sorted(
                (s.rank, factor * (s.start_s - timeline.start_s), factor * (s.end_s - s.start_s))
                for s in timeline.spans
                if s.kind == kind
            )
            found = [(row, a, b - a) for row, a, b in sorted(boxes_of(picture, kind, panel=panel))]
            assert found == [pytest.approx(box, abs=1e-9) for box in expected]
    assert f"measured work: 1 s of the model clock is {seconds(scale)} here" in (
        picture.figure.axes[0].get_title(loc="left")
    )


@pytest.mark.parametrize("factor", [0.1, 10])
def test_overlay_has_one_axis_as_long_as_the_longer_and_white_beyond_the_shorter(factor):
    slow = simulate(gpipe(2, 2), Costs(1, 2, latency_s=factor))
    for given in ((simulate(gpipe(2, 2)), slow), (slow, simulate(gpipe(2, 2)))):
        above, below = overlay(*given).figure.axes
        ends = [timeline.makespan_s for timeline in given]  # of equal busy times
        assert above.get_xlim() == below.get_xlim() == (0, pytest.approx(max(ends)))
        for axes, end_s in zip((above, below), ends, strict=True):
            (beyond,) = axes.patches
            assert beyond.get_facecolor()[:3] == (1, 1, 1)
            assert (beyond.get_x(), beyond.get_width()) == (
                pytest.approx(end_s),
                pytest.approx(max(ends) - end_s),
            )


def test_overlay_numbers_the_micro_batches():
    predicted, ran = pair(one_f_one_b(4, 8))
    picture = overlay(predicted, ran)
    (box,) = [box for box in boxes_of(picture, "F") if box[:2] == (0, 0)]
    assert label_in(picture, box) == "0"
    assert [len(axes.texts) for axes in picture.figure.axes] == [64, 64]
    assert "left out" not in picture.text


def test_overlay_leaves_out_numbers_that_few_boxes_have_room_for_and_says_so():
    picture = overlay(*pair(one_f_one_b(8, 26)))
    assert [len(axes.texts) for axes in picture.figure.axes] == [0, 0]
    assert picture.text.endswith("numbers are left out of boxes too narrow for them")


@pytest.mark.parametrize("schedule", [one_f_one_b(4, 8), gpipe(1, 2)])
def test_overlay_tells_both_idle_shares(schedule):
    predicted, ran = pair(schedule)
    picture = overlay(predicted, ran, title="Step 200")
    note = f"idle share: {percent(predicted.idle_share)} predicted, "
    note += f"{percent(ran.idle_share)} measured"
    assert note in picture.alt
    assert picture.text.splitlines()[-1] == note
    assert note in [text.get_text() for text in picture.figure.texts]
    assert picture.alt.startswith("Step 200. Two timelines")
    assert picture.text.splitlines()[0] == "Step 200"


def test_overlay_as_text_holds_both_timelines():
    picture = overlay(*pair(naive(2, 1)), title="naive")
    lines = picture.text.splitlines()
    assert [i for i, line in enumerate(lines) if line.startswith("stage 0 |F0")] == [2, 9]
    assert [line.split(":")[0] for line in (lines[1], lines[8])] == ["predicted", "measured"]


@pytest.mark.parametrize(
    ("predicted", "ran", "message"),
    [
        (gpipe(2, 4), gpipe(2, 3), "predicted: 2 stages, 4 micro-batches, 8 times forward"),
        (gpipe(2, 4), gpipe(4, 4), "measured: 4 stages, 4 micro-batches, .*; give two timelines"),
    ],
)
def test_overlay_refuses_timelines_of_different_work(predicted, ran, message):
    with pytest.raises(ValueError, match=message):
        overlay(simulate(predicted), measured(ran))


def test_overlay_refuses_what_is_no_timeline():
    with pytest.raises(ValueError, match="this is a list; give a Timeline"):
        overlay(gpipe(2, 2), simulate(gpipe(2, 2)))
    with pytest.raises(ValueError, match="no spans, so there is nothing to draw"):
        overlay(simulate(gpipe(2, 2)), Timeline([], 2))
    wider = simulate(gpipe(2, 2))._replace(n_ranks=3)
    with pytest.raises(ValueError, match="measured: 3 stages"):
        overlay(simulate(gpipe(2, 2)), wider)


def test_loss_curve_draws_every_step_and_the_entropy_dashed():
    picture = loss_curve({"pp 1": falling(200), "pp 2": falling(100, 6)}, 3.2)
    assert line(picture, "pp 1: 5.5 nats at first, 2.515 nats at last") == [
        (i + 1, pytest.approx(loss)) for i, loss in enumerate(falling(200))
    ]
    assert picture.figure.axes[0].get_xlim() == (0, 201)
    assert len(line(picture, "pp 2: 6 nats at first, 3.03 nats at last")) == 100
    assert line(picture, ENTROPY) == [(0, 3.2), (1, 3.2)]
    assert ENTROPY + "." in picture.alt
    (entropy,) = [c for c in picture.figure.axes[0].lines if c.get_label() == ENTROPY]
    assert entropy.get_linestyle() == "--"


def test_loss_curve_as_text_is_a_small_table():
    assert loss_curve({"a": falling(16), "b": [4, 3]}, 3.2, "Two runs").text.splitlines() == [
        "Two runs",
        "nats per byte",
        "step      a  b",
        "   1    5.5  4",
        "   2  5.312  3",
        "   4  4.938   ",
        "   6  4.562   ",
        "   8  4.188   ",
        "  10  3.812   ",
        "  12  3.438   ",
        "  14  3.062   ",
        "  16  2.688   ",
        "a: 5.5 nats at first, 2.688 nats at last",
        "b: 4 nats at first, 3 nats at last",
        ENTROPY,
    ]


def test_without_an_entropy_no_line_is_drawn():
    picture = loss_curve({"a": [5.5, 5.0]})
    assert len(picture.figure.axes[0].lines) == 1
    assert "entropy" not in picture.alt + picture.text


def test_loss_curves_are_told_apart_without_colour():
    picture = loss_curve({f"run {i}": falling(40, 5 + i) for i in range(9)}, 3.2)
    looks = {(c.get_linestyle(), c.get_marker()) for c in picture.figure.axes[0].lines[:9]}
    assert len(looks) == 9


def test_curves_that_lie_on_each_other_all_show():
    first, second = loss_curve({"a": falling(40), "b": falling(40)}).figure.axes[0].lines
    assert first.get_linewidth() > second.get_linewidth()
    markers = [curve.get_markevery() for curve in (first, second)]
    marked = [set(range(40)[start::every]) for start, every in markers]
    assert not marked[0] & marked[1]


def test_losses_that_are_no_numbers_are_told_and_the_rest_drawn():
    picture = loss_curve({"diverged": [5.5, 7.0, math.inf, math.nan]}, 3.2)
    assert "diverged: 5.5 nats at first, nan nats at last" in picture.alt
    assert picture.figure.axes[0].get_ylim()[1] == pytest.approx(7, abs=0.5)


@pytest.mark.parametrize("losses", [{}, {"a": [1.0], "b": []}])
def test_a_curve_without_losses_is_told(losses):
    with pytest.raises(ValueError, match="a curve without losses; give some by name"):
        loss_curve(losses)


GALLERY = {
    "4 ranks": lambda: overlay(*pair(one_f_one_b(4, 8))),
    "2 ranks": lambda: overlay(*pair(one_f_one_b(2, 8))),
    "8 ranks": lambda: overlay(*pair(one_f_one_b(8, 32))),
    "1 rank": lambda: overlay(*pair(gpipe(1, 8))),
    "one loss": lambda: loss_curve({"a": [5.5]}, 3.2),
    "losses": lambda: loss_curve({f"pp {i}": falling(200, 5 + i) for i in range(4)}, 3.2),
}


@pytest.mark.parametrize("name", GALLERY)
def test_no_label_is_cut_off_or_covers_another(name):
    assert_labels_are_apart(GALLERY[name]().figure)


@pytest.mark.parametrize("name", ["2 ranks", "losses"])
def test_same_input_gives_same_bytes_whatever_the_style(name):
    plain = GALLERY[name]()
    with style.context("dark_background"):
        assert GALLERY[name]().png == plain.png
