import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import made_results as made
import psutil
import pytest
import toy_notebook as toy
from rich.console import Console

from autograder.demo import (
    Expected,
    answered,
    build_class,
    demo_table,
    differences,
    read_expected,
    read_sections,
)
from autograder.submissions.cells import parse_notebook, read_notebook
from autograder.submissions.ingest import Refusal, splice

DEMO = [sys.executable, "-m", "autograder"]


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command whose temporary files, and so its processes, are known by `folder`."""
    folder.mkdir()
    return subprocess.run(
        [*DEMO, *arguments],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(folder) in " ".join([*process.cmdline(), *process.environ().values()]):
                found.append(process)
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo's folder, graded by its own command, and what that said."""
    out = tmp_path_factory.mktemp("demo")
    return out, run("demo", "--out", str(out), folder=out / "temporary")


def test_all_ten_verdicts_are_as_expected(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, ended = demo
    assert ended.stderr == ""
    assert "10 of 10 verdicts as expected" in ended.stdout
    assert ended.returncode == 0


def test_nothing_is_left_of_it_but_its_results(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, _ = demo
    with subprocess.Popen(["sleep", "60"], env={"TMPDIR": str(out)}) as left:
        assert [process.pid for process in processes_of(out)] == [left.pid]
        left.kill()
    assert processes_of(out) == []
    assert list((out / "temporary").iterdir()) == []
    assert sorted(path.name for path in out.iterdir()) == [
        "feedback",
        "grades.csv",
        "nbgrader",
        "results",
        "secret-seed",
        "submitted",
        "temporary",
    ]


def test_under_another_secret_all_but_the_run_is_the_same_byte_for_byte(
    demo: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    first, _ = demo
    secret = tmp_path / "secret"
    secret.write_text("5a" * 32)
    options = ("--out", str(tmp_path / "out"), "--secret", str(secret))
    ended = run("grade", str(first / "submitted"), *options, folder=tmp_path / "temporary")
    assert ended.returncode == 0, ended.stderr
    pages = sorted(first.glob("feedback/*/*.html"))
    assert len(pages) == 10
    for page in pages:
        other = tmp_path / "out" / page.relative_to(first)
        (a, a_run), (b, b_run) = (p.read_text().split('<section id="run"') for p in (page, other))
        assert a == b
        assert a_run != b_run
    for path in first.glob("results/*/*.json"):
        a, b = (
            json.loads((out / path.relative_to(first)).read_text())
            for out in (first, tmp_path / "out")
        )
        assert a.pop("run")["secret"] != b.pop("run")["secret"]
        assert a == b


def test_the_damaged_file_is_no_notebook_and_all_others_are(tmp_path: Path) -> None:
    build_class(tmp_path)
    assignment, students = read_expected()
    assert len(students) == 10
    for expected in students:
        path = tmp_path / expected.student / assignment / f"{assignment}.ipynb"
        read = splice(path.read_bytes(), read_notebook(path) if not expected.damaged else MASTER)
        assert isinstance(read, Refusal) == expected.damaged


MASTER = parse_notebook(toy.notebook())


def test_sections_replace_cells_add_own_ones_or_leave_them_unwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(
        "# ruff: noqa\n\n# %% mine\nx = 1\n\n# %% solution-double\ny = 2\n# %% solution-half\n"
    )
    sections = dict(read_sections(path))
    assert sections == {"mine": "x = 1", "solution-double": "y = 2", "solution-half": ""}
    cells = {
        cell.id: cell.source for cell in answered(parse_notebook(toy.notebook()), sections).cells
    }
    assert list(cells)[2:4] == ["mine", "solution-double"]
    assert cells["solution-double"] == "y = 2"
    assert "def half" in cells["solution-half"]


EXPECTED = Expected("student-01", "right", "", False, "graded", {"gpipe": 3}, "it is right")


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (made.result(), []),
        (made.result(exercises=[made.verdict("failed", "m", 0)]), ["gpipe: 0, expected 3"]),
        (made.result(exercises=[]), ["gpipe: None, expected 3"]),
        (
            made.refused("student-01", "empty"),
            ["unreadable: empty", "gpipe: None, expected 3"],
        ),
    ],
)
def test_every_difference_is_named(result: made.Result, found: list[str]) -> None:
    assert differences(EXPECTED, result) == found


@pytest.mark.parametrize("width", [160, 80, 60])
def test_no_heading_of_the_table_breaks_in_a_narrow_terminal(width: int) -> None:
    other = EXPECTED._replace(student="student-02", status="unreadable", points={}, what="damaged")
    results = [made.result(exercises=[]), made.refused("student-02", "no notebook " * 9)]
    table = demo_table([EXPECTED, other], results)
    out = Console(width=width, file=io.StringIO(), color_system=None)
    out.print(table)
    assert isinstance(out.file, io.StringIO)
    above = out.file.getvalue().partition("\u2500")[0]  # the line below the headings
    assert above.split() == ["student", "expected", "got", "same", "about"]
    assert len(above.split("\n")) == 3  # an empty one, the headings, what is before the line


def test_the_table_says_no_where_a_verdict_differs() -> None:
    table = demo_table([EXPECTED], [made.result(exercises=[])])
    (cell,) = table.columns[3].cells
    assert str(cell).startswith("NO: gpipe")
