import dataclasses
import itertools
import random

import pytest
from pictures import assert_labels_are_apart

from mpedu.plot import bills_figure, memory_figure, memory_sliders, partition_figure
from mpedu.plot import memory_figures as module
from mpedu.published import load_hardware, load_model

A100 = load_hardware("a100-80gb")
SMALL = dataclasses.replace(A100, name="small", memory_bytes=int(10e9))
LLAMA = load_model("llama2-7b")


def bill(parameters=1.0, gradients=1.0, optimiser=6.0, activations=2.0):
    """One rank's bytes, given in GB."""
    parts = {"parameters": parameters, "gradients": gradients, "optimiser": optimiser}
    return {name: int(1e9 * value) for name, value in parts.items()} | {
        "activations": int(1e9 * activations)
    }


def by_held(config, n_stages, n_held):
    return [bill(activations=float(n_held)) for _ in range(n_stages)]


def heights(picture, panel=0):
    """The bars of a panel as (rank, bottom, height), in GB."""
    bars = picture.figure.axes[panel].patches
    return [(round(b.get_x() + b.get_width() / 2), b.get_y(), b.get_height()) for b in bars]


def test_bars_stand_on_each_other_in_the_order_of_the_parts():
    picture = memory_figure(by_held, LLAMA, 2, {"few": 1, "many": 5}, SMALL)
    of_rank_1 = [bar[1:] for bar in heights(picture, panel=1) if bar[0] == 1]
    assert of_rank_1 == [(0, 1), (1, 1), (2, 6), (8, 5)]
    assert len(picture.figure.axes) == 2
    assert_labels_are_apart(picture.figure)


def test_the_text_holds_every_number_and_what_does_not_fit():
    picture = memory_figure(by_held, LLAMA, 2, {"few": 1, "many": 5}, SMALL)
    assert picture.text.splitlines() == [
        "llama2-7b on 2 devices: what each keeps",
        "case  rank  parameters  gradients  optimiser  activations  GB",
        " few     0           1          1          6            1   9",
        " few     1           1          1          6            1   9",
        "many     0           1          1          6            5  13",
        "many     1           1          1          6            5  13",
        "few: fits; many: no rank fits",
    ]
    assert "a line at 10 GB (small). few: fits; many: no rank fits." in picture.alt


def test_the_limit_is_a_line_at_the_devices_memory_in_every_panel():
    picture = memory_figure(by_held, LLAMA, 2, {"few": 1, "many": 5}, SMALL)
    for axes in picture.figure.axes:
        (limit,) = axes.lines
        assert set(limit.get_ydata()) == {10} and axes.get_ylim()[1] > 13


@pytest.mark.parametrize(
    ("held", "note"),
    [
        ((1, 1, 1), "fits"),
        ((3, 1, 1), "1 rank of 3 does not fit"),
        ((3, 1, 3), "2 ranks of 3 do not fit"),
        ((3, 3, 3), "no rank fits"),
        ((3,), "does not fit"),
    ],
)
def test_ranks_over_the_limit_are_counted_and_red(held, note):
    bills = [bill(activations=float(n)) for n in held]
    picture = bills_figure([bills], SMALL, names=["all"])
    assert picture.text.splitlines()[-1] == f"all: {note}"
    red = [t.get_text() for t in picture.figure.axes[0].texts if t.get_color() == module.RED]
    assert red == [f"{8 + n}" for n in held if n == 3]


def test_planned_and_measured_bills_stand_side_by_side():
    picture = bills_figure([[bill()] * 4, [bill(2.0, 2.0)] * 4], A100, title="Run A")
    assert [axes.get_xlabel() for axes in picture.figure.axes] == [
        "rank, planned",
        "rank, measured",
    ]
    assert picture.text.startswith("Run A\n") and picture.alt.startswith("Run A, stacked by part")


