"""The lab command: a student's notebooks are safe, and the server never outlives it."""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import lab, server
from autograder.server import LabError

NAME = "03-toy"
UNWRITTEN = "raise RuntimeError('toy: not written yet.')"


def notebook(check: str = UNWRITTEN, setup: str = "toy = None", grade: bool = True) -> str:
    """A student notebook of two cells."""
    graded = {"grade": grade, "grade_id": "check-toy", "points": 1, "solution": False}
    cells = [("setup", setup, {"tags": ["setup"]}), ("check-toy", check, {"nbgrader": graded})]
    made = [
        {"cell_type": "code", "id": name, "source": source, "metadata": metadata}
        | {"execution_count": None, "outputs": []}
        for name, source, metadata in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "work" / NAME / f"{NAME}.ipynb"


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def contents(target: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in target.parent.glob("*.ipynb")}


def test_new_release_replaces_an_untouched_notebook(target: Path) -> None:
    assert lab.place_notebook("one", target) is None
    assert lab.place_notebook("two", target) is None
    assert contents(target) == {f"{NAME}.ipynb": "two"}


def test_new_release_stands_beside_a_student_s_work(target: Path) -> None:
    lab.place_notebook("one", target)
    target.write_text("mine", encoding="utf-8")
    assert lab.place_notebook("one", target) is None
    beside = target.with_name(f"{NAME}.new.ipynb")
    assert lab.place_notebook("two", target) == beside
    assert lab.place_notebook("two", target) is None  # said once
    assert contents(target) == {f"{NAME}.ipynb": "mine", f"{NAME}.new.ipynb": "two"}
    assert lab.place_notebook("three", target) == beside  # nobody has worked on that one
    assert contents(target)[beside.name] == "three"


def test_work_on_the_notebook_beside_is_safe_too(target: Path) -> None:
    lab.place_notebook("one", target)
    target.write_text("mine", encoding="utf-8")
    beside = lab.place_notebook("two", target)
    assert beside is not None
    beside.write_text("mine too", encoding="utf-8")
    third = lab.place_notebook("three", target)
    assert contents(target) == {
        f"{NAME}.ipynb": "mine",
        f"{NAME}.new.ipynb": "mine too",
        f"{NAME}.new-2.ipynb": "three",
    }
    assert third == target.with_name(f"{NAME}.new-2.ipynb")


@pytest.mark.parametrize("damage", [None, "", "[]", "{"])
def test_notebook_we_do_not_remember_is_the_student_s(target: Path, damage: str | None) -> None:
    target.parent.mkdir(parents=True)
    target.write_text("mine", encoding="utf-8")
    if damage is not None:
        (target.parent / ".mpedu-release.json").write_text(damage, encoding="utf-8")
    assert lab.place_notebook("two", target) == target.with_name(f"{NAME}.new.ipynb")
    assert contents(target)[target.name] == "mine"


def test_deleted_notebook_comes_back(target: Path) -> None:
    lab.place_notebook("one", target)
    target.unlink()
    lab.place_notebook("one", target)
    assert contents(target) == {f"{NAME}.ipynb": "one"}


def test_notebooks_are_placed_in_order_and_said_when_put_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [tmp_path / "notebooks" / f"{name}.ipynb" for name in ("03-toy", "04-toy")]
    placed = lab.place_notebooks(sources, lambda source: source.stem, tmp_path)
    assert placed == [tmp_path / "03-toy/03-toy.ipynb", tmp_path / "04-toy/04-toy.ipynb"]
    placed[1].write_text("mine", encoding="utf-8")
    lab.place_notebooks(sources, lambda source: source.stem + " changed", tmp_path)
    first, *advice = capsys.readouterr().out.splitlines()
    assert first == (
        f"04-toy.ipynb holds work of yours, so its new version is {tmp_path}/04-toy/"
        "04-toy.new.ipynb"
    )
    assert "Hand in one file called 04-toy.ipynb" in advice[0]


def test_sources_are_the_notebooks_named_like_their_folder(tmp_path: Path) -> None:
    names = ["04-b/04-b.ipynb", "03-a/03-a.ipynb", "03-a/03-a.new.ipynb", "03-a/04-b.ipynb"]
    for name in [*names, "instructor-notes/03-a.ipynb"]:
        path = tmp_path / "notebooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [str(path.relative_to(tmp_path)) for path in lab.source_notebooks(tmp_path)]
    assert found == ["notebooks/03-a/03-a.ipynb", "notebooks/04-b/04-b.ipynb"]


@pytest.mark.parametrize("folder", [".", "notebooks", "notebooks/03-gpipe/deeper", "mpedu"])
def test_folder_of_the_course_itself_is_refused_before_anything_is_made(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    args = argparse.Namespace(check=False, folder=lab.ROOT / folder, port=None, no_browser=True)
    assert lab.run(args) == 2
    assert "belongs to the course itself; name another folder" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["work", "build/try", "notebooks-of-mine", "../elsewhere"])
def test_other_folders_are_accepted(tmp_path: Path, folder: str) -> None:
    assert lab.refuse_course_folder(tmp_path / "course" / folder, tmp_path / "course") is None


def test_link_into_the_course_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(lab.ROOT / "notebooks")
    with pytest.raises(LabError, match="belongs to the course itself"):
        lab.refuse_course_folder(tmp_path / "link", lab.ROOT)


def test_tracked_folders_are_all_known_as_the_course_s() -> None:
    command = ["sh", "-c", "git ls-files"]
    listing = subprocess.run(command, cwd=lab.ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("needs git and a checkout of one's own")
    tracked = {line.split("/")[0] for line in listing.stdout.splitlines() if "/" in line}
    assert tracked | {".git"} == set(lab.COURSE_FOLDERS)


def test_checkout_without_notebooks_is_said(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"there are no notebooks in .*; is the checkout complete"):
        lab.place_notebooks([], str, tmp_path)


def test_folder_that_cannot_be_written_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"cannot write .*/file \(.*\); name another folder"):
        lab.lab([Path("03-toy.ipynb")], str, tmp_path / "file", None, browse=False)


def test_port_in_use_is_named_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    lab.add_parser(parser.add_subparsers())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        folder = tmp_path / "work"
        args = parser.parse_args(["lab", "--port", str(port), "--folder", str(folder)])
        assert args.run(args) == 2
        assert server.choose_port(None) != port
    said = capsys.readouterr()
    assert said.err == (
        f"course lab: port {port} is in use or not yours to use; give another one, "
        "or leave --port out and a free one is taken.\n"
    )
    assert said.out == "" and not folder.exists()


@pytest.mark.parametrize("text", ["0", "65536", "-1", "8888.0", "http", ""])
def test_number_that_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="from 1 to 65535"):
        lab.port_number(text)


