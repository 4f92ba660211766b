"""The arena of unit 06: rules, the record beside the notebook, the picture to share."""

import json
from fractions import Fraction

import pytest

from autograder import arena as rules
from autograder.notebook import NOTES, arena
from mpedu.families import gpipe, interleaved_1f1b, one_f_one_b, zbv, zero_bubble_h1
from mpedu.schedule import Action


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "schedule, seconds, held",
    [
        (one_f_one_b(4, 8), 33, [4, 3, 2, 1]),
        (zero_bubble_h1(4, 8), 27, [4, 4, 4, 4]),
        (zbv(4, 8), Fraction(51, 2), [4, 4, 4, 4]),
    ],
)
def test_an_entry_is_timed_and_weighed_in_whole_ranks(schedule, seconds, held):
    entry = rules.entered(schedule)
    assert (entry.seconds, entry.held) == (seconds, held)


@pytest.mark.parametrize(
    "schedule, why",
    [
        (gpipe(4, 8), "rank 0 holds 8 micro-batches of a whole rank at once, counted until W; 4"),
        (interleaved_1f1b(4, 8, 2), "rank 0 holds 5.5 micro-batches"),
        (one_f_one_b(4, 7), "this cannot run: stage 0 never runs F7 and B7"),
        (one_f_one_b(3, 8), "the ranks hold 1, 1, 1 stages; 4 ranks must hold equally many each"),
        ([], "the schedule is empty"),
        (7, "a schedule is a list"),
        ([[Action("B", 0, 0)]], "this cannot run"),
    ],
)
def test_what_breaks_a_rule_is_no_entry_and_told_in_a_sentence(schedule, why, capsys):
    assert arena(schedule) is None
    said = capsys.readouterr().out
    assert said.startswith("No entry: ") and why in said and said.count("\n") == 1
    assert not NOTES.exists()


def test_a_record_is_kept_with_its_picture_and_only_a_faster_one_takes_its_place(capsys):
    assert arena(one_f_one_b, 4, 8).png
    first = capsys.readouterr().out
    assert "33 s, as fast as 1F1B" in first and "your record" in first
    assert (NOTES.parent / rules.PICTURE).read_bytes()[1:4] == b"PNG"
    arena(zero_bubble_h1(4, 8))
    assert "27 s, faster than 1F1B" in (said := capsys.readouterr().out)
    assert "A new record; before it was 33 s." in said
    picture = (NOTES.parent / rules.PICTURE).read_bytes()
    arena(one_f_one_b(4, 8))
    assert "Your record stays 27 s." in capsys.readouterr().out
    assert (NOTES.parent / rules.PICTURE).read_bytes() == picture
    kept = json.loads(NOTES.read_text())["arena"]
    assert kept["seconds"] == "27"
    assert rules.record_of(kept).schedule == zero_bubble_h1(4, 8)


def test_spoiled_notes_are_no_record(capsys):
    NOTES.write_text(json.dumps({"arena": {"schedule": [["0F0"], ["what"]], "seconds": "1"}}))
    arena(one_f_one_b(4, 8))
    assert "Your first entry" in capsys.readouterr().out


def test_an_unwritten_function_is_told_so(capsys):
    def mine(n_stages, n_microbatches):
        raise NotImplementedError

    assert arena(mine, 4, 8) is None
    assert capsys.readouterr().out == "mine: not written yet\n"
