import pytest
from pictures import assert_labels_are_apart, boxes_of, dots, line

from mpedu.cost import bubble_fraction, bubble_over_ideal
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.plot import (
    bubble_curve,
    efficiency_curve,
    in_flight_curve,
    optimum_figure,
    triangle_figure,
)
from mpedu.plot.text import percent, seconds
from mpedu.schedule import in_flight, peak_in_flight
from mpedu.simulate import simulate


def test_bubble_curve_tells_the_numbers_of_the_lecture():
    picture = bubble_curve()
    assert picture.text.splitlines() == [
        "Idle time of 4 stages, by both definitions",
        " M  share of total time  ratio to ideal time",
        " 1                 75 %                300 %",
        " 2                 60 %                150 %",
        " 4               42.9 %                 75 %",
        " 8               27.3 %               37.5 %",
        "16               15.8 %              18.75 %",
        "32                8.6 %                9.4 %",
        "5 % of total time: reached at M = 57, off this axis",
    ]
    assert "At M = 16: share of total time 15.8 %, ratio to ideal time 18.75 %." in picture.alt
    assert "from 75 % at M = 1 to 8.6 % at M = 32" in picture.alt
    assert dots(picture) == [(16, pytest.approx(100 * 3 / 19)), (16, pytest.approx(18.75))]


@pytest.mark.parametrize("n_stages", [1, 2, 3, 8])
def test_bubble_curve_draws_the_idle_share_of_simulated_gpipe(n_stages):
    picture = bubble_curve(n_stages, largest_n_microbatches=6, marked=3)
    for m, height in line(picture, "share of total time"):
        timeline = simulate(gpipe(n_stages, int(m)))
        assert height == pytest.approx(100 * timeline.idle_share)
    share = percent(simulate(gpipe(n_stages, 3)).idle_share)
    assert f"At M = 3: share of total time {share}," in picture.alt


@pytest.mark.parametrize(
    ("n_stages", "limit", "note"),
    [
        (4, 0.05, "5 % of total time: reached at M = 57, off this axis"),
        (2, 1 / 3, "33.3 % of total time: reached at M = 2"),
        (2, 1 - 0.9, "10 % of total time: reached at M = 9"),  # 1 - 0.9 is a little below 0.1
        (4, 0.5, "50 % of total time: reached at M = 3"),
        (8, 0.05, "5 % of total time: reached at M = 133, off this axis"),
        (1, 0.05, "5 % of total time: reached at M = 1"),
        (4, 1e-9, "0 % of total time: not reached up to M = 131072"),
    ],
)
def test_bubble_curve_says_where_the_limit_is_reached(n_stages, limit, note):
    picture = bubble_curve(n_stages, limit=limit)
    assert picture.text.splitlines()[-1] == note
    assert note + "." in picture.alt
    assert line(picture, note)[0][1] == pytest.approx(100 * limit)


def test_bubble_curve_draws_a_students_functions():
    picture = bubble_curve(4, lambda k, m: k / (m + k), lambda k, m: k / m, 4)
    assert line(picture, "share of total time")[0] == (1, 80)
    over_ideal = "ratio to ideal time (off this axis: 400 % at M = 1 to 133.3 % at M = 3)"
    assert line(picture, over_ideal)[3] == (4, 100)


@pytest.mark.parametrize(
    ("n_stages", "words"),
    [
        (1, ""),
        (2, ""),  # 100 % stands on the edge of the axis
        (3, " (off this axis: 200 % at M = 1)"),
        (4, " (off this axis: 300 % at M = 1 to 150 % at M = 2)"),
    ],
)
def test_bubble_curve_says_which_values_its_axis_leaves_out(n_stages, words):
    assert line(bubble_curve(n_stages), "ratio to ideal time" + words)


@pytest.mark.parametrize("answer", [None, float("nan"), "0.5", True])
def test_a_curve_of_no_numbers_is_told_in_one_sentence(answer):
    def bubble(n_stages, n_microbatches):
        return answer

    with pytest.raises(ValueError, match=rf"bubble\(4, 1\) gave {answer!r}; a curve needs"):
        bubble_curve(4, bubble)


