"""From a submitted file to the cells that are run: repaired where sure, refused where not.

Our set-up cells come first and from the master. Then come, in the order of the student's notebook,
the solution cells, the student's own code cells, and cells of ours in which the student defined
something. Every other cell of ours is left out: what it shows is not graded. Nothing of the
submission is executed here, and no link is followed.
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
_MAGIC_LINE = re.compile(r"^\s*[%!?,;/]|\?\s*$|=\s*[%!]", re.MULTILINE)
_MAX_MAGICS = 20  # IPython reads the whole cell again for each
_LONG_CELL = 20_000
_MOST_LISTED = 5  # of what a folder holds
_FOREIGN = {b"%PDF": "a PDF", b"PK\x03\x04": "a zip archive", b"<": "a web page (HTML)"}
_BINDING = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
_DEFINED = re.compile(r"^(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", re.MULTILINE)
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
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        kind = f"folder ({_listed(descriptor)})" if stat.S_ISDIR(mode) else "pipe or device"
        os.close(descriptor)
        return Refusal(f"The file is a {kind}; hand in the notebook itself.")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_NOTEBOOK_BYTES + 1)
    if len(data) > MAX_NOTEBOOK_BYTES:
        return Refusal(
            f"The file is larger than {MAX_NOTEBOOK_BYTES // 2**20} MB;"
            " clear its outputs and hand it in again."
        )
    return data


def _listed(folder: int) -> str:
    """The names in an open folder, the first few of them, as they can be printed."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    shown = ["".join(c if c.isprintable() else "?" for c in name) for name in names[:_MOST_LISTED]]
    more = [f"{len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
    return f"in it: {', '.join(shown + more)}" if names else "an empty one"


def splice(data: bytes, master: Node) -> Submission | Refusal:
    """The cells to run of a submission's bytes, or why there are none."""
    sha256 = hashlib.sha256(data).hexdigest()
    for beginning, kind in _FOREIGN.items():
        if data[:100].lstrip().startswith(beginning):
            return Refusal(f"The file is {kind}; hand in the notebook itself (.ipynb).", sha256)
    try:
        notebook = parse_notebook(data)
    except NotebookError as error:
        return Refusal(str(error), sha256)
    taken = _Taken(_Matcher(master))
    for number, cell in enumerate(notebook.cells, start=1):
        taken.take(number, cell)
    if not taken.recognised:
        return Refusal(
            "No cell of this assignment was recognised in it; hand in the notebook that was given"
            " out, with your answers in its cells.",
            sha256,
        )
    return Submission(sha256, taken.cells, [*taken.notes, *taken.notes_on_cells()])


class _Taken:
    """What is taken of a notebook, cell by cell: `cells` as they are run, `notes` on them."""

    def __init__(self, matcher: "_Matcher") -> None:
        self.matcher = matcher
        self.cells = [("set-up", source) for source in matcher.setup]
        self.notes: list[str] = []
        self.found: dict[str, int] = {}  # how often each solution cell is there
        self.recognised = False
        self.set_up = False

    def take(self, number: int, cell: Node) -> None:
        """Adds the cell that is `number` from the top, if it is to be run."""
        ours = self.matcher.find(cell)
        self.recognised |= self.matcher.telling(cell, ours)
        self.set_up |= self.matcher.sets_up(cell, ours)
        if ours is None and cell.cell_type == "code":
            self.cells.append((f"cell {number} from the top", plain_python(cell.source)))
        elif ours is not None and role(ours) == "solution":
            self.found[ours.id] = self.found.get(ours.id, 0) + 1
            self.cells.append((f"your cell for {_topic(ours.id)}", plain_python(cell.source)))
            if cell.cell_type != "code":
                self.notes.append(
                    f"The cell for {_topic(ours.id)} had become a {cell.cell_type} cell;"
                    " it was run as code."
                )
        elif ours is not None and ours.cell_type == "code" and _binds_more(cell, ours):
            which = "The set-up cell" if role(ours) == "setup" else f"Cell {number} from the top"
            self.notes.append(f"{which}, one of those given out, was changed; it was run as well.")
            self.cells.append((f"cell {number} from the top", plain_python(cell.source)))

    def notes_on_cells(self) -> list[str]:
        """Which of the cells given out are missing or there more than once."""
        notes = []
        if self.matcher.setup and not self.set_up:
            notes.append("The set-up cell is missing; the one given out was run in its place.")
        notes += [
            f"The cell for {_topic(cell_id)} is there {times} times; all were run, in order."
            for cell_id, times in self.found.items()
            if times > 1
        ]
        missing = [cell for cell in self.matcher.solutions if cell.id not in self.found]
        return notes + _missing_notes(missing, self.cells)


def _topic(cell_id: str) -> str:
    """What a solution cell is called in front of students: its id is hidden from them."""
    return cell_id.removeprefix("solution-")


def _missing_notes(missing: list[Node], cells: list[tuple[str, str]]) -> list[str]:
    """A note per solution cell whose names are lost, one on all those whose names are elsewhere."""
    if not missing:
        return []
    defined = {name for _, source in cells for name in _defined(source)}
    notes, elsewhere = [], []
    for cell in missing:
        lost = [f"`{name}`" for name in _defined(cell.source) if name not in defined]
        if lost:
            names = " and ".join(lost)
            notes.append(
                f"The cell for {_topic(cell.id)} is missing; no other cell defines {names}."
            )
        else:
            elsewhere.append(_topic(cell.id))
    if elsewhere:
        notes.append(
            f"What the cells given out for {', '.join(elsewhere)} define stands in other cells;"
            " it counts all the same."
        )
    return notes


def _defined(source: str) -> list[str]:
    """The names that a cell's text defines at its top, as far as its lines begin with them."""
    return [function or value for function, value in _DEFINED.findall(source)]


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
        setup = [cell.source for cell in master.cells if role(cell) == "setup"]
        self.setup = [plain_python(source) for source in setup]
        self.setup_texts = {source.strip() for source in setup}
        self.solutions = [cell for cell in master.cells if role(cell) == "solution"]

    def find(self, cell: Node) -> Node | None:
        """The cell of ours that the submitted one is, None if it is the student's own."""
        by_id = self.by_id.get(cell.id) or self.by_grade_id.get(grade_id(cell))
        return by_id or self.by_text.get(cell.source.strip())

    def sets_up(self, cell: Node, ours: Node | None) -> bool:
        """Whether it is our set-up cell, though its id may be lost."""
        return cell.source.strip() in self.setup_texts or (
            ours is not None and role(ours) == "setup"
        )

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
        python: str = TransformerManager().transform_cell(source)  # type: ignore[no-untyped-call]
        return _TIMED.sub(lambda match: str(ast.literal_eval(match[1])), python)
    except Exception:  # IPython stumbles over unfinished lines in ways of its own
        return source
