import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import toy_notebook as toy

from autograder.submissions.cells import MAX_NOTEBOOK_BYTES, parse_notebook
from autograder.submissions.ingest import Refusal, Submission, ingest, splice
from autograder.submissions.magics import plain_python

MASTER = parse_notebook(toy.notebook())


def spliced(cells: list[dict[str, Any]]) -> Submission:
    read = splice(toy.notebook(cells), MASTER)
    assert isinstance(read, Submission)
    return read


def test_cells_are_our_set_up_then_solutions_and_own_code_in_notebook_order() -> None:
    cells = toy.cells()
    cells[1]["source"] = "import everything_else"
    own = toy.cell("code", "mine", "helper = 1")
    read = spliced([cells[5], own, *cells[:5]])
    assert [name for name, *_ in read.cells] == [
        "set-up",
        "your cell for half",
        "cell 2 from the top",
        "cell 4 from the top",  # the set-up cell as the student left it, after ours
        "your cell for double",
    ]
    assert read.cells[0][1].strip() == "import math"
    assert read.cells[3].source == "import everything_else"


@pytest.mark.parametrize("lost", ["id", "metadata"])
def test_a_solution_is_known_by_its_id_or_else_by_its_grade_id(lost: str) -> None:
    cells = toy.cells()
    for cell in cells:
        del cell[lost]
    names = [name for name, *_ in spliced(cells).cells]
    assert names[-2:] == ["your cell for double", "your cell for half"]


def test_a_notebook_stripped_of_ids_and_metadata_still_runs_its_code() -> None:
    cells = [{"cell_type": c["cell_type"], "source": c["source"]} for c in toy.cells()]
    read = spliced(cells)
    assert "def double" in str(read.cells)
    assert "that only shows something" not in str(read.cells)
    (note,) = read.notes
    assert note.startswith("The ids of the cells for double, half are lost;")


def test_a_copied_solution_runs_in_order_and_a_deleted_one_is_noted() -> None:
    cells = toy.cells()
    read = spliced([*cells[:3], {**cells[2], "id": "a-copy", "source": "double = len"}])
    assert read.cells[-1].source.strip() == "double = len"
    assert read.notes == [
        "The cell for double is there 2 times; all were run, in order.",
        "The cell for half is missing, and no other cell answers it.",
    ]


def test_a_notebook_as_given_out_gets_no_note() -> None:
    assert spliced(toy.cells()).notes == []


def test_a_deleted_set_up_cell_is_noted_and_ours_run() -> None:
    cells = toy.cells()
    read = spliced([cells[0], *cells[2:]])
    assert read.cells[0] == ("set-up", "import math", False)
    assert read.notes == ["The set-up cell is missing; the one given out was run in its place."]


def test_a_solution_turned_into_text_is_run_as_code() -> None:
    cells = toy.cells()
    cells[2] |= {"cell_type": "markdown"}
    read = spliced(cells)
    assert ("your cell for double", cells[2]["source"], False) in read.cells
    assert read.notes == ["The cell for double had become a markdown cell; it was run as code."]


@pytest.mark.parametrize(
    ("cell_id", "source", "noted"),
    [
        ("setup", "import math\nimport itertools", "The set-up cell"),
        ("demo", "def helper():\n    return 1", "Cell 5 from the top"),
        ("demo", "show(double, 22, 'another number')", ""),
        ("demo", "def broken(:", ""),
        ("setup", "import math\n", ""),
    ],
)
def test_names_added_to_a_cell_of_ours_are_noted_as_not_run(
    cell_id: str, source: str, noted: str
) -> None:
    cells = toy.cells()
    next(cell for cell in cells if cell["id"] == cell_id)["source"] = source
    read = spliced(cells)
    assert [note.split(",")[0] for note in read.notes] == ([noted] if noted else [])
    assert source.strip() == "import math" or source not in str(read.cells)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [toy.cell("code", "x", "print('my diary, in which nothing of the course is ever said')")],
        [toy.cell("markdown", "title", "# Another unit"), toy.cell("code", "setup", "import os")],
    ],
)
def test_a_notebook_without_a_cell_of_ours_is_refused(cells: list[dict[str, Any]]) -> None:
    read = splice(toy.notebook(cells), MASTER)
    assert isinstance(read, Refusal)
    assert "No cell of this assignment" in read.reason
    assert len(read.sha256) == 64


