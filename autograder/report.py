"""What the person who grades sees: progress with the time left, a table, one line of summary."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from autograder.changed import can_be_accepted, held_back, held_table
from autograder.gradebook.marks import AllMarks
from autograder.grader import manual_points, rubric, unit_of_assignment
from autograder.records.publish import Change
from autograder.records.results import GRADED, Result, lost_points
from autograder.sandbox import NOT_WALLED, Walls, is_bare
from autograder.submissions.naming import some_of
from mpedu.probes.walls import way_to_walls

_WIDTH = 160  # where there is no terminal to fit into


def console() -> Console:
    """Standard output as rich writes it: colours and width of the terminal, NO_COLOR respected."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_WIDTH)


def outcome(result: Result) -> str:
    """One result in a few words, like "12 of 17" or "unreadable: The file is empty."."""
    if result.score is not None:
        return f"{result.score} of {result.max_score}"
    return f"{result.status}: {result.reason}"


class Watcher:
    """Shows each submission done: a bar with the time left on a terminal, else a line each.

    `doing` stands before the bar, `say` gives what a line tells of a result, `command` is what to
    type to publish what is held back.
    """

    command = "the same command with --accept-lower"

    def __init__(
        self,
        out: Console,
        accept_lower: bool = False,
        doing: str = "grading",
        say: Callable[[Result], str] = outcome,
    ) -> None:
        self.out = out
        self.say = say
        self.accept_lower = accept_lower
        self.n_done = self.n_new = 0  # the results made now; those with something judged now
        self.held: list[Change] = []
        columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
        self.task = self.bar.add_task(doing, total=None)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.bar.stop()

    def __call__(self, result: Result, n_total: int) -> None:
        """Counts one more result of `n_total`."""
        self.n_done += 1
        self.n_new += bool(result.run["n_judged"] or not result.exercises)
        self.bar.update(self.task, total=n_total, completed=self.n_done)
        if not self.out.is_terminal:
            line = f"{self.n_done}/{n_total} {result.student}: {self.say(result)}"
            self.out.print(Text(line), soft_wrap=True)

    def confirm(self, changes: Sequence[Change]) -> bool:
        """Prints the changed scores; whether the lower ones among them may be published.

        Asks that on a terminal. Those that stay back are in `held`.
        """
        self.bar.stop()
        lines = [f"  {change}" for change in changes]
        self.out.print(Text("\n".join(["Changed scores:", *lines])), soft_wrap=True)
        n_lower = sum(change.held(False) and not change.held(True) for change in changes)
        accepted = self.accept_lower or (bool(n_lower) and self._ask(n_lower))
        self.held = [change for change in changes if change.held(accepted)]
        return accepted

    def _ask(self, n_lower: int) -> bool:
        if not (self.out.is_terminal and sys.stdin.isatty()):
            return False
        try:
            plural = "score" if n_lower == 1 else "scores"
            question = f"Publish the {n_lower} lower {plural}, too?"
            return Confirm.ask(question, console=self.out, default=False)
        except EOFError:
            return False

    def warn(self, walls: Walls) -> None:
        """Says before students' code runs that nothing will hold it, if so."""
        if text := warning(walls):
            self.out.print(text, style="bold", markup=False, soft_wrap=True)


def print_class(out: Console, results: Sequence[Result], watch: Watcher) -> None:
    """Prints a table per assignment, why points were lost, and what is held back."""
    assignments = sorted({result.assignment for result in results})
    for assignment in assignments:
        table = grades_table([one for one in results if one.assignment == assignment])
        table.title = Text(assignment) if len(assignments) > 1 else None
        out.print(table)
    tell(out, summary(results, watch.n_new), held_back(watch.held, watch.command))
    if any(map(can_be_accepted, watch.held)):
        out.print(held_table(watch.held))


def tell(out: Console, *texts: str) -> None:
    """Prints each text that is not empty."""
    for text in filter(None, texts):
        out.print(text, soft_wrap=True, markup=False)


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
    """One line, like "graded 9, unreadable 1; 10 new, 0 unchanged.", and why points were lost.

    What has no score comes last: a person must look at it.
    """
    counts = Counter(result.status for result in results)
    parts = ", ".join(f"{status} {n}" for status, n in sorted(counts.items()))
    lines = [f"{parts or 'graded 0'}; {n_new} new, {len(results) - n_new} unchanged."]
    several = len({result.assignment for result in results}) > 1
    who = {id(one): one.student + f", {one.assignment}" * several for one in results}
    scored = [result for result in results if result.status == GRADED]
    lines += [f"  {who[id(one)]}: {why}" for one in scored if (why := lost_points(one))]
    repaired = [who[id(result)] for result in results if result.notes]
    lines += [f"Repaired, as their pages tell: {some_of(repaired, 20)}."] if repaired else []
    listed = [result for result in results if result.status != GRADED]
    lines += ["Not graded, for a person to look at (no score, never 0):"] if listed else []
    lines += [f"  {who[id(one)]}: {one.status}: {one.reason}" for one in listed]
    return "\n".join([*lines, *filter(None, [open_walls(results)])])


def open_walls(results: Sequence[Result]) -> str:
    """A sentence on results whose code ran without walls, "" where there are none."""
    notes = sorted({r.run["walls"] for r in results if is_bare(r.run["walls"])})
    return (
        f"Students' code ran with all your rights (walls: {'; '.join(notes)});"
        " ./course doctor tells how to get walls."
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
    """A sentence on what else is recorded of their assignments, "" where there is nothing."""
    now = {(result.assignment, result.student) for result in results}
    graded = {result.assignment for result in results}
    others = [
        one.student
        for one in recorded
        if one.assignment in graded and (one.assignment, one.student) not in now
    ]
    if not others:
        return ""
    plural = "result" if len(others) == 1 else "results"
    return (
        f"grades.csv also holds {len(others)} earlier {plural} ({some_of(others)}), not in this"
        " folder; to drop them, delete their files in results/ and grade again."
    )


def look_again(marks: AllMarks, results: Sequence[Result]) -> str:
    """A sentence on points given by hand before what they are for has changed, or ""."""
    found = [
        result.student
        for result in results
        if (given := marks.get((result.assignment, result.student)))
        and any(mark.again for mark in given.cells.values())
    ]
    if not found:
        return ""
    return (
        f"Given by hand, and to be looked at again since something changed: {some_of(found, 20)}."
    )


def warning(walls: Walls) -> str:
    """What to know before students' code runs, "" where it runs behind walls."""
    if walls.rung != NOT_WALLED:
        return ""
    about = "Warning: students' code is about to run with all your rights"
    if not walls.note:
        return f"{about} (walls: {walls.rung}), as was asked for."
    return f"{about} (walls: {walls.rung}: {walls.note}). {way_to_walls()}"
