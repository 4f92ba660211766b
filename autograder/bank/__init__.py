"""The bank of each unit, `unit_NN`: answers with the verdict that each must get.

A bank module holds three tuples of `Answer`: RIGHT, WRONG and CHEATS.
"""

from typing import NamedTuple


class Answer(NamedTuple):
    """The code of one student.

    `expected`: for each exercise it answers, the score and the id of the first diagnosis, "" for
    full points. `needs_walls` marks a cheat that reaches around in the process it runs in: only a
    walled process of its own gives this verdict.
    """

    id: str
    source: str
    expected: dict[str, tuple[int, str]]
    needs_walls: bool = False
