"""Verdicts: what an answer is worth, decided outside the student's process."""

from collections.abc import Callable
from typing import NamedTuple

from autograder.diagnosis import Subject
from autograder.exercise import Draw, Exercise, GroupResult
from autograder.seeds import PUBLIC_SECRET, case_seed

GRADED, UNREADABLE, INFRASTRUCTURE = "graded", "unreadable", "infrastructure"  # of a submission
STATUSES = (
    "passed",
    "failed",
    "partial",
    "unwritten",
    "timeout",
    "out_of_memory",
    "crashed",
    "unreadable",
    "infrastructure",
)
# Diagnoses that are a status of their own when nothing of the exercise passed.
_OWN_STATUS = ("unwritten", "timeout", "out_of_memory", "crashed")


class GroupVerdict(NamedTuple):
    """What one group of an exercise earned, and the message to the student ("" when it passed)."""

    label: str
    score: int
    points: int
    diagnosis: str
    message: str


class Verdict(NamedTuple):
    """What one exercise earned; `evidence` names what the points rest on."""

    exercise: str
    title: str
    status: str
    score: int
    points: int
    evidence: str
    groups: list[GroupVerdict]

    @property
    def messages(self) -> list[str]:
        """The messages of the groups that failed, each once."""
        return list(dict.fromkeys(group.message for group in self.groups if group.message))


def judge(
    exercise: Exercise,
    subject: Subject,
    secret: bytes | None = None,
    round_number: int = 0,
    renew: Callable[[], None] = lambda: None,
    start_over: Callable[[], None] = lambda: None,
) -> Verdict:
    """The verdict on one answer; `renew` brings back a subject that was lost, before each group.

    `start_over` is called before the secret cases: they have as much time as the public ones.
    The public cases come first. With a class `secret` the secret ones follow, where a group counts
    only if it passed both times. A group that fails in public shows that case; one that fails in
    secret only shows a general sentence and its label, never a case.
    """
    unit = exercise.unit
    draw = Draw(case_seed(PUBLIC_SECRET, unit, exercise.id), before_group=renew)
    groups = [_public(group) for group in exercise.run(subject, draw)]
    if secret is not None and any(group.score or not group.points for group in groups):
        start_over()
        seed = case_seed(secret, unit, exercise.id, round_number)
        draw = Draw(seed, secret=True, before_group=renew)
        groups = _both(groups, exercise.run(subject, draw))
    score = sum(group.score for group in groups)
    return Verdict(
        exercise.id,
        exercise.title,
        _status(groups),
        score,
        exercise.points,
        exercise.evidence,
        groups,
    )


def without_answer(exercise: Exercise, status: str, message: str) -> Verdict:
    """The verdict of no points on an exercise that could not be asked."""
    group = GroupVerdict(exercise.title, 0, exercise.points, status, message)
    return Verdict(
        exercise.id, exercise.title, status, 0, exercise.points, exercise.evidence, [group]
    )


def _public(group: GroupResult) -> GroupVerdict:
    label, points, diagnosis = group
    if diagnosis is None:
        return GroupVerdict(label, points, points, "", "")
    return GroupVerdict(label, 0, points, diagnosis.id, diagnosis.text)


def _both(public: list[GroupVerdict], secret: list[GroupResult]) -> list[GroupVerdict]:
    failed = {group.label: group.diagnosis for group in secret if group.diagnosis}
    labels, tried = {group.label for group in public}, {group.label for group in secret}
    first = next(iter(failed.values()), None)
    both = []
    for group in public:
        # A miss outside the groups ends the check: those after it have shown nothing in secret.
        diagnosis = failed.get(group.label, None if group.label in tried else first)
        if diagnosis is not None and not group.diagnosis:
            message = (
                f"On other cases than the ones you can see ({group.label}): {diagnosis.general}"
            )
            group = group._replace(score=0, diagnosis=diagnosis.id, message=message)
        both.append(group)
    # The whole check failed in secret, outside its groups, while it passed in public.
    for label, diagnosis in failed.items():
        if label not in labels:
            message = f"On other cases than the ones you can see: {diagnosis.general}"
            both.append(GroupVerdict(label, 0, 0, diagnosis.id, message))
    return both


def _status(groups: list[GroupVerdict]) -> str:
    failures = [group for group in groups if group.diagnosis]
    if not failures:
        return "passed"
    if any(group.score for group in groups):
        return "partial"
    first = failures[0].diagnosis
    return first if first in _OWN_STATUS else "failed"
