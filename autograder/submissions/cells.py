"""Notebooks as data: read with limits, written in one canonical form, each cell with a role.

The canonical form is the only one that is committed: nbformat 4.5, no outputs, one kernel name,
sorted keys, one source line per JSON line, so that a one-line edit is a one-line diff.
"""

import codecs
import json
import re
from pathlib import Path
from typing import Any, Literal

MAX_NOTEBOOK_BYTES = 20 * 2**20
MAX_CELLS = 1000
MAX_CHARACTERS = 500_000  # of all cells' sources together
MAX_DEPTH = 100
MAX_BRACKETS = 2_000_000  # of the file: each opens a list or an object, which takes memory
_MOST_DIGITS = 4000  # of a whole number: reading longer ones takes time, which Python limits

Role = Literal["setup", "solution", "graded", "written", "ours"]

_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32-LE",  # begins like that of UTF-16
    codecs.BOM_UTF32_BE: "UTF-32-BE",
    codecs.BOM_UTF16_LE: "UTF-16-LE",
    codecs.BOM_UTF16_BE: "UTF-16-BE",
}
_CELL_TYPES = ("code", "markdown", "raw")
_KEPT_METADATA = ("deletable", "editable", "nbgrader", "tags")
_NOTEBOOK_METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


class Node(dict[str, Any]):
    """A dict whose keys are attributes too: nbformat's NotebookNode, whose import takes a second.

    Every function here takes either.
    """

    def __getattr__(self, name: str) -> Any:
        """The value of that key."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets the value of that key."""
        self[name] = value


def _node(tree: Any) -> Any:
    """The tree with every dict a Node."""
    if isinstance(tree, dict):
        return Node({key: _node(value) for key, value in tree.items()})
    return [_node(value) for value in tree] if isinstance(tree, list) else tree


class NotebookError(ValueError):
    """Why a file cannot be read as a notebook, in one sentence for the person who sent it.

    `reason` is the sentence without the advice to a student.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}{advice and f'; {advice}'}.")
        self.reason = f"{reason}."


def read_notebook(path: Path) -> Any:
    """The notebook at `path` without its outputs; NotebookError if it is none or too large."""
    with path.open("rb") as file:
        return parse_notebook(file.read(MAX_NOTEBOOK_BYTES + 1))


def parse_notebook(data: bytes, repairs: list[str] | None = None) -> Node:
    """The notebook in an .ipynb file's bytes, without outputs.

    Tolerated are older formats, byte order marks, UTF-16, line ends of any system, duplicate keys
    (the last counts, as in JupyterLab), and numbers that are none (null). `repairs` gets a sentence
    on each of what a student could notice.
    """
    repairs = [] if repairs is None else repairs
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise NotebookError(
            f"The file is larger than {MAX_NOTEBOOK_BYTES // 2**20} MB",
            "clear its outputs and hand it in again",
        )
    if not data.strip():
        raise NotebookError("The file is empty", "hand in the saved notebook")
    try:
        text = _decoded(data, repairs)
        if text.count("[") + text.count("{") > MAX_BRACKETS:
            raise NotebookError(f"The file holds more than {MAX_BRACKETS} lists and objects")
        tree = json.loads(text, parse_constant=lambda name: None, parse_int=_whole_number)
    except NotebookError:
        raise
    except RecursionError:
        raise NotebookError(f"The file nests deeper than {MAX_DEPTH} levels") from None
    except ValueError:  # also what a wrong encoding raises
        raise NotebookError(
            "The file is not a notebook (not JSON)",
            "open it in JupyterLab, save it, hand it in again",
        ) from None
    _refuse_deep(tree)
    return _notebook_of(_in_format_4(tree, repairs), repairs)


def _decoded(data: bytes, repairs: list[str]) -> str:
    """The text of a file; UnicodeDecodeError (a ValueError) where it is none."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            repairs.append(f"The file began with a byte order mark; it was read as {encoding}.")
            return data[len(mark) :].decode(encoding)
    return data.decode("utf-8")


