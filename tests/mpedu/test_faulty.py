"""Pictures of faulty schedules: what is red, what is dashed, and what is a sentence alone."""

import html

import pytest
from matplotlib.text import Annotation
from pictures import ALSO_RED, BLANK, COUNTS, FAULTY, box_named, boxes_of, drawn, label_in, lists

from mpedu.families import gpipe, naive
from mpedu.plot import draw_schedule
from mpedu.plot.looks import LOOKS, RED
from mpedu.schedule import Action
from mpedu.validate import validate_schedule


@pytest.mark.parametrize("name", FAULTY)
def test_first_fault_is_told_and_its_box_is_red(name):
    schedule, kind, expected, arrows = FAULTY[name]
    counts = COUNTS.get(name, (None, None))
    fault = validate_schedule(schedule, *counts)[0]
    picture = drawn(name)
    assert fault.kind == kind
    heading = " ".join(picture.figure.texts[0].get_text().split())
    assert fault.text == heading == picture.text.splitlines()[0]
    assert picture.alt.startswith(fault.text)
    red = boxes_of(picture, "fault", "fault missing")
    boxes = [expected, *ALSO_RED.get(name, [])] if expected else []
    assert [(row, label_in(picture, (row, a, b))) for row, a, b in red] == boxes
    red_rows = [
        tick.get_text()[-1]
        for tick in picture.figure.axes[0].get_yticklabels()
        if tick.get_color() == RED
    ]
    assert red_rows == ([] if fault.rank is None else [str(fault.rank)])
    for need, action in arrows:
        assert f"red arrow: from {need} to {action}" in picture.text


@pytest.mark.parametrize("name", [name for name in FAULTY if FAULTY[name][3]])
def test_red_arrows_lead_from_the_needed_box_to_the_one_in_need(name):
    picture = drawn(name)
    ends = []
    for note in picture.figure.axes[0].texts:
        if isinstance(note, Annotation):
            ends.append(tuple(tuple(map(float, end)) for end in (note.xyann, note.xy)))
    assert len(ends) == len(FAULTY[name][3])
    for (start, end), (need, action) in zip(ends, FAULTY[name][3], strict=True):
        for (at_s, height), box in ((start, need), (end, action)):
            row, begin_s, until_s = box_named(picture, box)
            assert begin_s < at_s < until_s
            assert abs(height - row) < 0.5


SWAPPED = [[Action(kind, m, stage) for kind in "FB" for m in range(8)] for stage in range(4)]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (None, "this is of type NoneType"),
        ([], "the schedule is empty"),
        (
            [action for actions in gpipe(4, 8) for action in actions],
            "entry 0 of the schedule is of type Action",
        ),
        ([[]] * 4, "stage 0: its list holds no work"),
        ([[("F", 0, 0)]] * 4, "stage 0, entry 0: this is of type tuple"),
        (SWAPPED, "4F0 does not exist"),
    ],
)
def test_a_fault_that_no_picture_shows_is_one_sentence(schedule, words, tmp_path):
    picture = draw_schedule(schedule, None, 4, 8, title="mine")
    assert picture.png == b""
    assert words in picture.text
    assert "\n" not in picture.text
    assert picture.text == picture.alt == f"mine: {validate_schedule(schedule, 4, 8)[0].text}"
    assert picture._repr_html_() == f"<p>{html.escape(picture.text)}</p>"
    with pytest.raises(ValueError, match="a sentence, not a picture"):
        picture.save(tmp_path / "a.png")


def test_work_on_wrong_stages_is_drawn_where_its_labels_have_room():
    assert draw_schedule(gpipe(8, 4), None, 4, 8).png


def test_second_of_two_equal_boxes_is_the_repeated_one():
    assert boxes_of(drawn("work done twice"), "fault") == [(0, 3, 5)]


@pytest.mark.parametrize("name", [name for name in FAULTY if FAULTY[name][2]])
def test_text_form_names_the_red_box(name):
    _, label = FAULTY[name][2]
    text = drawn(name).text
    assert f">{label}<" in text or f"in red: {label} of" in text


def test_red_box_that_ran_is_named_where_other_work_is_left_over():
    picture = draw_schedule(lists("0F0 0F0"), n_stages=1, n_microbatches=1)
    assert "in red: F0 of stage 0" in picture.text
    assert "left over:\nstage 0: missing B0" in picture.text


def test_missing_work_is_dashed_at_the_end_of_its_row():
    picture = draw_schedule(naive(2, 1), n_stages=2, n_microbatches=3)
    shapes = {c.get_label(): c for c in picture.figure.axes[0].collections}
    assert shapes["missing"].get_linestyle() != shapes["F"].get_linestyle()
    assert LOOKS["missing"].line == LOOKS["fault missing"].line == "--"
    missing = boxes_of(picture, "missing", "fault missing")
    labels = [[label_in(picture, b) for b in sorted(missing) if b[0] == row] for row in (0, 1)]
    assert labels == [["F1", "F2", "B1", "B2"]] * 2
    assert min(start for _, start, _ in missing) == 6
    assert "stage 0: missing >F1< F2 B1 B2" in picture.text


def test_a_stage_without_a_list_gets_a_row():
    picture = draw_schedule(gpipe(3, 2)[:2], n_stages=3, n_microbatches=2)
    assert [tick.get_text() for tick in picture.figure.axes[0].get_yticklabels()][2] == "stage 2"
    assert len([b for b in boxes_of(picture, "missing", "fault missing") if b[0] == 2]) == 4


def test_blanks_are_dashed_where_they_stand_and_no_fault_is_told():
    picture = draw_schedule(BLANK)
    assert picture.text.splitlines() == [
        "2 of 10 entries are still to fill in",
        "stage 0 |F0|F1|..............|",
        "stage 1 |..|F0|F1|B0   |B1   |",
        "from 0 s to 7 s; one column is 0.3333 s",
        "after 7 s nothing more runs; left over:",
        "stage 0: .. B0 B1 ..",
    ]
    assert boxes_of(picture, "blank") == [(0, 7, 8), (0, 12, 13)]
    assert boxes_of(picture, "fault", "missing") == []
    assert draw_schedule(BLANK, n_stages=2, n_microbatches=3).png == picture.png


def test_nobody_runs_ahead_of_a_blank():
    picture = draw_schedule([lists("0F0 0B0")[0], [..., *lists("1B0")[0]]])
    assert picture.text.splitlines()[-2:] == ["stage 0: B0", "stage 1: .. B0"]


def test_a_faulty_schedule_that_runs_through_is_not_called_stuck():
    picture = drawn("work done twice")
    assert "nothing more runs" not in picture.text
    assert [t.get_text() for t in picture.figure.axes[0].texts] == ["0", "0", "B0"]
