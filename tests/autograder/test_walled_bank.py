"""The banks where they count: behind walls, with a class secret, as a submission is graded."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import pytest
from judged import SECRETS, UNITS, bank_of, first_diagnosis

from autograder.exercise import load_unit
from autograder.grader import Grader, source_notebook
from autograder.judge import Verdict
from autograder.pool import Lost, run_tasks
from autograder.sandbox import PER_EXERCISE, WALLED, build_runtime, walls_here
from autograder.submissions.cells import read_notebook
from autograder.submissions.ingest import Submission

ROOT = Path(__file__).parents[2]
KINDS = ("RIGHT", "WRONG", "CHEATS")
LIMIT_S = 600.0  # for one answer, on a machine that is loaded
IMPORTS = {
    "by its name": "from mpedu.families import gpipe",
    "under another name": """
from mpedu.families import gpipe as given
def gpipe(n_stages, n_microbatches): return given(n_stages, n_microbatches)""",
    "by another family": """
import mpedu.families
def gpipe(n_stages, n_microbatches):
    return [sorted(actions, key=lambda a: "FB".index(a.kind))
            for actions in mpedu.families.one_f_one_b(n_stages, n_microbatches)]""",
    "from the checkout": f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
for name in [n for n in sys.modules if n.partition(".")[0] in ("mpedu", "autograder")]:
    del sys.modules[name]
from mpedu.families import gpipe""",
}
# A student's code, and the exercises that it answers: no other one is asked.
Task = tuple[str, tuple[str, ...]]
Verdicts = dict[Task, list[Verdict] | Lost]


def tasks_of(number: str) -> Iterator[Task]:
    """All that is graded of a unit."""
    for kind in KINDS:
        for answer in getattr(bank_of(number), kind):
            yield answer.source, tuple(answer.expected)
    if number == "03":
        yield from map(importing, IMPORTS)


def importing(way: str) -> Task:
    return IMPORTS[way], ("gpipe", "gpipe_fast")


@contextmanager
def graders(number: str, runtime: Path) -> Iterator[Callable[[Task], list[Verdict]]]:
    """What a process of the pool does: one warm parent for all its answers, as with a class."""
    unit = load_unit(number)
    with Grader(unit, read_notebook(source_notebook(unit)), runtime, SECRETS[0]) as grader:

        def grade(task: Task) -> list[Verdict]:
            source, asked = task
            chosen = tuple(exercise for exercise in unit.exercises if exercise.id in asked)
            grader.unit = unit._replace(exercises=chosen)
            graded = grader.grade_submission(Submission("", [("answer", source)], []))
            assert graded.walls.partition(":")[0] in (WALLED, PER_EXERCISE), graded.walls
            return graded.exercises

        yield grade


@pytest.fixture(scope="module")
def verdicts_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Verdicts]:
    """The verdicts on a unit's bank, by its number: all graded when the first is asked for."""
    runtimes = {unit.number: tmp_path_factory.mktemp("walled") / "runtime" for unit in UNITS}
    for unit in UNITS:
        build_runtime(unit, runtimes[unit.number])
    try:
        walls = walls_here(runtimes[UNITS[0].number])
    except ValueError as error:
        pytest.skip(f"no walls on this machine: {error}")
    if walls.rung not in (WALLED, PER_EXERCISE):
        pytest.skip(f"no walls on this machine: {walls.rung}")

    @cache
    def verdicts(number: str) -> Verdicts:
        tasks = list(dict.fromkeys(tasks_of(number)))
        with closing(run_tasks(graders, (number, runtimes[number]), tasks, 2, LIMIT_S)) as graded:
            return dict(graded)

    return verdicts


def by_exercise(got: list[Verdict] | Lost) -> dict[str, Verdict]:
    assert not isinstance(got, Lost), got.reason
    return {verdict.exercise: verdict for verdict in got}


@pytest.mark.parametrize(
    "number, answer",
    [
        pytest.param(unit.number, answer, id=f"{unit.number}-{answer.id}")
        for unit in UNITS
        for kind in KINDS
        for answer in getattr(bank_of(unit.number), kind)
    ],
)
def test_every_answer_of_the_bank_gets_its_verdict(
    verdicts_of: Callable[[str], Verdicts], number: str, answer
) -> None:
    got = by_exercise(verdicts_of(number)[answer.source, tuple(answer.expected)])
    found = {name: (verdict.score, first_diagnosis(verdict)) for name, verdict in got.items()}
    assert found == answer.expected
    for verdict in got.values():
        for message in verdict.messages:
            assert len(message.splitlines()) <= 12 and len(message) < 600


@pytest.mark.parametrize("way", IMPORTS)
def test_the_imported_answer_scores_nothing(
    verdicts_of: Callable[[str], Verdicts], way: str
) -> None:
    got = by_exercise(verdicts_of("03")[importing(way)])
    assert (got["gpipe"].score, got["gpipe_fast"].score) == (0, 0)
    assert "this is the exercise" in got["gpipe"].messages[0]
