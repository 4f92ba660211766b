"""Every notebook as a student and as an author meets it: canonical, running, and with holes."""

import ast
import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from autograder.exercise import load_unit
from autograder.release import student_notebook
from autograder.submissions.cells import canonical, role

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("*/*.ipynb"))
MOST_SECONDS_A_CELL = 120  # a guard against hanging, not a speed
MOST_LINES = 25


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def source(request):
    return request.param


def executed(text, folder):
    notebook = nbformat.reads(text, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=MOST_SECONDS_A_CELL,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def errors(notebook):
    return {
        cell.id: output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    }


def test_the_source_is_canonical_and_has_no_output(source):
    text = source.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    assert text == canonical(notebook)
    assert not [cell.id for cell in notebook.cells if cell.get("outputs")]


def test_with_solutions_it_runs_and_passes_every_check(source, tmp_path):
    notebook = executed(source.read_text(encoding="utf-8"), tmp_path)
    assert errors(notebook) == {}
    for cell in notebook.cells:
        if role(cell) == "graded":
            # Neither partial credit nor anything on stderr; a stream may come in several pieces.
            assert {output.name for output in cell.outputs} == {"stdout"}
            points = cell.metadata.nbgrader.points
            told = f"{points} of {points} points" if points else "passed"
            assert "".join(output.text for output in cell.outputs).endswith(f": {told}.\n")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [one for one in outputs if "<img" in one.get("data", {}).get("text/html", "")]
    assert pictures and {one.output_type for one in pictures} == {"display_data"}  # at once


def test_the_release_fails_in_graded_cells_only_and_says_what_is_missing(source, tmp_path):
    notebook = executed(student_notebook(source), tmp_path)
    failed = errors(notebook)
    graded = {cell.id for cell in notebook.cells if role(cell) == "graded"}
    assert set(failed) == graded
    assert all(error.evalue.endswith("is not written yet.") for error in failed.values())


def test_graded_cells_ask_for_the_exercises_of_the_unit_with_their_points(source):
    unit = load_unit(source.stem.partition("-")[0])
    notebook = nbformat.read(source, as_version=4)
    graded = [cell for cell in notebook.cells if role(cell) == "graded"]
    asked = [(cell.source.splitlines()[-1], cell.metadata.nbgrader.points) for cell in graded]
    assert asked == [(f'check("{one.id}")', one.points) for one in unit.exercises]


def test_the_title_of_an_exercise_begins_with_the_label_it_has_in_the_notebook(source):
    titles = [one.title for one in load_unit(source.stem.partition("-")[0]).exercises]
    label, labels = "", []
    for cell in nbformat.read(source, as_version=4).cells:
        label = next(iter(re.findall(r"^### (E\d+)\. ", cell.source, re.MULTILINE)), label)
        if role(cell) == "graded":
            labels.append(label)
    assert [title.partition(" ")[0] for title in titles] == labels


def test_no_other_cell_of_ours_binds_a_name(source):
    """A name that a cell we do not grade binds would be missing in the grader."""
    for cell in nbformat.read(source, as_version=4).cells:
        if cell.cell_type == "code" and role(cell) not in ("setup", "solution"):
            nodes = ast.parse(cell.source).body
            assert all(isinstance(node, ast.Expr) for node in nodes), cell.id


def test_code_cells_are_short_enough_to_be_seen_at_once(source):
    for cell in nbformat.read(source, as_version=4).cells:
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= MOST_LINES, cell.id
