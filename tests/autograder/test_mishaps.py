"""What may befall a class between two runs, by the command line: told, and nothing is lost."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import made_results as made
import pytest
from books import DUE, Home
from nbgrader.api import Gradebook

from autograder.__main__ import main
from autograder.records.results import result_path, write_whole

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """Runs a command: its exit status, what it printed, what it complained of."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def unread(tmp_path: Path) -> Path:
    """A class of one student, whose notebook is empty."""
    path = tmp_path / "class" / "amy" / "03-gpipe" / "03-gpipe.ipynb"
    path.parent.mkdir(parents=True)
    path.touch()
    return tmp_path / "class"


def record(out: Path, *students: str) -> None:
    for student in students:
        result = made.result(student=student)
        write_whole(result_path(out, result.assignment, student), result.dumps())


def test_a_damaged_result_of_an_absent_student_is_listed_and_the_others_go_on(
    unread: Path, tmp_path: Path, said: Said
) -> None:
    out = tmp_path / "out"
    where = ["--assignment", "03", "--out", out]
    said("grade", unread, *where)
    record(out, "zoe")
    broken = result_path(out, "03-gpipe", "gus")
    broken.write_text("{")
    for command in (["grade", unread, *where], ["feedback", "--out", out]):
        status, text, error = said(*command)
        assert (status, error) == (1, "")
        assert f"the file of the result is damaged: gus, 03-gpipe ({broken}); delete it" in text
    grades = (out / "grades.csv").read_text()
    assert "03-gpipe,gus,,,,,,,,infrastructure,Not graded: the file of" in grades
    assert "03-gpipe,zoe,3,3," in grades
    assert (out / "feedback" / "zoe" / "03-gpipe.html").exists()
    assert broken.read_text() == "{"
    broken.unlink()
    assert said("feedback", "--out", out)[0] == 0


def test_feedback_tells_each_page_as_it_is_written(tmp_path: Path, said: Said) -> None:
    record(tmp_path, "ann", "bob")
    status, text, _ = said("feedback", "--out", tmp_path)
    assert status == 0
    assert text.splitlines()[:2] == ["1/2 ann: 03-gpipe", "2/2 bob: 03-gpipe"]


def test_who_could_be_mixed_up_with_another_is_left_out_and_listed(
    tmp_path: Path, said: Said
) -> None:
    out = tmp_path / "out"
    record(out, "Jos\u00e9")
    before = result_path(out, "03-gpipe", "Jos\u00e9").read_bytes()
    for name in ("Jose\u0301", "amy"):
        folder = tmp_path / "class" / name / "03-gpipe"
        folder.mkdir(parents=True)
        (folder / "03-gpipe.ipynb").touch()
    status, text, _ = said("grade", tmp_path / "class", "--assignment", "03", "--out", out)
    assert status == 1
    assert "Jose\u0301 (Jose\\u0301), like Jos\u00e9 (Jos\\xe9)." in text
    results = {path.stem for path in (out / "results" / "03-gpipe").glob("*.json")}
    assert results == {"Jos\u00e9", "amy"}
    assert result_path(out, "03-gpipe", "Jos\u00e9").read_bytes() == before


@pytest.mark.parametrize("command", ["grade", "feedback"])
def test_points_by_hand_that_the_gradebook_lacks_stop_a_command_unless_accepted(
    unread: Path, tmp_path: Path, said: Said, command: str
) -> None:
    out = tmp_path / "out"
    record(out, "ann")
    kept = {"03-gpipe": {"ann": {"points": {"written-a": 2.0}, "comments": {}}}}
    write_whole(out / "by-hand.json", json.dumps(kept))
    where = [unread, "--assignment", "03"] if command == "grade" else []
    status, _, error = said(command, *where, "--out", out)
    assert (status, error.count("\n")) == (1, 1)
    assert "lacks points given by hand that the pages show, of ann, 03-gpipe (2 points)." in error
    assert not (out / "feedback").exists()
    assert not (out / "nbgrader" / "gradebook.db").exists()
    status, text, _ = said(command, *where, "--out", out, "--accept-lower")
    assert status == 0
    assert "Published without the points by hand that were there before: ann, 03-gpipe" in text


def test_a_late_penalty_that_changed_is_printed(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    # only nbgrader's own way of opening a gradebook needs alembic on the path
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    record(tmp_path, "ann")
    assert "late penalties" not in said("feedback", "--out", tmp_path)[1]
    home = Home(tmp_path)

    def make_late(gradebook: Gradebook) -> None:
        gradebook.update_or_create_assignment("03-gpipe", duedate=DUE)
        gradebook.find_submission("03-gpipe", "ann").timestamp = DUE + timedelta(hours=1)
        gradebook.db.commit()

    home.ask(make_late)
    method = "c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"
    write_whole(home.folder / "own_config.py", method)
    told = "Changed late penalties:\n  ann, 03-gpipe: 0 -> 3 points\n"
    assert told in said("feedback", "--out", tmp_path)[1]
    assert "late penalties" not in said("feedback", "--out", tmp_path)[1]
