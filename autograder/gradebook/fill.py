"""nbgrader's gradebook: our results put into it, what a person put into it read back.

Results own `auto_score`, the time of submission and which cells wait for a person. The gradebook
owns manual scores, extra credit, comments, due dates, extensions and names: nothing here changes or
deletes them. One writer, few transactions, so that it may run while formgrader is open.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from nbgrader import api  # type: ignore[import-untyped]
from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from autograder.gradebook.book import Book
from autograder.gradebook.book_cells import save_cells
from autograder.gradebook.marks import CHECK, Key
from autograder.gradebook.nbgrader_settings import Penalty
from autograder.records.results import Result
from autograder.submissions.cells import Node

_AT_ONCE = 300  # submissions in one transaction


class Handed(NamedTuple):
    """What the gradebook holds of a submission besides its verdicts.

    `time` is in UTC without a zone, None where it is not known; `blank` are the grade ids of the
    cells left as given out; `unanswered` those of written answers that stand nowhere else either;
    `changed` says whether the file is another than the one put into the gradebook last, `stamped`
    whether `time` is certain.
    """

    time: datetime | None = None
    blank: frozenset[str] = frozenset()
    unanswered: frozenset[str] = frozenset()
    changed: bool = False
    stamped: bool = False


def fill(
    book: Book,
    masters: Mapping[str, Node],
    results: Sequence[Result],
    handed: Mapping[Key, Handed],
    penalty: Penalty,
) -> None:
    """Puts results into the gradebook, as often as you like; BookError if it cannot be written.

    `masters` are the notebooks given out, by assignment. What was not graded has no score there and
    waits for a person. Of a submission that `handed` lacks, only the verdicts are put in.
    """
    book.ensure()
    for assignment, master in masters.items():
        mine = [result for result in results if result.assignment == assignment]
        notebook_id = book.write(partial(save_cells, assignment=assignment, master=master))
        for start in range(0, len(mine), _AT_ONCE):
            part = _Part(notebook_id, mine[start : start + _AT_ONCE], handed, penalty)
            book.write(part.fill)


class _Part:
    """Some results of one assignment on their way into the gradebook."""

    session: Session
    notebook: Any

    def __init__(
        self,
        notebook_id: str,
        results: Sequence[Result],
        handed: Mapping[Key, Handed],
        penalty: Penalty,
    ) -> None:
        self.notebook_id = notebook_id
        self.results = {result.student: result for result in results}
        known = {result.student: (result.assignment, result.student) for result in results}
        self.handed = {student: handed[key] for student, key in known.items() if key in handed}
        self.penalty = penalty

    def fill(self, session: Session) -> None:
        """Writes all of it within the transaction of the session."""
        self.session = session
        self.notebook = session.get(api.Notebook, self.notebook_id)
        self._add_students()
        self._add_submissions()
        self._set_times()
        ids = self._notebooks()
        self._set_grades(ids)
        self._set_comments(ids)
        self._set_penalties(ids)

    def _add_students(self) -> None:
        there = set(self.session.scalars(select(api.Student.id)))
        self._insert(api.Student, [{"id": s} for s in self.results if s not in there])

    def _insert(self, table: Any, rows: list[dict[str, Any]]) -> None:
        if rows:
            self.session.execute(insert(table), rows)

    def _update(self, table: Any, rows: list[dict[str, Any]]) -> None:
        if rows:
            self.session.execute(update(table), rows)

    def _submissions(self) -> dict[str, Any]:
        """This assignment's submissions by student: id, timestamp, extension."""
        s = api.SubmittedAssignment
        query = select(s.student_id, s.id, s.timestamp, s.extension)
        rows = self.session.execute(query.where(s.assignment_id == self.notebook.assignment_id))
        return {row.student_id: row for row in rows if row.student_id in self.results}

    def _notebooks(self) -> dict[str, str]:
        """The student of each submitted notebook of this assignment, by its id."""
        n, s = api.SubmittedNotebook, api.SubmittedAssignment
        query = select(n.id, s.student_id).join(s, s.id == n.assignment_id)
        rows = self.session.execute(query.where(n.notebook_id == self.notebook.id))
        return {row.id: row.student_id for row in rows if row.student_id in self.results}

    def _add_submissions(self) -> None:
        there = self._submissions()
        new = [{"student_id": student} for student in self.results if student not in there]
        made = {"assignment_id": self.notebook.assignment_id}
        self._insert(api.SubmittedAssignment, [row | made for row in new])
        having = set(self._notebooks().values())
        mine = {"notebook_id": self.notebook.id}
        rows = [
            mine | {"assignment_id": row.id, "flagged": False}
            for student, row in self._submissions().items()
            if student not in having
        ]
        self._insert(api.SubmittedNotebook, rows)

    def _set_times(self) -> None:
        rows = [
            {"id": row.id, "timestamp": self.handed[student].time}
            for student, row in self._submissions().items()
            if student in self.handed and self._has_new_time(self.handed[student], row.timestamp)
        ]
        self._update(api.SubmittedAssignment, rows)

    @staticmethod
    def _has_new_time(handed: Handed, known: datetime | None) -> bool:
        """Whether to change the time: not for a file that is only a copy of the one before."""
        if handed.time in (None, known):
            return False
        return known is None or handed.changed or handed.stamped

    def _cells(self, kinds: tuple[Any, ...]) -> dict[str, str]:
        """The names of the notebook's cells of some kinds, by id."""
        cell = api.BaseCell
        named = [kind.__mapper_args__["polymorphic_identity"] for kind in kinds]
        its = (cell.notebook_id == self.notebook.id, cell.type.in_(named))
        return self._pairs(select(cell.id, cell.name).where(*its))

    def _auto_score(self, name: str, student: str, before: float | None) -> float | None:
        """The points that our results give a cell; None for what a person is to grade."""
        result = self.results[student]
        if not name.startswith(CHECK):
            if student not in self.handed:
                return before
            return 0.0 if name in self.handed[student].unanswered else None
        if result.score is None:
            return None
        found = [v.score for v in result.exercises if CHECK + v.exercise == name]
        return float(found[0]) if found else None

    def _set_grades(self, ids: Mapping[str, str]) -> None:
        g = api.Grade
        query = select(g.id, g.notebook_id, g.cell_id, g.auto_score, g.manual_score)
        rows = self.session.execute(query.where(g.notebook_id.in_(ids)))
        there = {(row.notebook_id, row.cell_id): row for row in rows}
        new, changed = [], []
        for cell_id, name in self._cells((api.GradeCell, api.TaskCell)).items():
            for notebook_id, student in ids.items():
                row = there.get((notebook_id, cell_id))
                auto = self._auto_score(name, student, row and row.auto_score)
                values = {"auto_score": auto, "needs_manual_grade": auto is None}
                if row is None:
                    new.append(values | {"notebook_id": notebook_id, "cell_id": cell_id})
                elif row.auto_score != auto or self._changed(student):
                    # what a person gave counts on, and is to be looked at again
                    again = auto is None or row.manual_score is not None
                    changed.append(values | {"id": row.id, "needs_manual_grade": again})
        self._insert(api.Grade, new)
        self._update(api.Grade, changed)

    def _changed(self, student: str) -> bool:
        return student in self.handed and self.handed[student].changed

    def _set_comments(self, ids: Mapping[str, str]) -> None:
        c = api.Comment
        query = select(c.id, c.notebook_id, c.cell_id, c.auto_comment)
        rows = self.session.execute(query.where(c.notebook_id.in_(ids)))
        there = {(row.notebook_id, row.cell_id): row for row in rows}
        new, changed = [], []
        for cell_id, name in self._cells((api.SolutionCell, api.TaskCell)).items():
            for notebook_id, student in ids.items():
                if student not in self.handed:
                    continue
                blank = name in self.handed[student].blank
                said = {"auto_comment": "No response." if blank else None}  # nbgrader's words
                row = there.get((notebook_id, cell_id))
                if row is None:
                    new.append(said | {"notebook_id": notebook_id, "cell_id": cell_id})
                elif row.auto_comment != said["auto_comment"]:
                    changed.append(said | {"id": row.id})
        self._insert(api.Comment, new)
        self._update(api.Comment, changed)

    def _set_penalties(self, ids: Mapping[str, str]) -> None:
        """nbgrader's late penalties anew: a person may have changed a score or a due date."""
        its = self.notebook.assignment_id
        due = self.session.scalar(select(api.Assignment.duedate).filter_by(id=its))
        g, n = api.Grade, api.SubmittedNotebook
        sums = select(g.notebook_id, func.sum(g.score)).where(g.notebook_id.in_(ids))
        scores = self._pairs(sums.group_by(g.notebook_id))
        before = self._pairs(select(n.id, n.late_submission_penalty).where(n.id.in_(ids)))
        submissions = self._submissions()
        rows = []
        for notebook_id, student in ids.items():
            row, points = submissions[student], None
            late_s = _seconds_late(row.timestamp, due, row.extension)
            if late_s > 0:
                points = self.penalty(student, scores.get(notebook_id) or 0.0, late_s)
            if points != before[notebook_id]:
                rows.append({"id": notebook_id, "late_submission_penalty": points})
        self._update(n, rows)

    def _pairs(self, query: Any) -> dict[str, Any]:
        return {row[0]: row[1] for row in self.session.execute(query)}


def _seconds_late(
    time: datetime | None, due: datetime | None, extension: timedelta | None
) -> float:
    if time is None or due is None:
        return 0.0
    return max(0.0, (time - due - (extension or timedelta())).total_seconds())
