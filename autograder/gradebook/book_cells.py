"""An assignment's cells in nbgrader's gradebook, as its own release step saves them."""

import json
from collections.abc import Iterator
from typing import Any

from nbgrader import api, utils  # type: ignore[import-untyped]
from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from autograder.gradebook.book import COURSE
from autograder.submissions.cells import Node, grade_id, nbgrader_metadata

_BY_HAND = or_(api.Grade.manual_score.is_not(None), api.Grade.extra_credit.is_not(None))


def save_cells(session: Session, assignment: str, master: Node) -> str:
    """Saves an assignment's cells as nbgrader's release step does; the id of its notebook.

    Cells that are given out no more go, but none on which a person has worked.
    """
    notebook = _notebook(session, assignment, master)
    kept = set()
    for cell in filter(nbgrader_metadata, master.cells):
        for kind, values in _rows(cell):
            row = _found(session, kind, name=grade_id(cell), notebook_id=notebook.id)
            if row is None:
                row = kind(name=grade_id(cell), notebook_id=notebook.id, **values)
                session.add(row)
            for key, value in values.items():
                setattr(row, key, value)
            session.flush()
            kept.add(row.id)
    _drop_others(session, notebook, kept)
    return str(notebook.id)


def _notebook(session: Session, assignment: str, master: Node) -> Any:
    """The row of the assignment's notebook, made if absent with those it belongs to."""
    if session.get(api.Course, COURSE) is None:
        session.add(api.Course(id=COURSE))
    owner = _found(session, api.Assignment, name=assignment)
    if owner is None:
        owner = api.Assignment(assignment, course_id=COURSE)
        session.add(owner)
        session.flush()
    notebook = _found(session, api.Notebook, name=assignment, assignment_id=owner.id)
    if notebook is None:
        notebook = api.Notebook(name=assignment, assignment_id=owner.id)
        session.add(notebook)
    notebook.kernelspec = json.dumps(master.metadata.get("kernelspec", {}))
    session.flush()
    return notebook


def _found(session: Session, kind: Any, **values: object) -> Any:
    return session.scalar(select(kind).filter_by(**values))


def _rows(cell: Node) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What nbgrader keeps of a cell: its table, and the values besides name and notebook."""
    nbgrader = nbgrader_metadata(cell)
    kind = {"cell_type": cell.cell_type}
    graded = kind | {"max_score": float(nbgrader.get("points") or 0)}
    if utils.is_grade(cell):
        yield api.GradeCell, graded
    if utils.is_solution(cell):
        yield api.SolutionCell, {}
    if utils.is_task(cell):
        yield api.TaskCell, graded
    if any(
        is_(cell) for is_ in (utils.is_grade, utils.is_solution, utils.is_task, utils.is_locked)
    ):
        source = {"source": cell.source, "checksum": nbgrader.get("checksum")}
        yield api.SourceCell, kind | source | {"locked": utils.is_locked(cell)}


def _drop_others(session: Session, notebook: Any, kept: set[str]) -> None:
    gone = set(session.scalars(select(api.BaseCell.id).filter_by(notebook_id=notebook.id))) - kept
    gone -= set(session.scalars(select(api.Grade.cell_id).where(_BY_HAND)))
    commented = api.Comment.manual_comment.is_not(None)
    gone -= set(session.scalars(select(api.Comment.cell_id).where(commented)))
    for rows in (api.Grade, api.Comment):
        session.execute(delete(rows).where(rows.cell_id.in_(gone)))
    for table in (api.GradeCell, api.SolutionCell, api.TaskCell, api.BaseCell):
        session.execute(delete(table.__table__).where(table.__table__.c.id.in_(gone)))
    sources = api.SourceCell
    its = (sources.notebook_id == notebook.id, sources.id.not_in(kept))
    session.execute(delete(sources).where(*its))
