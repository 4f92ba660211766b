"""Which of our cells a submitted one is, and that no accident costs an answer."""

import copy
import itertools
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.exercise import load_unit, unit_numbers
from autograder.grader import source_notebook
from autograder.release import student_notebook
from autograder.submissions.cells import Node, canonical, parse_notebook, read_notebook, role
from autograder.submissions.ingest import Refusal, Submission, splice
from autograder.submissions.matching import LIKE, Matcher, given_out, likeness, names_of

UNITS = unit_numbers()
NAMES = sorted({name for exercise in load_unit("03").exercises for name in exercise.names})


@cache
def master(unit: str) -> Node:
    read: Node = read_notebook(source_notebook(load_unit(unit)))
    return read


def solved(unit: str = "03") -> list[dict[str, Any]]:
    """The cells of a right submission, as they stand in its file."""
    cells: list[dict[str, Any]] = json.loads(canonical(master(unit)))["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    return cells


def read(cells: list[dict[str, Any]], unit: str = "03") -> Submission | Refusal:
    tree = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return splice(json.dumps(tree).encode(), master(unit))


def spliced(cells: list[dict[str, Any]], unit: str = "03") -> Submission:
    got = read(cells, unit)
    assert isinstance(got, Submission), got
    return got


def of_id(cells: list[dict[str, Any]], cell_id: str) -> dict[str, Any]:
    return next(cell for cell in cells if cell.get("id") == cell_id)


def own(source: str, cell_type: str = "code") -> dict[str, Any]:
    return {"cell_type": cell_type, "id": "own", "metadata": {}, "source": source}


def strip(cells: list[dict[str, Any]]) -> None:
    for cell in cells:
        cell.pop("id", None)
        cell["metadata"] = {}


@pytest.mark.parametrize("unit", UNITS)
def test_a_solution_cell_as_given_out_is_what_nbgrader_makes_of_it(unit: str) -> None:
    released = parse_notebook(student_notebook(source_notebook(load_unit(unit))).encode())
    for ours, theirs in zip(master(unit).cells, released.cells, strict=True):
        if role(ours) == "solution":
            assert given_out(ours.source) == theirs.source


def test_no_cell_for_an_answer_is_as_like_another_as_it_must_be_to_be_taken_for_it() -> None:
    cells = [cell for unit in UNITS for cell in master(unit).cells if role(cell) == "solution"]
    pairs = itertools.permutations(cells, 2)
    most = max(likeness(given_out(one.source), other.source) for one, other in pairs)
    assert 0.3 < most < 0.8 * LIKE
    assert all(likeness(given_out(cell.source), cell.source) > 0.99 for cell in cells)


def test_a_function_too_deep_to_be_compared_is_the_students_own() -> None:
    deep = "def gpipe(n_stages, n_microbatches):\n    return " + "+".join("1" * 1500)
    (taken,) = Matcher(master("03")).match(
        [Node(cell_type="code", id="x", metadata={}, source=deep)]
    )
    assert (taken.answered, taken.stubs) == ({"gpipe"}, [])


@pytest.mark.parametrize("unit", UNITS)
def test_every_cell_of_a_unit_is_itself_by_its_ids_and_without_them(unit: str) -> None:
    cells = [Node(cell) for cell in solved(unit)]
    taken = Matcher(master(unit)).match(cells)
    assert [one.ours for one in taken] == [[cell] for cell in master(unit).cells]
    for cell in cells:
        cell.update(id="", metadata=Node())
    for one, ours in zip(Matcher(master(unit)).match(cells), master(unit).cells, strict=True):
        if role(ours) in ("solution", "written"):
            assert one.ours == [ours]
        elif one.cell.cell_type == "code":
            assert [cell.source for cell in one.ours] == [ours.source]


@pytest.mark.parametrize("pair", list(itertools.permutations(UNITS, 2)), ids="-for-".join)
@pytest.mark.parametrize("stripped", [False, True])
def test_the_notebook_of_another_unit_is_refused(pair: tuple[str, str], stripped: bool) -> None:
    cells = solved(pair[0])
    if stripped:
        strip(cells)
    got = read(cells, pair[1])
    assert isinstance(got, Refusal)
    assert "No cell of this assignment was recognised" in got.reason


def test_a_right_submission_gets_no_note_and_its_answers_are_kept_by_id() -> None:
    got = spliced(solved())
    assert got.notes == []
    assert set(got.answers) == {
        cell.id for cell in master("03").cells if role(cell) in ("solution", "written")
    }
    assert got.answers["solution-gpipe"] == of_id(solved(), "solution-gpipe")["source"].strip("\n")


def test_a_notebook_without_any_cell_for_an_answer_is_refused() -> None:
    cells = [cell for cell in solved() if not cell["id"].startswith("solution-")]
    assert isinstance(read(cells), Refusal)


def test_stubs_cost_nothing_before_or_after_the_answer_or_in_its_cell() -> None:
    answer = of_id(solved(), "solution-bubble")["source"]
    stub = given_out(answer)
    first, second = answer.split("\n\n\n")
    first_stub, second_stub = stub.split("\n\n\n")
    for sources in (
        [answer, stub],
        [stub, answer],
        [f"{answer}\n\n{stub}"],
        [f"{first}\n\n{second_stub}", f"{first_stub}\n\n{second}"],
        [answer, stub.replace("# YOUR CODE HERE", "# I shall do it later").replace("25", "2500")],
    ):
        cells = [cell for cell in solved() if cell["id"] != "solution-bubble"]
        cells += [own(source) for source in sources]
        namespace: dict[str, Any] = {}
        for name, source, _ in spliced(cells).cells:
            if name == "your cell for bubble":
                exec(source, namespace)
        assert namespace["bubble_fraction"](2, 3) == 0.25, sources
        assert round(namespace["bubble_over_ideal"](2, 3), 4) == 0.3333, sources


def test_an_untouched_stub_stays_where_nothing_else_answers() -> None:
    cells = solved()
    of_id(cells, "solution-gpipe")["source"] = given_out(of_id(cells, "solution-gpipe")["source"])
    (source,) = [c.source for c in spliced(cells).cells if c.name == "your cell for gpipe"]
    assert "raise NotImplementedError()" in source


def test_a_split_answer_is_run_in_its_parts_and_a_merged_one_once() -> None:
    cells = solved()
    place = cells.index(of_id(cells, "solution-bubble"))
    first, second = cells[place]["source"].split("\n\n\n")
    cells[place : place + 1] = [{**cells[place], "source": first}, own(second)]
    got = spliced(cells)
    assert got.notes == ["The cell for bubble was split; its 2 parts were run in order."]
    assert got.answers["solution-bubble"].split("\n\n\n") == [first, second.rstrip("\n")] or (
        first in got.answers["solution-bubble"] and second.strip() in got.answers["solution-bubble"]
    )
    cells = solved()
    moved = cells.pop(cells.index(of_id(cells, "solution-min_microbatches")))
    of_id(cells, "solution-bubble")["source"] += f"\n\n{moved['source']}"
    got = spliced(cells)
    assert "The cells for bubble, min_microbatches are one cell; it counts for each." in got.notes
    assert got.answers["solution-min_microbatches"] == got.answers["solution-bubble"]
    assert [name for name, *_ in got.cells].count("your cell for bubble and min_microbatches") == 1


def test_an_old_attempt_kept_as_text_does_not_replace_the_answer() -> None:
    cells = solved()
    old = "def gpipe(n_stages, n_microbatches):\n    return []"
    cells += [own(old, "raw"), own(f"I had:\n```python\n{old}\n```", "markdown")]
    got = spliced(cells)
    assert "return []" not in str(got.cells)
    assert "The cell for gpipe had become" not in str(got.notes)


def test_an_answer_as_text_is_run_even_in_a_fence_and_refused_where_it_is_no_python() -> None:
    cells = solved()
    answer = cells.pop(cells.index(of_id(cells, "solution-gpipe")))["source"]
    fenced = f"My answer:\n\n```python\n{answer}\n```\n"
    for text in (answer, fenced):
        got = spliced([*cells, own(text, "markdown")])
        assert ("your cell for gpipe", False) in [(name, mine) for name, _, mine in got.cells]
        assert "The cell for gpipe had become a markdown cell; it was run as code." in got.notes
    got = read([*cells, own(f"My answer is\n\n{answer}", "markdown")])
    assert isinstance(got, Refusal)
    assert "`gpipe` is in cell" in got.reason


def test_a_stripped_answer_under_another_name_is_known_by_its_text_and_kept() -> None:
    cells = solved()
    strip(cells)
    changed = next(cell for cell in cells if "def split_batch" in cell["source"])
    changed["source"] = changed["source"].replace("split_batch", "cut_batch")
    got = spliced(cells)
    assert "cut_batch" in got.answers["solution-split_batch"]
    assert got.cells[-1].source and "def cut_batch" in str(got.cells)


def test_a_written_answer_is_known_by_its_place() -> None:
    cells = solved()
    of_id(cells, "answer")["source"] = "Because of the overhead."
    strip(cells)
    got = spliced(cells)
    assert got.answers["answer"] == "Because of the overhead."
    assert any("by its place" in note for note in got.notes)
    cells = [cell for cell in cells if cell["source"] != "Because of the overhead."]
    got = spliced(cells)
    assert "answer" not in got.answers
    assert "The answer in your own words is missing; a person has to look for it." in got.notes


def test_a_written_answer_below_its_untouched_cell_counts() -> None:
    cells = solved()
    place = cells.index(of_id(cells, "answer"))
    cells.insert(place + 1, own("Because.", "markdown"))
    assert spliced(cells).answers["answer"] == "Because."


def test_a_result_that_takes_a_functions_name_is_no_answer() -> None:
    assert names_of("gpipe = gpipe(4, 8)\ncause = 'none'\nx: int = 5\n(a, b) = f()") == []
    assert names_of("gpipe = mine\nf = lambda: 0\nclass C: pass") == ["gpipe", "f", "C"]
    assert names_of("'''\ndef gpipe():\n'''") == []
    assert names_of("def gpipe(:\n    pass") == ["gpipe"]


def test_answers_in_another_order_are_run_as_they_stand() -> None:
    got = spliced(solved()[::-1])
    assert got.notes == [
        "The answers stand in another order than given out; they were run in that order."
    ]
    assert got.cells[1].name == "your cell for cause"


def test_a_hostile_notebook_is_matched_in_a_moment() -> None:
    cells = solved()
    strip(cells)
    answer = next(cell for cell in cells if "def gpipe" in cell["source"])["source"]
    near = given_out(answer).replace("def gpipe", "def other")
    cells = [cell for cell in cells if "def gpipe" not in cell["source"]]
    got = read([*cells, *[own(f"{near}\n# {i}") for i in range(700)]])
    assert isinstance(got, Submission)
    assert "solution-gpipe" not in got.answers  # all are alike, none clearly


# ---- accidents, many at a time ----

ACCIDENTS = st.lists(
    st.tuples(
        st.sampled_from(
            "swap strip_id strip_metadata copy copy_stub retype split merge own drop_other".split()
        ),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
    ),
    max_size=12,
)


def damage(cells: list[dict[str, Any]], kind: str, a: int, b: int) -> None:
    """One accident that loses no answer."""
    i, j = a % len(cells), b % len(cells)
    cell = cells[i]
    if kind == "swap":
        cells[i], cells[j] = cells[j], cells[i]
    elif kind == "strip_id":
        cell.pop("id", None)
    elif kind == "strip_metadata":
        cell["metadata"] = {}
    elif kind == "copy":
        cells.insert(j, copy.deepcopy(cell))
    elif kind == "copy_stub":
        cells.insert(j, {**copy.deepcopy(cell), "source": given_out(cell["source"])})
    elif kind == "retype" and "def " in cell["source"]:
        cell["cell_type"] = ["markdown", "raw"][b % 2]
    elif kind == "split" and cell["cell_type"] == "code" and "\n\n\n" in cell["source"]:
        first, second = cell["source"].split("\n\n\n", 1)
        cells[i : i + 1] = [{**cell, "source": first}, {**cell, "source": second}]
    elif kind == "merge" and i + 1 < len(cells):
        after = cells[i + 1]
        if cell["cell_type"] == after["cell_type"] == "code":
            cells[i : i + 2] = [{**cell, "source": f"{cell['source']}\n\n{after['source']}"}]
    elif kind == "own":
        cells.insert(i, own(["x = 1", "1 / 0", "%timeit -n 10 sum([1])", "gpipe = 5"][b % 4]))
    elif kind == "drop_other" and not set(names_of(cell["source"])) & set(NAMES):
        del cells[i]


@given(ACCIDENTS)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_to_a_right_notebook_its_answers_are_run(
    accidents: list[tuple[str, int, int]],
) -> None:
    cells = solved()
    for kind, a, b in accidents:
        damage(cells, kind, a, b)
    got = read(cells)
    if isinstance(got, Refusal):
        assert "a person has to look" in got.reason
        return
    last: dict[str, str] = {}  # the source that defines each name last
    for cell in got.cells:
        for name in names_of(cell.source):
            last[name] = cell.source
    assert set(NAMES) <= set(last)
    for name in NAMES:
        defining = last[name][last[name].rindex(f"def {name}(") :].split("\n\n\n")[0]
        assert "NotImplementedError" not in defining
