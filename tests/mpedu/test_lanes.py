import io
import math
import re

import pytest
from matplotlib.colors import to_hex
from pictures import assert_labels_are_apart, boxes_of
from PIL import Image
from rank_programs import all_reduce, overlap, ping_pong, ring, sent, span

from mpedu.families import gpipe
from mpedu.plot import draw_deadlock, draw_lanes, draw_timeline
from mpedu.plot.lane_layout import MOST_ARROWS, MOST_LANES, lanes_of, size_text
from mpedu.plot.lanes import HALF, KINDS, MOST_LABELLED
from mpedu.ranks.board import Waiting
from mpedu.simulate import Sent, Span, Timeline, simulate

US = 1e6
GALLERY = {
    "ping-pong of 2": ping_pong,
    "tags": lambda: ping_pong(n_rounds=6, tag=17),
    "ring of 4": ring,
    "all-reduce of 8": all_reduce,
    "all-reduces, thinned": lambda: all_reduce(6, 8),
    "overlap": overlap,
    "more ranks than lanes": lambda: all_reduce(40),
    "names of its own": lambda: Timeline(
        [span(i % 2, kind, i, i + 1) for i, kind in enumerate("expert gate load norm".split())], 2
    ),
    "every kind": lambda: Timeline(
        [span(0, kind, i, i + 1) for i, kind in enumerate([*KINDS][:-2])],
        2,
        (sent(0, 1, 3.0),),
    ),
}


def arrows(picture, panel=0):
    """The drawn arrows as (start time, start row, end time, end row)."""
    texts = picture.figure.axes[panel].texts
    notes = [note for note in texts if getattr(note, "arrow_patch", None) is not None]
    return [(*map(float, note.xyann), *map(float, note.xy)) for note in notes]


def labels(picture):
    words = (text.get_text() for text in picture.figure.axes[0].texts)
    return [word for word in words if re.match(r"[\d.]+ .?B|tag", word)]


def legend_of(picture):
    legend = picture.figure.axes[0].get_legend()
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("name", GALLERY)
def test_no_label_is_cut_off_or_covers_another(name):
    assert_labels_are_apart(draw_lanes(GALLERY[name]()).figure)


@pytest.mark.parametrize("name", GALLERY)
def test_a_picture_is_as_wide_as_a_notebook_and_says_what_it_shows(name):
    timeline = GALLERY[name]()
    picture = draw_lanes(timeline)
    assert Image.open(io.BytesIO(picture.png)).width == 990
    for words in (picture.alt, picture.text):
        assert f"{timeline.n_ranks} ranks, {len(timeline.messages)} message" in words
    assert picture == draw_lanes(timeline)


def test_each_message_is_an_arrow_from_its_start_to_its_arrival():
    timeline = ring(4)
    found = arrows(draw_lanes(timeline))
    expected = [
        (US * m.start_s, m.source + side, US * m.arrival_s, m.destination - side)
        for m in timeline.messages
        for side in [HALF if m.destination > m.source else -HALF]
    ]
    assert sorted(found) == [pytest.approx(arrow) for arrow in sorted(expected)]


def test_boxes_stand_where_the_spans_and_the_links_are_busy():
    picture = draw_lanes(overlap())
    computed = [(row, start, end) for row, start, end in boxes_of(picture, "compute")]
    assert sorted(computed) == [
        pytest.approx(box) for box in [(-0.15, 0, 40), (-0.15, 40, 70), (0.85, 0, 120)]
    ]
    assert boxes_of(picture, "send") == [pytest.approx((0.15, 40, 80))]
    # grey until the last thing on the lane ends: what no box covers is waiting
    idle = [pytest.approx(box) for box in [(0, 0, 80), (1, 0, 120)]]
    assert sorted(boxes_of(picture, "waits or idle")) == idle


def test_what_arrives_before_it_is_taken_has_a_dotted_line_until_then():
    (line,) = draw_lanes(overlap()).figure.axes[0].lines
    assert list(line.get_xdata()) == pytest.approx([85, 120])
    assert line.get_linestyle() == ":"
    assert not draw_lanes(ring()).figure.axes[0].lines


def test_a_collective_is_one_box_and_its_messages_are_none():
    picture = draw_lanes(all_reduce(4))
    assert len(boxes_of(picture, "all_reduce")) == 4
    assert len(arrows(picture)) == 4 * 6
    assert not boxes_of(picture, "send")


def test_messages_alone_make_a_timeline_with_a_makespan():
    timeline = ring(4)
    assert timeline.makespan_s == pytest.approx(4 * 5.0008e-6)
    assert "4 ranks, 4 messages: 20 us" in draw_lanes(timeline).text
    assert len(boxes_of(draw_lanes(timeline), "send")) == 4


