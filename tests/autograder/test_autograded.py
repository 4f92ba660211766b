"""The notebooks that formgrader opens, made of ours and a student's."""

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import made_results as made
import nbformat
import pytest

from autograder.demo import answered
from autograder.gradebook.autograded import Prepared, harmless, prepare, time_of
from autograder.grader import source_notebook, unit_of_assignment
from autograder.release import student_notebook
from autograder.submissions.cells import Node, canonical, parse_notebook
from autograder.submissions.finding import Entry
from autograder.submissions.matching import Matcher

A = "03-gpipe"
MASTER = parse_notebook(student_notebook(source_notebook(unit_of_assignment(A))).encode())
MATCHER = Matcher(MASTER)
WRITTEN = "written-why-slower"
JOINER = "\u2060"


def entry_of(folder: Path, notebook: Node | str) -> Entry:
    """What a student handed in, in the folder layout."""
    path = folder / "in" / "ann" / A / f"{A}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
    return Entry("ann", A, path)


def given(**sections: str) -> Node:
    """The notebook given out with these answers by cell id ("_" for "-")."""
    fresh = parse_notebook(canonical(MASTER).encode())
    return answered(fresh, {name.replace("_", "-", 1): text for name, text in sections.items()})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "nbgrader"


def prepared(home: Path, notebook: Node | str, **changes: Any) -> Prepared:
    result = made.result(student="ann", **changes)
    return prepare(home, entry_of(home.parent, notebook), result, MASTER, MATCHER)


def cells(made: Prepared) -> dict[str, Mapping[str, Any]]:
    """The cells by id, in order, their text in one piece."""
    notebook = nbformat.reads(made.text, as_version=4)
    nbformat.validate(notebook)
    return {cell.id: cell for cell in notebook.cells}


def test_the_students_text_stands_in_our_cells_and_their_ids_are_whole(home: Path) -> None:
    notebook = given(solution_gpipe="def gpipe():\n    return 1", answer="It *waits*.")
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)  # as some editors do
    found = cells(prepared(home, notebook))
    assert found["solution-gpipe"]["source"] == "def gpipe():\n    return 1"
    assert found["answer"]["source"] == "It *waits*."
    assert list(found) == [cell.id for cell in MASTER.cells]
    for ours in MASTER.cells:
        assert found[ours.id]["metadata"] == ours.metadata


def test_our_cells_that_only_show_or_check_are_ours_again(home: Path) -> None:
    notebook = given(check_gpipe="print('full marks')", title="# My notebook")
    found = cells(prepared(home, notebook))
    assert found["check-gpipe"]["source"] == 'check("gpipe")'
    title = next(cell.source for cell in MASTER.cells if cell.id == "title")
    assert found["title"]["source"] == title
    assert "print('full marks')" not in [cell["source"] for cell in found.values()]


