"""A cell must not cost the answers in others: what of it is run again for the next exercise.

Every exercise runs the notebook's cells in a process of its own. What was stopped, or ended that
process, in one is left out in the next ones: of the student's own cells first, then of the cells
for other answers.
"""

import ast
from collections.abc import Collection, Sequence

from autograder.sandbox import RemoteSubject
from autograder.submissions.ingest import SET_UP, Cell, blanked
from autograder.submissions.magics import statements_of
from autograder.submissions.matching import names_of

_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
# What a constant is written with: it cannot end the process, nor go on for ever.
_CONSTANT = (
    *(ast.Assign, ast.AnnAssign, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set),
    *(ast.UnaryOp, ast.unaryop, ast.expr_context),
)
_ENDED = (
    "One of your own cells ended the process or could not be stopped; of your own cells only what"
    " they define was run.",
    "One of your cells ended the process or could not be stopped; of the cells that do not hold the"
    " answer itself only what they define was run.",
)


class Runnable:
    """The cells of one submission as far as they are run; `notes` say what is left out."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = [Cell(*cell) for cell in cells]
        self._n_lost = 0  # processes that the cells have ended

    @property
    def notes(self) -> list[str]:
        """A sentence where cells are run in part only."""
        return [_ENDED[self._n_lost - 1]] if self._n_lost else []

    def cells_for(self, names: Collection[str]) -> list[Cell]:
        """What is run for an exercise that asks for these functions."""
        return [
            _only_definitions(cell) if self._is_left_out(cell, names) else cell
            for cell in self._cells
        ]

    def _is_left_out(self, cell: Cell, names: Collection[str]) -> bool:
        if cell.own or self._n_lost < 2:
            return cell.own and self._n_lost > 0
        return cell.name != SET_UP and not set(names) & set(names_of(cell.source))

    def learn(self, subject: RemoteSubject, names: Collection[str]) -> bool:
        """Takes account of how the cells ran; whether they should be run again at once."""
        if not subject.lost or subject.has_run_cells:
            for index, line in subject.stopped:
                if index < len(self._cells) and self._cells[index].own:
                    self._cells[index] = _up_to(self._cells[index], line)
            return False
        ran, before = self.cells_for(names), self._n_lost
        while self._n_lost < len(_ENDED):
            self._n_lost += 1
            if self.cells_for(names) != ran:
                return True
        self._n_lost = before  # the answer's own cell did it
        return False


def _only_definitions(cell: Cell) -> Cell:
    statements = statements_of(cell.source)
    if statements is None:
        return cell._replace(source="")
    others = [one for one in statements if not _is_harmless(one)]
    return cell._replace(source=blanked(cell.source, others))


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether it only defines something: a function, a class, a module's name, a constant."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return all(isinstance(node, _CONSTANT) for node in ast.walk(statement))
    return isinstance(statement, _DEFINING)


def _up_to(cell: Cell, line: int) -> Cell:
    """The cell without the statement that this line is in, and all after it."""
    late = [one for one in statements_of(cell.source) or [] if (one.end_lineno or 0) >= line]
    return cell._replace(source=blanked(cell.source, late))
