import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_results as made
import pytest
import toy_notebook as toy
from nbgrader.apps.api import NbGraderAPI  # type: ignore[import-untyped]
from nbgrader.auth import Authenticator  # type: ignore[import-untyped]
from nbgrader.coursedir import CourseDirectory  # type: ignore[import-untyped]

from autograder import release as module
from autograder.exercise import Unit
from autograder.gradebook.nbgrader_settings import gradebook_url, read_settings
from autograder.grader import Graded
from autograder.records.results import write_whole
from autograder.release import (
    ReleaseError,
    leaked,
    nbgrader_config,
    proofs,
    release,
    solution_lines,
    student_notebook,
)
from autograder.submissions.cells import canonical, parse_notebook

UNIT = Unit("99", "toy", (SimpleNamespace(points=3, withholds=()),), ())  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy notebook as the source of the unit."""
    path = tmp_path / "source.ipynb"
    path.write_text(canonical(parse_notebook(toy.notebook())))
    monkeypatch.setattr(module, "source_notebook", lambda unit: path)
    return path


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> dict[str, Graded]:
    """What the grader says of the release ("student") and the source, here without grading."""
    told = {
        name: Graded("", "graded", "", [made.verdict(score=score)], [], [], 0.0, "walls")
        for name, score in (("student", 0), ("source", 3))
    }

    class StandIn:
        def __init__(self, *_: Any) -> None:
            pass

        def __enter__(self) -> "StandIn":
            return self

        def __exit__(self, *_: Any) -> None:
            pass

        def grade(self, path: Path) -> Graded:
            return told[path.stem]

    monkeypatch.setattr(module, "Grader", StandIn)
    return told


def test_the_students_notebook_has_stubs_locks_and_checksums(source: Path) -> None:
    text = student_notebook(source)
    cells = {cell.id: cell for cell in parse_notebook(text.encode()).cells}
    assert "raise NotImplementedError()" in cells["solution-double"].source
    assert '"""Twice n."""' in cells["solution-double"].source
    assert "answer_of_the_author" not in text
    assert cells["check-double"].metadata.editable is False
    assert len(cells["check-double"].metadata.nbgrader.checksum) == 32
    assert text == canonical(parse_notebook(text.encode()))


def test_solution_lines_are_those_that_say_something() -> None:
    cells = toy.cells()
    said = "    # a comment that says nothing\n    n += 1\n    answer_of_the_author"
    cells[2]["source"] = toy.SOLUTION.replace("    answer_of_the_author", said, 1)
    lines = sorted(solution_lines(parse_notebook(toy.notebook(cells[:3]))))
    assert lines == ["answer_of_the_author = n + n", "return answer_of_the_author"]


def test_a_release_with_its_proofs_is_written_with_the_settings(
    source: Path, scores: dict[str, Graded], tmp_path: Path
) -> None:
    said: list[str] = []
    release([UNIT], tmp_path / "build", said.append)
    path = tmp_path / "build" / "release" / "99-toy" / "99-toy.ipynb"
    assert path.read_text() == student_notebook(source)
    home = tmp_path / "build" / "nbgrader"
    assert (home / "nbgrader_config.py").read_text() == nbgrader_config()
    assert [line.removeprefix("99-toy: ") for line in said[:-1]] == [
        "no line of the solutions is in the release (2 were looked for)",
        "the release scores 0 of 3 (behind walls)",
        "the solution scores 3 of 3 (behind walls)",
        f"written to {path}",
    ]
    assert os.listdir(tmp_path / "build") in (["nbgrader", "release"], ["release", "nbgrader"])


def test_a_folder_that_cannot_be_written_is_said_before_any_proof(tmp_path: Path) -> None:
    (tmp_path / "build").touch()
    said: list[str] = []
    with pytest.raises(ValueError, match=r"build is a file\); remove it or name another folder"):
        release([UNIT], tmp_path / "build", said.append)
    assert said == []


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("student", {"exercises": [made.verdict(score=1)]}, "the release scores 1, not 0"),
        (
            "source",
            {"exercises": [made.verdict("failed", "oh", 0)]},
            "the solution scores 0, not 3",
        ),
        ("source", {"status": "infrastructure", "reason": "no walls"}, "no walls"),
        ("student", {"status": "unreadable", "exercises": []}, r"\(unreadable\)"),
    ],
)
def test_a_wrong_score_publishes_nothing(
    source: Path,
    scores: dict[str, Graded],
    tmp_path: Path,
    name: str,
    changes: dict[str, Any],
    reason: str,
) -> None:
    scores[name] = scores[name]._replace(**changes)
    with pytest.raises(ReleaseError, match=reason):
        release([UNIT], tmp_path / "build", lambda line: None)
    assert not (tmp_path / "build").exists()


def test_a_solution_line_anywhere_in_the_release_is_found(source: Path) -> None:
    cells = toy.cells()
    cells[0]["source"] = "Hint:\n\n        return answer_of_the_author\n"
    text = canonical(parse_notebook(toy.notebook(cells)))
    assert leaked({"return answer_of_the_author"}, text) == ["return answer_of_the_author"]
    with pytest.raises(ReleaseError, match="'answer_of_the_author = n \\+ n' is in the release"):
        next(proofs(UNIT, text))


def test_a_source_without_solutions_is_no_proof(source: Path) -> None:
    source.write_text(student_notebook(source))
    with pytest.raises(ReleaseError, match="no solution was found"):
        next(proofs(UNIT, student_notebook(source)))


def test_the_settings_name_what_lies_around_them_and_find_alembic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    odd = tmp_path / 'it\'s a "folder"'
    write_whole(odd / "nbgrader" / "nbgrader_config.py", nbgrader_config())
    settings = read_settings(odd / "nbgrader")
    assert settings.CourseDirectory.root == str(odd / "nbgrader")
    assert Path(settings.CourseDirectory.source_directory, "03-gpipe").is_dir()
    assert settings.CourseDirectory.release_directory == str(odd / "release")
    assert gradebook_url(settings) == f"sqlite:///{odd / 'nbgrader' / 'gradebook.db'}"
    assert shutil.which("alembic")


@pytest.mark.parametrize("kept", [True, False])
def test_formgrader_has_no_missing_exchange_to_warn_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    write_whole(tmp_path / "nbgrader_config.py", nbgrader_config())
    settings = read_settings(tmp_path)
    if not kept:  # the warning is there without the folder
        (tmp_path / "exchange").rmdir()
    coursedir = CourseDirectory(config=settings)
    found = NbGraderAPI(coursedir, Authenticator(config=settings), config=settings)
    assert (found.exchange_root, found.exchange_missing) == (f"{tmp_path}/exchange", not kept)


def test_settings_of_ones_own_count_over_those_of_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    write_whole(tmp_path / "nbgrader_config.py", nbgrader_config())
    own = "c = get_config()\nc.CourseDirectory.db_url = 'sqlite:///own.db'\n"
    write_whole(tmp_path / "own_config.py", own)
    assert gradebook_url(read_settings(tmp_path)) == "sqlite:///own.db"