def _whole_number(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def _in_format_4(tree: Any, repairs: list[str]) -> Any:
    """The tree of a notebook in an older format made one in format 4; others as they are."""
    version = tree.get("nbformat") if isinstance(tree, dict) else None
    if version not in (1, 2, 3) or isinstance(version, bool):
        return tree
    # imported here: it takes a second, and few need it
    from nbformat import converter, reader

    try:
        old = reader.reads(json.dumps(tree))  # type: ignore[no-untyped-call]
        converted = converter.convert(old, 4)  # type: ignore[no-untyped-call]
    except Exception:  # it checks nothing before it uses it
        return tree
    repairs.append(f"The notebook was in format {version}; it was made one in format 4.")
    return converted


def _refuse_deep(tree: object) -> None:
    """NotebookError if the tree nests deeper than MAX_DEPTH, so that later steps may recurse."""
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                deeper += [child for child in value.values() if isinstance(child, dict | list)]
            elif isinstance(value, list):
                deeper += [child for child in value if isinstance(child, dict | list)]
        if not deeper:
            return
        level = deeper
    raise NotebookError(f"The file nests deeper than {MAX_DEPTH} levels")


def _notebook_of(read: object, repairs: list[str]) -> Node:
    cells = read.get("cells") if isinstance(read, dict) else None
    if not isinstance(read, dict) or not isinstance(cells, list) or read.get("nbformat") != 4:
        raise NotebookError(
            "The file is JSON but not a notebook in format 4",
            "open it in JupyterLab, save it, hand it in again",
        )
    if len(cells) > MAX_CELLS:
        raise NotebookError(f"The notebook has {len(cells)} cells; at most {MAX_CELLS} are read")
    repairs += _on_kernel(read.get("metadata"))
    plain = [_cell_of(cell, number) for number, cell in enumerate(cells, start=1)]
    if any("\r" in cell["source"] for cell in plain):
        repairs.append("Line ends of another system were read as such.")
        for cell in plain:
            cell["source"] = re.sub("\r\n?", "\n", cell["source"])
    n_characters = sum(len(cell["source"]) for cell in plain)
    if n_characters > MAX_CHARACTERS:
        raise NotebookError(
            f"The notebook's cells hold {n_characters} characters of text;"
            f" at most {MAX_CHARACTERS} are read"
        )
    tree = {"cells": plain, "metadata": _NOTEBOOK_METADATA, "nbformat": 4, "nbformat_minor": 5}
    notebook: Node = _node(tree)
    return notebook


def _on_kernel(metadata: object) -> list[str]:
    """A sentence on a kernel that is not one for Python, or on none."""
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    named = [kernel.get(key) for key in ("language", "name")] if isinstance(kernel, dict) else []
    names = [name for name in named if isinstance(name, str) and name]
    if not names or any("py" in name.lower() for name in names):
        return []
    shown = "".join(c if c.isprintable() else "?" for c in names[-1][:40])
    return [f"The notebook asks for the kernel {shown}; its cells were run as Python."]


def _cell_of(cell: object, number: int) -> dict[str, Any]:
    """A cell's plain parts: cell_type, id (may be ""), metadata, source; no outputs."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in _CELL_TYPES:
        raise NotebookError(f"Cell {number} is not a code, markdown or raw cell")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise NotebookError(f"Cell {number} has no text as its source")
    metadata = cell.get("metadata")
    cell_id = cell.get("id")
    read = {
        "cell_type": cell["cell_type"],
        "id": cell_id if isinstance(cell_id, str) else "",
        "metadata": metadata if isinstance(metadata, dict) else {},
        # half a surrogate pair is legal JSON but no text that can be written again
        "source": source.encode("utf-8", "replace").decode("utf-8"),
    }
    if cell["cell_type"] == "code":
        read |= {"execution_count": None, "outputs": []}
    if isinstance(cell.get("attachments"), dict):
        read["attachments"] = cell["attachments"]
    return read


def nbgrader_metadata(cell: Node) -> dict[str, Any]:
    """The cell's nbgrader metadata, {} if it has none (or something else in its place)."""
    found = cell.metadata.get("nbgrader")
    return found if isinstance(found, dict) else {}


def grade_id(cell: Node) -> str:
    """The cell's nbgrader id, "" if it has none."""
    found = nbgrader_metadata(cell).get("grade_id")
    return found if isinstance(found, str) else ""


def role(cell: Node) -> Role:
    """What a cell of a source or release notebook is for; "ours" is everything that only shows."""
    nbgrader = nbgrader_metadata(cell)
    if "setup" in cell.metadata.get("tags", ()):
        return "setup"
    if nbgrader.get("task") or (nbgrader.get("grade") and nbgrader.get("solution")):
        return "written"
    if nbgrader.get("solution"):
        return "solution"
    return "graded" if nbgrader.get("grade") else "ours"


def canonical(notebook: Node) -> str:
    """The canonical text of a notebook: what `tidy` writes and what is committed."""
    cells = []
    taken: set[str] = set()
    for number, cell in enumerate(notebook.cells, start=1):
        cells.append(_canonical_cell(cell, _fresh_id(cell, number, taken)))
    tree = {"cells": cells, "metadata": _NOTEBOOK_METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _fresh_id(cell: Node, number: int, taken: set[str]) -> str:
    """The cell's id made legal and unique (a copied cell keeps its id in some editors)."""
    wanted = cell.get("id") or grade_id(cell) or f"cell-{number}"
    wanted = re.sub(r"[^a-zA-Z0-9_-]", "-", wanted)[:56]
    unique, copies = wanted, 1
    while unique in taken:
        copies += 1
        unique = f"{wanted}-{copies}"
    taken.add(unique)
    return unique


def _canonical_cell(cell: Node, cell_id: str) -> dict[str, Any]:
    metadata = {key: cell.metadata[key] for key in _KEPT_METADATA if key in cell.metadata}
    tidy = {
        "cell_type": cell.cell_type,
        "id": cell_id,
        "metadata": metadata,
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.cell_type == "code":
        tidy |= {"execution_count": None, "outputs": []}
    if cell.get("attachments"):
        tidy["attachments"] = cell["attachments"]
    return tidy


def tidy(path: Path, check: bool = False) -> bool:
    """Whether the file was canonical already; if it was not and not `check`, it is rewritten.

    ValueError naming a file that is no notebook.
    """
    try:
        wanted = canonical(read_notebook(path)).encode()
    except NotebookError as error:
        raise ValueError(f"{path} cannot be tidied: {error.reason}") from None
    same = path.read_bytes() == wanted
    if not same and not check:
        path.write_bytes(wanted)
    return same
