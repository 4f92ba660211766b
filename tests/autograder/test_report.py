import io

import made_results as made
import pytest
from rich.console import Console
from rich.table import Table

from autograder.report import Watcher, console, grades_table, outcome, summary


def printed(table: Table, width: int = 120) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]


def test_a_row_holds_points_total_status_and_what_is_odd() -> None:
    late = made.verdict("timeout", "m", 0)._replace(exercise="idle_share")
    lines = printed(grades_table([made.result(exercises=[made.verdict(), late], max_score=6)]))
    assert lines[-1] == "student-01 3 0 3/6 graded timeout: idle_share"


def test_a_row_without_grade_has_no_points_and_the_reason() -> None:
    odd = made.refused("[bold]amy[/bold]")
    lines = printed(grades_table([made.result(), odd]))
    assert lines[-1] == "[bold]amy[/bold] unreadable The file is empty."


@pytest.mark.parametrize(
    ("result", "words"),
    [(made.result(), "3 of 3"), (made.refused(), "unreadable: The file is empty.")],
)
def test_an_outcome_is_points_or_the_reason_why_there_are_none(
    result: made.Result, words: str
) -> None:
    assert outcome(result) == words


def test_the_summary_counts_and_lists_what_was_not_graded() -> None:
    lines = summary([made.result(), made.result(), made.refused()], n_new=1).splitlines()
    assert lines == [
        "graded 2, unreadable 1; 1 new, 2 unchanged.",
        "  student-07: unreadable: The file is empty.",
    ]


@pytest.mark.parametrize(("terminal", "shown"), [(True, "1/2"), (False, "1/2 student-01: 3 of 3")])
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(terminal: bool, shown: str) -> None:
    out = io.StringIO()
    with Watcher(Console(file=out, force_terminal=terminal, width=80)) as watch:
        watch(made.result(), 2)
    assert shown in out.getvalue()
    assert ("student-01" in out.getvalue()) == (not terminal)
    assert watch.n_done == 1


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert console().no_color
