import json
from pathlib import Path

import nbformat
import pytest
import toy_notebook as toy

from autograder.submissions.cells import (
    MAX_NOTEBOOK_BYTES,
    NotebookError,
    canonical,
    parse_notebook,
    read_notebook,
    role,
    tidy,
)


def test_canonical_text_is_valid_and_stays_as_it_is() -> None:
    text = canonical(parse_notebook(toy.notebook()))
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert canonical(parse_notebook(text.encode())) == text


def test_canonical_text_is_what_nbformat_itself_writes() -> None:
    text = canonical(parse_notebook(toy.notebook()))
    assert nbformat.writes(nbformat.reads(text, as_version=4)) + "\n" == text


def test_canonical_text_drops_outputs_counts_and_what_editors_leave() -> None:
    cells = toy.cells()
    cells[1] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "leftover"}]}
    cells[1] |= {"execution_count": 7}
    cells[1]["metadata"] |= {"collapsed": True, "ExecuteTime": {"start": "leftover"}}
    messy = toy.notebook(cells, metadata={"kernelspec": {"name": "conda-env-leftover"}})
    assert canonical(parse_notebook(messy)) == canonical(parse_notebook(toy.notebook()))


def test_canonical_ids_are_unique_and_never_missing() -> None:
    cells = toy.cells()
    cells[0]["id"] = "title with spaces"
    cells[2].pop("id")
    cells[4]["id"] = "setup"
    ids = [
        cell["id"] for cell in json.loads(canonical(parse_notebook(toy.notebook(cells))))["cells"]
    ]
    assert ids[0] == "title-with-spaces"
    assert ids[2] == "solution-double"
    assert (ids[1], ids[4]) == ("setup", "setup-2")


def test_roles_follow_the_metadata() -> None:
    written = toy.nbgrader("why", 4, grade=True, solution=True)
    cells = [*toy.cells(), toy.cell("markdown", "why", "Because.", nbgrader=written)]
    roles = [role(cell) for cell in parse_notebook(toy.notebook(cells)).cells]
    assert roles == ["ours", "setup", "solution", "graded", "ours", "solution", "written"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_byte_order_mark_is_read_and_told(encoding: str) -> None:
    text = toy.notebook([toy.cell("code", "a", "x = 'é'")]).decode()
    mark = "" if encoding != "utf-16-be" else "\ufeff"  # Python writes none for this one
    repairs: list[str] = []
    assert parse_notebook((mark + text).encode(encoding), repairs).cells[0].source == "x = 'é'"
    assert [note.split(";")[0] for note in repairs] == ["The file began with a byte order mark"]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_every_system_are_read_and_told(end: str) -> None:
    tree = json.loads(toy.notebook([toy.cell("code", "a", f"x = 1{end}y = 2")]))
    data = json.dumps(tree, indent=1).replace("\n", end).encode()
    repairs: list[str] = []
    assert parse_notebook(data, repairs).cells[0].source == "x = 1\ny = 2"
    assert repairs == ["Line ends of another system were read as such."]


def test_a_notebook_in_format_3_is_converted_and_told() -> None:
    cells = [
        {"cell_type": "code", "input": "x = 1", "language": "python", "outputs": []},
        {"cell_type": "heading", "level": 2, "source": "Two", "metadata": {}},
    ]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    repairs: list[str] = []
    read = parse_notebook(json.dumps(old).encode(), repairs)
    assert [(cell.cell_type, cell.source) for cell in read.cells] == [
        ("code", "x = 1"),
        ("markdown", "## Two"),
    ]
    assert repairs == ["The notebook was in format 3; it was made one in format 4."]


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 4, 99])
def test_every_minor_version_of_format_4_is_read(minor: int) -> None:
    cells = [{**cell, "id": None} for cell in toy.cells()]
    repairs: list[str] = []
    assert len(parse_notebook(toy.notebook(cells, nbformat_minor=minor), repairs).cells) == 6
    assert repairs == []


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ({"name": "python3"}, False),
        ({"name": "conda-env-x", "language": "python"}, False),
        ({"name": "ir", "language": "R"}, True),
        ({"name": "no-such\x1bkernel"}, True),
        ({"name": 5, "language": []}, False),
        ("python3", False),
    ],
)
def test_a_kernel_of_another_language_is_told(kernel: object, told: bool) -> None:
    repairs: list[str] = []
    parse_notebook(toy.notebook(metadata={"kernelspec": kernel}), repairs)
    assert [note.startswith("The notebook asks for the kernel") for note in repairs] == [
        True
    ] * told
    assert all(note.isprintable() for note in repairs)


@pytest.mark.parametrize(
    "odd",
    [
        '{"big": ' + "9" * 5000 + "}",
        '{"n": NaN, "i": -Infinity}',
        '{"half": "\\ud800"}',
        '{"twice": 1, "twice": 2}',
    ],
)
def test_odd_values_beside_the_text_are_survived(odd: str) -> None:
    data = toy.notebook(metadata={"here": 0}).replace(b'{"here": 0}', odd.encode())
    assert len(parse_notebook(data).cells) == 6
    cells = [toy.cell("code", "a", "x = 1", tags="here")]
    data = toy.notebook(cells).replace(b'"here"', odd.encode())
    text = canonical(parse_notebook(data))
    assert "NaN" not in text and "Infinity" not in text


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    data = toy.notebook([toy.cell("code", "a", "x = 1")])
    twice = data.replace(b'"source": "x = 1"', b'"source": "first", "source": "last"')
    assert parse_notebook(twice).cells[0].source == "last"


def test_half_a_surrogate_pair_can_be_written_again() -> None:
    data = toy.notebook([toy.cell("code", "a", "x = '\ud800'")])
    assert canonical(parse_notebook(data)).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"9" * 5000, "format 4"),
        (b"[]", "format 4"),
        (toy.notebook(nbformat=3), "format 4"),
        (toy.notebook(nbformat=3, worksheets=[{"cells": [{}]}]), "format 4"),
        (toy.notebook(nbformat=True), "format 4"),
        (b"[" + b"[]," * 2_100_000 + b"0]", "lists and objects"),
        (toy.notebook(cells="none"), "format 4"),
        (b"[" * 100_000, "nests deeper"),
        (b"[" * 150 + b"]" * 150, "nests deeper"),
        (b" " * (MAX_NOTEBOOK_BYTES + 1), "larger than 20 MB"),
        (toy.notebook([{"cell_type": "heading", "source": ""}]), "Cell 1 is not a code"),
        (toy.notebook([{"cell_type": "code", "source": 5}]), "Cell 1 has no text"),
        (toy.notebook([toy.cell("raw", "a", "")] * 1001), "1001 cells"),
        (toy.notebook([toy.cell("raw", "a", "x" * 600_000)]), "600000 characters"),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotebookError, match=reason):
        parse_notebook(data)


def test_tidy_rewrites_once_and_only_looks_when_checking(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(toy.notebook())
    assert not tidy(path, check=True)
    assert path.read_bytes() == toy.notebook()
    assert not tidy(path)
    assert tidy(path)
    assert path.read_text() == canonical(read_notebook(path))
