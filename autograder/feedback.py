"""What a student reads: one HTML page, from the recorded result and what a person gave."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from autograder.exercise import EVIDENCE
from autograder.gradebook.marks import CHECK, NO_MARKS, AllMarks, Marks, totals, written_marks
from autograder.grader import source_notebook, unit_of_assignment
from autograder.records.results import Result, write_again
from autograder.submissions.cells import grade_id, read_notebook, role

_TEMPLATE = Path(__file__).with_name("feedback.html")
_WORDS = {
    "passed": "Right",
    "partial": "Partly right",
    "failed": "Not right yet",
    "unwritten": "Not written yet",
    "timeout": "Did not finish in time",
    "out_of_memory": "Asked for more memory than there is",
    "crashed": "The process ended before it answered",
    "infrastructure": "Not graded: the grader failed",
}


def render(result: Result, marks: Marks = NO_MARKS) -> str:
    """The page; only its element with id "run" depends on the run it was made in."""
    comments = _comments(result, marks)
    shown = {verdict.exercise for verdict in result.exercises} | set(written_marks(marks))
    return _template().render(
        result=result,
        marks={name.removeprefix(CHECK): mark for name, mark in marks.cells.items()},
        written=written_marks(marks),
        comments=comments,
        elsewhere=[
            text for place, found in comments.items() if place not in shown for text in found
        ],
        sums=totals(result, marks),
        run=_run_lines(result),
        evidence=_evidence(result),
        words=words,
        colour=_colour,
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["code"] = _code
    environment.filters["topic"] = _topic
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))


def _topic(written: str) -> str:
    """What the grade id of a written answer says it is about."""
    return written.removeprefix("written-").replace("-", " ")


def _comments(result: Result, marks: Marks) -> dict[str, list[str]]:
    """A person's comments by exercise, or by the grade id of the cell where it is of none."""
    found: dict[str, list[str]] = {}
    places = _places(result.assignment) if marks.comments else {}
    for name, text in marks.comments.items():
        found.setdefault(places.get(name, name), []).append(text)
    return found


@cache
def _places(assignment: str) -> dict[str, str]:
    """The exercise that a cell is for, by its grade id: the next one that is checked."""
    try:
        notebook = read_notebook(source_notebook(unit_of_assignment(assignment)))
    except ValueError:  # a unit that the course has no more
        return {}
    places: dict[str, str] = {}
    waiting: list[str] = []
    for cell in notebook.cells:
        if role(cell) == "solution":
            waiting.append(grade_id(cell))
        elif role(cell) == "graded":
            exercise = grade_id(cell).removeprefix(CHECK)
            places |= dict.fromkeys(waiting, exercise)
            waiting = []
    return places


def feedback_path(out: Path, assignment: str, student: str) -> Path:
    """Where a student's page lies under the output folder."""
    return out / "feedback" / student / f"{assignment}.html"


def write_feedback(out: Path, result: Result, marks: Marks = NO_MARKS) -> Path:
    """Renders and writes the page of one result, unless it is there as it is to be."""
    path = feedback_path(out, result.assignment, result.student)
    write_again(path, render(result, marks))
    return path


def write_pages(out: Path, results: Iterable[Result], marks: AllMarks) -> None:
    """The pages of results, with what people gave."""
    for result in results:
        write_feedback(out, result, marks.get((result.assignment, result.student), NO_MARKS))


def words(status: str) -> str:
    """A status in the words of a page."""
    return _WORDS.get(status, status)


def _colour(status: str) -> str:
    return status if status in ("passed", "partial") else "lost"


def _code(text: str) -> Markup:
    """The text as HTML, what stands between backticks as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def _evidence(result: Result) -> list[tuple[str, str, str]]:
    """What the points rest on: each kind, its meaning, and the exercises ("" where it is all)."""
    titles: dict[str, list[str]] = {}
    for verdict in result.exercises:
        titles.setdefault(verdict.evidence, []).append(verdict.title)
    return [
        (kind, EVIDENCE[kind], "; ".join(found) if len(titles) > 1 else "")
        for kind, found in titles.items()
    ]


def _run_lines(result: Result) -> list[tuple[str, str]]:
    # No times: code that sleeps by what it is asked would tell its author of secret cases.
    run = result.run
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return [
        ("Graded", run["graded_at"]),
        ("Walls around your code", run["walls"]),
        ("Class secret", f"{run['secret']} (a hash of it), round {run['round']}"),
        ("Versions", versions),
        ("Hashes", ", ".join(f"{name} {value}" for name, value in result.hashes.items())),
    ]
