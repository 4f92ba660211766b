import json
from pathlib import Path

import nbformat
import pytest
import toy_notebook as toy

from autograder.cells import (
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


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_read(mark: bytes) -> None:
    data = toy.notebook([toy.cell("code", "a", "x = 1\r\ny = 2")])
    assert parse_notebook(mark + data).cells[0].source == "x = 1\ny = 2"


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
        (b"9" * 5000, "not JSON"),
        (b"[]", "format 4"),
        (toy.notebook(nbformat=3), "format 4"),
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
