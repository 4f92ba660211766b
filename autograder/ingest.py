"""From a submitted file to the cells that are run: repaired where sure, refused where not.

Our set-up cells come first and from the master. Then come, in the order of the student's notebook,
the solution cells and the student's own code cells. Every other cell of ours is left out: what it
shows is not graded. Nothing of the submission is executed here, and no link is followed.
"""

import ast
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from autograder.cells import MAX_NOTEBOOK_BYTES, Node, NotebookError, grade_id, parse_notebook, role

# A cell of ours is known again by its text only if that text is long enough to be nobody else's.
_TELLING_CHARACTERS = 40

_TIMED = re.compile(r"get_ipython\(\)\.run_line_magic\('(?:time|timeit|prun)', (['\"].*['\"])\)")
_MAGIC_LINE = re.compile(r"^\s*[%!?]|\?\s*$|=\s*[%!]", re.MULTILINE)
_MAX_MAGICS = 20  # IPython reads the whole cell again for each
_LONG_CELL = 20_000
_BINDING = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
_BODY_RUNS = ("%%time", "%%timeit", "%%capture", "%%prun")


class Submission(NamedTuple):
    """What will be run of one submission.

    `cells` are (name, source) in order, `sha256` is that of the file, `notes` say in a sentence
    each what was repaired or left out.
    """

    sha256: str
    cells: list[tuple[str, str]]
    notes: list[str]


class Refusal(NamedTuple):
    """Why a submission cannot be graded; `sha256` is "" where the file was not read to its end."""

    reason: str
    sha256: str = ""


def ingest(path: Path, master: Node) -> Submission | Refusal:
    """The cells of the submission at `path` for the unit whose notebook is `master`."""
    data = read_file(path)
    return data if isinstance(data, Refusal) else splice(data, master)


def read_file(path: Path) -> bytes | Refusal:
    """The bytes of a plain file of at most 20 MB; never those behind a link, pipe or device."""
    try:
        # O_NONBLOCK: opening a pipe without a writer would wait for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        kind = "is a link" if path.is_symlink() else f"cannot be opened ({error.strerror})"
        return Refusal(f"The file {kind}; hand in the notebook itself.")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return Refusal("The file is a folder, pipe or device; hand in the notebook itself.")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_NOTEBOOK_BYTES + 1)
    if len(data) > MAX_NOTEBOOK_BYTES:
        return Refusal(
            f"The file is larger than {MAX_NOTEBOOK_BYTES // 2**20} MB;"
            " clear its outputs and hand it in again."
        )
    return data


def splice(data: bytes, master: Node) -> Submission | Refusal:
    """The cells to run of a submission's bytes, or why there are none."""
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        notebook = parse_notebook(data)
    except NotebookError as error:
        return Refusal(str(error), sha256)
    matcher = _Matcher(master)
    cells = [("set-up", source) for source in matcher.setup]
    notes: list[str] = []
    found: dict[str, int] = {}
    recognised = False
    for number, cell in enumerate(notebook.cells, start=1):
        ours = matcher.find(cell)
        recognised |= matcher.telling(cell, ours)
        if ours is None and cell.cell_type == "code":
            cells.append((f"your cell {number}", plain_python(cell.source)))
        elif ours is not None and role(ours) == "solution":
            found[ours.id] = found.get(ours.id, 0) + 1
            cells.append((ours.id, plain_python(cell.source)))
            if cell.cell_type != "code":
                notes.append(f"{ours.id} had become a {cell.cell_type} cell; it was run as code.")
        elif ours is not None and ours.cell_type == "code" and _binds_more(cell, ours):
            notes.append(
                f"{ours.id}, a cell of ours, was changed; names added there are not known when"
                " graded. Put them into a solution cell or a cell of your own."
            )
    if not recognised:
        return Refusal(
            "No cell of this assignment was recognised in it; hand in the notebook that was given"
            " out, with your answers in its cells.",
            sha256,
        )
    for cell_id in matcher.solutions:
        if found.get(cell_id, 0) > 1:
            notes.append(f"{cell_id} is there {found[cell_id]} times; all were run, in order.")
        elif cell_id not in found:
            notes.append(f"{cell_id} is missing; a function defined elsewhere still counts.")
    return Submission(sha256, cells, notes)


class _Matcher:
    """Finds the master's cell for a submitted one: by cell id, then grade_id, then equal text."""

    def __init__(self, master: Node) -> None:
        self.by_id = {cell.id: cell for cell in master.cells}
        self.by_grade_id = {grade_id(cell): cell for cell in master.cells if grade_id(cell)}
        self.by_text = {
            cell.source.strip(): cell
            for cell in master.cells
            if role(cell) in ("ours", "graded") and len(cell.source) >= _TELLING_CHARACTERS
        }
        self.setup = [plain_python(c.source) for c in master.cells if role(c) == "setup"]
        self.solutions = [cell.id for cell in master.cells if role(cell) == "solution"]

    def find(self, cell: Node) -> Node | None:
        """The cell of ours that the submitted one is, None if it is the student's own."""
        by_id = self.by_id.get(cell.id) or self.by_grade_id.get(grade_id(cell))
        return by_id or self.by_text.get(cell.source.strip())

    def telling(self, cell: Node, ours: Node | None) -> bool:
        """Whether the match shows that this is our notebook (every unit has a cell "title")."""
        if ours is None:
            return False
        return role(ours) in ("solution", "graded") or cell.source.strip() in self.by_text


def _binds_more(cell: Node, ours: Node) -> bool:
    """Whether a changed cell of ours binds names at its top, which a student may rely on."""
    if cell.source.strip() == ours.source.strip() or len(cell.source) > _LONG_CELL:
        return False
    statements = _statements(plain_python(cell.source)) or []
    return any(isinstance(statement, _BINDING) for statement in statements)


def _statements(source: str) -> list[ast.stmt] | None:
    """The statements of a Python text, None if it is none."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def plain_python(source: str) -> str:
    """The cell's text with each magic turned into a call of `get_ipython()`, line by line.

    There, magics do nothing. A timing magic runs its statement; a cell magic that is not Python
    empties the cell. A cell that is no Python, or has more than 20 magics, stays as it is: running
    it reports the error.
    """
    stripped = source.lstrip()
    if stripped.startswith("%%"):
        first, _, body = stripped.partition("\n")
        if first.split()[0] not in _BODY_RUNS:
            return ""
        source = f"# {first}\n{body}"  # as a comment, so that line numbers stay
    if _statements(source) is not None or len(_MAGIC_LINE.findall(source)) > _MAX_MAGICS:
        return source
    # imported here: most submissions do without it
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        source = TransformerManager().transform_cell(source)  # type: ignore[no-untyped-call]
    except SyntaxError:
        return source
    return _TIMED.sub(lambda match: str(ast.literal_eval(match[1])), source)
