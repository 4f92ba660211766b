import io
from pathlib import Path
from typing import Any

import made_results as made
import pytest
from rich.console import Console
from rich.table import Table

from autograder.changed import changed_penalties, damaged, held_back, held_table
from autograder.gradebook.marks import AllMarks, Mark, Marks
from autograder.grader import load_unit
from autograder.records.publish import Change
from autograder.report import (
    Watcher,
    by_hand,
    console,
    earlier,
    grades_table,
    look_again,
    outcome,
    print_class,
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
        "Not graded, for a person to look at (no score, never 0):",
        "  student-07: unreadable: The file is empty.",
    ]


def test_the_summary_of_nobody_is_a_sentence_all_the_same() -> None:
    assert summary([], n_new=0) == "graded 0; 0 new, 0 unchanged."


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
    assert earlier(recorded, [made.result(assignment="00-start-here")]) == ""


def test_points_given_by_hand_before_something_changed_are_named() -> None:
    ann, bob = made.result(student="ann"), made.result(student="bob")
    marks = {
        (one.assignment, one.student): Marks({"written": Mark(4.0, None, 3.0, None, again)})
        for one, again in ((ann, True), (bob, False))
    }
    assert look_again(marks, [ann, bob]).endswith("since something changed: ann.")
    assert look_again(marks, [bob]) == ""


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
    said = warning(Walls("none", "no bwrap"))
    assert said.startswith("Warning: students' code is about to run with all your rights (walls: ")
    assert said.endswith("For walls: sudo apt-get install -y bubblewrap")
    assert warning(Walls("bubblewrap", "")) == ""


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


def lower(**after: Any) -> Change:
    return Change(made.result(), made.result(score=1, **after))


def test_changed_scores_are_printed_and_lower_ones_stay_back_where_nobody_can_be_asked() -> None:
    out = io.StringIO()
    watch = Watcher(Console(file=out, width=30))
    higher = Change(made.result(score=1), made.result(student="bob"))
    assert not watch.confirm([lower(), higher])
    assert out.getvalue().splitlines() == [
        "Changed scores:",
        "  student-01, 03-gpipe: 3 -> 1 (graded again)",
        "  bob, 03-gpipe: 1 -> 3 (graded again)",
    ]
    assert watch.held == [lower()]


@pytest.mark.parametrize(
    ("typed", "accepted"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_on_a_terminal_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch, typed: str, accepted: bool
) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Keyboard(typed))
    out = io.StringIO()
    watch = Watcher(Console(file=out, force_terminal=True, width=80))
    assert watch.confirm([lower()]) == accepted
    assert watch.held == ([] if accepted else [lower()])
    assert "Publish the 1 lower score" in out.getvalue()


def test_nobody_is_asked_about_higher_scores_or_what_could_not_be_graded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("autograder.report.Confirm.ask", lambda *_, **__: pytest.fail("asked"))
    watch = Watcher(Console(file=io.StringIO(), force_terminal=True))
    lost = Change(made.result(), made.result(score=None, status="infrastructure"))
    watch.confirm([lost, Change(made.result(score=1), made.result())])
    assert watch.held == [lost]


def test_what_is_held_back_is_told_with_the_way_to_publish_it() -> None:
    assert held_back([], "x") == ""
    assert held_back([lower(student="amy")], "./course grade in --accept-lower") == (
        "Lower scores are held back (1), the published ones stay; to publish these, run:"
        " ./course grade in --accept-lower"
    )
    lost = Change(made.result(), made.result(score=None, status="infrastructure", reason="lost"))
    assert held_back([lost], "x").splitlines() == [
        "Could not be graded now, the published scores stay:",
        "  student-01: lost",
    ]


def test_what_is_held_back_is_a_table_of_old_and_new_points() -> None:
    worse = [made.verdict("failed", "m", 1), made.verdict()._replace(exercise="cause")]
    one = Change(made.result(exercises=[*worse[1:], made.verdict()]), made.result(exercises=worse))
    none = Change(made.result(), made.refused("[b]amy"))
    lost = Change(made.result(), made.result(score=None, status="infrastructure"))
    lines = printed(held_table([one._replace(after=one.after._replace(score=1)), none, lost]))
    assert lines[0] == "student exercise old new"
    assert lines[2:] == ["student-01 gpipe 3 1", "[b]amy all of it 3 unreadable"]


def test_a_long_table_of_what_is_held_back_is_cut_and_says_how_much() -> None:
    held = [Change(made.result(), made.refused(f"s{i:02d}")) for i in range(25)]
    lines = printed(held_table(held))
    assert lines[2].startswith("s00 ")
    assert lines[-2:] == ["s19 all of it 3 unreadable", "and 5 more rows, of 5 students"]


def test_the_class_is_printed_with_the_table_and_the_command_to_publish_it() -> None:
    out = io.StringIO()
    watch = Watcher(Console(file=out, width=120))
    watch.command = "./course grade in --accept-lower"
    print_class(watch.out, [made.result()], watch)
    assert "held back" not in out.getvalue()
    watch.held = [Change(made.result(), made.refused("amy"))]
    print_class(watch.out, [made.result()], watch)
    said = out.getvalue()
    assert "run: ./course grade in --accept-lower\n" in said
    assert "amy" in said[said.index("held back") :]


def test_late_penalties_that_changed_are_printed_and_no_others() -> None:
    def marks(**late: float) -> AllMarks:
        return {("03-gpipe", name): Marks(late_penalty=points) for name, points in late.items()}

    before = marks(amy=0.0, bob=2.5, cid=1.0)
    assert changed_penalties(before, marks(amy=2.0, bob=0.0, cid=1.0, new=4.0)).splitlines() == [
        "Changed late penalties:",
        "  amy, 03-gpipe: 0 -> 2 points",
        "  bob, 03-gpipe: 2.5 -> 0 points",
    ]
    assert changed_penalties(before, before) == ""
    many = {f"s{i:02d}": 1.0 for i in range(25)}
    said = changed_penalties(marks(**many), marks(**dict.fromkeys(many, 2.0)))
    assert said.splitlines()[-2:] == ["  s19, 03-gpipe: 1 -> 2 points", "  and 5 more"]


def test_a_damaged_result_is_named_with_the_way_out() -> None:
    assert damaged([]) == ""
    said = damaged([Path("build/results/03-gpipe/bob.json")])
    assert "damaged: bob, 03-gpipe (build/results/03-gpipe/bob.json); delete it and grade" in said


def test_pages_are_counted_like_gradings() -> None:
    out = io.StringIO()
    say = Console(file=out, width=80)
    with Watcher(say, doing="pages", say=lambda one: one.assignment) as watch:
        watch(made.result(), 2)
    assert out.getvalue() == "1/2 student-01: 03-gpipe\n"
