"""Our results in nbgrader's gradebook, beside what a person put there."""

import contextlib
import os
import sqlite3
import sys
from datetime import datetime, timedelta
from pathlib import Path

import made_results as made
import nbformat
import pytest
from books import DUE, KEY, MASTER, RELEASED, WRITTEN, A, Home, scored
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin
from nbgrader.preprocessors import SaveCells

from autograder.gradebook.book import Book
from autograder.gradebook.book_cells import save_cells
from autograder.gradebook.fill import Handed, fill
from autograder.gradebook.marks import Mark, totals
from autograder.gradebook.nbgrader_settings import gradebook_url, read_settings
from autograder.records.results import write_grades, write_whole
from autograder.release import nbgrader_config
from autograder.submissions.cells import Node


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    # only nbgrader's own way of making a gradebook needs alembic on the path
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return Home(tmp_path / "build")


def test_nbgrader_reads_the_points_that_we_wrote(home: Home) -> None:
    result = scored(gpipe=1, bubble=0)
    home.fill(result, scored("bob"))
    assert home.grade("check-gpipe")["auto_score"] == 1
    assert home.grade("check-bubble")["failed_tests"]
    assert not home.grade("check-cause")["needs_manual_grade"]
    assert home.grade(WRITTEN)["needs_manual_grade"]
    submission = home.ask(lambda g: g.find_submission(A, "ann").to_dict())
    assert (submission["score"], submission["max_score"]) == (result.score, result.max_score + 4)
    assert home.ask(lambda g: [s.id for s in g.students]) == ["ann", "bob"]


def test_the_cells_are_those_that_nbgraders_release_step_saves(home: Home, tmp_path: Path) -> None:
    stock = Home(tmp_path / "stock")
    stock.folder.mkdir(parents=True)
    stock.ask(lambda g: g.add_assignment(A))
    notebook = nbformat.reads(RELEASED, as_version=4)
    names = {"notebook": A, "assignment": A, "db_url": stock.url, "student": "."}
    SaveCells().preprocess(notebook, {"nbgrader": names})
    home.fill()
    assert home.rows() == stock.rows()
    query = "SELECT kernelspec FROM notebook UNION SELECT version_num FROM alembic_version"
    said = []
    for of in (home, stock):
        with contextlib.closing(sqlite3.connect(of.file)) as db:
            said.append(db.execute(query).fetchall())
    assert said[0] == said[1]


def test_filling_again_changes_nothing(home: Home) -> None:
    handed = {"ann": Handed(DUE, frozenset({"solution-gpipe"}), frozenset({WRITTEN}))}
    home.fill(scored(), made.refused("bob"), **handed)
    before = home.rows()
    home.fill(scored(), made.refused("bob"), **handed)
    assert home.rows() == before
    assert before[3] != "[]"


def test_what_a_person_gave_outlives_every_kind_of_grading_again(home: Home) -> None:
    home.fill(scored(gpipe=1))
    home.by_hand("check-gpipe", manual_score=2.0, extra_credit=0.5)
    home.by_hand(WRITTEN, manual_score=3.0)
    home.comment("solution-gpipe", "Nearly: look at stage 2.")

    def settle(gradebook: Gradebook) -> None:
        gradebook.update_or_create_assignment(A, duedate=DUE)
        gradebook.update_or_create_student("ann", first_name="Ann", last_name="Lee")
        gradebook.grant_extension(A, "ann", days=2)

    home.ask(settle)
    for result in (scored(gpipe=3), made.refused("ann"), scored(gpipe=0), scored(gpipe=3)):
        home.fill(result)
        mark = home.marks().cells["check-gpipe"]
        assert (mark.manual, mark.extra) == (2.0, 0.5)
    assert mark.auto == 3
    assert home.marks().cells[WRITTEN] == Mark(4.0, None, 3.0, None)
    assert home.marks().comments == {"solution-gpipe": "Nearly: look at stage 2."}
    submission = home.ask(lambda g: g.find_submission(A, "ann"))
    assert submission.extension == timedelta(days=2)
    kept = home.ask(lambda g: (g.find_assignment(A).duedate, g.find_student("ann").last_name))
    assert kept == (DUE, "Lee")


def test_a_grade_by_hand_is_to_be_looked_at_again_once_its_reason_changed(home: Home) -> None:
    home.fill(scored(gpipe=1))
    home.by_hand("check-gpipe", manual_score=2.0)
    home.fill(scored(gpipe=1))
    assert not home.grade("check-gpipe")["needs_manual_grade"]
    home.fill(scored(gpipe=0))
    assert home.grade("check-gpipe")["needs_manual_grade"]
    home.by_hand("check-gpipe", manual_score=2.0)
    home.by_hand(WRITTEN, manual_score=3.0)
    home.fill(scored(gpipe=0), ann=Handed(changed=True))
    assert home.grade("check-gpipe")["needs_manual_grade"]
    assert home.grade(WRITTEN)["needs_manual_grade"]
    assert not home.grade("check-cause")["needs_manual_grade"]


def test_what_was_not_graded_has_no_score_and_waits_for_a_person(home: Home) -> None:
    home.fill(scored())
    home.fill(made.refused("ann"))
    grade = home.grade("check-gpipe")
    assert (grade["auto_score"], grade["needs_manual_grade"]) == (None, True)
    assert home.ask(lambda g: g.find_submission(A, "ann").needs_manual_grade)


def export(home: Home, to: Path) -> str:
    """nbgrader's own list of grades, the line of the one student."""
    home.ask(CsvExportPlugin(to=str(to)).export)
    return to.read_text().splitlines()[1]


