import errno
import os
from pathlib import Path

import made_results as made
import pytest

from autograder.records.journal import Journal, Judged, journal_path, verdict_of, verdict_tree


def judged(key: str, score: int = 3) -> Judged:
    verdict = made.verdict("failed", "3 < 4 \u2192 \udc80", score)
    return Judged(key, verdict, ["ValueError: x (cell 3)."], {"wall_s": 0.25})


def written(path: Path, *keys: str, run: str = "a") -> None:
    with Journal(path, run) as journal:
        for key in keys:
            journal.begin(key)
            journal.add(judged(key))


def known(path: Path, *keys: str, run: str = "b", force: bool = False) -> list[bool]:
    with Journal(path, run, force) as journal:
        return [journal.known(key) is not None for key in keys]


def test_a_verdict_is_found_again_as_it_was(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "03-gpipe", "amy")
    written(path, "k1")
    with Journal(path, "b") as journal:
        assert journal.known("k1") == judged("k1")
        assert journal.known("k2") is None
        assert journal.n_new == 0


def test_verdicts_survive_as_plain_data() -> None:
    assert verdict_of(verdict_tree(made.verdict())) == made.verdict()


def test_every_prefix_of_a_journal_holds_its_whole_lines_and_takes_more(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, "k1", "k2")
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        n_lines = sum(end <= cut for end in ends)  # also one that only lacks its line end
        assert known(path, "k1", "k2") == [n_lines >= 2, n_lines >= 4]
        written(path, "k3")
        assert known(path, "k1", "k2", "k3") == [n_lines >= 2, n_lines >= 4, True]


def test_a_second_line_of_the_same_key_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, "k1")
    with Journal(path, "b") as journal:
        journal.add(judged("k1", score=0))
    with Journal(path, "c") as journal:
        assert journal.known("k1") == judged("k1")


def test_force_believes_this_run_only(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, "k1", run="a")
    written(path, "k2", run="b")
    assert known(path, "k1", "k2", run="b", force=True) == [False, True]
    assert known(path, "k1", "k2", run="b") == [True, True]


def test_what_was_begun_is_counted_for_this_run_only(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, "a") as journal:
        journal.begin("k1")
        journal.begin("k1")
        assert journal.n_begun("k1") == 2
    assert [Journal(path, run).n_begun("k1") for run in "ab"] == [2, 0]


@pytest.mark.parametrize(
    "line", ["", "[]", "3", "{}", '{"of_run": "a", "key": "k1", "verdict": 3}', "\udc80", "{" * 999]
)
def test_lines_that_are_none_are_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "j"
    path.write_bytes(line.encode(errors="surrogateescape") + b"\n")
    assert known(path, "k1") == [False]
    written(path, "k1")
    assert known(path, "k1") == [True]


def test_a_disk_that_is_full_for_a_while_costs_only_the_lines_of_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "j", os.write
    answers = iter(["whole", "torn", "full", "whole"])

    def little_room(descriptor: int, data: bytes) -> int:
        answer = next(answers)
        if answer == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data if answer == "whole" else data[:9])

    with Journal(path, "a") as journal:
        monkeypatch.setattr(os, "write", little_room)
        for key in ("k1", "k2", "k3", "k4"):
            journal.add(judged(key))
            assert journal.known(key)
        monkeypatch.undo()
    assert known(path, "k1", "k2", "k3", "k4") == [True, False, False, True]


def test_a_journal_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    written(tmp_path / "file" / "j", "k1")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    written(tmp_path / "link", "k1")  # never written through a link
    assert (tmp_path / "file").read_bytes() == b""


def test_a_journal_without_verdicts_leaves_no_file(tmp_path: Path) -> None:
    written(tmp_path / "j")
    assert list(tmp_path.iterdir()) == []
