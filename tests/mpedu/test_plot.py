import io
import subprocess
import sys

import pytest
from matplotlib import style
from pictures import (
    BLANK,
    FAULTY,
    assert_labels_are_apart,
    boxes_of,
    drawn,
    label_in,
)
from PIL import Image

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.plot import Picture, draw_schedule, draw_timeline
from mpedu.plot.looks import IDLE, LOOKS
from mpedu.plot.text import percent
from mpedu.schedule import Action
from mpedu.simulate import Costs, Span, Timeline, simulate


@pytest.mark.parametrize(
    ("schedule", "costs"),
    [
        (naive(4, 1), Costs(8, 16)),
        (gpipe(1, 1), Costs()),
        (gpipe(4, 16), Costs()),
        (one_f_one_b(4, 8), Costs([1, 2, 1, 3], [2, 3, 3, 5])),
        (gpipe(8, 64), Costs(latency_s=0.5)),
    ],
)
def test_every_span_is_one_box_in_its_place(schedule, costs):
    timeline = simulate(schedule, costs)
    picture = draw_timeline(timeline)
    for kind in "FB":
        spans = [s for s in timeline.spans if s.kind == kind]
        expected = sorted((s.rank, s.start_s, s.end_s) for s in spans)
        assert sorted(boxes_of(picture, kind)) == [pytest.approx(box) for box in expected]


def test_boxes_hold_their_micro_batch_numbers():
    timeline = simulate(gpipe(4, 16))
    picture = draw_timeline(timeline)
    for span in timeline.spans:
        assert label_in(picture, (span.rank, span.start_s, span.end_s)) == str(span.microbatch)
    assert "left out" not in picture.text


def test_numbers_without_room_vanish_and_the_text_says_so():
    picture = draw_timeline(simulate(gpipe(8, 64)))
    assert len(picture.figure.axes[0].texts) == 0
    assert "numbers are left out of boxes too narrow" in picture.text
    assert "stage 7: F0-F63 B0-B63" in picture.text


def test_axis_area_is_ranks_times_makespan_whenever_the_clock_starts():
    spans = [
        span._replace(start_s=span.start_s + 5, end_s=span.end_s + 5)
        for span in simulate(gpipe(4, 8)).spans
    ]
    axes = draw_timeline(Timeline(spans, 6)).figure.axes[0]
    assert axes.get_xlim() == (5, 38)
    assert axes.get_ylim() == (5.5, -0.5)


@pytest.mark.parametrize("schedule", [naive(4, 1), gpipe(4, 8), one_f_one_b(3, 5)])
def test_shade_measures_the_idle_time(schedule):
    timeline = simulate(schedule)
    picture = draw_timeline(timeline, shade=True)
    idle_s = sum(end - start for _, start, end in boxes_of(picture, "idle shaded"))
    area_s = timeline.n_ranks * timeline.makespan_s
    assert idle_s / area_s == pytest.approx(timeline.idle_share)
    sentence = f"idle share {percent(timeline.idle_share)}"
    assert sentence in picture.alt
    assert sentence in picture.text
    assert any(sentence in text.get_text() for text in picture.figure.texts)


def test_idle_share_is_not_given_away_without_shade():
    picture = draw_schedule(gpipe(4, 8))
    assert "27" not in picture.alt + picture.text
    assert "idle share" not in picture.alt + picture.text


def test_a_legal_schedule_is_drawn_as_its_timeline():
    costs = Costs(2, 3)
    assert draw_schedule(gpipe(3, 4), costs) == draw_timeline(simulate(gpipe(3, 4), costs))
    shaded = draw_schedule(gpipe(3, 4), costs, shade=True)
    assert shaded == draw_timeline(simulate(gpipe(3, 4), costs), shade=True)


def test_looks_are_told_apart_without_colour():
    assert [LOOKS[kind].face for kind in "FBW"] == ["#0072B2", "#E69F00", "#009E73"]
    assert IDLE == "#F0F0F0"
    assert len({LOOKS[kind].hatch for kind in "FBW"}) == 3


