"""What the person who grades is told of points that changed, are held back, or are gone."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from autograder.gradebook.marks import AllMarks
from autograder.records.publish import Change
from autograder.records.results import damaged_results
from autograder.submissions.naming import some_of

_SHOWN = 20  # rows, lines or names; then how many more there are


def held_back(held: Sequence[Change], command: str) -> str:
    """What stays unpublished and the `command` that publishes it, "" where nothing is."""
    lower = [change for change in held if can_be_accepted(change)]
    lost = [change for change in held if not can_be_accepted(change)]
    lines = []
    if lost:
        lines += ["Could not be graded now, the published scores stay:"]
        lines += [f"  {change.after.student}: {change.after.reason}" for change in lost]
    if lower:
        lines += [
            f"Lower scores are held back ({len(lower)}), the published ones stay; to publish these,"
            f" run: {command}"
        ]
    return "\n".join(lines)


def can_be_accepted(change: Change) -> bool:
    """Whether a score held back may be published once a person says so."""
    return not change.held(True)


def held_table(held: Sequence[Change]) -> Table:
    """Student, exercise, old and new points of what can be accepted; the first few rows."""
    lower = [change for change in held if can_be_accepted(change)]
    several = len({change.after.assignment for change in lower}) > 1
    rows = [
        (change.after.student + f", {change.after.assignment}" * several, *points)
        for change in lower
        for points in change.exercises() or [("all of it", *change.scores())]
    ]
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("student", "exercise", "old", "new"):
        table.add_column(name, justify="right" if name in ("old", "new") else "left")
    for row in rows[:_SHOWN]:
        table.add_row(*map(Text, row))
    more = len({row[0] for row in rows[_SHOWN:]})
    if more:
        table.caption = f"and {len(rows) - _SHOWN} more rows, of {more} students"
    return table


def changes(out: Path, lost: Sequence[str], before: AllMarks, after: AllMarks) -> list[str]:
    """What is told of a folder's results after publishing besides their scores, "" for nothing."""
    return [damaged(damaged_results(out)), taken_off(lost), changed_penalties(before, after)]


def changed_penalties(before: AllMarks, after: AllMarks) -> str:
    """The late penalties that are others than at the last run, a line each, "" for none."""
    lines = [
        f"  {student}, {assignment}: {before[key].late_penalty:g} -> {marks.late_penalty:g} points"
        for key, marks in sorted(after.items())
        if key in before and before[key].late_penalty != marks.late_penalty
        for assignment, student in [key]
    ]
    if not lines:
        return ""
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(["Changed late penalties:", *lines[:_SHOWN], *more])


def damaged(files: Sequence[Path]) -> str:
    """A sentence on results whose files are none, "" where there are none."""
    if not files:
        return ""
    names = [f"{file.stem}, {file.parent.name} ({file})" for file in files]
    return (
        f"Not graded, since the file of the result is damaged: {some_of(names, _SHOWN)}; delete"
        " it and grade the submission again (./course grade DIR). Until then the page, and what"
        " the gradebook holds, stay as they were."
    )


def taken_off(lost: Sequence[str]) -> str:
    """A sentence on points given by hand that are not there any more, "" where all are."""
    if not lost:
        return ""
    return (
        f"Published without the points by hand that were there before: {some_of(lost, _SHOWN)};"
        " by-hand.json.before beside grades.csv lists them."
    )
