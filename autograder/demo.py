"""A class of ten, built from data, graded for real, each verdict beside the expected one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from autograder.grader import ROOT, source_notebook, unit_of_assignment
from autograder.records.results import Result, write_whole
from autograder.release import student_notebook
from autograder.submissions.cells import Node, canonical, parse_notebook

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
    """Each student's verdict beside the expected one."""
    by_student = {result.student: result for result in results}
    table = Table(box=SIMPLE, pad_edge=False, padding=0)
    for name in ("student", "expected", "got"):
        table.add_column(name, no_wrap=True)
    table.add_column("as\nexpected")
    table.add_column("what it is, and why")
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
