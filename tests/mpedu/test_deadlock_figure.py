"""Pictures of deadlocks: who waits for whom in a circle, the circle in red."""

import pytest
from matplotlib.colors import to_hex
from pictures import assert_labels_are_apart
from rank_programs import overlap, waits_around

from mpedu.plot import draw_deadlock
from mpedu.plot.looks import RED
from mpedu.ranks.board import Waiting
from mpedu.ranks.errors import RankError

FINISHED = [Waiting(rank, "all_reduce", 1.0, (2,)) for rank in (0, 1, 3)]
FINISHED_TEXT = "deadlock: rank 0 waits for rank 2, which has finished (no rank can go on):\n"
FINISHED_TEXT += "  rank 2 has finished"
LONG = [
    w._replace(text=f"{w.text} (activations of F3, of micro-batch 11)") for w in waits_around(8)
]
GALLERY = {
    "of 2": lambda: draw_deadlock(waits_around(2)),
    "of 4": lambda: draw_deadlock(waits_around(4)),
    "of 8, long words": lambda: draw_deadlock(LONG),
    "of 16": lambda: draw_deadlock(waits_around(16)),
    "of 32": lambda: draw_deadlock(waits_around(32)),
    "others wait too": lambda: draw_deadlock(waits_around(2, 4)),
    "many others wait too": lambda: draw_deadlock(waits_around(3, 40)),
    "after what ran": lambda: draw_deadlock(waits_around(2), overlap()),
    "after what ran, of 16": lambda: draw_deadlock(waits_around(16), overlap()),
    "one has finished": lambda: draw_deadlock(RankError(FINISHED_TEXT, waiting=FINISHED)),
}


def arrows(picture):
    """Each arrow as (from, to, whether it is red); ranks by the names at its ends."""
    texts = picture.figure.axes[0].texts
    at = {text.get_position(): text.get_text() for text in texts if text.get_text()}
    notes = [note for note in texts if getattr(note, "arrow_patch", None) is not None]
    return {
        (rank_in(at[note.xyann]), rank_in(at[note.xy]), is_red(note.arrow_patch)) for note in notes
    }


def rank_in(words):
    return int(words.split("\n")[0].removeprefix("rank "))


def is_red(patch):
    return to_hex(patch.get_edgecolor()).upper() == RED


@pytest.mark.parametrize("name", GALLERY)
def test_no_label_is_cut_off_or_covers_another(name):
    picture = GALLERY[name]()
    assert_labels_are_apart(picture.figure)
    assert picture == GALLERY[name]()


@pytest.mark.parametrize("n_ranks", [2, 3, 4, 8, 16])
def test_the_circle_is_red(n_ranks):
    picture = draw_deadlock(waits_around(n_ranks))
    assert arrows(picture) == {(rank, (rank + 1) % n_ranks, True) for rank in range(n_ranks)}
    chain = " -> ".join(f"rank {rank}" for rank in [*range(n_ranks), 0])
    assert chain in picture.alt and chain in picture.text


def test_whoever_waits_beside_the_circle_is_not_red():
    picture = draw_deadlock(waits_around(2, 2))
    assert arrows(picture) == {(0, 1, True), (1, 0, True), (2, 0, False), (3, 0, False)}
    edges = {
        rank_in(text.get_text()): is_red(text.get_bbox_patch())
        for text in picture.figure.axes[0].texts
        if text.get_text()
    }
    assert edges == {0: True, 1: True, 2: False, 3: False}


def test_who_waits_for_a_rank_that_has_finished_is_red_and_no_circle():
    picture = draw_deadlock(RankError(FINISHED_TEXT, waiting=FINISHED))
    assert arrows(picture) == {(0, 2, True), (1, 2, False), (3, 2, False)}
    assert "which has finished (no rank can go on)\n" in picture.text
    assert "> rank 2: has finished" in picture.text
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert "rank 2\nhas finished" in words


def test_without_a_circle_nothing_is_red():
    picture = draw_deadlock(FINISHED)  # nobody says that rank 2 has finished: it may be at work
    assert arrows(picture) == {(rank, 2, False) for rank in (0, 1, 3)}
    assert "rank 2: does not wait" in picture.text and "nothing" in picture.text


def test_the_text_form_says_what_each_rank_waits_in_and_for_whom():
    picture = draw_deadlock(waits_around(2, 1))
    assert picture.text.split("\n") == [
        "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0",
        "> rank 0: recv from rank 1, waits for rank 1",
        "> rank 1: recv from rank 0, waits for rank 0",
        "  rank 2: recv from rank 0, waits for rank 0",
        "in red, marked >: rank 0 -> rank 1 -> rank 0",
    ]


def test_an_error_gives_its_words_and_what_ran_before():
    text = "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0 (no rank can go on):\n  x"
    error = RankError(text, waiting=waits_around(2), timeline=overlap())
    picture = draw_deadlock(error)
    assert picture.text.startswith(text.split(":\n")[0] + "\n")
    assert picture == draw_deadlock(waits_around(2), overlap(), title=text.split(":\n")[0])
    assert len(picture.figure.axes) == 2
    assert "what ran before\nrank 0 work" in picture.text
    assert "until 120 us" in picture.alt
    assert len(draw_deadlock(waits_around(2)).figure.axes) == 1


def test_of_many_ranks_the_circle_alone_is_drawn_and_the_text_has_all():
    picture = draw_deadlock(waits_around(3, 40))
    assert arrows(picture) == {(0, 1, True), (1, 2, True), (2, 0, True)}
    assert any("40 more ranks not drawn" in text.get_text() for text in picture.figure.texts)
    assert picture.text.count("waits for rank") == 43 + 3
    longest = draw_deadlock(waits_around(64))
    assert not longest.png and longest.text.count("recv from") == 64


def test_where_nobody_waits_there_is_nothing_to_draw():
    for failed in ([], RankError("rank 1 failed")):
        with pytest.raises(ValueError, match="no rank waits in this"):
            draw_deadlock(failed)
