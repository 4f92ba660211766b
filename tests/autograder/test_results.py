import csv
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import made_results as made
import pytest

from autograder.results import (
    ResultError,
    all_results,
    fingerprint,
    loads,
    read_result,
    result_path,
    write_grades,
    write_whole,
)


def record(out: Path, *results: made.Result) -> None:
    for result in results:
        write_whole(result_path(out, result.assignment, result.student), result.dumps())


def test_a_result_survives_being_written_and_read() -> None:
    result = made.result(
        notes=["a"], exercises=[made.verdict("failed", "3 < 4 'quoted' \u2192", 0)]
    )
    assert loads(result.dumps()) == result


def test_addresses_which_change_from_run_to_run_are_not_recorded() -> None:
    error = "TypeError: <function gpipe at 0x7f3a5c0d4e00> is not iterable"
    assert "0x7f3a" not in made.result(cell_errors=[error]).dumps()


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
        "status",
        "reason",
    ]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])
def test_no_name_becomes_a_formula_in_a_spreadsheet(tmp_path: Path, name: str) -> None:
    record(tmp_path, made.refused(student=name, reason=f"{name}!"))
    with write_grades(tmp_path).open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["student_id"] == f"'{name}"
    assert row["reason"] == f"'{name}!"


def test_a_foreign_file_among_the_results_is_named_not_passed_over(tmp_path: Path) -> None:
    record(tmp_path, made.result())
    write_whole(result_path(tmp_path, "03-gpipe", "other"), "{}")
    with pytest.raises(ResultError, match=r"other\.json is not a result"):
        list(all_results(tmp_path))


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


@pytest.mark.parametrize("changed", ["autograder/judge.py", "mpedu/a.py", "notebooks/n.ipynb"])
def test_the_fingerprint_changes_with_code_and_notebook(tmp_path: Path, changed: str) -> None:
    for name in ("autograder/judge.py", "mpedu/a.py", "notebooks/n.ipynb"):
        write_whole(tmp_path / name, "1")
    before = fingerprint(tmp_path, tmp_path / "notebooks/n.ipynb")
    assert fingerprint(tmp_path, tmp_path / "notebooks/n.ipynb") == before
    write_whole(tmp_path / changed, "2")
    assert fingerprint(tmp_path, tmp_path / "notebooks/n.ipynb") != before