def test_few_messages_are_labelled_with_size_and_tag():
    sizes = [sent(i, i + 1, i * 1e-5, 8 * (i + 1)) for i in range(3)]
    assert labels(draw_lanes(Timeline([], 4, tuple(sizes)))) == ["8 B", "16 B", "24 B"]
    assert labels(draw_lanes(overlap())) == ["400 kB, tag 3"]
    assert labels(draw_lanes(ping_pong(6, tag=17))) == ["tag 17"] * 12
    assert not labels(draw_lanes(ping_pong(MOST_LABELLED // 2 + 1, tag=17)))


def test_a_size_that_all_messages_have_is_said_once():
    picture = draw_lanes(ring(4))
    assert not labels(picture)
    assert picture.figure.axes[0].get_xlabel() == "time (us); each message 8 B"


def test_the_legend_holds_what_can_be_seen():
    assert legend_of(draw_lanes(ring(4))) == ["waits or idle"]  # on its link 0.8 ns of 20 us
    assert legend_of(draw_lanes(overlap())) == ["compute", "send", "waits or idle"]


@pytest.mark.parametrize("n_ranks", [2, 3, 4, 6, 8])
def test_of_very_many_messages_some_have_an_arrow_and_a_line_says_so(n_ranks):
    timeline = all_reduce(n_ranks, n_times=-(-400 // (2 * n_ranks * (n_ranks - 1))))
    picture = draw_lanes(timeline)
    n_arrows, n_messages = len(arrows(picture)), len(timeline.messages)
    assert 75 < n_arrows <= MOST_ARROWS
    line = f"{n_arrows} arrows for {n_messages} messages"
    assert line in picture.text and line in picture.alt
    assert any(line in text.get_text() for text in picture.figure.texts)
    starts = [
        round(row - HALF if row % 1 < 0.5 else row + HALF) for _, row, _, _ in arrows(picture)
    ]
    assert set(starts) == set(range(n_ranks))  # all of them take their turns


def test_as_many_messages_as_have_room_all_have_an_arrow():
    picture = draw_lanes(ping_pong(MOST_ARROWS // 2))
    assert len(arrows(picture)) == MOST_ARROWS
    assert "arrows for" not in picture.text


def test_of_very_many_ranks_the_first_are_drawn_and_a_line_says_so():
    picture = draw_lanes(all_reduce(MOST_LANES + 8))
    assert len(picture.figure.axes[0].get_yticks()) == MOST_LANES
    assert f"the first {MOST_LANES} of {MOST_LANES + 8} ranks are drawn" in picture.text
    assert "are drawn" not in draw_lanes(all_reduce(MOST_LANES)).text


@pytest.mark.parametrize(
    ("makespan_s", "unit", "last"),
    [(3.0, "s", 3), (0.25, "ms", 250), (4e-5, "us", 40), (2e-8, "ns", 20), (1e-3, "ms", 1)],
)
def test_time_has_the_unit_that_suits_it(makespan_s, unit, last):
    picture = draw_lanes(Timeline([span(0, "compute", 0.0, makespan_s)], 1))
    axes = picture.figure.axes[0]
    assert axes.get_xlabel() == f"time ({unit})"
    assert axes.get_xlim() == pytest.approx((0, last))
    assert f"{last} {unit}" in picture.text.split("\n")[0]


def test_the_clock_may_start_at_any_time():
    timeline = overlap()
    spans = [s._replace(start_s=s.start_s + 7, end_s=s.end_s + 7) for s in timeline.spans]
    times = ("start_s", "end_s", "arrival_s", "taken_s")
    (m,) = timeline.messages
    later = m._replace(**{name: getattr(m, name) + 7 for name in times})
    picture = draw_lanes(Timeline(spans, 2, (later,)))
    assert picture.text == draw_lanes(timeline).text
    assert picture.figure.axes[0].get_xlim() == pytest.approx((0, 120))


def test_kinds_are_told_apart_by_colour_and_by_hatching():
    looks = [look for kind, look in KINDS.items() if kind not in "FBIW"]
    assert len({look.face for look in looks}) == len({look.hatch for look in looks}) == len(looks)
    picture = draw_lanes(all_reduce(2))
    (legend,) = [axes.get_legend() for axes in picture.figure.axes]
    assert [text.get_text() for text in legend.get_texts()] == [
        "compute",
        "all_reduce",
        "waits or idle",
    ]
    shown = [c for c in picture.figure.axes[0].collections if c.get_label() == "all_reduce"]
    assert to_hex(shown[0].get_facecolor()[0]).upper() == KINDS["all_reduce"].face
    assert shown[0].get_hatch() == KINDS["all_reduce"].hatch


def test_a_timeline_of_a_rank_program_is_drawn_as_lanes():
    for timeline in (ring(), all_reduce(2), Timeline([span(0, "compute", 0.0, 1.0)], 1)):
        assert draw_timeline(timeline) == draw_lanes(timeline)
    assert "Swim lanes" not in draw_timeline(simulate(gpipe(2, 2))).alt
    with pytest.raises(ValueError, match="shade measures a schedule's idle time"):
        draw_timeline(ring(), shade=True)


def test_work_of_a_schedule_with_messages_keeps_its_look_and_its_number():
    spans = [Span(0, "F", 0, 4, 0, 1), Span(1, "B", 1, 4, 2, 3)]
    picture = draw_lanes(Timeline(spans, 2, (sent(0, 1, 1.0),)))
    assert boxes_of(picture, "forward") == [pytest.approx((-0.15, 0, 1))]
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert words.count("4") == 2


def test_the_text_form_has_a_bar_for_each_track_and_the_messages_in_order_of_time():
    lines = draw_lanes(overlap(), n_columns=24).text.split("\n")
    assert lines == [
        "2 ranks, 1 message: 120 us",
        "rank 0 work     |CCCCCCCCCCCCCC..........|",
        "rank 0 messages |........ssssssss........|",
        "rank 1 work     |CCCCCCCCCCCCCCCCCCCCCCCC|",
        "rank 1 messages |........................|",
        "from 0 to 120 us; C: compute, s: send",
        "messages, times in us",
        " ranks  message of    size  tag  starts  sent  arrives  taken",
        "0 -> 1        send  400 kB    3      40    80       85    120",
    ]


def test_the_text_form_sorts_messages_and_cuts_a_long_list():
    timeline = ping_pong(50)
    mixed = timeline._replace(messages=timeline.messages[::-1])
    assert draw_lanes(mixed) == draw_lanes(timeline)
    rows = re.findall(r"^(\d) -> (\d)", draw_lanes(mixed).text, re.MULTILINE)
    assert rows == [("0", "1"), ("1", "0")] * 30
    assert draw_lanes(mixed).text.endswith("and 40 more")


def test_sizes_are_written_in_decimal_units():
    sizes = [0, 8, 999, 1000, 1536, 2_500_000, 3 * 10**9]
    words = ["0 B", "8 B", "999 B", "1 kB", "1.536 kB", "2.5 MB", "3 GB"]
    assert [size_text(n) for n in sizes] == words


def test_boxes_that_take_no_time_and_a_run_that_takes_none_are_drawn():
    instant = Sent(0, 1, "send", 0, 0.0, 0.0, 0.0, 0.0, 0)
    picture = draw_lanes(Timeline([span(0, "compute", 0.0, 0.0)], 2, (instant,)))
    assert len(arrows(picture)) == 1 and "0 ns" in picture.text


def test_saved_as_svg_it_is_repeatable(tmp_path):
    first = draw_lanes(ring()).save(tmp_path / "a.svg").read_bytes()
    assert b"<svg" in first and draw_lanes(ring()).save(tmp_path / "b.svg").read_bytes() == first


LATE = ring().messages[0]._replace(taken_s=0.0)


@pytest.mark.parametrize(
    ("timeline", "message"),
    [
        (Timeline([], 4), "no spans and no messages"),
        (gpipe(2, 2), "this is a list; give a Timeline"),
        (Timeline([span(2, "compute", 0, 1)], 2), "has no lane; the ranks are 0 to 1"),
        (Timeline([], 1, (sent(0, 1, 0.0),)), "has no lane; the ranks are 0 to 0"),
        (Timeline([span(0, "compute", 1, 0)], 1), "ends before it starts"),
        (Timeline([span(0, "compute", 0, math.nan)], 1), "ends before it starts"),
        (Timeline([], 2, (LATE,)), "is taken before it is sent"),
        (Timeline([span(0, "compute", 0, 1)] * 5001, 1), "5001 spans and 0 messages are too many"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_sentence(timeline, message):
    with pytest.raises(ValueError, match=message) as error:
        draw_lanes(timeline)
    assert "\n" not in str(error.value)


def test_the_lanes_of_a_timeline_are_in_order_of_time():
    lanes = lanes_of(all_reduce(3, 2))
    assert [m.start_s for m in lanes.messages] == sorted(m.start_s for m in lanes.messages)
    assert [box.start_s for box in lanes.boxes] == sorted(box.start_s for box in lanes.boxes)
    assert lanes.tracks == ["work", "collectives"]


def test_before_a_deadlock_who_waits_is_grey_until_the_end_and_who_has_finished_is_not():
    ran = Timeline([], 3, (sent(1, 2, 0.0),))
    picture = draw_deadlock([Waiting(0, "send to rank 2", 1.0, (2,))], ran)
    (_, axes) = picture.figure.axes
    grey = [bars for bars in axes.collections if bars.get_label() == "waits or idle"]
    ends_us = [bars.get_paths()[0].get_extents().x1 for bars in grey]
    assert ends_us == pytest.approx([5.0008, 0.0008, 5.0008])
