"""Our grader, walls on, against `nbgrader autograde` on the same files in the same run.

The class is made of the honest half of data/sample_class (right, two styles, half, three mistakes),
over and over: what hangs or kills its process costs nbgrader far more. Cells that only show
something are left out, for both. The start of either is measured with a class of one submission per
worker and taken from the rest; all are printed. nbgrader grades one at a time.

    python benchmarks/grade_against_nbgrader.py --students 100 --jobs 2
    python benchmarks/grade_against_nbgrader.py --growth 30 600
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

from autograder.classroom import Settings, grade_class
from autograder.demo import build_class
from autograder.gradebook.handover import Handover
from autograder.grader import ROOT, Grader, source_notebook, unit_of_assignment
from autograder.records.results import Result
from autograder.release import nbgrader_config, nbgrader_folder
from autograder.sandbox import RemoteSubject, build_runtime
from autograder.submissions.cells import canonical, read_notebook, role
from autograder.submissions.finding import Entry, find_submissions

ASSIGNMENT = "03-gpipe"
HONEST = [f"student-{number:02d}" for number in range(1, 7)]
NBGRADER = Path(sys.executable).with_name("nbgrader")
GOAL, STRETCH = 15.0, 25.0


def main() -> None:
    """Prints both times, their ratio and where ours goes; or the cost by size of the class."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=100, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="of ours (default: 2)")
    parser.add_argument("--growth", type=int, nargs="+", metavar="N", help="ours alone, N students")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpedu-bench-") as name:
        if args.growth:
            print_growth(Path(name), args.growth, args.jobs)
        else:
            print_ratio(Path(name), args.students, args.jobs)


def print_growth(course: Path, sizes: Sequence[int], jobs: int) -> None:
    """The cost of a submission in classes of some sizes."""
    start_s = ours_s(course / "start", jobs, jobs)
    print(f"ours, {jobs} at a time, walls, checks, feedback and gradebook; start {start_s:.1f} s")
    for n_students in sizes:
        whole_s = ours_s(course / str(n_students), n_students, jobs)
        each_ms = 1000 * (whole_s - start_s) / (n_students - jobs)
        print(f"  {n_students:5} submissions {whole_s:8.1f} s   {each_ms:7.1f} ms each")


def print_ratio(course: Path, n_students: int, jobs: int) -> None:
    """Both graders on one class, the start apart."""
    our_start_s = ours_s(course / "our-start", jobs, jobs)
    stock_start_s = stock_s(course / "stock-start", 1)
    our_s = ours_s(course / "ours", n_students, jobs)
    nbgrader_s = stock_s(course / "stock", n_students)
    ours_each_s = (our_s - our_start_s) / (n_students - jobs)
    stock_each_s = (nbgrader_s - stock_start_s) / (n_students - 1)
    ratio = stock_each_s / ours_each_s
    print(f"{n_students} submissions of {ASSIGNMENT}, the same files, one run:")
    print("                     whole     start    each")
    for who, all_s, start_s, each_s in (
        (f"ours, {jobs} at a time", our_s, our_start_s, ours_each_s),
        ("nbgrader autograde", nbgrader_s, stock_start_s, stock_each_s),
    ):
        print(f"  {who:18} {all_s:6.1f} s {start_s:6.1f} s {1000 * each_s:6.0f} ms")
    verdict = "stretch held" if ratio >= STRETCH else "held" if ratio >= GOAL else "MISSED"
    print(f"  ratio of each {ratio:.1f}x, goal {GOAL:g}x (stretch {STRETCH:g}x): {verdict}")
    print(f"  ratio with start {nbgrader_s / our_s:.1f}x")
    print_parts(course / "ours", course / "parts")


