"""How a submission of the corpus is made and what is required of its result."""

import ast
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from autograder.bank.unit_01 import RIGHT as RIGHT_01
from autograder.bank.unit_02 import RIGHT as RIGHT_02
from autograder.demo import DATA, answered, read_sections
from autograder.exercise import Unit
from autograder.grader import source_notebook, unit_of_assignment
from autograder.records.results import GRADED
from autograder.release import student_notebook
from autograder.submissions.cells import Node, canonical, parse_notebook

# In a notebook, stands for the folder of the class: a student may know where it is graded.
CLASS = "THE-FOLDER-OF-THE-CLASS"
FAMILIES = ("honest", "damaged", "resource", "attack")


class Due(NamedTuple):
    """What the issue asks of a result, whatever the grader does today.

    `points` and `statuses` of exercises that do not get full points, by id; an exercise of 0 points
    has failed unless said otherwise, one in between is partial. `reason`: a part of the sentence
    why it was not graded. `notes`: what was repaired must be told.
    """

    status: str = GRADED
    points: Mapping[str, int] = {}
    statuses: Mapping[str, str] = {}
    reason: str = ""
    notes: bool = False


class Submission(NamedTuple):
    """One student of the corpus.

    `write(folder)` puts into the class's folder what `name` handed in. `unwalled`: whether the
    attack earns points where there are no walls; None for what must not run there, as it could
    damage the machine.
    """

    name: str
    what: str
    family: str
    assignment: str
    write: Callable[[Path], object]
    due: Due = Due()
    unwalled: bool | None = False


@cache
def unit(number: str) -> Unit:
    """The unit of that number."""
    return unit_of_assignment(number)


@cache
def _released_text(number: str) -> str:
    return student_notebook(source_notebook(unit(number)))


def released(number: str) -> Node:
    """The unit's notebook as it is given out."""
    return parse_notebook(_released_text(number).encode())


def right(number: str) -> Node:
    """The unit's notebook with a right answer in every solution cell."""
    if number == "03":
        return answered(released(number), dict(read_sections(DATA / "student-01.py")))
    return placed(released(number), {"01": RIGHT_01, "02": RIGHT_02}[number][0].source)


def placed(notebook: Node, source: str) -> Node:
    """The notebook with each function of `source` in the solution cell that asks for it.

    All else of the source stands in a cell of the student's own before them.
    """
    cell_of: dict[str, str] = {}
    for cell in solutions(notebook):
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef):
                cell_of[node.name] = cell.id
    sections: dict[str, str] = {"own": ""}
    for node in ast.parse(source).body:
        name = getattr(node, "name", "")
        first = min([node, *getattr(node, "decorator_list", [])], key=lambda one: one.lineno).lineno
        text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
        key = cell_of.get(name, "own")
        sections[key] = f"{sections.get(key, '')}\n\n{text}".strip()
    return answered(notebook, sections)


def solutions(notebook: Node) -> list[Node]:
    """The notebook's solution cells."""
    return [cell for cell in notebook.cells if cell.get("id", "").startswith("solution-")]


def cell(source: str, id: str = "own", kind: str = "code") -> Node:
    """A cell of the student's own."""
    return Node(cell_type=kind, id=id, metadata=Node(), source=textwrap.dedent(source).strip())


def first_solution(notebook: Node) -> int:
    """Where the first solution cell stands."""
    return notebook.cells.index(solutions(notebook)[0])


def with_cells(notebook: Node, first: str = "", last: str = "") -> Node:
    """The notebook with a cell before its first solution, and one as its last."""
    if first:
        place = first_solution(notebook)
        notebook.cells.insert(place, cell(first, f"own-{place}"))
    if last:
        notebook.cells.append(cell(last, "own-last"))
    return notebook


def changed(sections: Mapping[str, str], number: str = "03") -> Node:
    """The right notebook with other sources in the cells of those ids; an unknown id is a new one.

    Any source may be indented as a whole.
    """
    sources = {name: textwrap.dedent(text).strip() for name, text in sections.items()}
    return answered(right(number), sources)


def at(folder: Path, name: str, assignment: str, file: str = "") -> Path:
    """Where a student's file lies in a class's folder; makes the folder around it."""
    place = folder / name / assignment
    place.mkdir(parents=True, exist_ok=True)
    return place / (file or f"{assignment}.ipynb")


def text_of(notebook: Node) -> str:
    """The notebook's text as it is committed."""
    return canonical(notebook)


def made(
    family: str,
    name: str,
    what: str,
    make: Callable[[], Node | str | bytes],
    number: str = "03",
    file: str = "",
    due: Due | None = None,
    unwalled: bool | None = False,
    **due_in_words: object,
) -> Submission:
    """A student who hands in one file: a notebook, or the text or bytes of whatever it is.

    `due_in_words` are the fields of `Due`.
    """
    assignment = unit(number).assignment

    def write(folder: Path) -> None:
        given = make()
        data = text_of(given) if isinstance(given, Node) else given
        data = data.encode() if isinstance(data, str) else data
        data = data.replace(CLASS.encode(), json.dumps(str(folder.resolve()))[1:-1].encode())
        at(folder, name, assignment, file).write_bytes(data)

    needed = due or Due(**due_in_words)  # type: ignore[arg-type]
    return Submission(name, what, family, assignment, write, needed, unwalled)


def points_of(number: str) -> dict[str, int]:
    """Full points by exercise."""
    return {exercise.id: exercise.points for exercise in unit(number).exercises}


def due_verdicts(submission: Submission) -> dict[str, tuple[str, int]]:
    """Status and points due for each exercise; {} where nothing is graded."""
    due = submission.due
    if due.status != GRADED:
        return {}
    wanted = {}
    for exercise, full in points_of(submission.assignment).items():
        score = due.points.get(exercise, full)
        usual = "passed" if score == full else "partial" if score else "failed"
        if full == 0 and exercise in due.points:
            usual = "failed"
        wanted[exercise] = (due.statuses.get(exercise, usual), score)
    return wanted


def nothing_for(number: str, *exercises: str, but: Sequence[str] = ()) -> dict[str, int]:
    """No points for these exercises (all if none is named), or for all but some."""
    names = exercises or [name for name in points_of(number) if name not in but]
    return dict.fromkeys(names, 0)
