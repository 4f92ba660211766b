"""`kill -9` of the grader at random moments, over a class graded for real, until it is done.

MPEDU_KILLS=100 MPEDU_STUDENTS=30 python -m pytest tests/autograder/test_killed.py
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from autograder.demo import build_class
from autograder.grader import ROOT

KILLS = int(os.environ.get("MPEDU_KILLS", "4"))
STUDENTS = int(os.environ.get("MPEDU_STUDENTS", "4"))
# of the sample class: right, damaged, half, three mistakes; none waits for a limit
STUDENT_OF = [f"student-{number:02d}" for number in (1, 7, 3, 4, 5, 6)]
SCORES = """
    SELECT student.id, base_cell.name, grade.auto_score, grade.needs_manual_grade
    FROM grade
    JOIN base_cell ON base_cell.id = grade.cell_id
    JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
    JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
    JOIN student ON student.id = submitted_assignment.student_id
"""


class Course:
    """A class, its secret, a copy of the checkout, and a folder of its own for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.temp.mkdir()
        (folder / "secret").write_text("5a" * 32)
        for part in ("autograder", "mpedu", "notebooks", "data"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, folder / "checkout" / part, ignore=ignored)
        build_class(folder / "sample")
        for number in range(STUDENTS):
            source = folder / "sample" / STUDENT_OF[number % len(STUDENT_OF)]
            shutil.copytree(source, folder / "class" / f"s{number:02d}")

    def start(self, out: Path, jobs: int = 2) -> "subprocess.Popen[str]":
        """`./course grade` in a process group of its own."""
        command = [sys.executable, "-m", "autograder", "grade", str(self.folder / "class")]
        options = ["--out", str(out), "--secret", str(self.folder / "secret"), "--jobs", f"{jobs}"]
        return subprocess.Popen(
            [*command, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.folder / "checkout",
            env=os.environ | {"TMPDIR": str(self.temp)},
        )

    def finish(self, out: Path, jobs: int = 2) -> float:
        """Grades the class, or what is left of it, undisturbed; the seconds that takes."""
        start = time.monotonic()
        grader = self.start(out, jobs)
        _, error = grader.communicate(timeout=600)
        assert (grader.returncode, error) == (0, "")
        return time.monotonic() - start

    def processes(self, grader: int) -> set[psutil.Process]:
        """The grader's processes, by descent and by the folder that they were started for."""
        found = set(psutil.Process(grader).children(recursive=True))
        for process in psutil.process_iter():
            if any(str(self.folder) in word for word in words(process)):
                found.add(process)
        return found


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def undisturbed(course: Course) -> tuple[Path, float]:
    """Where a run wrote that nothing disturbed, and the seconds it took."""
    whole = course.folder / "whole"
    return whole, course.finish(whole)


def results(out: Path) -> dict[str, Any]:
    """Each result as it is written, without what belongs to the run; and the list of grades."""
    found: dict[str, Any] = {"grades": (out / "grades.csv").read_text()}
    for path in sorted((out / "results").rglob("*.json")):
        tree = json.loads(path.read_text())
        assert tree.pop("run")
        found[path.name] = tree
    return found


def gradebook(out: Path) -> list[Any]:
    """Every cell's score and whether it waits for a person."""
    with sqlite3.connect(out / "nbgrader" / "gradebook.db") as database:
        return sorted(database.execute(SCORES).fetchall(), key=repr)


def judged_twice(out: Path) -> list[str]:
    """The exercises that have a verdict more than once."""
    counts: Counter[str] = Counter()
    for path in (out / "results").rglob("*.journal"):
        for line in path.read_text().splitlines():
            tree = json.loads(line)
            if "verdict" in tree:
                counts[f"{path.stem} {tree['verdict']['exercise']}"] += 1
    return [name for name, n in counts.items() if n > 1]


def test_killed_at_any_moment_a_run_loses_and_doubles_nothing(
    course: Course, undisturbed: tuple[Path, float]
) -> None:
    whole, most_s = undisturbed
    out = course.folder / "out"
    assert len(results(whole)) == STUDENTS + 1
    moments = random.Random(7)
    n_killed = 0
    while n_killed < KILLS:
        grader = course.start(out)
        try:
            grader.communicate(timeout=moments.uniform(0, most_s))
        except subprocess.TimeoutExpired:
            n_killed += 1
            kill(course, grader)
        else:  # done before its end came: once more from the beginning
            assert results(out) == results(whole)
            shutil.rmtree(out)
    course.finish(out)
    assert results(out) == results(whole)
    assert gradebook(out) == gradebook(whole)
    assert judged_twice(out) == []
    assert not list(out.rglob("*.part"))
    assert list(course.temp.iterdir()) == []


def kill(course: Course, grader: "subprocess.Popen[str]") -> None:
    """Ends the grader alone; what it has started must end by itself, and leaves one folder."""
    os.kill(grader.pid, signal.SIGSTOP)  # so that nobody is started meanwhile
    started = course.processes(grader.pid) - {psutil.Process(grader.pid)}
    os.kill(grader.pid, signal.SIGKILL)
    grader.communicate()
    _, alive = psutil.wait_procs(started, timeout=20)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
    assert len(list(course.temp.iterdir())) <= 1


def test_two_runs_over_the_same_files_differ_in_the_run_block_only(
    course: Course, undisturbed: tuple[Path, float]
) -> None:
    other = course.folder / "other"
    course.finish(other, jobs=1)
    assert results(undisturbed[0]) == results(other)
    trees = [json.loads(path.read_text()) for path in (other / "results").rglob("*.json")]
    for tree in trees:
        timed = tree["run"]["exercises"]
        assert list(timed) == [verdict["exercise"] for verdict in tree["exercises"]]
        assert all(run["wall_s"] > 0 and run["cpu_s"] > 0 for run in timed.values())


def test_grading_processes_killed_from_outside_cost_nothing(
    course: Course, undisturbed: tuple[Path, float]
) -> None:
    out = course.folder / "lost"
    grader = course.start(out, jobs=1)
    for _ in range(2):
        while grader.poll() is None and not (workers := pool_processes(grader.pid)):
            time.sleep(0.05)
        assert grader.poll() is None, grader.communicate()
        time.sleep(1.0)  # while it starts, or at any exercise: as loaded as the machine is
        workers[0].kill()
        workers[0].wait(20)
    _, error = grader.communicate(timeout=600)
    assert (grader.returncode, error) == (0, "")
    assert results(out) == results(undisturbed[0])


def pool_processes(grader: int) -> list[psutil.Process]:
    """The processes of the pool that serve now."""
    children = psutil.Process(grader).children()
    return [one for one in children if any("spawn_main" in word for word in words(one))]


def words(process: psutil.Process) -> list[str]:
    """A process's command line, [] once it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize("size", ["32k", "96k"])
def test_a_disk_that_fills_up_costs_nothing_once_there_is_room(
    course: Course, undisturbed: tuple[Path, float], size: str
) -> None:
    out = course.folder / f"full-{size}"
    out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o"]
    made = subprocess.run([*mount, f"size={size}", "tmpfs", str(out)], capture_output=True)
    if os.geteuid() != 0 or made.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        grader = course.start(out)
        _, error = grader.communicate(timeout=600)
        assert (grader.returncode, error.count("\n")) == (1, 1)
        assert "recorded" in error  # by the results, or by the gradebook that came after them
        assert not list(out.rglob("*.part"))
        subprocess.run([*mount, "remount,size=64m", str(out)], check=True)
        course.finish(out)
        assert results(out) == results(undisturbed[0])
    finally:
        subprocess.run(["umount", str(out)], check=True)


def test_a_mended_check_is_judged_again_alone(
    course: Course, undisturbed: tuple[Path, float]
) -> None:
    out = course.folder / "mended"
    shutil.copytree(undisturbed[0], out)
    checks = course.folder / "checkout" / "autograder" / "checks"
    for unit, module in (("03", "bubble_mistakes"), ("01", "rings"), ("03", "texts")):
        with (checks / f"unit_{unit}" / f"{module}.py").open("a") as file:
            file.write("\nMENDED = 1\n")
    course.finish(out)
    twice = judged_twice(out)
    assert twice
    assert {name.split()[1] for name in twice} == {"bubble"}
    for path in (out / "results").rglob("*.json"):
        tree = json.loads(path.read_text())
        assert tree["run"]["n_judged"] == bool(tree["exercises"])
    before, after = results(undisturbed[0]), results(out)
    for name in {*before} - {"grades"}:
        del before[name]["hashes"], after[name]["hashes"]
    assert before == after
