"""Results as the grader makes them, for tests that need no grading."""

from typing import Any

from autograder.judge import GroupVerdict, Verdict
from autograder.records.results import Result

RUN: dict[str, Any] = {
    "graded_at": "2030-01-01T00:00:00+00:00",
    "seconds": 0.5,
    "jobs": 2,
    "secret": "0123456789abcdef",
    "round": 0,
    "walls": "bubblewrap",
    "versions": {"python": "3.11"},
    "n_judged": 1,
    "exercises": {"gpipe": {"key": "fedcba9876543210", "wall_s": 0.2, "cpu_s": 0.1}},
}
HASHES = {name: 16 * name[0] for name in ("submission", "checks", "package", "environment")}


def verdict(status: str = "passed", message: str = "", score: int = 3) -> Verdict:
    group = GroupVerdict("legal order", score, 3, "x" if message else "", message)
    return Verdict("gpipe", "Write the schedule", status, score, 3, "data", [group])


def result(**changes: Any) -> Result:
    made = Result(
        assignment="03-gpipe",
        student="student-01",
        hashes=HASHES,
        status="graded",
        reason="",
        score=3,
        max_score=3,
        manual_points=0.0,
        exercises=[verdict()],
        cell_errors=[],
        notes=[],
        run=RUN,
    )
    return made._replace(**changes)


def refused(student: str = "student-07", reason: str = "The file is empty.") -> Result:
    none = {"score": None, "exercises": []}
    return result(student=student, status="unreadable", reason=reason, **none)
