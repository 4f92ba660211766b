"""A result made of verdicts: hashes of all that decided it, and what belongs to this run alone."""

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from autograder.grader import (
    ROOT,
    Graded,
    manual_points,
    max_score,
    source_notebook,
    unit_of_assignment,
)
from autograder.judge import GRADED, INFRASTRUCTURE
from autograder.records.fingerprint import (
    Sources,
    checks_hash,
    environment_hash,
    package_hash,
    short_hash,
    versions,
)
from autograder.records.results import Result
from autograder.submissions.finding import Entry
from autograder.submissions.ingest import Refusal, read_entry


def submission_hash(entry: Entry) -> str:
    """A hash of the submitted bytes, or of the reason why there are none."""
    data = read_entry(entry)
    return short_hash(data.reason if isinstance(data, Refusal) else data)


class Recorder:
    """Makes the results of one run, and knows those that an earlier run made alike."""

    def __init__(self, secret: bytes, round_number: int = 0, jobs: int = 1) -> None:
        self.run = {"secret": short_hash(secret), "round": round_number, "jobs": jobs}
        self.run["versions"] = versions()
        self.run["host"] = {"system": platform.platform(terse=True), "cores": os.cpu_count()}
        self.sources = Sources(ROOT)
        self.checks = cache(self._checks)
        self._ours = cache(self._our_hashes)
        self._points = cache(_points)

    def _checks(self, assignment: str) -> Mapping[str, str]:
        """By exercise, a hash of its check."""
        return self.sources.checks(unit_of_assignment(assignment))

    def _our_hashes(self, assignment: str) -> Mapping[str, str]:
        notebook = source_notebook(unit_of_assignment(assignment))
        return {
            "checks": checks_hash(self.checks(assignment)),
            "package": package_hash(ROOT, notebook),
            "environment": environment_hash(),
        }

    def hashes(self, entry: Entry) -> dict[str, str]:
        """What a result of this submission depends on, besides secret and round."""
        return {"submission": submission_hash(entry), **self._ours(entry.assignment)}

    def made_alike(self, result: Result, hashes: Mapping[str, str]) -> bool:
        """Whether this run would only make the same result again."""
        same = all(result.run[name] == self.run[name] for name in ("secret", "round"))
        return same and result.hashes == hashes and result.status != INFRASTRUCTURE

    def result(self, entry: Entry, hashes: Mapping[str, str], graded: Graded) -> Result:
        """The result of one submission; its score is None unless all of it was graded."""
        most, manual = self._points(entry.assignment)
        done = graded.status == GRADED
        return Result(
            assignment=entry.assignment,
            student=entry.student,
            # what was graded, should the file have changed meanwhile
            hashes={**hashes, "submission": graded.sha256[:16] or hashes["submission"]},
            status=graded.status,
            reason=graded.reason,
            score=sum(verdict.score for verdict in graded.exercises) if done else None,
            max_score=most,
            manual_points=manual,
            exercises=graded.exercises,
            cell_errors=graded.cell_errors,
            notes=graded.notes,
            run=self._run_block(graded),
        )

    def _run_block(self, graded: Graded) -> dict[str, Any]:
        return {
            **self.run,
            "graded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(graded.seconds, 3),
            "n_judged": graded.n_judged,
            "walls": graded.walls,
            "exercises": graded.runs,
        }


def _points(assignment: str) -> tuple[int, float]:
    unit = unit_of_assignment(assignment)
    return max_score(unit), manual_points(unit)