@pytest.mark.parametrize(
    ("platform", "name", "expected"),
    [
        ("linux", "", False),
        ("linux", "DISPLAY", True),
        ("linux", "WAYLAND_DISPLAY", True),
        ("darwin", "", True),
    ],
)
def test_display_is_known_by_its_variables(
    monkeypatch: pytest.MonkeyPatch, platform: str, name: str, expected: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    if name:
        monkeypatch.setenv(name, ":0")
    assert lab.has_display() is expected


def test_check_serves_runs_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lab.check([Path(f"{NAME}.ipynb")], lambda _source: notebook())
    said = capfd.readouterr()
    lines = [line.split(" s  ", 1)[1] for line in said.out.splitlines()]
    assert lines[0] == "student notebooks built: 1"
    assert lines[1].startswith("JupyterLab answers at http://127.0.0.1:")
    assert lines[2:] == [
        f"{NAME}.ipynb runs up to its first unwritten exercise, check-toy",
        "JupyterLab stopped, no process of it is left",
    ]
    assert said.err == "" and not list(tmp_path.glob("mpedu-*"))


def test_stopped_check_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    waits = notebook(setup="import pathlib, time; pathlib.Path('here').touch(); time.sleep(99)")
    program = (
        "import argparse; from autograder import lab, release\n"
        f"release.student_notebook = lambda source: {waits!r}\n"
        "raise SystemExit(lab.run(argparse.Namespace(check=True)))"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        limit = time.monotonic() + 60
        while not list(tmp_path.glob("mpedu-*/work/*/here")) and time.monotonic() < limit:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert said == "course lab: stopped; nothing is left running.\n"
    assert not list(tmp_path.glob("mpedu-*"))
    lab.expect_no_process(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (notebook(setup="1 / 0"), "cell setup of .* failed: division by zero"),
        (notebook(check="1 / 0"), "cell check-toy of .* failed: division by zero"),
        (notebook(check="pass"), "cell check-toy of .* passed with nothing written"),
        (notebook(check="pass", grade=False), "has no graded cell"),
        (notebook(setup="import os; os._exit(3)"), "cell setup of .* did not end: Kernel died"),
    ],
)
def test_notebook_that_does_not_stop_where_it_should_fails(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / f"{NAME}.ipynb"
    path.write_text(text, encoding="utf-8")
    with (tmp_path / "log").open("w") as log, pytest.raises(LabError, match=message):
        lab.run_until_unwritten(path, log)


def test_left_processes_are_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "STOP_LIMIT_S", 0.0)
    command = [sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path)]
    with subprocess.Popen(command) as left, pytest.raises(LabError, match=f"left: .{left.pid}"):
        lab.expect_no_process(str(tmp_path))
    assert left.returncode == -signal.SIGKILL
