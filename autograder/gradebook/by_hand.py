"""What people put into nbgrader's gradebook, read back."""

from typing import Any

from nbgrader import api  # type: ignore[import-untyped]
from sqlalchemy import select

from autograder.gradebook.book import Book
from autograder.gradebook.marks import AllMarks, Key, Mark, Marks


def manual_grades(book: Book) -> AllMarks:
    """What the gradebook holds, by (assignment, student); {} where there is no gradebook."""
    a, s, n, g, c = (
        api.Assignment,
        api.SubmittedAssignment,
        api.SubmittedNotebook,
        api.Grade,
        api.Comment,
    )
    key = (a.name.label("assignment"), s.student_id)
    penalties = select(*key, n.late_submission_penalty).select_from(n)
    penalties = penalties.join(s, s.id == n.assignment_id).join(a, a.id == s.assignment_id)
    cell = (*key, api.BaseCell.name.label("cell"))
    scores = select(*cell, g.max_score.label("points"), g.auto_score, g.manual_score)
    comments = select(*cell, c.manual_comment).select_from(c).where(c.manual_comment != "")
    cells: dict[Key, dict[str, Mark]] = {}
    scores = scores.add_columns(g.extra_credit, g.needs_manual_grade).select_from(g)
    for row in book.read(_joined(scores, g)):
        again = row.manual_score is not None and bool(row.needs_manual_grade)
        mark = Mark(row.points, row.auto_score, row.manual_score, row.extra_credit, again)
        cells.setdefault((row.assignment, row.student_id), {})[row.cell] = mark
    said: dict[Key, dict[str, str]] = {}
    for row in book.read(_joined(comments, c)):
        said.setdefault((row.assignment, row.student_id), {})[row.cell] = row.manual_comment
    return {
        (who := (row.assignment, row.student_id)): Marks(
            cells.get(who, {}), said.get(who, {}), row.late_submission_penalty or 0.0
        )
        for row in book.read(penalties)
    }


def _joined(query: Any, rows: Any) -> Any:
    """The query with the tables that name a row of `rows`: cell, submission, assignment."""
    n, s, a = api.SubmittedNotebook, api.SubmittedAssignment, api.Assignment
    query = query.join(api.BaseCell, api.BaseCell.id == rows.cell_id)
    query = query.join(n, n.id == rows.notebook_id).join(s, s.id == n.assignment_id)
    return query.join(a, a.id == s.assignment_id)
