import csv
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import made_results as made
import pytest

from autograder.judge import GroupVerdict, Verdict
from autograder.records.results import (
    all_results,
    damaged_results,
    ensure_writable,
    loads,
    lost_points,
    read_result,
    result_path,
    write_grades,
    write_whole,
)
from autograder.sandbox import UNSAFE


def record(out: Path, *results: made.Result) -> None:
    for result in results:
        write_whole(result_path(out, result.assignment, result.student), result.dumps())


def test_a_result_survives_being_written_and_read() -> None:
    result = made.result(
        notes=["a"], exercises=[made.verdict("failed", "3 < 4 'quoted' \u2192", 0)]
    )
    assert loads(result.dumps()) == result


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"exercises": 3}', '{"exercises": [{}]}'])
def test_what_is_no_result_counts_as_not_graded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert read_result(path) is None
    assert read_result(tmp_path / "absent.json") is None


def test_grades_have_one_row_each_and_an_empty_score_where_nothing_was_graded(
    tmp_path: Path,
) -> None:
    record(tmp_path, made.result(), made.refused(), made.result(student="student-02", score=0))
    with write_grades(tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["student_id"], row["score"], row["status"]) for row in rows] == [
        ("student-01", "3", "graded"),
        ("student-02", "0", "graded"),
        ("student-07", "", "unreadable"),
    ]
    assert list(rows[0]) == [
        "assignment",
        "student_id",
        "score",
        "max_score",
        "manual_max",
        "manual",
        "late_penalty",
        "total",
        "to_grade",
        "status",
        "reason",
        "walls",
    ]


def lost(diagnosis: str, message: str = "m", exercise: str = "gpipe") -> Verdict:
    group = GroupVerdict("legal order", 0, 3, diagnosis, message)
    return made.verdict()._replace(exercise=exercise, groups=[group])


@pytest.mark.parametrize(
    ("diagnosis", "message", "why"),
    [
        ("timeout", "m", "too slow"),
        ("unwritten", "m", "not written"),
        ("out_of_memory", "m", "too much memory"),
        ("crashed", "m", "ended its process"),
        ("raised", "your code raises ValueError.", "raises an error"),
        ("raised", "your code raises BlockingIOError: again.", "too many processes"),
        ("raised", "your code starts more processes than allowed.", "too many processes"),
        ("missing", "`gpipe` is not defined.", "not defined"),
        ("missing", "`gpipe` is not defined, because of SyntaxError: ...", "syntax error"),
        ("one_microbatch", "m", "wrong"),
    ],
)
def test_each_lost_point_has_its_reason(diagnosis: str, message: str, why: str) -> None:
    result = made.result(exercises=[made.verdict(), lost(diagnosis, message)])
    assert lost_points(result) == f"{why}: gpipe"


def test_a_lost_cell_and_a_cell_with_an_error_are_told_apart() -> None:
    result = made.result(
        exercises=[lost("missing"), lost("missing", exercise="gpipe_fast"), lost("late")],
        notes=["solution-gpipe_fast is missing; a function defined elsewhere still counts."],
        cell_errors=["IndentationError: unexpected indent (solution-gpipe, line 2)."],
    )
    assert lost_points(result) == "cell missing: gpipe_fast; syntax error: gpipe; wrong: gpipe"


def test_a_partly_right_exercise_says_why_and_a_right_one_nothing() -> None:
    half = made.verdict()._replace(groups=[*made.verdict().groups, *lost("timeout").groups])
    assert lost_points(made.result(exercises=[half])) == "too slow: gpipe"
    assert lost_points(made.result()) == ""
    assert lost_points(made.refused()) == "The file is empty."


def test_grades_say_unsafe_of_what_ran_without_walls(tmp_path: Path) -> None:
    bare = made.result(student="bob", run=made.RUN | {"walls": "none: bwrap was not found"})
    record(tmp_path, made.result(student="amy"), bare)
    with write_grades(tmp_path).open(newline="") as file:
        walls = [row["walls"] for row in csv.DictReader(file)]
    assert walls == ["bubblewrap", UNSAFE]
    assert UNSAFE.startswith("unsafe")


def test_grades_hold_the_points_given_by_hand_and_why_others_were_lost(tmp_path: Path) -> None:
    record(tmp_path, made.result(manual_points=4.0, exercises=[lost("timeout")]))
    with write_grades(tmp_path).open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["manual_max"], row["reason"]) == ("4", "too slow: gpipe")


def test_trying_to_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    ensure_writable(tmp_path / "there", tmp_path / "new" / "folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


@pytest.mark.parametrize("folder", ["file", "file/results", "/proc/x", "/proc/x/results"])
def test_a_folder_that_cannot_be_written_is_refused_with_the_way_out(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot be written .* name another folder with --out"):
        ensure_writable(tmp_path / folder)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])
def test_no_name_becomes_a_formula_in_a_spreadsheet(tmp_path: Path, name: str) -> None:
    record(tmp_path, made.refused(student=name, reason=f"{name}!"))
    with write_grades(tmp_path).open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["student_id"] == f"'{name}"
    assert row["reason"] == f"'{name}!"


def test_a_damaged_result_stops_no_other_and_its_student_is_listed_as_not_graded(
    tmp_path: Path,
) -> None:
    record(tmp_path, made.result(), made.result(student="zoe"))
    path = result_path(tmp_path, "03-gpipe", "other")
    write_whole(path, '{"score": 3')
    assert [result.student for result in all_results(tmp_path)] == ["student-01", "zoe"]
    assert damaged_results(tmp_path) == [path]
    with write_grades(tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["student_id"] for row in rows] == ["other", "student-01", "zoe"]
    assert (rows[0]["score"], rows[0]["total"], rows[0]["status"]) == ("", "", "infrastructure")
    assert rows[0]["reason"] == "Not graded: the file of the result is damaged (other.json)."
    assert rows[1]["total"] == "3"
    assert path.read_text() == '{"score": 3'


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "folder" / "a.json"
    write_whole(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((os, call) if call == "fsync" else (Path, call)), full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["a.json"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where one may be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_leaves_the_old_file_and_no_other(tiny_disk: Path) -> None:
    path = tiny_disk / "a.json"
    write_whole(path, "old")
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "x" * 100_000)
    assert path.read_text() == "old"
    assert os.listdir(tiny_disk) == ["a.json"]
