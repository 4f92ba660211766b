import linecache
import pickle
import signal

import pytest
from torch import nn

from mpedu.ranks import board
from mpedu.ranks.board import Waiting
from mpedu.ranks.errors import (
    Interrupted,
    RankError,
    death,
    failure_text,
    frame_lines,
    in_causal_order,
    place,
)
from mpedu.ranks.rank import Failed, stacks_file


def failed(rank, message="m", at_s=0.0, is_consequence=False, type_name="ValueError"):
    return Failed(rank, type_name, message, [], is_consequence, at_s)


class TestTexts:
    def test_causes_come_before_consequences_and_in_the_order_they_happened(self):
        order = [failed(0, at_s=1, is_consequence=True), failed(2, at_s=3), failed(1, at_s=2)]
        assert [f.rank for f in in_causal_order(order)] == [1, 2, 0]

    def test_equal_failures_share_a_line(self):
        text = failure_text([failed(3), failed(0, at_s=1), failed(2, at_s=2)], [])
        assert text == "rank 3 failed: ValueError: m\n  ranks 0, 2, then also: the same"

    def test_each_kind_of_follower_is_told_as_what_it_is(self):
        first, late = failed(1, "its process was killed", type_name="Died"), failed(2, "x", 1)
        lost = failed(0, "recv from rank 1: connection closed", is_consequence=True)
        waiting = [Waiting(3, "barrier", 0.42, ())]
        assert failure_text([lost, late, first], waiting).splitlines() == [
            "rank 1 died: its process was killed",
            "  rank 2, then also: ValueError: x",
            "  rank 0, in consequence: recv from rank 1: connection closed",
            "  rank 3 waits in barrier, for 0.4 s",
        ]

    def test_a_loss_without_a_death_says_what_to_look_at(self):
        lost = failed(0, "all_reduce: connection closed by peer", is_consequence=True)
        first, second = failure_text([lost], []).splitlines()
        assert first == "rank 0 failed: all_reduce: connection closed by peer"
        assert "the same shape, dtype and tag" in second

    def test_an_error_without_words_is_its_type(self):
        assert failure_text([failed(0, "", type_name="KeyError")], []) == "rank 0 failed: KeyError"

    @pytest.mark.parametrize(
        ("exit_code", "message"),
        [
            (7, "its process ended with status 7"),
            (None, "its process ended"),
            (-signal.SIGSEGV, "its process was killed by SIGSEGV"),
            (-200, "its process was killed by signal 200"),
        ],
    )
    def test_a_death_is_told_by_what_the_system_knows(self, exit_code, message, tmp_path):
        assert death(1, exit_code, str(tmp_path)).message == message

    def test_frames_are_the_readers_own_and_the_innermost(self):
        library, package = linecache.__file__, board.__file__
        frames = [(library, 1, "a"), ("own.py", 2, "b"), (package, 3, "c"), (nn.__file__, 1, "d")]
        assert [line.split(":")[0] for line in frame_lines(frames)] == [
            "own.py line 2, in b",
            "__init__.py line 1, in d",
        ]

    def test_a_deep_recursion_shows_its_last_calls(self):
        assert len(frame_lines([("own.py", n, "f") for n in range(1000)])) == 6

    def test_no_place_is_told_where_none_is_known(self, tmp_path):
        assert place(str(tmp_path), 0) == []
        stacks_file(str(tmp_path), 0).write_text("  <no Python frame>\n")
        assert place(str(tmp_path), 0) == []

    def test_notebooks_show_the_sentences_alone(self):
        assert RankError("rank 1 failed")._render_traceback_() == ["RankError: rank 1 failed"]
        assert Interrupted("2 ranks")._render_traceback_() == ["Stopped: 2 ranks"]

    def test_a_rank_error_can_itself_be_sent_to_another_process(self):
        error = RankError("text", [failed(1)], [Waiting(0, "barrier", 1.0)])
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.failures, copy.waiting) == ("text", error.failures, error.waiting)