def test_a_verdict_is_the_output_of_its_cell_and_no_other_output_is_there(home: Path) -> None:
    notebook = given()
    evil = {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>"}}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell["outputs"] = [evil]
    failed = made.verdict("failed", "Stage 2 never runs F1.\x1b[2J", 0)
    found = cells(prepared(home, notebook, exercises=[failed]))
    outputs = {name: cell["outputs"] for name, cell in found.items() if cell.get("outputs")}
    assert list(outputs) == ["check-gpipe"]
    [output] = outputs["check-gpipe"]
    assert (output.output_type, output.name) == ("stream", "stdout")
    assert output.text == "Not right yet: 0 of 3 points\n\nStage 2 never runs F1.?[2J\n"


def test_own_cells_stay_where_they_stood(home: Path) -> None:
    notebook = given()
    own = [Node(cell_type="code", id=f"x{i}", metadata={}, source=f"mine_{i} = 1") for i in "abc"]
    at = [cell.id for cell in notebook.cells].index("solution-idle_share")
    notebook.cells = [own[0], *notebook.cells[: at + 1], own[1], *notebook.cells[at + 1 :], own[2]]
    sources = [cell["source"] for cell in cells(prepared(home, notebook)).values()]
    assert sources[0] == "mine_a = 1"
    assert sources[at + 2] == "mine_b = 1"
    assert sources[-1] == "mine_c = 1"


def test_of_a_cell_that_is_there_twice_the_last_counts_and_both_are_shown(home: Path) -> None:
    notebook = given(solution_gpipe="first = 1")
    at = [cell.id for cell in notebook.cells].index("solution-gpipe")
    notebook.cells.insert(at + 1, Node(notebook.cells[at], source="second = 2"))
    as_given = next(cell for cell in MASTER.cells if cell.id == "solution-gpipe")
    notebook.cells.insert(at + 2, as_given)
    found = cells(prepared(home, notebook))
    assert found["solution-gpipe"]["source"] == "second = 2"
    assert "first = 1" in [cell["source"] for cell in found.values()]


def test_what_the_grader_noted_stands_on_top_as_plain_text(home: Path) -> None:
    made_of = prepared(home, given(), notes=["A <b>note</b>."], cell_errors=["a: NameError"])
    first = next(iter(cells(made_of).values()))
    assert first["outputs"][0].text == (
        "A <b>note</b>.\n\nCells that stopped with an error:\na: NameError\n"
    )


@pytest.mark.parametrize("damaged", ["{", "[]", ""])
def test_a_file_that_is_no_notebook_gives_ours_with_the_reason(home: Path, damaged: str) -> None:
    refused = made.refused("ann")
    made_of = prepare(home, entry_of(home.parent, damaged), refused, MASTER, MATCHER)
    found = cells(made_of)
    assert list(found) == ["remarks", *(cell.id for cell in MASTER.cells)]
    assert found["remarks"]["outputs"][0].text == "Not graded: The file is empty.\n"
    assert made_of.handed.blank == made_of.handed.unanswered == frozenset()
    readable = prepare(home, entry_of(home.parent, given()), refused, MASTER, MATCHER)
    assert readable.handed.unanswered == frozenset()  # no 0 for what was not graded


def test_what_was_left_blank_is_told_and_what_may_be_an_answer_is_not(home: Path) -> None:
    blank = prepared(home, given()).handed
    assert {WRITTEN, "solution-gpipe"} <= blank.blank
    assert blank.unanswered == {WRITTEN}
    answered_by = prepared(home, given(answer="Because.", solution_gpipe="x = 1")).handed
    assert not {WRITTEN, "solution-gpipe"} & answered_by.blank
    assert answered_by.unanswered == frozenset()
    elsewhere = given()
    text = Node(cell_type="markdown", id="own", metadata={}, source="It is because of this.")
    elsewhere.cells.insert(3, text)
    assert prepared(home, elsewhere).handed.unanswered == frozenset()
    missing = given()
    missing.cells = [cell for cell in missing.cells if cell.id != "answer"]
    assert prepared(home, missing).handed.unanswered == frozenset()


def test_another_file_than_last_time_is_told_once_it_was_written(home: Path) -> None:
    first = prepared(home, given())
    assert not first.handed.changed
    first.write()
    assert not prepared(home, given()).handed.changed
    again = prepared(home, given(answer="x"), hashes={"submission": "another"})
    assert again.handed.changed
    again.write()
    assert not prepared(home, given(), hashes={"submission": "another"}).handed.changed


def test_a_notebook_is_only_written_where_it_changes(home: Path) -> None:
    made_of = prepared(home, given())
    made_of.write()
    os.utime(made_of.path, (1, 1))
    made_of.write()
    assert made_of.path.stat().st_mtime == 1
    prepared(home, given(answer="x")).write()
    assert made_of.path.stat().st_mtime > 1


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2030-05-01 12:00:00.25 UTC", datetime(2030, 5, 1, 12, 0, 0, 250000)),
        ("2030-05-01T12:00:00+02:00", datetime(2030, 5, 1, 10)),
        (None, datetime(2020, 1, 1)),
        ("yesterday", datetime(2020, 1, 1)),
        ("", datetime(2020, 1, 1)),
    ],
)
def test_the_time_is_that_of_the_timestamp_or_of_the_file(
    home: Path, stamp: str | None, expected: datetime
) -> None:
    entry = entry_of(home.parent, given())
    os.utime(entry.path, (1577836800, 1577836800))
    if stamp is not None:
        (entry.path.parent / "timestamp.txt").write_text(stamp)
    assert time_of(entry, home)[0] == expected


def test_a_timestamp_beside_many_notebooks_is_nobodys(home: Path, tmp_path: Path) -> None:
    (tmp_path / "timestamp.txt").write_text("2030-05-01 12:00:00 UTC")
    path = tmp_path / "ann.ipynb"
    path.touch()
    os.utime(path, (1577836800, 1577836800))
    assert time_of(Entry("ann", A, path), home) == (datetime(2020, 1, 1), False)
    assert time_of(Entry("ann", A, tmp_path / "absent.ipynb"), home) == (None, False)


def test_in_nbgraders_own_folder_only_its_timestamp_counts(home: Path) -> None:
    """Else formgrader would take the submission for one that is not graded yet."""
    path = home / "submitted" / "ann" / A / f"{A}.ipynb"
    path.parent.mkdir(parents=True)
    path.touch()
    assert time_of(Entry("ann", A, path), home) == (None, False)
    (path.parent / "timestamp.txt").write_text("2030-05-01 12:00:00 UTC")
    assert time_of(Entry("ann", A, path), home) == (datetime(2030, 5, 1, 12), True)


@pytest.mark.parametrize(
    "live",
    [
        "<script>x</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](/formgrader/api/students)",
        "[x][y]\n\n[y]: javascript:alert(1)",
        "[y]\n\n[y]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "# <img src=x onerror=alert(1)>",
        "|a|b|\n|-|-|\n|<img src=x onerror=alert(1)>|b|",
        "> <iframe src=x>",
        r"\\<img src=x>",
        r"\(<img src=x>\)",
        "&lt;img src=x&gt; <b>",
        "```<img>\n<img>\n```",
    ],
)
def test_markdown_is_rendered_with_nothing_live_in_it(live: str) -> None:
    from nbconvert.filters import markdown2html

    pattern = r"<(?!/?(?:p|pre|code|h1|t\w+|blockquote|br|span)\b)|javascript:[^<]*\"|href=\"java"
    assert re.search(pattern, markdown2html(live)) or "<img>" in live
    html = re.sub(
        r'<a class="anchor-link" href="#[^"<>]*">&#182;</a>', "", markdown2html(harmless(live))
    )
    assert not re.search(pattern, html)
    assert harmless(live).replace(JOINER, "") == live


def test_formulas_lose_only_what_makes_links(home: Path) -> None:
    assert harmless(r"$\frac{a}{b}$ *x* `a[0]`") == r"$\frac{a}{b}$ *x* `a[0]`"
    assert harmless(r"\href{javascript:x}{y}") == rf"\{JOINER}href{{javascript:x}}{{y}}"
