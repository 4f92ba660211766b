"""A class of ten, built from data, graded for real, each verdict beside the expected one."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from autograder import classroom, report
from autograder.gradebook.handover import Handover
from autograder.grader import ROOT, source_notebook, unit_of_assignment
from autograder.records.locks import only_run
from autograder.records.results import Result, ensure_writable, write_whole
from autograder.release import student_notebook
from autograder.seeds import class_secret
from autograder.submissions.cells import Node, canonical, parse_notebook
from autograder.submissions.finding import find_submissions
from mpedu.arguments import FAILED, OK

DATA = ROOT / "data" / "sample_class"


class Expected(NamedTuple):
    """What one student of the sample class is, and the verdict that is due."""

    student: str
    what: str
    starts_from: str
    damaged: bool
    status: str
    points: Mapping[str, int]
    because: str

    @property
    def total(self) -> str:
        """The points due, "" where nothing is graded."""
        return str(sum(self.points.values())) if self.points else ""


def grade_demo(folder: Path, jobs: int) -> int:
    """Builds, grades and prints the class; the exit status, FAILED if a verdict differs."""
    submitted = folder / "submitted"
    ensure_writable(folder, folder / "results", folder / "feedback", submitted)
    shutil.rmtree(submitted, ignore_errors=True)  # always the class that the data describe
    build_class(submitted)
    assignment, students = read_expected()
    entries = find_submissions(submitted, [assignment]).entries
    # The sample class is ours, and so to be trusted.
    settings = classroom.Settings(folder, class_secret(folder, None), jobs, force=True, trust=True)
    out = report.console()
    with only_run(folder):
        with report.Watcher(out, accept_lower=True) as watch:
            results = classroom.grade_class(entries, settings, watch, watch.warn, watch.confirm)
        Handover(folder, accept_lower=True).publish(entries, results)
    out.print(demo_table(students, results))
    n_right = len(students) - n_unexpected(students, results)
    report.tell(out, report.open_walls(results), report.by_hand(assignment))
    print(f"{n_right} of {len(students)} verdicts as expected; pages: {folder / 'feedback'}")
    return OK if n_right == len(students) else FAILED


def read_expected(data: Path = DATA) -> tuple[str, list[Expected]]:
    """The sample class's assignment, and its students in order."""
    tree = json.loads((data / "expected.json").read_text(encoding="utf-8"))
    defaults: dict[str, Any] = {"starts_from": "", "damaged": False}
    students = [Expected(name, **defaults | entry) for name, entry in tree["students"].items()]
    return tree["assignment"], students


def build_class(folder: Path, data: Path = DATA) -> None:
    """Writes the class's notebooks as `folder/<student>/<assignment>/<assignment>.ipynb`."""
    assignment, students = read_expected(data)
    released = student_notebook(source_notebook(unit_of_assignment(assignment)))
    for expected in students:
        sections: dict[str, str] = {}
        for name in (expected.starts_from, expected.student):
            path = data / f"{name}.py"
            sections |= dict(read_sections(path)) if name and path.exists() else {}
        text = canonical(answered(parse_notebook(released.encode()), sections))
        if expected.damaged:
            text = text[: len(text) // 2]
        write_whole(folder / expected.student / assignment / f"{assignment}.ipynb", text)


def read_sections(path: Path) -> Iterator[tuple[str, str]]:
    """The (name, source) of each cell in a file of `# %% name` sections."""
    _, *sections = ("\n" + path.read_text(encoding="utf-8")).split("\n# %% ")
    for section in sections:
        name, _, source = section.partition("\n")
        yield name.strip(), source.strip()


def answered(notebook: Node, sections: Mapping[str, str]) -> Node:
    """The notebook with each named cell's source replaced; an unknown name is an own cell.

    An empty section leaves the cell as it was given out. An own cell stands before the first
    solution cell.
    """
    known = {cell.id: cell for cell in notebook.cells}
    first = min(i for i, cell in enumerate(notebook.cells) if cell.id.startswith("solution-"))
    for name, source in sections.items():
        if name in known:
            known[name].source = source or known[name].source
        else:
            own = Node(cell_type="code", id=name, metadata=Node(), source=source)
            notebook.cells.insert(first, own)
    return notebook


def differences(expected: Expected, result: Result) -> list[str]:
    """Where a result is not as expected, a few words each; [] if it is."""
    got = {} if result.score is None else {v.exercise: v.score for v in result.exercises}
    found = [] if result.status == expected.status else [f"{result.status}: {result.reason}"]
    for exercise in sorted({*got, *expected.points}):
        if got.get(exercise) != expected.points.get(exercise):
            due = expected.points.get(exercise)
            found.append(f"{exercise}: {got.get(exercise)}, expected {due}")
    return found


def n_unexpected(students: Sequence[Expected], results: Sequence[Result]) -> int:
    """How many verdicts are not as expected."""
    by_student = {result.student: result for result in results}
    return sum(bool(differences(expected, by_student[expected.student])) for expected in students)


def demo_table(students: Sequence[Expected], results: Sequence[Result]) -> Table:
    """Each student's verdict beside the expected one, and whether they are the same."""
    by_student = {result.student: result for result in results}
    table = Table(box=SIMPLE, pad_edge=False, padding=0)
    for name in ("student", "expected", "got"):
        table.add_column(name, no_wrap=True)
    # Each heading is one short word, so that a narrow terminal breaks the text below and not it.
    table.add_column("same", min_width=len("same"))
    table.add_column("about")
    for expected in students:
        result = by_student[expected.student]
        score = "" if result.score is None else str(result.score)
        wrong = "; ".join(differences(expected, result))
        row = (
            expected.student,
            f"{expected.status} {expected.total}".rstrip(),
            f"{result.status} {score}".rstrip(),
            f"NO: {wrong}" if wrong else "yes",
            f"{expected.what}: {expected.because}",
        )
        table.add_row(*map(Text, row))
    return table
