import pytest
from pictures import lists

from mpedu.families import gpipe
from mpedu.plot import draw_schedule, timeline_text
from mpedu.plot.text import percent, seconds, shortened, table
from mpedu.simulate import Span, Timeline, simulate


def test_timeline_text_shows_boxes_to_scale():
    assert timeline_text(simulate(gpipe(2, 2))).splitlines() == [
        "stage 0 |F0|F1|........|B0   |B1   |",
        "stage 1 |..|F0|F1|B0   |B1   |.....|",
    ]


def test_timeline_text_of_narrow_boxes_drops_the_edges():
    first, *_, last = timeline_text(simulate(gpipe(4, 8))).splitlines()
    assert first == "stage 0 |F0F1F2F3F4F5F6F7..................B0  B1  B2  B3  B4  B5  B6  B7  |"
    assert last == "stage 3 |......F0F1F2F3F4F5F6F7B0  B1  B2  B3  B4  B5  B6  B7  ............|"


@pytest.mark.parametrize(
    ("n_columns", "expected"),
    [(12, "F0B0  F1B1  "), (6, "FBBFBB"), (3, "#B#"), (1, "#")],
)
def test_timeline_text_fills_boxes_without_room_with_letters(n_columns, expected):
    times = [("F", 0, 0, 1), ("B", 0, 1, 3), ("F", 1, 3, 4), ("B", 1, 4, 6)]
    timeline = Timeline([Span(0, kind, 0, m, start, end) for kind, m, start, end in times], 1)
    assert timeline_text(timeline, n_columns) == f"stage 0 |{expected}|"


def test_rows_are_ranks_where_a_rank_holds_several_stages():
    picture = draw_schedule(lists("0F0 2F0 2B0 0B0", "1F0 1B0"))
    assert picture.text.splitlines()[1:3] == [
        "rank 0 |0F0|...|2F0|2B0    |.......|0B0    |",
        "rank 1 |...|1F0|...........|1B0    |.......|",
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("F0 F1 F2 B2 B1 B0", "F0-F2 B2-B0"),
        ("F0 F1 B0 B1", "F0 F1 B0 B1"),
        ("F0 B0 F1 B1", "F0 B0 F1 B1"),
        ("F9 F10 F11 .. F0", "F9-F11 .. F0"),
        ("0F0 0F1 0F2 1F3 1F4", "0F0-0F2 1F3 1F4"),
        ("", ""),
    ],
)
def test_shortened_draws_runs_together_and_loses_nothing(labels, expected):
    assert shortened(labels.split()) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (3 / 19, "15.8 %"),
        (3 / 16, "18.75 %"),
        (0.05, "5 %"),
        (0.75, "75 %"),
        (0, "0 %"),
        (1, "100 %"),
    ],
)
def test_percent_has_one_decimal_or_two_where_that_is_exact(share, expected):
    assert percent(share) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(33, "33 s"), (284.1428, "284.1 s"), (0.5, "0.5 s"), (1e-6, "1e-06 s")]
)
def test_seconds_carry_their_unit(value, expected):
    assert seconds(value) == expected


def test_table_aligns_to_the_right():
    assert table(("M", "share"), [(1, 0.75), (16, "-")]) == " M  share\n 1   0.75\n16      -"
