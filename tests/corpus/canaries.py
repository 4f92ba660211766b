"""What of the secret cases would be known again in anything a student can see."""

import re
from collections.abc import Iterator

from making import unit

from autograder.bank.tabulated import _Recorder
from autograder.bank.unit_01 import RIGHT as RIGHT_01
from autograder.bank.unit_02 import RIGHT as RIGHT_02
from autograder.bank.unit_03 import RIGHT as RIGHT_03
from autograder.exercise import Draw, Exercise
from autograder.seeds import PUBLIC_SECRET, case_seed

_RIGHT = {"01": RIGHT_01[0], "02": RIGHT_02[0], "03": RIGHT_03[0]}
# Shorter texts, like (4, 8), stand in honest messages by chance.
_TELLING_CHARACTERS = 9
# A number of so many digits is nobody's by chance.
_LONG_NUMBER = re.compile(r"\d+\.\d{7,}|\d{9,}")


def canaries(number: str, secret: bytes) -> set[str]:
    """Texts that stand in the unit's secret cases and in no public one."""
    public, hidden = "", set()
    for exercise in unit(number).exercises:
        seed = case_seed(secret, number, exercise.id, 0)
        public += "\n".join(_asked(exercise, Draw(case_seed(PUBLIC_SECRET, number, exercise.id))))
        for arguments in _asked(exercise, Draw(seed, secret=True)):
            hidden |= {*_LONG_NUMBER.findall(arguments)}
            if len(arguments) >= _TELLING_CHARACTERS:
                hidden.add(arguments)
    return {text for text in hidden if text not in public}


def _asked(exercise: Exercise, draw: Draw) -> Iterator[str]:
    """The arguments of each call in one run of a check, on a right answer, as text."""
    table: dict[str, str] = {}
    exercise.run(_Recorder(_RIGHT[exercise.unit].source, exercise.names, table), draw)
    for call in table:  # like "('gpipe', (4, 8))"
        yield call.partition("', ")[2][:-1]