def timed(run: Callable[[], object]) -> float:
    """Seconds that `run` takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fill(folder: Path, n_students: int) -> None:
    """Writes a class of `n_students` as nbgrader's `submitted` folder."""
    build_class(folder / "samples")
    for number in range(n_students):
        source = folder / "samples" / HONEST[number % len(HONEST)]
        shutil.copytree(source, folder / "submitted" / f"student-{number:03d}")
    for path in (folder / "submitted").rglob("*.ipynb"):
        notebook = read_notebook(path)
        shown = [c for c in notebook.cells if role(c) == "ours" and c.cell_type == "code"]
        notebook.cells = [cell for cell in notebook.cells if cell not in shown]
        path.write_text(canonical(notebook), encoding="utf-8")


def ours_s(course: Path, n_students: int, jobs: int) -> float:
    """Seconds of `./course grade`, start of Python, feedback and gradebook included."""
    fill(course, n_students)
    command = [sys.executable, "-m", "autograder", "grade", str(course / "submitted")]
    options = ["--out", str(course / "out"), "--jobs", str(jobs)]
    quiet = subprocess.DEVNULL
    return timed(lambda: subprocess.run([*command, *options], check=True, stdout=quiet, cwd=ROOT))


def stock_s(course: Path, n_students: int) -> float:
    """Seconds of `nbgrader autograde`, start of Python included, its course being ready."""
    fill(course, n_students)
    home = nbgrader_folder(course)
    home.mkdir()
    (home / "nbgrader_config.py").write_text(nbgrader_config())
    (course / "submitted").rename(home / "submitted")
    run_nbgrader(home, "generate_assignment")
    return timed(lambda: run_nbgrader(home, "autograde"))


def run_nbgrader(home: Path, command: str) -> None:
    """Runs one nbgrader command in the course's folder, quietly."""
    quiet = subprocess.DEVNULL
    arguments = [str(NBGRADER), command, ASSIGNMENT]
    subprocess.run(arguments, check=True, cwd=home, stdout=quiet, stderr=quiet)


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


def print_parts(course: Path, scratch: Path) -> None:
    """Where our time goes, one submission at a time in this process."""
    clock = Clock()
    unit = unit_of_assignment(ASSIGNMENT)
    entries = find_submissions(course / "submitted", [ASSIGNMENT]).entries
    with ExitStack() as stack:
        for owner, method, name in (
            (RemoteSubject, "_settle", "process, walls and cells"),
            (RemoteSubject, "_call", "calls of the student's functions"),
            (RemoteSubject, "close", "end of the process"),
        ):
            wrapped = clock.wrap(name, getattr(owner, method))
            stack.enter_context(patch.object(owner, method, wrapped))
        build_runtime(unit, scratch / "runtime")
        master = read_notebook(source_notebook(unit))
        grader = Grader(unit, master, scratch / "runtime", os.urandom(32))
        stack.enter_context(grader)
        with clock.part("start of the sandbox (once)"):
            print(f"walls: {grader.sandbox.rung}")
        graded = []
        for entry in entries:
            with clock.part("checks, and reading the file"):
                graded.append((entry, grader.grade(entry.path)))
    with clock.part("record and feedback"):
        results = record(scratch / "out", graded)
    handover = Handover(scratch / "out")
    with clock.part("gradebook and notebooks for it"):
        handover.give(entries, results)
    total_s = sum(clock.seconds.values())
    print(f"where our time goes, one at a time ({total_s:.1f} s):")
    for name, part_s in sorted(clock.seconds.items(), key=lambda item: -item[1]):
        each_ms = 1000 * part_s / len(entries)
        print(f"  {100 * part_s / total_s:5.1f} %  {each_ms:7.1f} ms each  {name}")


def record(out: Path, graded: Sequence[tuple[Entry, Any]]) -> list[Result]:
    """Records what is graded already, as the command does."""

    def answers(*_: Any) -> Iterator[Any]:
        yield from graded

    with patch("autograder.classroom.run_tasks", answers):
        settings = Settings(out, os.urandom(32))
        return grade_class([entry for entry, _ in graded], settings, lambda *_: None)


if __name__ == "__main__":
    main()
