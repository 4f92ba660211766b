"""From a submitted file to the cells that are run: repaired where sure, refused where not.

Our set-up cells come first and from the master. Then come, in the order of the student's notebook,
the solution cells, the student's own code cells, and cells of ours in which the student defined
something. Every other cell of ours is left out: what it shows is not graded. Nothing of the
submission is executed here, and no link is followed.
"""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from autograder.submissions.archives import FileError, read_member, read_plain
from autograder.submissions.cells import Node, NotebookError, parse_notebook, role
from autograder.submissions.finding import Entry
from autograder.submissions.magics import plain_python, statements_of
from autograder.submissions.matching import Matcher, Taken, given_out
from autograder.submissions.repairs import Found, notes_on, topic

_LONG_CELL = 20_000
_FOREIGN = {b"%PDF": "a PDF", b"PK\x03\x04": "a zip archive", b"<": "a web page (HTML)"}
_BINDING = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


SET_UP = "set-up"  # the name of our own cells


class Cell(NamedTuple):
    """A cell to run: what the student calls it, its Python, whether it is one of the student's own.

    Own cells share a time of their own.
    """

    name: str
    source: str
    own: bool = False


class Submission(NamedTuple):
    """What will be run of one submission.

    `cells` are in order, `sha256` is that of the file, `notes` say in a sentence each what was
    repaired or left out. `answers` holds the student's text of each solution and written cell that
    is there, by the id of our cell.
    """

    sha256: str
    cells: list[Cell]
    notes: list[str]
    answers: dict[str, str] = {}  # noqa: RUF012 (nobody changes it)


class Refusal(NamedTuple):
    """Why a submission cannot be graded; `sha256` is "" where the file was not read to its end."""

    reason: str
    sha256: str = ""


def ingest(path: Path, master: Node, member: str = "") -> Submission | Refusal:
    """The cells of the submission at `path` for the unit whose notebook is `master`.

    `member` names the notebook where `path` is an archive.
    """
    data = read_file(path, member)
    return data if isinstance(data, Refusal) else splice(data, master)


def read_file(path: Path, member: str = "") -> bytes | Refusal:
    """The bytes of a plain file of at most 20 MB, or of that member where it is an archive."""
    try:
        return read_member(path, member) if member else read_plain(path)
    except FileError as error:
        return Refusal(str(error))


def read_entry(entry: Entry) -> bytes | Refusal:
    """The bytes of what a student handed in, or why there are none."""
    return Refusal(entry.problem) if entry.problem else read_file(entry.path, entry.member)


def splice(data: bytes, master: Node) -> Submission | Refusal:
    """The cells to run of a submission's bytes, or why there are none."""
    sha256 = hashlib.sha256(data).hexdigest()
    for beginning, kind in _FOREIGN.items():
        if data[:100].lstrip().startswith(beginning):
            return Refusal(f"The file is {kind}; hand in the notebook itself (.ipynb).", sha256)
    repairs: list[str] = []
    try:
        notebook = parse_notebook(data, repairs)
    except NotebookError as error:
        return Refusal(str(error), sha256)
    spliced = _Spliced(Matcher(master), notebook.cells)
    why_not = spliced.why_not()
    if why_not:
        return Refusal(why_not, sha256)
    notes = [*repairs, *notes_on(spliced.matcher, spliced.found)]
    return Submission(sha256, spliced.cells(), notes, spliced.answers())


def work(data: bytes, master: Node) -> str | bytes | None:
    """What of a notebook's bytes is the student's work, to be compared; None where nothing is.

    What cannot be read is work of its own.
    """
    try:
        read = splice(data, master)
    except RecursionError:
        return data
    if isinstance(read, Refusal):
        return data
    as_given = [Node(cell, source=given_out(cell.source)) for cell in master.cells]
    given = _Spliced(Matcher(master), as_given)
    ours, theirs = (
        repr((sorted(answers.items()), [cell.source.strip() for cell in cells]))
        for answers, cells in ((given.answers(), given.cells()), (read.answers, read.cells))
    )
    return None if ours == theirs else theirs


class _Spliced:
    """A submitted notebook's cells matched with ours: what of them is run."""

    def __init__(self, matcher: Matcher, cells: list[Node]) -> None:
        self.matcher = matcher
        taken = matcher.match(cells)
        answered = {name for one in taken if not one.is_text for name in one.answered}
        # A text is run as code only for what no code cell answers: it may be an old attempt.
        retyped = [one for one in taken if one.is_text and one.names - answered]
        answered |= {name for one in retyped for name in one.answered}
        run = [one for one in taken if self._is_run(one) or one in retyped]
        self.found = Found(taken, run, answered)

    def _is_run(self, one: Taken) -> bool:
        return not one.is_text and (
            not one.ours or bool(one.solutions) or bool(one.names) or self._binds_more(one)
        )

    def _binds_more(self, one: Taken) -> bool:
        """Whether a changed cell of ours binds names at its top, which a student may rely on."""
        text = one.cell.source.strip()
        if any(text == cell.source.strip() for cell in one.ours) or len(text) > _LONG_CELL:
            return False
        if any(role(cell) == "written" for cell in one.ours):
            return False
        return any(isinstance(s, _BINDING) for s in statements_of(one.python) or [])

    def why_not(self) -> str:
        """Why this cannot be graded, "" if it can."""
        if not any(one.solutions for one in self.found.run):
            return (
                "No cell of this assignment was recognised in it as one for an answer; hand in the"
                " notebook that was given out, with your answers in its cells."
            )
        there = {name for one in self.found.run for name in one.names}
        for one in self.found.taken:
            lost = self.matcher.names_in(one.cell.source) - there if one.is_text else set()
            if lost:
                names = " and ".join(f"`{name}`" for name in sorted(lost))
                return (
                    f"What may be the answer for {names} is in cell {one.number} from the top, a"
                    f" {one.cell.cell_type} cell that is no Python as it stands there; a person has"
                    " to look, or put it into a code cell and hand in again."
                )
        return ""

    def cells(self) -> list[Cell]:
        """What is run, in order."""
        cells = [Cell(SET_UP, plain_python(cell.source)) for cell in self.matcher.setup]
        for one in self.found.run:
            # A stub counts for nothing where there is an answer, be it before or after.
            source = blanked(one.python, [s for s in one.stubs if s.name in self.found.answered])
            answers = " and ".join(map(topic, one.solutions))
            name = f"your cell for {answers}" if answers else f"cell {one.number} from the top"
            cells.append(Cell(name, source, own=not answers))
        return cells

    def answers(self) -> dict[str, str]:
        """The student's text of each solution and written cell, by our cell's id."""
        answers = {}
        for cell in self.matcher.solutions:
            there = self.found.of(cell)
            answers[cell.id] = _joined(self.found.worked_on(cell) or there[:1])
        for cell in self.matcher.written:
            there = [one for one in self.found.taken if cell in one.ours]
            given = cell.source.strip()
            written = [one for one in there if one.cell.source.strip() != given]
            answers[cell.id] = _joined(written or there)
        return {cell_id: text for cell_id, text in answers.items() if text}


def blanked(source: str, statements: Iterable[ast.stmt]) -> str:
    """The text with the lines of these statements empty, so that all others keep their number."""
    lines = source.split("\n")
    for statement in statements:
        decorators = getattr(statement, "decorator_list", [])
        first = min(part.lineno for part in (statement, *decorators))
        for number in range(first - 1, statement.end_lineno or first):
            lines[number] = ""
    return "\n".join(lines)


def _joined(cells: Iterable[Taken]) -> str:
    return "\n\n".join(one.cell.source for one in cells)