def test_efficiency_curve_draws_work_over_work_and_overhead():
    picture = efficiency_curve(4, 64, sample_s=2.0, overhead_s=0.5)
    efficiency = dict(line(picture, "efficiency of a micro-batch, b s / (o + b s)"))
    assert efficiency[16] == pytest.approx(100 * 8 / 8.5)
    assert efficiency[64] == pytest.approx(80)
    assert dict(line(picture, "bubble, share of total time"))[16] == pytest.approx(100 * 3 / 19)
    assert "16          4      94.1 %                       15.8 %" in picture.text
    assert "efficiency from 99.6 % to 80 %" in picture.alt


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_samples": 0}, "n_samples=0 is too small"),
        ({"n_samples": 1001}, "at most 1000"),
        ({"sample_s": 0.0}, "sample_s=0.0"),
        ({"overhead_s": -1.0}, "overhead_s=-1.0"),
    ],
)
def test_machines_that_cannot_be_are_refused(wrong, message):
    for draw in (optimum_figure, efficiency_curve):
        with pytest.raises(ValueError, match=message):
            draw(**wrong)


def test_in_flight_curve_steps_at_the_end_of_each_action():
    picture = in_flight_curve({"GPipe": gpipe(4, 3)})
    timeline = simulate(gpipe(4, 3))
    ends_s = [span.end_s for span in timeline.spans if span.rank == 0]
    expected = [(0, 0), *zip(ends_s, in_flight(gpipe(4, 3)[0]), strict=True)]
    assert line(picture, "GPipe, stage 0") == [pytest.approx(point) for point in expected]


def test_in_flight_curve_compares_the_peaks_of_several_schedules():
    made = {"GPipe": gpipe, "1F1B": one_f_one_b, "one at a time": naive(4, 2)}
    picture = in_flight_curve(made, 4, 8)
    assert [y for _, y in line(picture, "1F1B", panel=1)] == peak_in_flight(one_f_one_b(4, 8))
    assert picture.text.splitlines()[2:] == [
        "        stage  0  1  2  3",
        "        GPipe  8  8  8  8",
        "         1F1B  4  3  2  1",
        "one at a time  1  1  1  1",
    ]
    assert "GPipe 8 on stage 0; 1F1B 4 on stage 0; one at a time 1 on stage 0" in picture.alt


@pytest.mark.parametrize(
    ("schedules", "message"),
    [({}, "no schedules to draw"), ({"mine": [*naive(2, 1)[:1], []]}, "stage 1: its list")],
)
def test_in_flight_curve_refuses_what_does_not_run(schedules, message):
    with pytest.raises(ValueError, match=message):
        in_flight_curve(schedules)


@pytest.mark.parametrize(
    ("n_stages", "n_microbatches", "forward_s", "backward_s"),
    [(4, 8, 1.0, 2.0), (8, 4, 2.0, 3.0), (1, 3, 1.0, 2.0)],
)
def test_triangle_keeps_its_area(n_stages, n_microbatches, forward_s, backward_s):
    picture = triangle_figure(n_stages, n_microbatches, forward_s, backward_s)
    pair_s = forward_s + backward_s
    for panel in (0, 1):
        idle = boxes_of(picture, "ramp-up", "turn", "drain", panel=panel)
        for row in range(n_stages):
            idle_s = sum(end - start for at, start, end in idle if at == row)
            assert idle_s == pytest.approx((n_stages - 1) * pair_s)
    if n_stages > 1:
        assert min(start for _, start, _ in idle) == pytest.approx(n_microbatches * pair_s)
    share = (n_stages - 1) / (n_microbatches + n_stages - 1)
    assert len(boxes_of(picture, "F", "B", panel=1)) == 2 * n_stages * n_microbatches
    total_s = (n_microbatches + n_stages - 1) * pair_s
    assert f"= {seconds(total_s)}" in picture.alt
    assert idle == [] or idle_s / total_s == pytest.approx(share)


def test_triangle_names_the_idle_pieces_of_every_stage():
    assert triangle_figure(3, 4).text.splitlines()[2:] == [
        "         ramp-up  turn  drain",
        "stage 0      0 s   6 s    0 s",
        "stage 1      1 s   3 s    2 s",
        "stage 2      2 s   0 s    4 s",
        "every stage: ideal 4 x 3 s + idle 2 x 3 s = 18 s",
    ]


@pytest.mark.parametrize(
    "draw",
    [
        bubble_curve,
        lambda: bubble_curve(8, bubble_fraction, bubble_over_ideal, 64),
        lambda: bubble_curve(1),
        efficiency_curve,
        optimum_figure,
        lambda: optimum_figure(8, 256, 0.25),
        lambda: optimum_figure(1, 1, 0.0),
        lambda: in_flight_curve({"GPipe": gpipe(4, 8), "1F1B": one_f_one_b(4, 8)}),
        triangle_figure,
        lambda: triangle_figure(8, 4),
    ],
)
def test_no_label_of_a_curve_is_cut_off_or_covers_another(draw):
    picture = draw()
    assert_labels_are_apart(picture.figure)
    assert picture.alt.endswith(".")
    for axes in picture.figure.axes:
        assert axes.get_xlabel()