def test_ids_of_any_type_and_metadata_of_any_shape_are_survived() -> None:
    cells = toy.cells()
    cells[0] |= {"id": 7, "metadata": []}
    cells[4]["metadata"] = {"nbgrader": "yes", "tags": 5}
    cells.append(toy.cell("code", "odd", "x = 1", nbgrader={"grade_id": ["a"]}))
    assert spliced(cells).cells[-1][0] == "cell 7 from the top"


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(toy.notebook())
    assert isinstance(ingest(path, MASTER), Submission)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "absent", "large", "damaged", "pdf"])
def test_every_other_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.ipynb"
    target = tmp_path / "secret.ipynb"
    target.write_bytes(toy.notebook())
    make = {
        "link": lambda: path.symlink_to(target),
        "pipe": lambda: os.mkfifo(path),
        "folder": lambda: (path / "essay.pdf").mkdir(parents=True),
        "absent": lambda: None,
        "large": lambda: path.write_bytes(b" " * (MAX_NOTEBOOK_BYTES + 1)),
        "damaged": lambda: path.write_bytes(toy.notebook()[:-20]),
        "pdf": lambda: path.write_bytes(b"%PDF-1.7 and so on"),
    }
    make[kind]()
    read = ingest(path, MASTER)
    assert isinstance(read, Refusal)
    said = {
        "link": "is a link",
        "pipe": "pipe or device",
        "folder": "is a folder (in it: essay.pdf)",
        "absent": "No such file",
        "large": "20 MB",
        "damaged": "not JSON",
        "pdf": "is a PDF",
    }
    assert said[kind] in read.reason


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("x = 1", "x = 1"),
        ("  def f():\n    return 1", "def f():\n  return 1\n"),
        ("%time y = f('a')", "y = f('a')\n"),
        ("%time --no-raise-error y = f(1)", "y = f(1)\n"),
        ("%prun -l 5 -s name -q y = f(1)", "y = f(1)\n"),
        ("%timeit -n 10 f(1)", "get_ipython().run_line_magic('timeit', '-n 10 f(1)')\n"),
        ("%time y = (", "get_ipython().run_line_magic('time', 'y = (')\n"),
        ("%%time\nx = 1", "# %%time\nx = 1"),
        ("%%bash\nrm -rf /", ""),
        ("x = = 1", "x = = 1\n"),
    ],
)
def test_cells_become_plain_python(source: str, python: str) -> None:
    assert plain_python(source) == python


def test_every_other_magic_is_a_call_that_the_worker_answers() -> None:
    names: dict[str, Any] = {"get_ipython": MagicMock()}
    exec(plain_python("%matplotlib inline\n!ls\nlen?\nx = !ls\ny = 5"), names)
    assert names["y"] == 5
    assert names["get_ipython"].call_count == 4


def test_hundreds_of_magics_do_not_hold_the_grader_up() -> None:
    many = "%time x = 1\n" * 10_000
    assert plain_python(many) == many


@pytest.mark.parametrize(
    "source",
    [
        "y =%'''",
        "%matplotlib inline\nget_ipython().run_line_magic('time', 'a') + foo('b')",
        ",a b\n" * 490 + "x = 1 + 2\n" * 9000,
    ],
    ids=["unfinished", "a call of its own", "long"],
)
def test_a_cell_that_ipython_stumbles_over_stays_as_it_is(source: str) -> None:
    assert plain_python(source) == source
