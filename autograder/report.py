"""What the person who grades sees: progress with the time left, a table, one line of summary."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from autograder.grader import manual_points, rubric, unit_of_assignment
from autograder.results import GRADED, Result, lost_points
from autograder.sandbox import NOT_WALLED, Walls
from autograder.submissions import some_of
from mpedu.probes.walls import way_to_walls

_WIDTH = 160  # where there is no terminal to fit into


def console() -> Console:
    """Standard output as rich writes it: colours and width of the terminal, NO_COLOR respected."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_WIDTH)


class Watcher:
    """Shows each graded submission: a bar with the time left on a terminal, else a line each."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self.n_done = 0
        columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
        self.task = self.bar.add_task("grading", total=None)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.stop()

    def __call__(self, result: Result, n_total: int) -> None:
        """Counts one more result of `n_total`."""
        self.n_done += 1
        self.bar.update(self.task, total=n_total, completed=self.n_done)
        if not self.out.is_terminal:
            line = f"{self.n_done}/{n_total} {result.student}: {outcome(result)}"
            self.out.print(Text(line), soft_wrap=True)

    def warn(self, walls: Walls) -> None:
        """Says before students' code runs that nothing will hold it, if so."""
        if text := warning(walls):
            self.out.print(text, style="bold", markup=False, soft_wrap=True)


def outcome(result: Result) -> str:
    """One result in a few words, like "12 of 17" or "unreadable: The file is empty."."""
    if result.score is not None:
        return f"{result.score} of {result.max_score}"
    return f"{result.status}: {result.reason}"


def grades_table(results: Sequence[Result]) -> Table:
    """Student, points per exercise, total and status of each result of one assignment."""
    columns = {verdict.exercise: verdict.points for r in results for verdict in r.exercises}
    table = Table(box=SIMPLE, pad_edge=False, padding=0)
    table.add_column("student", overflow="fold")
    for exercise, points in columns.items():
        table.add_column(_head(exercise, points), justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for result in results:
        scores = {verdict.exercise: str(verdict.score) for verdict in result.exercises}
        total = "" if result.score is None else f"{result.score}/{result.max_score}"
        if result.score is None:
            scores = {}
        row = (result.student, *(scores.get(name, "") for name in columns), total, result.status)
        # Text, never str: a student's name may hold what rich takes for markup
        table.add_row(*map(Text, row))
    return table


def _head(exercise: str, points: int) -> str:
    """A column's head, a word a line, so that all columns fit into 80 characters."""
    words = exercise.replace("microbatch", "micro-_batch").split("_")
    return "\n".join([*words, f"({points})"])


def summary(results: Sequence[Result], n_new: int) -> str:
    """One line, like "graded 9, unreadable 1; 10 new, 0 unchanged.", and why points were lost."""
    counts = Counter(result.status for result in results)
    parts = ", ".join(f"{status} {n}" for status, n in sorted(counts.items()))
    lines = [f"{parts}; {n_new} new, {len(results) - n_new} unchanged."]
    for result in results:
        why = lost_points(result)
        if result.status != GRADED:
            lines.append(f"  {result.student}: {result.status}: {why}")
        elif why:
            lines.append(f"  {result.student}: {why}")
    return "\n".join([*lines, *filter(None, [open_walls(results)])])


def open_walls(results: Sequence[Result]) -> str:
    """A sentence on results whose code ran without walls, "" where there are none."""
    notes = sorted({r.run["walls"] for r in results if r.run["walls"].startswith(NOT_WALLED)})
    return (
        f"Students' code ran with all your rights ({'; '.join(notes)}). {way_to_walls()}"
        if notes
        else ""
    )


def by_hand(assignment: str) -> str:
    """A sentence on the written answers of an assignment, "" where there are none."""
    unit = unit_of_assignment(assignment)
    points, notes = manual_points(unit), rubric(unit)
    if not points:
        return ""
    where = f": the rubric is in {notes}" if notes else ""
    return (
        f"{points:g} points of {assignment} are for written answers, graded by hand{where}"
        " (manual_max in grades.csv)."
    )


def earlier(recorded: Iterable[Result], results: Sequence[Result]) -> str:
    """A sentence on what is recorded besides these results, "" where there is nothing."""
    now = {(result.assignment, result.student) for result in results}
    others = [r.student for r in recorded if (r.assignment, r.student) not in now]
    if not others:
        return ""
    plural = "result" if len(others) == 1 else "results"
    return (
        f"grades.csv also holds {len(others)} earlier {plural} ({some_of(others)}), not in this"
        " folder; to drop them, delete their files in results/ and grade again."
    )


def warning(walls: Walls) -> str:
    """What to know before students' code runs, "" where it runs behind walls."""
    if walls.rung != NOT_WALLED:
        return ""
    return (
        f"Warning: students' code is about to run with all your rights ({walls.rung}:"
        f" {walls.note}). {way_to_walls()}"
    )
