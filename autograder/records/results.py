"""The record: one JSON file per submission, written whole or not at all, and the list of grades.

Everything that belongs to one run (when, how long, under which secret, behind which walls) stands
in the `run` block; the rest of a result depends only on what its `hashes` name, and on the secret.
"""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from autograder.gradebook.marks import NO_MARKS, NONE_GIVEN, AllMarks, totals
from autograder.judge import GRADED as GRADED
from autograder.judge import INFRASTRUCTURE as INFRASTRUCTURE
from autograder.judge import UNREADABLE as UNREADABLE
from autograder.judge import GroupVerdict, Verdict
from autograder.records.journal import verdict_of, verdict_tree
from autograder.sandbox import UNSAFE, is_bare

GRADES_HEADER = (
    "assignment",
    "student_id",
    "score",
    "max_score",
    "manual_max",
    "manual",
    "late_penalty",
    "total",
    "to_grade",
    "status",
    "reason",
    "walls",
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


class Result(NamedTuple):
    """What is recorded of one submission; `score` is None unless it was graded, never 0 instead.

    `manual_points` are those of written answers: a person gives them, outside `max_score`.
    `hashes` name the contents it depends on: submission, checks, package, environment.
    """

    assignment: str
    student: str
    hashes: dict[str, str]
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
        tree = self._asdict() | {"exercises": [verdict_tree(v) for v in self.exercises]}
        return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def loads(text: str) -> Result:
    """The result in a JSON text; ValueError or TypeError if it is none of this version."""
    tree = json.loads(text)
    return Result(**tree | {"exercises": [verdict_of(verdict) for verdict in tree["exercises"]]})


def result_path(out: Path, assignment: str, student: str) -> Path:
    """Where a submission's result lies under the output folder."""
    return out / "results" / assignment / f"{student}.json"


def read_result(path: Path) -> Result | None:
    """The recorded result, None where there is none that this version can read."""
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_whole(path: Path, text: str, lasting: bool = True) -> None:
    """Writes a file completely or leaves what was there; makes its folder.

    `lasting=False` leaves it to the system when it reaches the disk: for what can be made again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if lasting:
                os.fsync(file.fileno())  # a full disk must show before the old file is replaced
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_again(path: Path, text: str) -> None:
    """Writes a file that can be made again, unless it is there as it is to be."""
    if not path.is_file() or path.read_bytes() != text.encode():
        write_whole(path, text, lasting=False)


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
    """Every recorded result that can be read, by assignment and student."""
    return (result for _, result in _recorded(out) if result is not None)


def damaged_results(out: Path) -> list[Path]:
    """The files among the results that are none which this version wrote."""
    return [path for path, result in _recorded(out) if result is None]


def _recorded(out: Path) -> Iterator[tuple[Path, Result | None]]:
    """Each file of a result and what is in it, by assignment and student."""
    for path in sorted((out / "results").glob("*/*.json")):
        yield path, read_result(path)


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


def write_grades(out: Path, marks: AllMarks = NONE_GIVEN) -> Path:
    """Writes `grades.csv` from all results; what was not graded has an empty score and total.

    So has a student whose result is damaged, and no other number either.
    `marks` are what people gave: `manual` is what they changed and added, so that
    `total = score + manual - late_penalty`, at least 0; `to_grade` are the points that wait for
    a person.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(GRADES_HEADER)
    for file, result in _recorded(out):
        if result is None:
            who = map(_harmless, (file.parent.name, file.stem))
            said = f"Not graded: the file of the result is damaged ({file.name})."
            writer.writerow([*who, *[""] * 7, INFRASTRUCTURE, said, ""])
            continue
        score = "" if result.score is None else result.score
        who = map(_harmless, (result.assignment, result.student))
        numbers = (score, result.max_score, f"{result.manual_points:g}", *_by_hand(result, marks))
        why = map(_harmless, (result.status, lost_points(result), walls(result)))
        writer.writerow([*who, *numbers, *why])
    path = out / "grades.csv"
    write_whole(path, lines.getvalue())
    return path


def walls(result: Result) -> str:
    """What a student's code ran behind, "unsafe" where that was nothing."""
    said = str(result.run["walls"])
    return UNSAFE if is_bare(said) else said.partition(":")[0]


def _by_hand(result: Result, marks: AllMarks) -> list[str]:
    """The cells manual, late_penalty, total and to_grade of a result's row."""
    given = marks.get((result.assignment, result.student), NO_MARKS)
    sums = totals(result, given)
    if all(mark.manual is None and not mark.extra for mark in given.cells.values()):
        manual = ""
    else:
        exercises = (sums.exercises or 0.0) - (result.score or 0)
        manual = f"{exercises + sums.written + sums.extra:g}"
    total = "" if sums.total is None else f"{sums.total:g}"
    penalty = f"{sums.late_penalty:g}" if sums.late_penalty else ""
    return [manual, penalty, total, f"{sums.to_grade:g}"]


def _harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
