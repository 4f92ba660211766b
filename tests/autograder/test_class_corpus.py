"""A class that nobody should trust: the verdicts required, and nothing got out, in, or stayed."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from canaries import canaries
from family_resource import LIMITS, MARKER
from family_walls import CANARY, CANARY_VARIABLE, ESCAPED
from make import SUBMISSIONS
from making import FAMILIES, Submission, due_verdicts, unit

from autograder.__main__ import main
from autograder.classroom import Settings, grade_class
from autograder.grader import ROOT
from autograder.records.results import GRADED, Result, read_result, result_path
from autograder.sandbox import NAMESPACES, NOT_WALLED, WALLED, build_runtime, walls_here
from autograder.submissions.finding import find_submissions

SECRET = bytes(range(32))
BY_NAME = {submission.name: submission for submission in SUBMISSIONS}
# What the grader makes beside what its name says.
OURS = {"nbgrader", "autograded", "held", "journal"}
# Whose two processes answer as the system lets them: no points either way, but other words.
RACES = {"two-answers"}
ENDED_S = 30.0  # for what was killed to be gone on a loaded machine


class Class(NamedTuple):
    """A graded corpus: where, the results by student, and what was left of it."""

    out: Path
    results: dict[str, Result]
    left_over: list[str]


def graded(rung: str, submissions: list[Submission], out: Path) -> Class:
    """The submissions graded on that rung, those that take long with limits of their own."""
    results: dict[str, Result] = {}
    before = set(psutil.pids())  # among them sandboxes of other tests
    with ExitStack() as stack:
        for is_slow in (False, True):
            chosen = [one for one in submissions if (one.family == "resource") is is_slow]
            if not chosen:
                continue
            place = out / ("slow" if is_slow else "class")
            for one in chosen:
                one.write(place / "submitted")
            (place / "secret-seed").write_text(SECRET.hex())
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(f"\0{place / 'submitted'}")
            listening.listen(100)
            grade_slow(place, rung) if is_slow else grade(place, rung)
            for one in chosen:
                result = read_result(result_path(place, one.assignment, one.name))
                assert result is not None, f"{one.name} has no result"
                results[one.name] = result
    return Class(out, results, left_over(before))


def grade(place: Path, rung: str) -> None:
    """As on the command line, with all that is written for students and whoever grades by hand."""
    words = [f"--walls={rung}", "--jobs=2", *["--trust"] * (rung == NOT_WALLED)]
    assert main(["grade", str(place / "submitted"), f"--out={place}", *words]) == 0


def grade_slow(place: Path, rung: str) -> None:
    """The same without the gradebook, and with limits that the command line does not offer."""
    assignments = sorted({one.assignment for one in SUBMISSIONS if one.family == "resource"})
    entries = find_submissions(place / "submitted", assignments).entries
    entries = [one for one in entries if BY_NAME[one.student].assignment == one.assignment]
    trust = rung == NOT_WALLED
    settings = Settings(place, SECRET, jobs=2, limits=LIMITS, rung=rung, trust=trust)
    grade_class(entries, settings, lambda *_: None)


def left_over(before: set[int]) -> list[str]:
    """The command lines of processes that should be gone, once what was killed had time to go."""
    deadline = time.monotonic() + ENDED_S
    while (left := list(strays(before))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def strays(before: set[int]) -> Iterator[str]:
    """New processes under this one, and those with the mark of the corpus, by command line."""
    ours = {process.pid for process in psutil.Process().children(recursive=True)} - before
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if MARKER in words or (process.info["pid"] in ours and "autograder" in words):
            yield words


MADE: dict[str, Class] = {}


@pytest.fixture(scope="module", autouse=True)
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "runtime"
    build_runtime(unit("03"), folder)
    return folder


def made(rung: str, runtime: Path) -> Class:
    """The whole corpus graded on that rung, once; a skip where the machine lacks it."""
    if rung not in MADE:
        try:
            walls_here(runtime, rung)
        except ValueError as error:
            pytest.skip(str(error))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(CANARY_VARIABLE, CANARY)
            # In one place for all rungs: some students name it, and their bytes must not differ.
            place, kept = runtime.parent / "graded", runtime.parent / rung
            MADE[rung] = graded(rung, list(SUBMISSIONS), place)._replace(out=kept)
            place.rename(kept)
    return MADE[rung]


@pytest.fixture(params=[WALLED, NAMESPACES])
def corpus(request: pytest.FixtureRequest, runtime: Path) -> Class:
    return made(request.param, runtime)


def test_the_corpus_is_large_and_has_all_families() -> None:
    sizes = Counter(submission.family for submission in SUBMISSIONS)
    assert len(BY_NAME) == len(SUBMISSIONS) >= 90
    assert set(sizes) == set(FAMILIES) and min(sizes.values()) >= 15


@pytest.mark.parametrize("name", BY_NAME)
def test_a_verdict_is_as_required(corpus: Class, name: str) -> None:
    due, result = BY_NAME[name].due, corpus.results[name]
    assert result.status == due.status, result.reason
    assert due.reason.lower() in result.reason.lower()
    verdicts = {verdict.exercise: (verdict.status, verdict.score) for verdict in result.exercises}
    assert verdicts == due_verdicts(BY_NAME[name])
    assert (result.score is None) is (due.status != GRADED)
    assert result.notes or result.cell_errors or not due.notes, "a repair was not told"


def test_no_process_is_left(corpus: Class) -> None:
    assert corpus.left_over == []


def test_nothing_is_written_outside(corpus: Class) -> None:
    places = [Path("/"), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path.home(), ROOT]
    places += [corpus.out, corpus.out.parent, *corpus.out.glob("*/submitted")]
    escaped = [path for place in {*places, Path.cwd()} for path in place.glob(f"{ESCAPED}*")]
    assert escaped == []
    for place in corpus.out.iterdir():
        known = {"submitted", "secret-seed", "results", "feedback", "grades.csv", *OURS}
        assert {path.name for path in place.iterdir() if not path.name.startswith(".")} <= known


@pytest.mark.parametrize("number", ["01", "02", "03"])
def test_no_student_sees_anything_of_a_secret_case(corpus: Class, number: str) -> None:
    tokens = canaries(number, SECRET)
    assert len(tokens) > 50
    assert CANARY not in seen(corpus.out)
    told = sorted(token for token in tokens if token in seen(corpus.out))
    # A number may stand in what a student handed in, which its notebook for formgrader shows.
    assert [token for token in told if token not in handed_in(corpus.out)] == []


@cache
def handed_in(corpus_out: Path) -> str:
    """The text of all notebooks handed in."""
    paths = corpus_out.glob("*/submitted/**/*.ipynb")
    plain = [path for path in paths if path.is_file() and not path.is_symlink()]
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in plain)


@cache
def seen(corpus_out: Path) -> str:
    """All that students can see, or could get hold of: pages, notebooks, results and grades."""
    texts = []
    for place in corpus_out.glob("*"):
        for path in place.rglob("*"):
            if (
                path.suffix in (".html", ".json", ".ipynb", ".csv")
                and "submitted" not in path.parts
            ):
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return "\n".join(texts)


def test_results_are_the_same_on_both_rungs_but_for_the_run(runtime: Path) -> None:
    walled, namespaces = (made(rung, runtime).results for rung in (WALLED, NAMESPACES))
    assert {r.run["walls"].partition(":")[0] for r in walled.values() if r.exercises} == {WALLED}
    differing = [
        name
        for name in BY_NAME
        if name not in RACES and walled[name]._replace(run={}) != namespaces[name]._replace(run={})
    ]
    assert differing == []


def test_without_walls_the_attacks_that_need_them_succeed_as_listed(tmp_path: Path) -> None:
    tried = [one for one in SUBMISSIONS if one.family == "attack" and one.unwalled is not None]
    listed = [one.name for one in tried if one.unwalled]
    assert len(listed) >= 8
    results = graded(NOT_WALLED, [*tried, BY_NAME["right"]], tmp_path).results
    for part in Path("/tmp").glob("part-[0-9].npy"):  # left by the bank's ranks
        part.unlink()
    scores = {one.name: results[one.name].score or 0 for one in tried}
    due = {one.name: sum(score for _, score in due_verdicts(one).values()) for one in tried}
    assert [name for name, score in scores.items() if score > due[name]] == listed