def test_same_input_same_bytes():
    made = [memory_figure(by_held, LLAMA, 3, {"a": 1}, A100).png for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "None is no bill; give a list of 2 dicts with parameters, gradients"),
        ([bill()], "is no bill; give a list of 2 dicts"),
        ([bill(), 3], "rank 1 is 3; give a list of 2 dicts"),
        ([bill(), {"parameters": 1}], "rank 1 is {'parameters': 1}; give a list"),
        (
            [bill(), bill() | {"gradients": None}],
            "rank 1: gradients is None; give bytes, 0 or more",
        ),
        ([bill(), bill() | {"gradients": True}], "rank 1: gradients is True; give bytes"),
        ([bill() | {"optimiser": -1}, bill()], "rank 0: optimiser is -1; give bytes, 0 or more"),
        ([bill() | {"optimiser": float("nan")}, bill()], "rank 0: optimiser is nan; give bytes"),
    ],
)
def test_what_is_no_bill_is_told_and_not_drawn(given, sentence):
    with pytest.raises(ValueError) as error:
        memory_figure(lambda *args: given, LLAMA, 2, {"a": 1}, A100)
    assert sentence in str(error.value)


def test_sliders_hold_the_figure_of_what_is_chosen():
    asked = []

    def noting(config, n_stages, n_held):
        asked.append((config.name, n_stages, n_held))
        return by_held(config, n_stages, n_held)

    box = memory_sliders(noting, n_stages=3, n_held=2)
    model, device, ranks, held, view = box.children
    assert "llama2-7b on 3 devices" in view.value
    model.value, ranks.value, held.value = "gpt3-175b", 8, 0
    assert asked[-1] == ("gpt3-175b", 8, 0)
    device.value = "v100-32gb"
    assert "v100-32gb" in view.value and "gpt3-175b on 8 devices" in view.value


def test_sliders_never_ask_for_more_ranks_than_layers():
    asked = []
    box = memory_sliders(lambda *args: asked.append(args[1]) or by_held(*args))
    box.children[2].value = 64
    assert asked[-1] == 32


def test_without_widgets_the_figure_stands_still(monkeypatch, capsys):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module.importlib, "import_module", missing)
    picture = memory_sliders(by_held)
    assert picture.text.startswith("llama2-7b on 4 devices")
    assert capsys.readouterr().out.startswith("ipywidgets is not installed")


COSTS = [3, 1, 1, 1, 1, 1, 1, 1, 1, 4]


def test_a_cut_is_drawn_beside_equal_counts_with_its_heaviest_stage():
    picture = partition_figure(lambda costs, n_stages: [2, 4, 3, 1], COSTS, 4)
    told = "equal counts: heaviest is stage 0 with 5; your cut: heaviest is stage 0 with 4, no cut "
    told += "is lighter"
    assert picture.text.splitlines()[-1] == told and f". {told}." in picture.alt
    equal, yours = picture.figure.axes
    assert set(equal.lines[0].get_ydata()) == {5} and set(yours.lines[0].get_ydata()) == {4}
    tops = [max(b.get_y() + b.get_height() for b in yours.patches if round(b.get_x() + 0.36) == s)
            for s in range(4)]  # fmt: skip
    assert tops == [4, 4, 3, 4] and len(yours.patches) == len(COSTS)
    assert_labels_are_apart(picture.figure)


@pytest.mark.parametrize("counts", [[10], [5, 5, 0, 0], [4, 4, 4, 4], [1, 1, 1, 1]])
def test_what_does_not_cut_the_layers_is_told(counts):
    with pytest.raises(ValueError, match="does not cut 10 layers into 4 stages"):
        partition_figure(lambda costs, n_stages: counts, COSTS, 4)


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_that_could_be_lighter_is_told_so(seed):
    rng = random.Random(seed)
    costs = [rng.randint(1, 9) for _ in range(rng.randint(3, 8))]
    n_stages = rng.randint(2, len(costs))
    heaviest = {}
    for places in itertools.combinations(range(1, len(costs)), n_stages - 1):
        ends = [0, *places, len(costs)]
        cut = tuple(b - a for a, b in itertools.pairwise(ends))
        heaviest[cut] = max(sum(costs[a:b]) for a, b in itertools.pairwise(ends))
    for cut in (min(heaviest, key=heaviest.get), max(heaviest, key=heaviest.get)):
        note = partition_figure(lambda *args, cut=cut: list(cut), costs, n_stages).text
        best = min(heaviest.values())
        expected = "no cut is lighter" if heaviest[cut] == best else f"{best} is possible"
        ends = list(itertools.accumulate(cut, initial=0))
        sums = [sum(costs[a:b]) for a, b in itertools.pairwise(ends)]
        place = sums.index(max(sums))
        told = f"your cut: heaviest is stage {place} with {heaviest[cut]}, {expected}"
        assert note.endswith(told)
