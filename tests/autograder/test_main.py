import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_results as made
import psutil
import pytest
import toy_notebook as toy

from autograder import classroom
from autograder.__main__ import main
from autograder.demo import build_class
from autograder.records.publish import Change
from autograder.records.results import Result
from mpedu.faults import Failure

STOPPED = "stopped; what is recorded stays, and the same command grades the rest."


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> SimpleNamespace:
    """Runs a command: its exit status, what it printed, what it complained of."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return SimpleNamespace(by=run)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The signal handler that `main` sets, set back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("command", ["", "lab", "release", "grade", "demo", "tidy"])
def test_every_help_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert "example: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["grade", "nobody", "--assignment", "99-x"],
            "no assignment '99-x'; known: 00-start-here, ",
        ),
        (["grade", "absent"], "absent is not a folder"),
        (["grade", "nobody"], "There is no submission for 00-start-here or "),
        (["grade", "nobody", "--jobs", "0"], "give 1 or more"),
        (["release", "99"], "no assignment '99'; known: 00-start-here, "),
        (["tidy", "absent.ipynb"], "absent.ipynb: No such file"),
        (
            ["tidy", "empty.ipynb"],
            "course tidy: empty.ipynb cannot be tidied: The file is empty.\n",
        ),
        (["grade", "nobody", "--round", "-1"], "-1 is no round; give a whole number from 0 on"),
        (["grade", "nobody", "--frob"], "usage: ./course grade"),
        (["grade", "nobody", "--frob"], "course grade: --frob is not known"),
        (
            ["grade", "class", "--assignment", "03", "--out", "a.txt"],
            "a.txt is a file); remove it or name another",
        ),
        (["demo", "--out", "a.txt"], "a.txt is a file); remove it or name another"),
        ([], "required"),
    ],
)
def test_a_misuse_is_one_sentence_and_no_traceback(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.ipynb").touch()
    Path("nobody").mkdir()
    Path("class").mkdir()
    Path("class/amy.ipynb").touch()
    Path("a.txt").touch()
    try:
        status: object = main(arguments)
    except SystemExit as ended:  # argparse's own way
        status = ended.code
    error = capsys.readouterr().err
    assert status == 2
    assert reason in error
    assert "Traceback" not in error


def test_tidy_rewrites_and_check_only_tells(tmp_path: Path, said: SimpleNamespace) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(toy.notebook())
    assert said.by("tidy", path, "--check") == (1, f"{path} is not tidy\n", "")
    assert said.by("tidy", path) == (0, f"{path} was rewritten\n", "")
    assert said.by("tidy", path, "--check") == (0, "", "")


def test_tidy_without_a_file_looks_at_all_notebooks_of_the_course(
    tmp_path: Path, said: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.lab.ROOT", tmp_path)
    path = tmp_path / "notebooks" / "03-a" / "03-a.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(toy.notebook())
    assert said.by("tidy", "--check") == (1, f"{path} is not tidy\n", "")


@pytest.mark.parametrize("form", ["03", "03-gpipe"])
def test_a_unit_may_be_named_by_number_or_in_full(
    form: str, unread: Path, tmp_path: Path, said: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []
    monkeypatch.setattr(
        "autograder.release.release", lambda units, *_: named.extend(u.assignment for u in units)
    )
    assert said.by("release", form)[0] == 0
    assert named == ["03-gpipe"]
    assert said.by("grade", unread, "--assignment", form, "--out", tmp_path / "out")[0] == 0


@pytest.fixture
def unread(tmp_path: Path) -> Path:
    """A flat class of two whose files nobody can read: graded without any process."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "[red]amy-03-gpipe.ipynb").symlink_to("/etc/hostname")
    (folder / "bob.ipynb").symlink_to("/etc/hostname")
    return folder


def test_grade_lists_what_is_unreadable_and_ends_well(
    unread: Path, tmp_path: Path, said: SimpleNamespace
) -> None:
    status, out, error = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert (status, error) == (0, "")
    assert "unreadable 2; 2 new, 0 unchanged." in out
    assert "  [red]amy: unreadable: The file is a link; hand in the notebook itself." in out
    _, out, _ = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert "unreadable 2; 0 new, 2 unchanged." in out
    (unread / "bob.ipynb").rename(unread / "bob.txt")
    _, out, _ = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert "Not looked at: bob.txt." in out
    assert "grades.csv also holds 1 earlier result (bob)" in out
    assert "graded by hand: the rubric is in" in out


