import time

import pytest

from mpedu.ranks.board import MOST_RANKS, Board


@pytest.fixture
def board(tmp_path):
    made = Board(tmp_path / "board", 3, create=True)
    yield made
    made.close()


def test_a_new_board_shows_nobody_waiting(board):
    assert board.waiting() == []


def test_an_entry_tells_operation_peers_and_how_long(board):
    board.wait_in(2, "recv from rank 0", [0])
    time.sleep(0.02)
    (entry,) = board.waiting()
    assert (entry.rank, entry.text, entry.peers) == (2, "recv from rank 0", (0,))
    assert entry.for_s >= 0.02


def test_a_new_entry_replaces_all_of_the_old_one(board):
    board.wait_in(1, "a long operation with many peers", [0, 2])
    board.wait_in(1, "short", [2])
    assert [(w.text, w.peers) for w in board.waiting()] == [("short", (2,))]


def test_going_on_takes_only_ones_own_entry_back(board):
    for rank in range(3):
        board.wait_in(rank, "barrier")
    board.go_on(1)
    assert [w.rank for w in board.waiting()] == [0, 2]


def test_another_process_reads_the_same_file(board, tmp_path):
    board.wait_in(0, "barrier", [1, 2])
    other = Board(tmp_path / "board", 3)
    assert [w.text for w in other.waiting()] == ["barrier"]
    other.close()


@pytest.mark.parametrize("character", ["x", "é", "微", "🙂"])
def test_a_text_too_long_is_cut_between_characters_and_spoils_no_neighbour(board, character):
    board.wait_in(1, "next", [0])
    board.wait_in(0, character * 300)
    first, second = board.waiting()
    assert set(first.text) == {character} and 100 < len(first.text.encode()) < 256
    assert second.text == "next" and second.peers == (0,)


def test_every_rank_allowed_can_be_a_peer(tmp_path):
    board = Board(tmp_path / "board", MOST_RANKS, create=True)
    everybody = tuple(range(MOST_RANKS))
    board.wait_in(MOST_RANKS - 1, "barrier", everybody)
    assert board.waiting()[0].peers == everybody
    board.close()
