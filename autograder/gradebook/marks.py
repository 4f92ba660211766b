"""What a person gave a submission, beside what the checks gave: the sums of both."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from autograder.records.results import Result

CHECK = "check-"  # begins the grade id of each cell that an exercise's check fills


class Mark(NamedTuple):
    """What the gradebook holds of one graded cell, in points; None where nobody gave any.

    `again` says that what a person gave is to be looked at again: something has changed since.
    """

    points: float
    auto: float | None
    manual: float | None
    extra: float | None
    again: bool = False

    @property
    def score(self) -> float | None:
        """The points that count, None where there are none yet."""
        return self.auto if self.manual is None else self.manual


class Marks(NamedTuple):
    """What the gradebook holds of one submission: marks and comments by grade id."""

    cells: Mapping[str, Mark] = {}
    comments: Mapping[str, str] = {}
    late_penalty: float = 0.0


NO_MARKS = Marks()
Key = tuple[str, str]  # (assignment, student)
AllMarks = Mapping[Key, Marks]
NONE_GIVEN: AllMarks = {}


class Totals(NamedTuple):
    """A submission's points; `total` is None while it is not graded, never 0 instead.

    `total` is `exercises + written + extra - late_penalty`, at least 0. `to_grade` is how many
    points wait for a person: they are in no sum yet.
    """

    exercises: float | None
    written: float
    extra: float
    late_penalty: float
    to_grade: float
    total: float | None


def totals(result: "Result", marks: Marks = NO_MARKS) -> Totals:
    """The sums: what a person gave an exercise counts in place of what its check gave."""
    auto = {CHECK + verdict.exercise: float(verdict.score) for verdict in result.exercises}
    given = {name: mark.manual for name, mark in marks.cells.items() if mark.manual is not None}
    exercises: float | None = None
    to_grade = 0.0
    checked = {name: m.points for name, m in marks.cells.items() if name.startswith(CHECK)}
    if result.score is not None:
        exercises = sum((given.get(name, score) for name, score in auto.items()), 0.0)
    elif checked and all(name in given for name, points in checked.items() if points):
        exercises = sum(given[name] for name in checked if name in given)  # graded by hand
    else:
        waiting = [points for name, points in checked.items() if name not in given]
        to_grade = sum(waiting) if checked else float(result.max_score)
    written, waits = _written(result, marks)
    extra = sum(mark.extra or 0.0 for mark in marks.cells.values())
    total = None
    if exercises is not None:
        total = max(0.0, exercises + written + extra - marks.late_penalty)
    return Totals(exercises, written, extra, marks.late_penalty, to_grade + waits, total)


def written_marks(marks: Marks) -> dict[str, Mark]:
    """The marks of the written answers, by grade id."""
    return {name: mark for name, mark in marks.cells.items() if not name.startswith(CHECK)}


def _written(result: "Result", marks: Marks) -> tuple[float, float]:
    """The points of the written answers, and how many still wait for a person."""
    cells = written_marks(marks)
    if not cells:
        return 0.0, result.manual_points
    waits = sum(mark.points for mark in cells.values() if mark.score is None)
    return sum(mark.score or 0.0 for mark in cells.values()), waits
