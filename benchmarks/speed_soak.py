"""Speed as a grade on a loaded machine: how often a verdict is wrong, and how often there is none.

The dispatch exercise of the tests (tokens into the slots of experts) with three answers: the
reference itself (1x), one-hot for a third of the tokens (2x), and by indices (20x in one process;
less here, as a turn holds the ways to and from another process). `calibrate` prints the ratios to
draw the lines from, without load; `soak` grades each answer many times while other processes
compute, and then a class again and again, whose totals must not differ.

    python benchmarks/speed_soak.py calibrate
    python benchmarks/speed_soak.py soak --gradings 300 --hogs 4 --class-runs 20
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "autograder"))

import numpy as np
import speed_toy as toy
import toy_notebook

from autograder.grader import Grader
from autograder.judge import judge
from autograder.sandbox import Sandbox, build_runtime
from autograder.speed import TooNoisy
from autograder.submissions.cells import parse_notebook
from autograder.submissions.ingest import Cell, Submission

ANSWERS = {"1x": toy.REFERENCE, "2x": toy.PARTLY, "20x": toy.INDEXED}
SCORES = {"1x": 0, "2x": 1, "20x": 3}
_MASTER = parse_notebook(toy_notebook.notebook())


class Seen(NamedTuple):
    """One grading: the score, None where the machine was too noisy for one, and what was timed."""

    answer: str
    score: int | None
    seconds: float
    measured: dict[str, Any]
    reason: str = ""  # why there is no score


def main() -> None:
    """Runs what the command line asks for and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("calibrate", "soak"))
    parser.add_argument(
        "--gradings", type=int, default=300, metavar="N", help="of each answer, or 0"
    )
    parser.add_argument("--hogs", type=int, default=4, metavar="N", help="processes that compute")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--class-runs", type=int, default=20, metavar="N")
    parser.add_argument("--students", type=int, default=12, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder) / "runtime"
        build_runtime(toy.TOY, runtime)
        if args.what == "calibrate":
            calibrate(runtime, args.gradings)
            return
        with loaded(args.hogs), pool(runtime, args.jobs) as workers:
            print(f"{os.cpu_count()} cores, {args.hogs} hogs, {args.jobs} gradings at a time")
            if args.gradings:
                soak(workers, args.gradings)
            class_again_and_again(workers, args.students, args.class_runs)


@contextmanager
def loaded(n_hogs: int) -> Iterator[None]:
    """While so many processes multiply matrices without end."""
    hogs = [multiprocessing.Process(target=_hog, daemon=True) for _ in range(n_hogs)]
    for hog in hogs:
        hog.start()
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.join()


def _hog() -> None:
    x = np.random.default_rng(0).random((400, 400))
    while True:
        x @ x


@contextmanager
def pool(runtime: Path, n_jobs: int) -> Iterator[Any]:
    """Processes that grade, each with a sandbox of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(n_jobs, _start, (runtime,)) as workers:
        yield workers
        workers.close()
        workers.join()


_HERE: dict[str, Any] = {}  # of one process of the pool


def _start(runtime: Path) -> None:
    _HERE["grader"] = Grader(toy.TOY, _MASTER, runtime, toy.SECRET)
    _HERE["sandbox"] = Sandbox(runtime)


def _graded_once(answer: str) -> Seen:
    """One grading that is not tried again."""
    start, score = time.perf_counter(), None
    cells = [("solution", ANSWERS[answer])]
    with _HERE["sandbox"].open(cells, toy.EXERCISE.names, alone=True) as subject:
        with suppress(TooNoisy):
            score = judge(toy.EXERCISE, subject, toy.SECRET).score
        measured = subject.measured.get("dispatch", {})
    return Seen(answer, score, time.perf_counter() - start, dict(measured))


def _graded_as_in_class(answer: str) -> Seen:
    """One grading as `./course grade` does it, which tries again what was too noisy."""
    cells = [Cell("solution", ANSWERS[answer])]
    graded = _HERE["grader"].grade_submission(Submission("", cells, []))
    done = graded.status == "graded"
    score = graded.exercises[0].score if done else None
    return Seen(answer, score, graded.seconds, {}, graded.reason)


def calibrate(runtime: Path, n_gradings: int) -> None:
    """Prints the ratios of each answer, measured as in grading."""
    _start(runtime)
    for answer in ANSWERS:
        seen = [_graded_once(answer) for _ in range(n_gradings)]
        ratios = sorted(one.measured["times_faster"] for one in seen)
        least, middle, most = ratios[0], ratios[len(ratios) // 2], ratios[-1]
        print(f"{answer:>4}: {least:.2f}, {middle:.2f}, {most:.2f} times as fast (least, median,")
        print(f"      most), reference {1e3 * seen[0].measured['reference_s']:.2f} ms")


def soak(workers: Any, n_gradings: int) -> None:
    """Grades each answer so often, in turns, and prints what went wrong."""
    start = time.perf_counter()
    seen = list(workers.imap_unordered(_graded_once, list(ANSWERS) * n_gradings))
    for answer, score in SCORES.items():
        own = [one for one in seen if one.answer == answer]
        told = [one for one in own if one.score is not None]
        ratios = [one.measured["times_faster"] for one in own if one.measured]
        controls = [one.measured["control"] for one in own if one.measured]
        rounds = Counter(one.measured["rounds"] for one in own if one.measured)
        print(
            f"{answer:>4}: {len(own)} gradings, {sum(one.score > score for one in told)} with too"
            f" many points, {sum(one.score < score for one in told)} with too few,"
            f" {len(own) - len(told)} without a verdict; {min(ratios):.2f}..{max(ratios):.2f} times"
            f" as fast, control {min(controls):.2f}..{max(controls):.2f}, rounds {dict(rounds)},"
            f" {sum(one.seconds for one in own) / len(own):.2f} s each"
        )
    decided = sum(one.score is not None for one in seen) / len(seen)
    false_passes = sum((one.score or 0) > SCORES[one.answer] for one in seen)
    honest = [one for one in seen if SCORES[one.answer] and one.score is not None]
    false_fails = sum((one.score or 0) < SCORES[one.answer] for one in honest)
    print(
        f"{false_passes} false passes, {false_fails} false fails of {len(honest)} honest ones,"
        f" {decided:.1%} with a verdict within three rounds,"
        f" {time.perf_counter() - start:.0f} s"
    )


def class_again_and_again(workers: Any, n_students: int, n_runs: int) -> None:
    """Grades a class so often and prints how many different lists of scores came out."""
    start, lists = time.perf_counter(), Counter[tuple[int | None, ...]]()
    students = [list(ANSWERS)[number % len(ANSWERS)] for number in range(n_students)]
    for _ in range(n_runs):
        seen = workers.map(_graded_as_in_class, students, chunksize=1)
        lists[tuple(one.score for one in seen)] += 1
        for one in seen:
            if one.score != SCORES[one.answer]:
                print(f"  {one.answer}: {one.score}, not {SCORES[one.answer]} {one.reason}")
    right = tuple(SCORES[answer] for answer in students)
    print(
        f"a class of {n_students} graded {n_runs} times: {len(lists)} different lists of scores,"
        f" {lists[right]} times the right one, {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
