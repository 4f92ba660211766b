"""Stock nbgrader on the real unit: the same release, the same points, feedback and Validate."""

import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from autograder.demo import DATA, answered, read_sections
from autograder.grader import Grader, source_notebook, unit_of_assignment
from autograder.records.results import write_whole
from autograder.release import release, student_notebook
from autograder.sandbox import build_runtime
from autograder.submissions.cells import canonical, parse_notebook, read_notebook

A = "03-gpipe"
UNIT = unit_of_assignment(A)
SOURCE = source_notebook(UNIT)


def submissions(released: str) -> Iterator[tuple[str, str]]:
    """Three students' notebooks: right (with a warning inside a function), half, empty."""
    right = dict(read_sections(DATA / "student-01.py"))
    half = right | dict(read_sections(DATA / "student-03.py"))
    warns = (
        "    import warnings\n\n    warnings.warn('this is only a warning')\n    schedule = []\n"
    )
    right["solution-gpipe"] = right["solution-gpipe"].replace("    schedule = []\n", warns)
    assert "warn" in right["solution-gpipe"]
    right["answer"] = "The bubble was small already, and every piece pays its start again."
    for student, sections in (("right", right), ("half", half), ("empty", {})):
        yield student, canonical(answered(parse_notebook(released.encode()), sections))


def nbgrader(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs an nbgrader command in a folder; this Python's programs are not on its path."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("nbgrader")), *arguments],
        cwd=folder,
        env=os.environ | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )


class Course(NamedTuple):
    """A course that stock nbgrader graded and wrote feedback for, after our release."""

    out: Path

    @property
    def home(self) -> Path:
        """Where nbgrader was run."""
        return self.out / "nbgrader"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course, made with the very commands that our release names."""
    said: list[str] = []
    made = Course(tmp_path_factory.mktemp("a course") / "build")
    release([UNIT], made.out, said.append)
    for student, text in submissions(student_notebook(SOURCE)):
        write_whole(made.home / "submitted" / student / A / f"{A}.ipynb", text)
    first, *commands = [shlex.split(line, comments=True) for line in said[-1].split("\n")[1:]]
    assert first == ["cd", str(made.home)]
    commands = [command for command in commands if command]
    assert [command[1:] for command in commands] == [
        ["generate_assignment", A],
        ["autograde", A],
        ["generate_feedback", A],
    ]
    for command in [*commands, commands[0]]:  # the first one again: a second release
        ended = nbgrader(made.home, *command[1:])
        assert ended.returncode == 0, ended.stderr
    return made


def test_the_release_is_the_one_that_nbgrader_makes(course: Course) -> None:
    assert os.listdir(course.out / "release" / A) == [f"{A}.ipynb"]
    assert (course.out / "release" / A / f"{A}.ipynb").read_text() == student_notebook(SOURCE)


def test_nbgrader_writes_nothing_outside_its_folder(course: Course) -> None:
    ended = nbgrader(course.home, "export")
    assert ended.returncode == 0, ended.stderr
    assert (course.home / "grades.csv").exists()
    assert sorted(os.listdir(course.out)) == ["nbgrader", "release"]


def stock_points(course: Course) -> dict[tuple[str, str], float]:
    """Points by (student, exercise) from nbgrader's gradebook."""
    query = """
        SELECT a.student_id, c.name, g.auto_score
        FROM grade g JOIN base_cell c ON g.cell_id = c.id
        JOIN submitted_notebook n ON g.notebook_id = n.id
        JOIN submitted_assignment a ON n.assignment_id = a.id
    """
    gradebook = sqlite3.connect(course.home / "gradebook.db")
    rows = gradebook.execute(query).fetchall()
    gradebook.close()
    found = {(student, name.removeprefix("check-")): points for student, name, points in rows}
    return {key: points for key, points in found.items() if not key[1].startswith("written-")}


def our_points(course: Course, runtime: Path) -> dict[tuple[str, str], float]:
    build_runtime(UNIT, runtime)
    found = {}
    with Grader(UNIT, read_notebook(SOURCE), runtime, os.urandom(32)) as grader:
        for student in ("right", "half", "empty"):
            graded = grader.grade(course.home / "submitted" / student / A / f"{A}.ipynb")
            found |= {(student, verdict.exercise): verdict.score for verdict in graded.exercises}
    return found


def test_every_exercise_has_the_points_of_our_grader(course: Course, tmp_path: Path) -> None:
    ours = our_points(course, tmp_path / "runtime")
    assert stock_points(course) == ours
    totals = {s: sum(p for (name, _), p in ours.items() if name == s) for s, _ in ours}
    full = sum(exercise.points for exercise in UNIT.exercises)
    assert totals["right"] == full
    assert 0 < totals["half"] < full
    assert totals["empty"] == 0


@pytest.mark.parametrize("student", ["right", "half", "empty"])
def test_nbgrader_writes_feedback_for_each(course: Course, student: str) -> None:
    assert "split_batch" in (course.home / "feedback" / student / A / f"{A}.html").read_text()


def test_validate_says_success_for_right_answers_and_lists_every_unwritten_cell(
    course: Course,
) -> None:
    right = nbgrader(
        course.home, "validate", str(course.home / "submitted" / "right" / A / f"{A}.ipynb")
    )
    assert "Success! Your notebook passes all the tests." in right.stdout
    empty = nbgrader(
        course.home, "validate", str(course.home / "submitted" / "empty" / A / f"{A}.ipynb")
    )
    n_written = 1
    assert f"VALIDATION FAILED ON {len(UNIT.exercises) + n_written} CELL(S)" in empty.stdout
    assert "Traceback" not in empty.stdout
