import sys

import pytest
from pictures import assert_labels_are_apart, boxes_of, line

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.plot import in_flight_figure, in_flight_sliders, weights_figure
from mpedu.plot.in_flight_figures import most_copies, versions_used
from mpedu.schedule import Action, in_flight, peak_in_flight
from mpedu.simulate import Costs, simulate

BOTH = {"GPipe": gpipe, "1F1B": one_f_one_b}


def test_timelines_stand_above_each_other_on_one_axis_and_the_curves_below():
    picture = in_flight_figure(BOTH, 4, 8, latency_s=0.5)
    gpipe_axes, other_axes, curves = picture.figure.axes
    ends_s = [simulate(make(4, 8), Costs(latency_s=0.5)).makespan_s for make in BOTH.values()]
    assert ends_s == [36, 41]
    for axes in (gpipe_axes, other_axes, curves):
        assert axes.get_xlim() == (0, 41)
    for panel, (make, end_s) in enumerate(zip(BOTH.values(), ends_s, strict=True)):
        boxes = boxes_of(picture, "F", "B", panel=panel)
        assert len(boxes) == sum(map(len, make(4, 8))) and max(b[2] for b in boxes) == end_s
    assert_labels_are_apart(picture.figure)


@pytest.mark.parametrize("stage", [0, 2])
@pytest.mark.parametrize("name", BOTH)
def test_a_curve_steps_to_what_is_held_at_the_end_of_each_box(name, stage):
    picture = in_flight_figure(BOTH, 3, 5, stage=stage)
    schedule = BOTH[name](3, 5)
    ends_s = [s.end_s for s in simulate(schedule).spans if s.rank == stage]
    expected = [(0, 0), *zip(ends_s, in_flight(schedule[stage]), strict=True)]
    assert line(picture, name, panel=2) == expected


def test_text_and_description_hold_every_end_and_every_peak():
    picture = in_flight_figure(BOTH, 4, 8)
    lines = picture.text.splitlines()
    assert lines[0] == "4 stages, 8 micro-batches: when it runs, and what is held"
    assert [line.split() for line in lines[-3:-1]] == [
        ["GPipe", "33", "s", "8", "8", "8", "8"],
        ["1F1B", "33", "s", "4", "3", "2", "1"],
    ]
    assert lines[-1] == "stage 0 holds at most: GPipe 8, 1F1B 4"
    assert "1F1B: 33 s; stages hold up to 4, 3, 2, 1" in picture.alt


def test_finished_lists_are_drawn_by_a_count_of_the_reader_s_own():
    picture = in_flight_figure({"mine": naive(2, 2)}, held=lambda actions: [3] * len(actions))
    assert "stage 0 holds at most: mine 3" in picture.text


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (lambda actions: None, "gave None; a list with one number per action is asked"),
        (lambda actions: 4, "gave 4; a list"),
        (lambda actions: [0, *in_flight(actions)], "gave 5 numbers for 4 actions"),
    ],
)
def test_a_count_that_is_none_is_refused_in_one_sentence(held, words):
    with pytest.raises(ValueError, match=words):
        in_flight_figure({"naive": naive}, 2, 2, held=held)


def test_no_schedule_and_one_that_cannot_run_are_refused():
    with pytest.raises(ValueError, match="no schedules to draw"):
        in_flight_figure({})
    stuck = [naive(2, 2)[0], gpipe(2, 2)[1]]
    with pytest.raises(ValueError, match="deadlock"):
        in_flight_figure({"stuck": stuck})


def test_a_stage_keeps_as_many_copies_as_stages_are_left_to_the_end():
    for n_stages in range(1, 6):
        schedule = one_f_one_b(n_stages, 2 * n_stages)
        copies = [most_copies(actions) for actions in schedule]
        assert copies == [n_stages - stage for stage in range(n_stages)] == peak_in_flight(schedule)


def test_a_backward_uses_the_weights_of_its_forward():
    for actions in one_f_one_b(4, 9):
        used = dict(zip(actions, versions_used(actions), strict=True))
        for action, version in used.items():
            before = actions[: actions.index(Action("F", action.stage, action.microbatch))]
            assert version == sum(other.kind == "B" for other in before)


def test_the_weights_figure_numbers_the_same_boxes_by_micro_batch_and_by_version():
    picture = weights_figure(2, 4)
    above, below = picture.figure.axes
    assert boxes_of(picture, "F", "B") == boxes_of(picture, "F", "B", panel=1)
    numbers = [[text.get_text() for text in axes.texts] for axes in (above, below)]
    # Until stage 0 takes up micro-batch 4, at 12 s: its backward of 3 is still to come.
    assert sorted(numbers[0]) == sorted("0123" * 3 + "012")
    assert max(box[2] for box in boxes_of(picture, "F", "B")) == 12 == above.get_xlim()[1]
    assert numbers[1] != numbers[0]
    assert picture.text.splitlines()[-1] == "copies of its weights that a stage keeps: 2, 1"
    assert_labels_are_apart(picture.figure)


def test_sliders_redraw_and_without_ipywidgets_the_figure_stands_still(monkeypatch, capsys):
    box = in_flight_sliders(BOTH)
    *sliders, view = box.children
    before = view.value
    sliders[1].value = 4
    assert view.value != before and "4 micro-batches" in view.value
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    picture = in_flight_sliders(BOTH)
    assert "8 micro-batches" in picture.text
    assert "pip install ipywidgets" in capsys.readouterr().out
