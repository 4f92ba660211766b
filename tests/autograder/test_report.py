import io

import made_results as made
import pytest
from rich.console import Console
from rich.table import Table

from autograder.grader import load_unit
from autograder.report import (
    Watcher,
    by_hand,
    console,
    earlier,
    grades_table,
    outcome,
    summary,
    warning,
)
from autograder.sandbox import Walls


def printed(table: Table, width: int = 120) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]


def test_a_row_holds_points_total_and_status() -> None:
    late = made.verdict("timeout", "m", 0)._replace(exercise="idle_share")
    lines = printed(grades_table([made.result(exercises=[made.verdict(), late], max_score=6)]))
    assert lines[-1] == "student-01 3 0 3/6 graded"


def test_a_row_without_grade_has_no_points() -> None:
    odd = made.refused("[bold]amy[/bold]")
    lines = printed(grades_table([made.result(), odd]))
    assert lines[-1] == "[bold]amy[/bold] unreadable"


def test_the_real_units_table_fits_80_characters_with_no_word_cut() -> None:
    verdicts = [
        made.verdict()._replace(exercise=exercise.id, points=exercise.points)
        for exercise in load_unit("03").exercises
    ]
    rows = [made.result(exercises=verdicts, max_score=17, score=17), made.refused()]
    lines = printed(grades_table(rows), 80)
    words = {word for line in lines for word in line.split()}
    assert {"gpipe", "fast", "micro-", "batches", "bubble", "total", "17/17", "unreadable"} <= words
    assert len(lines) == 4 + 1 + 2  # the head, the rule, a line each


def test_a_long_name_is_folded_and_costs_no_column() -> None:
    lines = printed(grades_table([made.result(student="x" * 90)]), 40)
    assert "".join(line.split()[0] for line in lines[3:]) == "x" * 90
    assert "graded" in lines[3]


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


def test_the_summary_says_why_points_were_lost() -> None:
    late = made.verdict("timeout", "m", 0)
    late = late._replace(groups=[late.groups[0]._replace(diagnosis="timeout")])
    lines = summary([made.result(), made.result(student="bob", exercises=[late])], 0).splitlines()
    assert lines[1:] == ["  bob: too slow: gpipe"]


def test_results_of_other_classes_in_the_same_folder_are_named() -> None:
    recorded = [made.result(), made.result(student="del"), made.result(student="gus")]
    assert "also holds 2 earlier results (del, gus)" in earlier(recorded, [made.result()])
    assert "also holds 1 earlier result (del)" in earlier(recorded[:2], [made.result()])
    assert earlier(recorded, recorded) == ""


def test_the_points_given_by_hand_are_named_with_the_rubric() -> None:
    said = by_hand("03-gpipe")
    assert said.startswith("4 points of 03-gpipe are for written answers, graded by hand")
    assert "notebooks/instructor-notes/03-gpipe.md" in said


def test_no_walls_are_warned_of_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mpedu.probes.walls.which", lambda name: name == "apt-get")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    said = warning(Walls("not walled", "no bwrap"))
    assert said.startswith("Warning: students' code is about to run with all your rights (not wal")
    assert said.endswith("For walls: sudo apt-get install -y bubblewrap")
    assert warning(Walls("bubblewrap+namespaces", "")) == ""


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
