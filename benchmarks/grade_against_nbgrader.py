"""Our grader, walls on, against `nbgrader autograde` on the same files in the same run.

The class is made of the honest half of data/sample_class (right, two styles, half, three mistakes),
over and over: what hangs or kills its process costs nbgrader far more.

    python benchmarks/grade_against_nbgrader.py --students 40
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from autograder.cells import read_notebook
from autograder.classroom import Settings, grade_class
from autograder.demo import build_class
from autograder.grader import ROOT, Grader, source_notebook, unit_of_assignment
from autograder.release import nbgrader_config, nbgrader_folder
from autograder.results import Result
from autograder.sandbox import build_runtime
from autograder.sandbox.remote import RemoteSubject
from autograder.submissions import find_submissions

ASSIGNMENT = "03-gpipe"
HONEST = [f"student-{number:02d}" for number in range(1, 7)]
NBGRADER = Path(sys.executable).with_name("nbgrader")


def main() -> None:
    """Prints both times, their ratio, and where ours goes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=40, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpedu-bench-") as name:
        course = Path(name)
        fill(course, args.students)
        ours_s = timed(lambda: run_ours(course, args.jobs))
        single_s = timed(lambda: run_ours(course, 1))
        prepare_stock(course)
        stock_s = timed(lambda: run_stock(course))
        print(f"{args.students} submissions, the same files, one run, walls on:")
        print(f"  ours, {args.jobs} at a time   {ours_s:8.1f} s")
        print(f"  ours, one at a time {single_s:8.1f} s")
        print(f"  nbgrader autograde  {stock_s:8.1f} s")
        print(f"  ratio {stock_s / ours_s:.1f}x (one at a time: {stock_s / single_s:.1f}x)")
        print_parts(course)


def timed(run: Callable[[], object]) -> float:
    """Seconds that `run` takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fill(course: Path, n_students: int) -> None:
    """Writes a class of `n_students` as nbgrader's `submitted` folder."""
    build_class(course / "samples")
    for number in range(n_students):
        source = course / "samples" / HONEST[number % len(HONEST)]
        shutil.copytree(source, course / "submitted" / f"student-{number:03d}")


def run_ours(course: Path, jobs: int) -> None:
    """Grades the class as the command does, start of Python included."""
    out = course / f"ours-{jobs}"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "autograder", "grade", str(course / "submitted")]
    quiet = subprocess.DEVNULL
    options = ["--out", str(out), "--jobs", str(jobs)]
    subprocess.run([*command, *options], check=True, stdout=quiet, cwd=ROOT)


def prepare_stock(course: Path) -> None:
    """The course as nbgrader wants it; not part of its time."""
    home = nbgrader_folder(course)
    home.mkdir()
    (home / "nbgrader_config.py").write_text(nbgrader_config(course))
    (course / "submitted").rename(home / "submitted")
    run_nbgrader(course, "generate_assignment")


def run_stock(course: Path) -> None:
    """Grades the class with nbgrader, start of Python included."""
    run_nbgrader(course, "autograde")


def run_nbgrader(course: Path, command: str) -> None:
    """Runs one nbgrader command in the course's folder, quietly."""
    quiet = subprocess.DEVNULL
    arguments = [str(NBGRADER), command, ASSIGNMENT]
    subprocess.run(arguments, check=True, cwd=nbgrader_folder(course), stdout=quiet, stderr=quiet)


class Clock:
    """Seconds spent in named parts; time inside an inner part does not count for the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds the time of the block to `name`."""
        start = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            whole = time.perf_counter() - start
            self.seconds[name] += whole - self._inner.pop()
            self._inner[-1] += whole

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, its time added to `name`."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.part(name):
                return function(*args, **kwargs)

        return measured


def print_parts(course: Path) -> None:
    """Where our time goes, one submission at a time in this process."""
    clock = Clock()
    unit = unit_of_assignment(ASSIGNMENT)
    entries = find_submissions(nbgrader_folder(course) / "submitted", [ASSIGNMENT]).entries
    with ExitStack() as stack:
        for owner, method, name in (
            (RemoteSubject, "__init__", "fork of the process"),
            (RemoteSubject, "_run", "the notebook's cells"),
            (RemoteSubject, "_call", "calls of the student's functions"),
            (RemoteSubject, "close", "end of the process"),
        ):
            wrapped = clock.wrap(name, getattr(owner, method))
            stack.enter_context(patch.object(owner, method, wrapped))
        runtime = course / "runtime"
        build_runtime(unit, runtime)
        master = read_notebook(source_notebook(unit))
        grader = stack.enter_context(Grader(unit, master, runtime, os.urandom(32)))
        with clock.part("start of the sandbox (once)"):
            print(f"walls: {grader.sandbox.rung}")
        graded = []
        for entry in entries:
            with clock.part("judge, and reading the file"):
                graded.append((entry, grader.grade(entry.path)))
    with clock.part("record and feedback"):
        record(course / "parts", graded)
    total_s = sum(clock.seconds.values())
    print(f"where our time goes, one at a time ({total_s:.1f} s):")
    for name, part_s in sorted(clock.seconds.items(), key=lambda item: -item[1]):
        each_ms = 1000 * part_s / len(entries)
        print(f"  {100 * part_s / total_s:5.1f} %  {each_ms:7.1f} ms each  {name}")


def record(out: Path, graded: Sequence[Any]) -> None:
    """Records what is graded already, as the command does."""

    def answers(*_: Any) -> Iterator[Any]:
        yield from graded

    def watch(_result: Result, _n_total: int) -> None:
        pass

    with patch("autograder.classroom.run_tasks", answers):
        grade_class([entry for entry, _ in graded], Settings(out, os.urandom(32)), watch)


if __name__ == "__main__":
    main()
