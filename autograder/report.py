"""What the person who grades sees: progress with the time left, a table, one line of summary."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from autograder.results import GRADED, Result
from autograder.sandbox import NOT_WALLED

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


def outcome(result: Result) -> str:
    """One result in a few words, like "12 of 17" or "unreadable: The file is empty."."""
    if result.score is not None:
        return f"{result.score} of {result.max_score}"
    return f"{result.status}: {result.reason}"


def grades_table(results: Sequence[Result]) -> Table:
    """Student, points per exercise, total, status and reason of each result of one assignment."""
    columns = {verdict.exercise: verdict.points for r in results for verdict in r.exercises}
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("student", no_wrap=True)
    for exercise, points in columns.items():
        head = f"{exercise.replace('_', ' ')} ({points})"
        table.add_column(head, justify="right", max_width=6, overflow="fold")
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("reason", min_width=12)
    for result in results:
        scores = {verdict.exercise: str(verdict.score) for verdict in result.exercises}
        total = "" if result.score is None else f"{result.score}/{result.max_score}"
        if result.score is None:
            scores = {}
        row = (result.student, *(scores.get(name, "") for name in columns), total, result.status)
        # Text, never str: a student's name may hold what rich takes for markup
        table.add_row(*(Text(value) for value in (*row, _reason(result))))
    return table


def _reason(result: Result) -> str:
    if result.reason:
        return result.reason
    odd: dict[str, list[str]] = {}
    for verdict in result.exercises:
        if verdict.status not in ("passed", "failed", "partial"):
            odd.setdefault(verdict.status.replace("_", " "), []).append(verdict.exercise)
    return "; ".join(f"{status}: {', '.join(names)}" for status, names in odd.items())


def summary(results: Sequence[Result], n_new: int) -> str:
    """One line, like "graded 9, unreadable 1; 10 new, 0 unchanged.", and each refusal's reason."""
    counts = Counter(result.status for result in results)
    parts = ", ".join(f"{status} {n}" for status, n in sorted(counts.items()))
    lines = [f"{parts}; {n_new} new, {len(results) - n_new} unchanged."]
    refused = [result for result in results if result.status != GRADED]
    lines += [f"  {result.student}: {result.status}: {result.reason}" for result in refused]
    open_walls = sorted({r.run["walls"] for r in results if r.run["walls"].startswith(NOT_WALLED)})
    lines += [f"Students' code ran with all your rights ({walls})." for walls in open_walls]
    return "\n".join(lines)
