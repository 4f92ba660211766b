"""The record: one JSON file per submission, written whole or not at all, and the list of grades.

Everything that belongs to one run (when, how long, under which secret, behind which walls) stands
in the `run` block; the rest of a result depends only on the submission and the checks.
"""

import csv
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from autograder.judge import GroupVerdict, Verdict
from mpedu.faults import Failure

GRADED, UNREADABLE, INFRASTRUCTURE = "graded", "unreadable", "infrastructure"
GRADES_HEADER = (
    "assignment",
    "student_id",
    "score",
    "max_score",
    "manual_max",
    "status",
    "reason",
)

_SYNTAX = re.compile(r"\b(Syntax|Indentation|Tab)Error\b")
_TOO_MANY = re.compile(r"BlockingIOError|more processes")
# In the words of the person who grades; every other diagnosis is a wrong answer.
_WHY = {
    "unwritten": "not written",
    "missing": "not defined",
    "withheld": "calls the course's own version",
    "raised": "raises an error",
    "not_plain": "returns no plain data",
    "timeout": "too slow",
    "out_of_memory": "too much memory",
    "crashed": "ended its process",
}
_VERSIONS_OF = ("numpy", "msgpack", "torch")


class ResultError(Failure):
    """A file among the results is none, in one sentence with the way out."""


class Result(NamedTuple):
    """What is recorded of one submission; `score` is None unless it was graded, never 0 instead.

    `manual_points` are those of written answers: a person gives them, outside `max_score`.
    """

    assignment: str
    student: str
    sha256: str
    status: str
    reason: str
    score: int | None
    max_score: int
    manual_points: float
    exercises: list[Verdict]
    cell_errors: list[str]
    notes: list[str]
    run: dict[str, Any]

    def dumps(self) -> str:
        """The result as JSON; addresses in messages, which change from run to run, are blotted."""
        tree = self._asdict() | {"exercises": [_verdict_tree(v) for v in self.exercises]}
        return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def _verdict_tree(verdict: Verdict) -> dict[str, Any]:
    return verdict._asdict() | {"groups": [group._asdict() for group in verdict.groups]}


def loads(text: str) -> Result:
    """The result in a JSON text; ValueError or TypeError if it is none of this version."""
    tree = json.loads(text)
    tree["exercises"] = [
        Verdict(**verdict | {"groups": [GroupVerdict(**group) for group in verdict["groups"]]})
        for verdict in tree["exercises"]
    ]
    return Result(**tree)


def result_path(out: Path, assignment: str, student: str) -> Path:
    """Where a submission's result lies under the output folder."""
    return out / "results" / assignment / f"{student}.json"


def read_result(path: Path) -> Result | None:
    """The recorded result, None where there is none that this version can read."""
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_whole(path: Path, text: str) -> None:
    """Writes a file completely or leaves what was there; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a full disk must show before the old file is replaced
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def ensure_writable(*folders: Path) -> None:
    """Nothing if files can be made in all these folders, made or not yet; else ValueError."""
    for folder in folders:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        probe = folder / f".writable.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
            for made in missing:
                made.rmdir()
        except OSError as error:
            file = next((p for p in (folder, *folder.parents) if p.exists() and not p.is_dir()), "")
            remedy = f"({file} is a file); remove it or" if file else f"({error.strerror});"
            raise ValueError(
                f"{folder} cannot be written {remedy} name another folder with --out."
            ) from None


def all_results(out: Path) -> Iterator[Result]:
    """Every recorded result, by assignment and student; ResultError for a file that is none."""
    for path in sorted((out / "results").glob("*/*.json")):
        result = read_result(path)
        if result is None:
            raise ResultError(
                f"{path} is not a result this version wrote; delete it and grade again."
            )
        yield result


def lost_points(result: Result) -> str:
    """Why points were lost, like "too slow: bubble; wrong: gpipe"; the reason if not graded."""
    if result.score is None:
        return result.reason
    found: dict[str, dict[str, None]] = {}
    for verdict in result.exercises:
        for group in verdict.groups:
            if group.diagnosis:
                why = _why(group, verdict.exercise, result)
                found.setdefault(why, {})[verdict.exercise] = None
    return "; ".join(f"{why}: {', '.join(exercises)}" for why, exercises in sorted(found.items()))


def _why(group: GroupVerdict, exercise: str, result: Result) -> str:
    why = _WHY.get(group.diagnosis, "wrong")
    if group.diagnosis == "raised" and _TOO_MANY.search(group.message):
        return "too many processes"
    if group.diagnosis != "missing":
        return why
    cell = re.compile(rf"\b{re.escape(exercise)}\b")
    errors = [group.message, *(text for text in result.cell_errors if cell.search(text))]
    if any(_SYNTAX.search(text) for text in errors):
        return "syntax error"
    gone = any("missing" in note and cell.search(note) for note in result.notes)
    return "cell missing" if gone else why


def write_grades(out: Path) -> Path:
    """Writes `grades.csv` from all results; what was not graded has an empty score."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(GRADES_HEADER)
    for result in all_results(out):
        score = "" if result.score is None else result.score
        row = (result.assignment, result.student, score, result.max_score)
        more = (f"{result.manual_points:g}", result.status, lost_points(result))
        writer.writerow([_harmless(value) for value in (*row, *more)])
    path = out / "grades.csv"
    write_whole(path, lines.getvalue())
    return path


def _harmless(value: object) -> str:
    """A cell that no spreadsheet takes for a formula."""
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def fingerprint(root: Path, notebook: Path) -> str:
    """A hash of all that decides a verdict besides the submission: our code, notebook, versions."""
    digest = hashlib.sha256()
    sources = [
        *(root / "autograder").rglob("*.py"),
        *(root / "autograder").glob("*.html"),
        *(root / "mpedu").rglob("*.py"),
        notebook,
    ]
    for path in sorted(sources):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)} {content}\n".encode())
    digest.update(json.dumps(versions()).encode())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """The versions that a verdict was made with."""
    found = {name: importlib.metadata.version(name) for name in _VERSIONS_OF}
    return {"python": platform.python_version(), **found}


def short_hash(text: str | bytes) -> str:
    """Sixteen hex digits that name a text (a class secret, say) without telling it."""
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:16]
