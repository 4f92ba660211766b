"""The figures of what schedules and engines cost: every point is what the model clock says."""

import re
from fractions import Fraction

import pytest
from pictures import assert_labels_are_apart, line

from mpedu.families import interleaved_1f1b, make_schedule, naive, zbv
from mpedu.plot import bench_figure, bubble_memory_figure, messages_figure
from mpedu.plot.schedule_figures import n_messages
from mpedu.schedule import Action, peak_in_flight
from mpedu.simulate import Costs, simulate


def rows_of(picture):
    """By the name in the first column of the text's table, what stands behind it."""
    split = (re.split(" {2,}", row.strip()) for row in picture.text.splitlines())
    return {row[0]: row[1:] for row in split if len(row) > 2}


def marks(picture):
    return {
        curve.get_label(): (float(curve.get_xdata()[0]), float(curve.get_ydata()[0]))
        for curve in picture.figure.axes[0].lines
    }


def test_every_named_schedule_is_where_its_memory_and_idle_time_put_it():
    found = marks(bubble_memory_figure(4, 8))
    assert found["2 gpipe"] == (8, pytest.approx(100 * 3 / 11))
    assert found["3 1f1b"] == (4, pytest.approx(100 * 3 / 11))
    assert found["6 interleaved"] == (5.5, pytest.approx(100 * 3 / 19))
    assert found["8 zbv"] == (4, pytest.approx(100 * (1 - 24 / 25.5)))
    assert len(found) == 9


def test_the_text_has_the_same_figures():
    rows = rows_of(bubble_memory_figure(4, 8))
    assert rows["1f1b"] == ["1", "33 s", "27.3 %", "1", "4"]
    assert rows["interleaved"] == ["2", "28.5 s", "15.8 %", "2.5", "5.5"]


def test_activations_are_freed_by_what_the_caller_says():
    late = {"late": [[Action.parse(word) for word in "0F0 0I0 0F1 0I1 0W0 0W1".split()]]}
    early, held = (rows_of(bubble_memory_figure(1, 2, own=late, freed_by=by)) for by in "IW")
    assert early["late"] == ["1", "6 s", "0 %", "1", "1"]
    assert held["late"] == ["1", "6 s", "0 %", "2", "2"]


def test_own_schedules_are_stars_under_the_costs_that_are_given():
    costs = Costs(Fraction(2), Fraction(3), latency_s=Fraction(1))
    picture = bubble_memory_figure(3, 5, own={"mine": zbv(3, 5)}, costs=costs)
    stage = Costs(Fraction(1), Fraction(3, 2), latency_s=Fraction(1))
    share = simulate(zbv(3, 5), stage).idle_share
    at = Fraction(max(peak_in_flight(zbv(3, 5))), 2), 100 * share
    (label,) = (name for name in marks(picture) if name.endswith("mine"))
    assert marks(picture)[label] == pytest.approx(tuple(map(float, at)))
    stars = [c for c in picture.figure.axes[0].lines if c.get_marker() == "*"]
    assert [star.get_label() for star in stars] == [label]


def test_a_line_goes_from_the_emptiest_rank_to_the_fullest():
    picture = bubble_memory_figure(4, 8, freed_by="W")
    lines = [path.vertices for lines in picture.figure.axes[0].collections
             for path in lines.get_paths()]  # fmt: skip
    idle_1f1b, idle_chunked = pytest.approx(100 * 3 / 11), pytest.approx(100 * 3 / 19)
    drawn = sorted([*map(tuple, line)] for line in lines)
    assert drawn == [[(1, idle_1f1b), (4, idle_1f1b)], [(2.5, idle_chunked), (5.5, idle_chunked)]]


def test_what_cannot_be_made_is_left_out_and_told():
    picture = bubble_memory_figure(4, 3)
    assert "dualpipe-v" not in rows_of(picture)
    assert "left out: dualpipe_v with n_microbatches=3 on n_ranks=4" in picture.text


@pytest.mark.parametrize("size", [(4, 8), (2, 16), (8, 16), (1, 1)])
def test_numbers_and_legend_have_room(size):
    assert_labels_are_apart(bubble_memory_figure(*size).figure)


def test_ranks_with_different_numbers_of_stages_are_refused():
    ranks = ["0F0 0B0", "1F0 2F0 2B0 1B0"]
    lists = [[Action.parse(word) for word in rank.split()] for rank in ranks]
    with pytest.raises(ValueError, match="'odd' has 1 stages more than its 2 ranks share evenly"):
        bubble_memory_figure(2, 1, own={"odd": lists})


def test_messages_grow_with_the_stages_of_a_rank_and_stay_out_of_the_v():
    for n_chunks in (1, 2, 3):
        expected = 2 * 8 * (4 * n_chunks - 1)
        assert n_messages(interleaved_1f1b(4, 8, n_chunks)) == expected
    assert n_messages(zbv(4, 8)) == 2 * 8 * (2 * 4 - 2)  # nothing is sent at the turn
    assert n_messages(make_schedule("zero-bubble-h1", 4, 8)) == n_messages(naive(4, 8)) == 48


def test_messages_figure_draws_what_the_schedules_say():
    picture = messages_figure(4, 8, (1, 2), latency_s=0.5)
    bars = [bar.get_height() for bar in picture.figure.axes[0].patches]
    assert bars == [48, 112]
    for name, latency_s in (("messages free", 0), ("messages 0.5 s late", 0.5)):
        points = line(picture, name, panel=1)
        costs = [(v, Costs(1 / v, 2 / v, latency_s=latency_s)) for v in (1, 2)]
        shares = [simulate(interleaved_1f1b(4, 8, v), cost).idle_share for v, cost in costs]
        assert [y for _, y in points] == pytest.approx([100 * share for share in shares])
    assert_labels_are_apart(picture.figure)


def bench(seconds, held=(5e6, 7e6)):
    """What a benchmark of one size and several runs writes."""
    size = {"n_samples": 8, "n_microbatches": 4}
    names = ["mpedu 1f1b", "torch Schedule1F1B", "one process", "backward B"]
    of_size = {"size": size, "ideal_seconds": 2.0}
    return {
        "n_ranks": 2,
        "runs": [{"sizes": [{**of_size, "seconds": dict.fromkeys(names, s)}]} for s in seconds],
        "peak_bytes": [{"size": size, "ranks": dict.fromkeys(names, held)}],
        "verdicts": [{"verdict": "held"}, {"verdict": "missed"}, {"verdict": "held"}],
    }


def test_bench_figure_has_a_bar_for_each_engine_and_the_fullest_ranks_bytes():
    picture = bench_figure(bench([[2.0, 3.0, 9.0], [4.0], [5.0]]))
    bars = [bar.get_width() for bar in picture.figure.axes[0].patches]
    assert bars == [2.0, 2.0]
    assert rows_of(picture)["B = 8, M = 4"] == ["torch Schedule1F1B", "2.000", "7.0"]
    assert "2 goals held, 1 missed" in picture.alt
    assert_labels_are_apart(picture.figure)
