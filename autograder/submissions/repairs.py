"""What was repaired of a submission, or is missing in it: a sentence each, for its student."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from autograder.submissions.cells import Node, role
from autograder.submissions.matching import Matcher, Taken


class Found(NamedTuple):
    """A submission's cells, those of them that are run, and the names asked for that they answer.

    A name is answered where it is defined otherwise than as it was given out.
    """

    taken: list[Taken]
    run: list[Taken]
    answered: set[str]

    def of(self, solution: Node) -> list[Taken]:
        """The cells that are run and stand for a solution cell."""
        return [one for one in self.run if solution in one.ours]

    def worked_on(self, solution: Node) -> list[Taken]:
        """Those of them that are not empty or as they were given out."""
        return [
            one
            for one in self.of(solution)
            if one.cell.source.strip() and (one.answered or not one.names)
        ]


def topic(cell: Node) -> str:
    """What a solution cell is called in front of students: its id is hidden from them."""
    return str(cell.id).removeprefix("solution-")


def notes_on(matcher: Matcher, found: Found) -> list[str]:
    """A sentence for each repair, and for each cell given out that is missing."""
    return [
        *_on_shown(matcher, found),
        *(note for one in found.taken for note in _on_cell(found, one)),
        *(note for cell in matcher.solutions for note in _on_solution(found, cell)),
        *_on_all(matcher, found),
        *_on_written(matcher, found),
    ]


def _listed(cells: list[Node]) -> str:
    return ", ".join(map(topic, cells))


def _on_shown(matcher: Matcher, found: Found) -> Iterator[str]:
    shown = [cell for one in found.taken for cell in one.ours]
    if matcher.setup and not any(cell in shown for cell in matcher.setup):
        yield "The set-up cell is missing; the one given out was run in its place."


def _on_cell(found: Found, one: Taken) -> Iterator[str]:
    """What became of one submitted cell."""
    if one.is_text and one.solutions:
        kind = f"The cell for {_listed(one.solutions)} had become a {one.cell.cell_type} cell"
        if one in found.run:
            yield f"{kind}; it was run as code."
        elif not one.python:
            yield f"{kind} without code; it was not run."
    elif one in found.run and one.ours and role(one.ours[0]) != "solution":
        which = (
            "The set-up cell" if role(one.ours[0]) == "setup" else f"Cell {one.number} from the top"
        )
        yield f"{which}, one of those given out, was changed; it was run as well."
    if one in found.run and len(one.solutions) > 1:
        yield f"The cells for {_listed(one.solutions)} are one cell; it counts for each."


def _on_solution(found: Found, cell: Node) -> Iterator[str]:
    """What became of one of the cells for answers."""
    name, there, worked_on = topic(cell), found.of(cell), found.worked_on(cell)
    if not there:
        yield f"The cell for {name} is missing, and no other cell answers it."
    elif worked_on and len(worked_on) < len(there):
        yield (
            f"The cell for {name} is there as it was given out, too; that copy was passed over, as"
            " there is an answer."
        )
    if len(worked_on) > 1:
        names = [name for one in worked_on for name in one.answered]
        if len(set(names)) == len(names):
            yield f"The cell for {name} was split; its {len(worked_on)} parts were run in order."
        else:
            yield f"The cell for {name} is there {len(worked_on)} times; all were run, in order."


def _on_all(matcher: Matcher, found: Found) -> Iterator[str]:
    """What holds for several cells together."""
    there = {cell.id: found.worked_on(cell) or found.of(cell) for cell in matcher.solutions}
    lost = [
        cell
        for cell in matcher.solutions
        if there[cell.id] and not any(one.by_id for one in found.of(cell))
    ]
    if lost:
        yield (
            f"The ids of the cells for {_listed(lost)} are lost; the answers were known again by"
            " what they define, or by their text."
        )
    first = [there[cell.id][0].number for cell in matcher.solutions if there[cell.id]]
    if any(before > after for before, after in pairwise(first)):
        yield "The answers stand in another order than given out; they were run in that order."


def _on_written(matcher: Matcher, found: Found) -> Iterator[str]:
    for cell in matcher.written:
        there = [one for one in found.taken if cell in one.ours]
        if not there:
            yield "The answer in your own words is missing; a person has to look for it."
        elif not any(one.by_id for one in there):
            yield "The answer in your own words was known again by its place in the notebook."
