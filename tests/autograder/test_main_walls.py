"""What `./course grade` does about walls: which it takes, and that it refuses to do without."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.__main__ import main, parser
from autograder.demo import build_class
from autograder.grader import ROOT, unit_of_assignment
from autograder.sandbox import NAMESPACES, NOT_WALLED, RUNGS, Sandbox, SandboxError, parent, rungs
from autograder.sandbox.runtime import build_runtime

A = "03-gpipe"
WAY_OUT = "if you trust every student, add --trust."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of one, whose code leaves a mark where it can."""
    build_class(tmp_path / "everyone")
    student = tmp_path / "class" / "student-04"
    student.parent.mkdir()
    (tmp_path / "everyone" / "student-04").rename(student)
    path = next(student.rglob("*.ipynb"))
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if cell["id"].startswith("solution-"))
    cell["source"] = [f"open({str(tmp_path / 'mark')!r}, 'w')\n", *cell["source"]]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return tmp_path


@pytest.fixture
def grade(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*more: str) -> tuple[int, str, str]:
        words = [str(folder / "class"), "--assignment", "03", "--jobs", "1"]
        status = main(["grade", *words, "--out", str(folder / "out"), *more])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing but a plain process can be had."""

    def command(place: rungs.Place) -> Any:
        if place.rung != NOT_WALLED:
            raise SandboxError("this machine has no walls")
        return rungs.command(place)

    monkeypatch.setattr(parent, "command", command)


def results(folder: Path) -> Iterator[dict[str, Any]]:
    for path in (folder / "out" / "results").rglob("*.json"):
        yield json.loads(path.read_text(encoding="utf-8"))


def test_walls_are_asked_for_by_the_names_that_reports_show() -> None:
    found = [parser().parse_args(["grade", "class", "--walls", rung]).walls for rung in RUNGS]
    assert found == list(RUNGS) == ["bubblewrap", "bubblewrap-per-exercise", "namespaces", "none"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| walls | where |")[2].partition("\n\n")[0]
    assert [row.split("|")[1].strip(" `") for row in table.splitlines()[2:]] == list(RUNGS)


def test_without_walls_nothing_runs_and_the_way_out_is_told(
    folder: Path, grade: Callable[..., tuple[int, str, str]], bare: None
) -> None:
    status, _, error = grade()
    assert status == 2
    assert error.startswith("course grade: without walls students' code would run with all your")
    assert "this machine has no walls" in error
    assert error.endswith(f"{WAY_OUT}\n") and error.count("\n") == 1
    assert not (folder / "mark").exists()
    assert list(results(folder)) == []


def test_on_trust_it_runs_and_is_said_to_be_unsafe(
    folder: Path, grade: Callable[..., tuple[int, str, str]], bare: None
) -> None:
    status, out, _ = grade("--trust")
    assert status == 0
    assert "Warning: students' code is about to run with all your rights" in out
    assert (folder / "mark").exists()
    assert [r["run"]["walls"].startswith(NOT_WALLED) for r in results(folder)] == [True]
    with (folder / "out" / "grades.csv").open(encoding="utf-8") as file:
        assert ["unsafe" in " ".join(map(str, row.values())) for row in csv.DictReader(file)] == [
            True
        ]


def test_no_walls_at_all_are_to_be_had_only_on_trust(
    folder: Path, grade: Callable[..., tuple[int, str, str]]
) -> None:
    status, _, error = grade("--walls", "none")
    assert (status, error.endswith(f"{WAY_OUT}\n")) == (2, True)
    assert not (folder / "mark").exists()
    assert grade("--walls", "none", "--trust")[0] == 0
    assert (folder / "mark").exists()


def test_walls_that_are_asked_for_are_had_or_refused(
    folder: Path, grade: Callable[..., tuple[int, str, str]], bare: None
) -> None:
    status, _, error = grade("--walls", "bubblewrap", "--trust")
    assert status == 2
    assert "the walls asked for cannot be had here (no bubblewrap: this mach" in error


def test_the_rung_that_is_asked_for_is_recorded(
    folder: Path, grade: Callable[..., tuple[int, str, str]]
) -> None:
    build_runtime(unit_of_assignment(A), folder / "runtime")
    with Sandbox(folder / "runtime", rung=NAMESPACES) as sandbox:
        try:
            assert sandbox.rung == NAMESPACES
        except SandboxError as error:
            pytest.skip(str(error))
    assert grade("--walls", "namespaces")[0] == 0
    assert [r["run"]["walls"].startswith(NAMESPACES) for r in results(folder)] == [True]
    assert not (folder / "mark").exists()


def test_our_own_notebooks_are_released_and_graded_without_walls(
    tmp_path: Path, bare: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "03", "--out", str(tmp_path)]) == 0
    assert f"(walls: {NOT_WALLED}: " in capsys.readouterr().out
    assert main(["demo", "--out", str(tmp_path / "demo"), "--jobs", "1"]) == 0
    assert "Warning: students' code is about to run with all your rights" in capsys.readouterr().out