def test_students_code_without_walls_is_said_aloud(
    unread: Path, tmp_path: Path, said: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = made.result(run=made.RUN | {"walls": "none: bwrap was not found"})
    monkeypatch.setattr(classroom, "grade_class", lambda *_: [made.result(), bare])
    _, out, _ = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert "ran with all your rights (walls: none: bwrap was not found);" in out


def test_grade_ends_with_1_where_something_could_not_be_graded(
    unread: Path, tmp_path: Path, said: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = made.result(status="infrastructure", score=None, reason="a process died")

    def grade_class(*_: object) -> list[Result]:
        return [made.result(), lost]

    monkeypatch.setattr(classroom, "grade_class", grade_class)
    status, out, _ = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert status == 1
    assert "graded 1, infrastructure 1;" in out


@pytest.mark.parametrize(("options", "status"), [([], 1), (["--accept-lower"], 0)])
def test_lower_scores_are_held_back_unless_accepted(
    unread: Path,
    tmp_path: Path,
    said: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    status: int,
) -> None:
    def grade_class(*arguments: Any) -> list[Result]:
        arguments[-1]([Change(made.result(), made.result(score=1))])
        return [made.result()]

    monkeypatch.setattr(classroom, "grade_class", grade_class)
    where = ["--assignment", "03", "--out", tmp_path / "out"]
    got, out, _ = said.by("grade", unread, *where, *options)
    assert got == status
    assert "  student-01, 03-gpipe: 3 -> 1 (graded again)" in out
    command = f"./course grade {unread} --assignment 03 --out {tmp_path / 'out'} --accept-lower"
    assert (f"to publish these, run: {command}\n" in out) == (status == 1)


@pytest.mark.parametrize(
    ("raised", "status", "sentence"),
    [
        (KeyboardInterrupt(), 130, STOPPED),
        (Failure("The disk is full."), 1, "The disk is full."),
        (PermissionError(13, "Permission denied", "build"), 1, "build: Permission denied."),
    ],
)
def test_what_ends_a_run_is_told_in_one_sentence(
    raised: BaseException,
    status: int,
    sentence: str,
    unread: Path,
    tmp_path: Path,
    said: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def grade_class(*_: object) -> list[Result]:
        raise raised

    monkeypatch.setattr(classroom, "grade_class", grade_class)
    ended, _, error = said.by("grade", unread, "--assignment", "03", "--out", tmp_path / "out")
    assert (ended, error) == (status, f"course grade: {sentence}\n")


@pytest.mark.parametrize("name", ["lab", "release", "grade", "feedback", "demo", "tidy"])
def test_an_interrupt_while_modules_are_imported_is_told_in_one_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "psutil.py").write_text("import time\nprint(flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "autograder", name],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as ended:
        try:
            assert ended.stdout is not None and ended.stdout.readline() == "\n"
            ended.send_signal(signal.SIGINT)
            said = ended.communicate(timeout=30)[1]
        finally:
            ended.kill()
    assert (ended.returncode, said) == (130, f"course {name}: stopped.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_done_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    everyone = tmp_path / "everyone"
    build_class(everyone)
    for student in ("student-04", "student-08"):  # a quick one, an endless loop
        (tmp_path / "class").mkdir(exist_ok=True)
        (everyone / student).rename(tmp_path / "class" / student)
    command = [sys.executable, "-u", "-m", "autograder", "grade", str(tmp_path / "class")]
    options = ["--jobs", "1", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as grader:
        assert grader.stdout is not None
        assert "student-04" in grader.stdout.readline()
        started = psutil.Process(grader.pid).children(recursive=True)
        assert started
        os.killpg(grader.pid, number)  # as Ctrl-C in a terminal does
        _, error = grader.communicate(timeout=30)
    assert (grader.returncode, error) == (130, f"course grade: {STOPPED}\n")
    _, alive = psutil.wait_procs(started, timeout=10)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert "student-04" in (tmp_path / "out" / "grades.csv").read_text()
    left = {path.suffix for path in (tmp_path / "out").rglob("*student-08*")}
    assert left <= {".journal"}  # what was judged of it before
