"""The figure of a step's time: what it marks, says and leaves room for; and its sliders."""

import re
import sys

import ipywidgets
import pytest
from pictures import assert_labels_are_apart, dots, line

from mpedu.families import gpipe
from mpedu.plot import optimum_figure, optimum_sliders
from mpedu.plot.text import seconds
from mpedu.simulate import Costs, simulate


def gpipe_step_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    """The makespan on the model clock, not a formula."""
    forward_s = overhead_s + n_samples / n_microbatches * sample_s
    return simulate(gpipe(n_stages, n_microbatches), Costs(forward_s, 2 * forward_s)).makespan_s


@pytest.mark.parametrize(
    ("n_stages", "n_samples", "overhead_s", "sample_s"),
    [(4, 64, 1.0, 1.0), (3, 30, 0.25, 2.0), (1, 8, 1.0, 1.0), (6, 5, 0.0, 1.0)],
)
def test_optimum_figure_marks_the_fastest_simulated_step(n_stages, n_samples, overhead_s, sample_s):
    picture = optimum_figure(n_stages, n_samples, overhead_s, sample_s=sample_s)
    times_s = {
        m: gpipe_step_s(n_stages, m, n_samples, sample_s, overhead_s)
        for m in range(1, n_samples + 1)
    }
    best = min(times_s, key=times_s.get)
    assert line(picture, "step") == [pytest.approx(point) for point in times_s.items()]
    assert dots(picture) == [(best, pytest.approx(times_s[best]))]
    assert f"best M = {best}, {seconds(times_s[best])}" in picture.alt
    rows = {tuple(re.split(" {2,}", row.strip())) for row in picture.text.splitlines()}
    assert (str(best), *[seconds(times_s[best])] * 2) in rows


@pytest.mark.parametrize("rounding", [0.0, 1e-12])
def test_optimum_figure_takes_the_first_of_equal_times(rounding):
    picture = optimum_figure(4, 8, step_time=lambda k, m, n, s, o: 7 + rounding * (m == 1))
    assert dots(picture) == [(1, pytest.approx(7))]


def test_optimum_figure_draws_a_students_line_and_choice():
    asked = []

    def best(*machine):
        asked.append(machine)
        return 16

    picture = optimum_figure(4, 64, 0.5, lambda k, m, n, s, o: 100.0 + m, best, sample_s=2.0)
    assert asked == [(4, 64, 2.0, 0.5)]
    assert dots(picture) == [(16, 116)]
    assert "Black line: <lambda>; it should follow" in picture.text
    assert "16  116 s  484.5 s" in picture.text
    with pytest.raises(ValueError, match="65 micro-batches are not on the axis, 1 to 64"):
        optimum_figure(4, 64, best=lambda *machine: 65)


@pytest.mark.parametrize("factor", [0.1, 1, 10])
def test_optimum_figure_clips_neither_areas_nor_line(factor):
    """At the best number of micro-batches, whatever a student's line is off by."""
    picture = optimum_figure(4, 64, 1.0, lambda *call: factor * gpipe_step_s(*call))
    top_s = picture.figure.axes[0].get_ylim()[1]
    assert top_s > 284.2 * max(1, factor)


@pytest.mark.parametrize("steep", [1, 20])
@pytest.mark.parametrize("chosen", [1, 2, 14, 38, 64])
def test_optimum_figure_has_room_for_its_note_wherever_the_dot_is(chosen, steep):
    picture = optimum_figure(4, 64, 1.0 / steep, best=lambda *machine: chosen)
    assert_labels_are_apart(picture.figure)


@pytest.mark.parametrize(
    ("step_time", "words"),
    [
        (None, "within 1 % of the least: M = 11 to 17"),
        (lambda k, m, n, s, o: 100.0 * m, "within 1 % of the least: M = 1 only"),
        (lambda k, m, n, s, o: 2.0 + m % 2, "within 1 % of the least: 32 numbers"),
        (lambda k, m, n, s, o: -1.0, "within 1 % of the least: M = 1 to 64"),
    ],
)
def test_optimum_figure_says_how_flat_the_bottom_is(step_time, words):
    picture = optimum_figure(4, 64, 1.0, step_time)
    assert words in picture.text
    assert words in picture.alt
    assert any(words in note.get_text() for note in picture.figure.axes[0].texts)


def test_sliders_redraw_the_figure():
    *sliders, view = optimum_sliders().children
    assert "best M = 14, 284.1 s" in view.value
    assert all(isinstance(s, ipywidgets.IntSlider | ipywidgets.FloatSlider) for s in sliders)
    for slider, value in zip(sliders, (8, 32, 2.0), strict=True):
        slider.value = value
    assert optimum_figure(8, 32, 2.0)._repr_html_() == view.value


def test_sliders_without_ipywidgets_say_so_and_draw(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert optimum_sliders(n_stages=2, n_samples=8) == optimum_figure(2, 8)
    assert capsys.readouterr().out.count("\n") == 1
