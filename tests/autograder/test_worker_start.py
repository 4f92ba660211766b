"""A class graded where students' processes do not start: all are listed, nobody is scored."""

import csv
import shutil
from pathlib import Path

import pytest

from autograder import classroom
from autograder.classroom import Settings, grade_class
from autograder.demo import build_class
from autograder.exercise import Unit
from autograder.grader import MOST_TRIES
from autograder.records.publish import held_path
from autograder.records.results import Result, result_path
from autograder.sandbox import NOT_WALLED, build_runtime
from autograder.submissions.finding import find_submissions

A = "03-gpipe"
EARLIER, NEW = "student-01", "student-02"


def graded(folder: Path, *students: str) -> dict[str, Result]:
    """What the class of these students gets, whatever an earlier run gave; published or not."""
    submitted = folder / "submitted"
    shutil.rmtree(submitted, ignore_errors=True)
    for student in students:
        shutil.copytree(folder / "everyone" / student, submitted / student)
    entries = find_submissions(submitted, [A]).entries
    settings = Settings(folder / "out", b"s" * 32, jobs=2, force=True, rung=NOT_WALLED, trust=True)
    made: dict[str, Result] = {}
    grade_class(entries, settings, lambda one, _: made.update({one.student: one}))
    return made


def scores(folder: Path) -> dict[str, str]:
    with (folder / "out" / "grades.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: row["score"] for row in csv.DictReader(file)}


def build_broken(unit: Unit, destination: Path) -> None:
    """A runtime whose warm parent starts, but no student's process gets to the student's code."""
    build_runtime(unit, destination)
    path = destination / "autograder/worker/student.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("channel.send(HERE)", "import lost_module"), encoding="utf-8")


def test_broken_workers_change_no_score_and_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_class(tmp_path / "everyone")
    before = graded(tmp_path, EARLIER)[EARLIER]
    assert before.status == "graded" and before.score is not None
    published = result_path(tmp_path / "out", A, EARLIER).read_bytes()
    known = scores(tmp_path)
    monkeypatch.setattr(classroom, "build_runtime", build_broken)
    made = graded(tmp_path, EARLIER, NEW)
    for result in made.values():
        assert (result.status, result.score) == ("infrastructure", None)
        assert f"tried {MOST_TRIES} times: SandboxError: no process for a stu" in result.reason
        assert "No module named 'lost_module'" in result.reason
        assert {verdict.status for verdict in result.exercises} == {"infrastructure"}
    assert result_path(tmp_path / "out", A, EARLIER).read_bytes() == published
    assert held_path(tmp_path / "out", A, EARLIER).exists()
    assert scores(tmp_path) == {**known, NEW: ""}
