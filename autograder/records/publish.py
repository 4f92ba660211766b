"""From what was graded to what counts: results, pages and grades, and the scores held back.

A result is published when it is made, unless another is published already and the score changes:
then only after a person has seen the change, and a lower score only if that person says so.
"""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from autograder.feedback import feedback_path, write_pages
from autograder.gradebook.marks import NONE_GIVEN, AllMarks
from autograder.judge import INFRASTRUCTURE
from autograder.records.results import Result, read_result, result_path, write_grades, write_whole
from mpedu.faults import Failure

_REASONS = {
    "submission": "handed in anew",
    "checks": "checks changed",
    "package": "course code changed",
    "environment": "another Python, NumPy or msgpack",
}


class RecordError(Failure):
    """Results could not be written; those recorded before are intact."""


class Change(NamedTuple):
    """The published result of a submission, and one with another score."""

    before: Result
    after: Result

    @property
    def lower(self) -> bool:
        """Whether points would be lost, a score for none included."""
        before, after = self.before.score, self.after.score
        return before is not None and (after is None or after < before)

    def held(self, accepted: bool) -> bool:
        """Whether it stays unpublished; what could not be graded does even if lower is accepted."""
        return self.lower and not (accepted and self.after.status != INFRASTRUCTURE)

    def __str__(self) -> str:
        """Like "bob, 03-gpipe: 12 -> 9 (checks changed; gpipe 3 -> 0)"."""
        before, after = self.scores()
        parts = [f"{name} {old} -> {new}" for name, old, new in self.exercises()]
        parts = parts if self.after.score is not None else [self.after.reason]
        why = "; ".join([self._reasons(), *parts])
        return f"{self.after.student}, {self.after.assignment}: {before} -> {after} ({why})"

    def _reasons(self) -> str:
        old, new = self.before, self.after
        found = [text for name, text in _REASONS.items() if old.hashes[name] != new.hashes[name]]
        varying = (("secret", "another secret"), ("round", "another round"))
        found += [text for name, text in varying if old.run[name] != new.run[name]]
        return " and ".join(found) or "graded again"

    def scores(self) -> tuple[str, str]:
        """The old and the new score, a status where there is none."""
        return _score(self.before), _score(self.after)

    def exercises(self) -> list[tuple[str, str, str]]:
        """Each exercise whose points are others, with the old and the new ones."""
        if self.after.score is None:
            return []
        scores = {verdict.exercise: verdict.score for verdict in self.before.exercises}
        return [
            (verdict.exercise, str(scores[verdict.exercise]), str(verdict.score))
            for verdict in self.after.exercises
            if scores.get(verdict.exercise, verdict.score) != verdict.score
        ]


def _score(result: Result) -> str:
    return result.status if result.score is None else str(result.score)


def held_path(out: Path, assignment: str, student: str) -> Path:
    """Where a result lies whose score is lower than the published one."""
    return out / "held" / assignment / f"{student}.json"


class Publisher:
    """Writes what counts below a folder, with what people gave; RecordError where it cannot."""

    def __init__(self, out: Path, marks: AllMarks = NONE_GIVEN) -> None:
        self.out = out
        self.marks = marks
        self.n_recorded = 0

    def published(self, assignment: str, student: str) -> Result | None:
        """The result that counts, None if there is none."""
        return read_result(result_path(self.out, assignment, student))

    def held(self, assignment: str, student: str) -> Result | None:
        """The result held back, None if there is none."""
        return read_result(held_path(self.out, assignment, student))

    def publish(self, result: Result) -> None:
        """Records a result with its page; one held back before is gone."""
        path = result_path(self.out, result.assignment, result.student)
        self._write(lambda: write_whole(path, result.dumps()))
        self.n_recorded += 1
        self._write(lambda: write_pages(self.out, [result], self.marks))
        self.release(result)

    def hold(self, result: Result) -> None:
        """Keeps a result beside the published one, which stays."""
        path = held_path(self.out, result.assignment, result.student)
        self._write(lambda: write_whole(path, result.dumps()))

    def release(self, result: Result) -> None:
        """Drops what is held back of this submission, if anything."""
        path = held_path(self.out, result.assignment, result.student)
        self._write(lambda: path.unlink(missing_ok=True))

    def complete(self, result: Result) -> None:
        """Writes the page of a published result if it is gone, or a run was killed before it."""
        names = result.assignment, result.student
        page, record = feedback_path(self.out, *names), result_path(self.out, *names)
        if not page.exists() or page.stat().st_mtime_ns < record.stat().st_mtime_ns:
            self._write(lambda: write_pages(self.out, [result], self.marks))

    def write_grades(self) -> None:
        """Writes `grades.csv` anew from everything published."""
        self._write(lambda: write_grades(self.out, self.marks))

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            place = error.filename or self.out
            raise RecordError(
                f"{place} cannot be written ({error.strerror}); {self.n_recorded} of this run's"
                f" results are recorded and intact: {'make room' if full else 'clear the way'} and"
                " run the same command again to grade only the rest."
            ) from error