def test_costs_of_a_faulty_schedule_may_end_before_its_last_stage():
    picture = draw_schedule(gpipe(3, 2), Costs([1, 2], [2, 4]), n_stages=2, n_microbatches=2)
    assert "2F0 does not exist" in picture.text
    with pytest.raises(ValueError, match="2 entries and stage 2 is asked"):
        draw_schedule(gpipe(3, 2), Costs([1, 2], [2, 4]))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: draw_timeline(Timeline([], 4)), "no spans, so there is nothing to draw"),
        (lambda: draw_timeline(gpipe(2, 2)), "this is a list; give a Timeline"),
        (
            lambda: draw_timeline(Timeline([Span(2, "F", 0, 0, 0, 1)], 2)),
            "has no row; the ranks",
        ),
        (lambda: draw_timeline(Timeline([Span(0, "F", 0, 0, 1, 1)], 1)), "takes no time"),
        (lambda: draw_timeline(simulate(gpipe(26, 100))), "5200 boxes are too many"),
        (lambda: draw_schedule([[Action("F", 0, 10**9)]]), "boxes are too many"),
        (lambda: draw_schedule([], n_stages=10**6, n_microbatches=2), "4000000 boxes are too many"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_sentence(draw, message):
    with pytest.raises(ValueError, match=message) as error:
        draw()
    assert "\n" not in str(error.value)


GALLERY = {
    **{name: lambda name=name: drawn(name) for name in FAULTY},
    "naive": lambda: draw_timeline(simulate(naive(4, 1), Costs(8, 16))),
    "16 micro-batches": lambda: draw_timeline(simulate(gpipe(4, 16))),
    "shaded": lambda: draw_timeline(simulate(gpipe(4, 8)), shade=True),
    "64 micro-batches": lambda: draw_timeline(simulate(one_f_one_b(8, 64)), shade=True),
    "one micro-batch only": lambda: draw_schedule(naive(4, 1), n_stages=4, n_microbatches=8),
    "blanks": lambda: draw_schedule(BLANK, title="A list with blanks"),
}


@pytest.mark.parametrize("name", GALLERY)
def test_no_label_is_cut_off_or_covers_another(name):
    assert_labels_are_apart(GALLERY[name]().figure)


def test_png_is_as_wide_as_a_notebook_and_white():
    image = Image.open(io.BytesIO(draw_timeline(simulate(gpipe(2, 2))).png))
    assert image.format == "PNG"
    assert image.width == 990
    assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert "Software" not in image.info


def test_same_input_gives_same_bytes_whatever_the_style():
    plain = draw_schedule(gpipe(3, 4), shade=True)
    with style.context("dark_background"):
        assert draw_schedule(gpipe(3, 4), shade=True).png == plain.png


def test_html_holds_alternative_text_and_text_form_escaped():
    picture = Picture(b"\x89PNG", 'a "quoted" <b>', "1 < 2 & 3")
    shown = picture._repr_html_()
    assert 'alt="a &quot;quoted&quot; &lt;b&gt;"' in shown
    assert "<pre>1 &lt; 2 &amp; 3</pre>" in shown
    assert 'src="data:image/png;base64,iVBORw=="' in shown
    assert "background:white" in shown
    assert repr(picture) == str(picture) == "1 < 2 & 3"


def test_save_writes_png_and_repeatable_svg(tmp_path):
    picture = draw_timeline(simulate(gpipe(2, 2)))
    assert picture.save(tmp_path / "a.png").read_bytes() == picture.png
    first = picture.save(tmp_path / "a.svg").read_bytes()
    assert b"<svg" in first
    again = draw_timeline(simulate(gpipe(2, 2)))
    assert again.save(str(tmp_path / "b.svg")).read_bytes() == first
    with pytest.raises(ValueError, match=r"ending in \.png or \.svg"):
        picture.save(tmp_path / "a.jpg")


def test_matplotlib_is_loaded_by_drawing_only_and_pyplot_never():
    code = (
        "import sys, mpedu.plot, mpedu.plot as f; before = 'matplotlib' in sys.modules; "
        "f.triangle_figure(2, 2); f.bubble_curve(); "
        "print(before, 'matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["False", "True", "False"]