def test_our_list_says_not_graded_where_nbgraders_says_zero(home: Home, tmp_path: Path) -> None:
    result = made.refused("ann")
    home.fill(result)
    assert export(home, tmp_path / "theirs.csv").endswith(",0.0,0.0,0.0,24.0")
    write_whole(home.out / "results" / A / "ann.json", result.dumps())
    row = write_grades(home.out, {KEY: home.marks()}).read_text().splitlines()[1]
    assert row.startswith(f"{A},ann,,3,0,,,,24,unreadable,")


def test_an_answer_left_blank_is_nbgraders_no_response(home: Home) -> None:
    blank = frozenset({WRITTEN, "solution-gpipe"})
    home.fill(scored(), ann=Handed(None, blank, frozenset({WRITTEN})))
    assert home.grade(WRITTEN)["auto_score"] == 0
    said = home.ask(lambda g: g.find_comment("solution-gpipe", A, A, "ann").auto_comment)
    assert said == "No response."
    book = Book(home.url)
    fill(book, {A: MASTER}, [scored()], {}, lambda *_: None)  # nothing handed in anew
    assert home.grade(WRITTEN)["auto_score"] == 0
    home.fill(scored(), ann=Handed(None, frozenset({WRITTEN})))  # it may stand elsewhere
    assert home.grade(WRITTEN)["auto_score"] is None


CONFIG = "c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"
OWN_PLUGIN = """
from nbgrader.plugins import BasePlugin
class Tenth(BasePlugin):
    def late_submission_penalty(self, student, score, seconds):
        return 99 if student == "bob" else 1.5
c = get_config()
c.AssignLatePenalties.plugin_class = Tenth
"""


@pytest.mark.parametrize(
    ("config", "late_by_h", "penalty"),
    [("", 1, 0), (CONFIG, 0, 0), (CONFIG, 1, 19), (OWN_PLUGIN, 1, 1.5), (OWN_PLUGIN, 49, 1.5)],
)
def test_the_late_penalty_is_the_one_of_nbgraders_settings(
    home: Home, tmp_path: Path, config: str, late_by_h: int, penalty: float
) -> None:
    result = scored(cause=2)
    write_whole(home.folder / "nbgrader_config.py", nbgrader_config())
    write_whole(home.folder / "own_config.py", config or "")
    home.fill(result)
    home.ask(lambda g: g.update_or_create_assignment(A, duedate=DUE))
    home.fill(result, ann=Handed(DUE + timedelta(hours=late_by_h)))
    assert home.marks().late_penalty == penalty
    assert totals(result, home.marks()).total == 19 - penalty
    assert float(export(home, tmp_path / "theirs.csv").split(",")[-2]) == 19 - penalty
    home.ask(lambda g: g.grant_extension(A, "ann", days=3))
    home.fill(result)
    assert home.marks().late_penalty == 0


def test_the_settings_of_a_release_name_the_gradebook_beside_them(home: Home) -> None:
    assert gradebook_url(read_settings(home.folder)) is None
    write_whole(home.folder / "nbgrader_config.py", nbgrader_config())
    assert gradebook_url(read_settings(home.folder)) == home.url


def test_the_time_of_a_mere_copy_is_not_taken_but_that_of_another_file_is(home: Home) -> None:
    def time() -> datetime:
        found: datetime = home.ask(lambda g: g.find_submission(A, "ann").timestamp)
        return found

    later = DUE + timedelta(days=5)
    home.fill(scored(), ann=Handed(DUE))
    home.fill(scored(), ann=Handed(later))
    assert time() == DUE
    home.fill(scored(), ann=Handed(later, changed=True))
    assert time() == later
    home.fill(scored(), ann=Handed(DUE, stamped=True))
    assert time() == DUE


FAILING = OWN_PLUGIN.replace('99 if student == "bob" else 1.5', "float('nan')")


def test_a_penalty_that_fails_is_told_with_the_student(home: Home) -> None:
    write_whole(home.folder / "nbgrader_config.py", nbgrader_config())
    write_whole(home.folder / "own_config.py", FAILING)
    home.fill(scored())
    home.ask(lambda g: g.update_or_create_assignment(A, duedate=DUE))
    with pytest.raises(ValueError, match=r"failed for ann \(ValueError: it gave nan\); mend it in"):
        home.fill(scored(), ann=Handed(DUE + timedelta(hours=1), changed=True))


def test_no_penalty_takes_more_than_there_is(home: Home) -> None:
    write_whole(home.folder / "nbgrader_config.py", OWN_PLUGIN)
    home.fill()
    home.ask(lambda g: g.update_or_create_assignment(A, duedate=DUE))
    home.fill(scored("bob"), bob=Handed(DUE + timedelta(hours=1)))
    assert home.marks("bob").late_penalty == scored().score


def test_settings_that_cannot_be_read_are_named(home: Home) -> None:
    write_whole(home.folder / "nbgrader_config.py", "c = (")
    with pytest.raises(ValueError, match=r"nbgrader_config.py cannot be read \(SyntaxError"):
        read_settings(home.folder)


def test_cells_given_out_no_more_go_but_none_that_a_person_worked_on(home: Home) -> None:
    home.fill(scored())
    home.by_hand("check-gpipe", manual_score=2.0)
    home.comment("solution-cause", "why?")
    gone = ("check-gpipe", "check-cause", "solution-cause", "solution-gpipe")
    fewer = Node(MASTER, cells=[cell for cell in MASTER.cells if cell.id not in gone])
    book = Book(home.url)
    book.write(lambda session: save_cells(session, A, fewer))
    named = home.ask(lambda g: {cell.name for cell in g.find_notebook(A, A)._base_cells})
    assert named & set(gone) == {"check-gpipe", "solution-cause"}
    assert home.grade("check-gpipe")["manual_score"] == 2.0
    home.fill(scored())  # and given out again
    assert home.grade("check-cause")["auto_score"] == 3
