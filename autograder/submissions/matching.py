"""Which of our cells a submitted one is: by its ids, by what it defines, by likeness, by place."""

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeGuard

from autograder.submissions.cells import Node, grade_id, role
from autograder.submissions.magics import plain_python, statements_of

_REGION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION", re.DOTALL | re.MULTILINE
)
# What nbgrader puts in the place of a solution.
_STUB = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"
_STUB_LINES = re.compile(r"^[ \t]*(?:# YOUR CODE HERE|raise NotImplementedError\(\))\n?", re.M)
_TOP_NAMES = re.compile(r"^(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", re.MULTILINE)
_FENCED = re.compile(r"^```(?:python3?|py)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MAY_BE_FUNCTION = (ast.Lambda, ast.Name, ast.Attribute, ast.Call)
_TELLING_CHARACTERS = 40  # a shorter text may be somebody else's
# The share that a cell must hold of the lines given out to be taken for that cell. Answered ones
# hold all of their own, and at most 0.4 of any other of the course.
LIKE, _CLEARLY = 0.5, 0.1
_SHORTEST_LINE = 12


def given_out(source: str) -> str:
    """A solution cell's text as students get it, from the author's."""
    return _REGION.sub(_STUB, source)


def likeness(released: str, text: str) -> float:
    """The share of a released text's lines, without its placeholders, that stand in another.

    In characters; lines shorter than a dozen stand in any text and do not count.
    """
    ours, theirs = telling_lines(_STUB_LINES.sub("", released)), set(telling_lines(text))
    return sum(len(line) for line in ours if line in theirs) / max(1, sum(map(len, ours)))


def telling_lines(text: str) -> list[str]:
    """The lines of a text that are long enough to tell it from others, without indent."""
    return [line for line in map(str.strip, text.splitlines()) if len(line) >= _SHORTEST_LINE]


def names_of(source: str) -> list[str]:
    """The names that a cell defines at its top; of one that is no Python, by how lines begin."""
    statements = statements_of(source)
    if statements is None:
        return list(dict.fromkeys(name or value for name, value in _TOP_NAMES.findall(source)))
    return list(dict.fromkeys(name for statement in statements for name in defined_by(statement)))


def defined_by(statement: ast.stmt) -> list[str]:
    """The names that a statement may make functions or classes, imports left out.

    Not `bubble = bubble(4, 16)`, where a result takes the function's name.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, _MAY_BE_FUNCTION):
        return []
    used = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return [name for name in names if name not in used]


class Taken(NamedTuple):
    """A submitted cell, `number` from the top, and the cells of ours that it is or stands for.

    `python` is its text as it can be run, "" for what is only text; `names` is what is asked for
    and defined at its top, `answered` the part of it that is not as it was given out, `stubs` are
    the statements that are. Without `ours` it is the student's own. `by_id` says whether an id
    shows what it is.
    """

    number: int
    cell: Node
    python: str
    names: set[str]
    answered: set[str]
    stubs: list[ast.FunctionDef | ast.ClassDef]
    ours: list[Node]
    by_id: bool

    @property
    def solutions(self) -> list[Node]:
        """The cells for answers among ours."""
        return [cell for cell in self.ours if role(cell) == "solution"]

    @property
    def is_text(self) -> bool:
        """Whether it is not a code cell."""
        return str(self.cell.cell_type) != "code"


class Matcher:
    """Finds the cells of one unit's notebook in submitted ones."""

    def __init__(self, master: Node) -> None:
        self.cells: list[Node] = master.cells
        self._by_id = {cell.id: cell for cell in master.cells}
        self._by_grade_id = {grade_id(cell): cell for cell in master.cells if grade_id(cell)}
        self.setup = [cell for cell in master.cells if role(cell) == "setup"]
        self.solutions = [cell for cell in master.cells if role(cell) == "solution"]
        self.written = [cell for cell in master.cells if role(cell) == "written"]
        self._by_text = {
            cell.source.strip(): cell
            for cell in master.cells
            if role(cell) in ("setup", "graded", "ours")
            and (cell.cell_type == "code" or len(cell.source) >= _TELLING_CHARACTERS)
        }
        self.released = {cell.id: given_out(cell.source) for cell in self.solutions}
        self.by_name = {n: c for c in self.solutions for n in names_of(self.released[c.id])}
        self._stubs = {
            statement.name: body_of(statement)
            for text in self.released.values()
            for statement in statements_of(text) or []
            if isinstance(statement, ast.FunctionDef | ast.ClassDef)
        }

    def match(self, cells: Sequence[Node]) -> list[Taken]:
        """What each submitted cell is."""
        taken = [self._take(number, cell) for number, cell in enumerate(cells, start=1)]
        found = {ours.id for one in taken for ours in one.solutions}
        self._add_alike(taken, [cell for cell in self.solutions if cell.id not in found])
        self._add_written(taken)
        return taken

    def _take(self, number: int, cell: Node) -> Taken:
        by_id = self._by_id.get(cell.id) or self._by_grade_id.get(grade_id(cell))
        known = by_id or self._by_text.get(cell.source.strip())
        ours = [] if known is None else [known]
        python = self._code_in(cell)
        named = [name for name in names_of(python) if name in self.by_name]
        for name in named:
            if self.by_name[name] not in ours:
                ours.append(self.by_name[name])
        statements = (statements_of(python) or []) if named else []
        stubs = [s for s in statements if self._is_stub(s)]
        written = {n for s in statements if s not in stubs for n in defined_by(s)}
        answered = written & set(named) if statements else set(named)
        return Taken(number, cell, python, set(named), answered, stubs, ours, by_id is not None)

    def _is_stub(self, statement: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.ClassDef]:
        """Whether it defines something asked for and is as it was given out."""
        return isinstance(statement, ast.FunctionDef | ast.ClassDef) and self._stubs.get(
            statement.name
        ) == body_of(statement)

    def _code_in(self, cell: Node) -> str:
        """The cell as Python; of a text only what defines something asked for."""
        if cell.cell_type == "code":
            return plain_python(cell.source)
        if not self.names_in(cell.source):
            return ""
        fenced = "\n".join(_FENCED.findall(cell.source))
        for code in (plain_python(cell.source), fenced):
            if statements_of(code) and self.by_name.keys() & names_of(code):
                return code
        return ""

    def names_in(self, text: str) -> set[str]:
        """What is asked for and defined somewhere in a text, be it indented or quoted."""
        found = re.findall(r"^[ \t>]*(?:def|class)[ \t]+(\w+)", text, re.MULTILINE)
        return self.by_name.keys() & found

    def _add_alike(self, taken: list[Taken], missing: list[Node]) -> None:
        """Takes cells of the student's for the missing answers that they are clearly most like."""
        left = [one for one in taken if not one.ours]
        for ours in missing:
            released = self.released[ours.id]
            alike = sorted(
                ((likeness(released, one.cell.source), one.number, one) for one in left),
                reverse=True,
            )
            second = alike[1][0] if len(alike) > 1 else 0.0
            if alike and alike[0][0] >= max(LIKE, second + _CLEARLY):
                alike[0][2].ours.append(ours)

    def _add_written(self, taken: list[Taken]) -> None:
        """Takes texts of the student's for the written answer between whose neighbours they stand.

        Where the cell given out for it holds an answer, that one counts alone.
        """
        for ours in self.written:
            given = ours.source.strip()
            if any(ours in one.ours and one.cell.source.strip() != given for one in taken):
                continue
            at = self.cells.index(ours)
            before, after = (
                [i for i, one in enumerate(taken) if cell in one.ours]
                for cell in (self.cells[at - 1], self.cells[min(at + 1, len(self.cells) - 1)])
            )
            if before and after:
                for one in taken[before[0] + 1 : after[0]]:
                    if one.is_text and not one.ours:
                        one.ours.append(ours)


@lru_cache(maxsize=128)  # most statements are those of cells as given out, parsed once
def body_of(statement: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """What a function or class does, whatever its comments and docstring say."""
    body = statement.body
    if ast.get_docstring(statement, clean=False) is not None:
        body = body[1:]
    try:
        return [ast.dump(part) for part in body]
    except RecursionError:  # legal Python, and nothing that was given out
        return []
