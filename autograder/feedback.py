"""What a student reads: one HTML page, rendered from the recorded result and nothing else."""

import re
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from autograder.exercise import EVIDENCE
from autograder.results import Result, write_whole

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


def render(result: Result) -> str:
    """The page; only its element with id "run" depends on the run it was made in."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["code"] = _code
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        result=result,
        run=_run_lines(result),
        evidence=_evidence(result),
        words=_words,
        colour=_colour,
    )


def feedback_path(out: Path, assignment: str, student: str) -> Path:
    """Where a student's page lies under the output folder."""
    return out / "feedback" / student / f"{assignment}.html"


def write_feedback(out: Path, result: Result) -> Path:
    """Renders and writes the page of one result."""
    path = feedback_path(out, result.assignment, result.student)
    write_whole(path, render(result))
    return path


def _words(status: str) -> str:
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
    run = result.run
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return [
        ("Graded", run["graded_at"]),
        ("Took", f"{run['seconds']:.2f} s, {run['jobs']} at a time"),
        ("Walls around your code", run["walls"]),
        ("Class secret", f"{run['secret']} (a hash of it), round {run['round']}"),
        ("Versions", versions),
        ("Key", run["key"]),
    ]
