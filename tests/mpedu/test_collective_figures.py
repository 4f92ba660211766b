import re

import pytest

from mpedu.cost import collective_s
from mpedu.plot import Picture, size_figure, size_sliders

MACHINE = (8, 5e-6, 10e9)


def test_the_figure_says_where_latency_and_bytes_cost_the_same_and_where_the_ring_wins():
    picture = size_figure(*MACHINE)
    assert "knee of the ring at 400 KB; the ring is faster from 96 KB on" in picture.text
    assert "Knee of the ring at 400 KB; the ring is faster from 96 KB on." in picture.alt
    ring_s, naive_s = (
        collective_s(op, 96_000, *MACHINE) for op in ("all_reduce", "naive_all_reduce")
    )
    assert ring_s == pytest.approx(naive_s, rel=1e-12)


def test_the_figure_draws_the_function_it_is_given():
    def twice(op, *args):
        return 2 * collective_s(op, *args)

    once, doubled = (
        re.findall(r"1 GB +([\d.]+) ms", size_figure(*MACHINE, cost).text)
        for cost in (collective_s, twice)
    )
    assert float(doubled[0]) == pytest.approx(2 * float(once[0]), rel=1e-3)


def test_on_two_ranks_the_ring_is_never_slower():
    assert "nowhere faster" in size_figure(2, 5e-6, 10e9, lambda *args: 1.0).text


@pytest.mark.parametrize("gives", [0, -1.0, None, True, float("nan")])
def test_a_cost_that_is_no_time_is_refused_with_the_call(gives):
    def cost(*args):
        return gives

    with pytest.raises(ValueError, match=r"cost\('all_reduce', 100, \.\.\) gave "):
        size_figure(*MACHINE, cost)


@pytest.mark.parametrize("machine", [(1, 1e-6, 1e9), (8, 0.0, 1e9), (8, 1e-6, float("inf"))])
def test_a_machine_that_has_no_knee_is_refused(machine):
    with pytest.raises(ValueError, match=r"n_ranks=1 is too small|give both above 0"):
        size_figure(*machine)


def test_sliders_redraw_the_figure_of_their_values():
    pytest.importorskip("ipywidgets", reason="sliders need ipywidgets")
    box = size_sliders()
    exponent, _, _, view = box.children
    before = view.value
    exponent.value = 5
    assert view.value != before and "32 ranks" in view.value


def test_without_ipywidgets_the_figure_stands_still(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    assert isinstance(size_sliders(), Picture)
    assert "pip install ipywidgets" in capsys.readouterr().out
