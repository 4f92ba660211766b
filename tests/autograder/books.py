"""A course's gradebook, for tests: filled by us, read and changed as nbgrader does."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import made_results as made
from nbgrader.api import Gradebook

from autograder.gradebook.book import Book, default_url
from autograder.gradebook.by_hand import manual_grades
from autograder.gradebook.fill import Handed, fill
from autograder.gradebook.marks import Marks
from autograder.gradebook.nbgrader_settings import late_penalty, read_settings
from autograder.grader import source_notebook, unit_of_assignment
from autograder.records.results import Result
from autograder.release import nbgrader_folder, student_notebook
from autograder.submissions.cells import parse_notebook

A = "03-gpipe"
UNIT = unit_of_assignment(A)
RELEASED = student_notebook(source_notebook(UNIT))
MASTER = parse_notebook(RELEASED.encode())
WRITTEN = "written-why-slower"
KEY = (A, "ann")
DUE = datetime(2030, 5, 1, 12)


def scored(student: str = "ann", **scores: int) -> Result:
    """A graded result with these points by exercise, full ones for the others."""
    verdicts = [
        made.verdict()._replace(
            exercise=ex.id, score=scores.get(ex.id, ex.points), points=ex.points, groups=[]
        )
        for ex in UNIT.exercises
    ]
    total, most = (sum(getattr(v, name) for v in verdicts) for name in ("score", "points"))
    changes = {"score": total, "max_score": most, "manual_points": 4.0, "exercises": verdicts}
    return made.result(student=student, **changes)


class Home:
    """A course's gradebook, written by us and read as nbgrader does."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = nbgrader_folder(out)
        self.url = default_url(self.folder)
        self.file = self.folder / "gradebook.db"

    def fill(self, *results: Result, wait_s: float = 60.0, **handed: Handed) -> None:
        """Puts results there; `handed` by student, an empty one for the others."""
        by_key = {(A, r.student): handed.get(r.student, Handed()) for r in results}
        book = Book(self.url, wait_s)
        fill(book, {A: MASTER}, results, by_key, late_penalty(read_settings(self.folder)))

    def marks(self, student: str = "ann") -> Marks:
        book = Book(self.url)
        found = manual_grades(book)
        return found[A, student]

    def ask(self, use: Callable[[Gradebook], Any]) -> Any:
        """What nbgrader's own interface gives."""
        with Gradebook(self.url, "mpedu") as gradebook:
            return use(gradebook)

    def grade(self, cell: str, student: str = "ann") -> Mapping[str, Any]:
        found: dict[str, Any] = self.ask(lambda g: g.find_grade(cell, A, A, student).to_dict())
        return found

    def by_hand(self, cell: str, **values: object) -> None:
        """What formgrader does when a person gives points."""

        def give(gradebook: Gradebook) -> None:
            grade = gradebook.find_grade(cell, A, A, "ann")
            for name, value in {"needs_manual_grade": False, **values}.items():
                setattr(grade, name, value)
            gradebook.db.commit()

        self.ask(give)

    def comment(self, cell: str, text: str) -> None:
        def give(gradebook: Gradebook) -> None:
            gradebook.find_comment(cell, A, A, "ann").manual_comment = text
            gradebook.db.commit()

        self.ask(give)

    def rows(self) -> list[str]:
        """All that the database says, without the ids that differ from run to run."""
        tables = {
            "grade": "auto_score, manual_score, extra_credit, needs_manual_grade",
            "comment": "auto_comment, manual_comment",
            "submitted_assignment": "student_id, timestamp, extension",
            "source_cell": "name, cell_type, locked, source, checksum",
            "base_cell": "name, type",
        }
        with contextlib.closing(sqlite3.connect(self.file)) as db:
            found = [db.execute(f"SELECT {of} FROM {name}") for name, of in tables.items()]
            said = [repr(sorted(map(repr, rows.fetchall()))) for rows in found]
        return said
