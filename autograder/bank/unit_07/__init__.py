"""The bank of unit 07: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "raised", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_07 import cheats, right
from autograder.bank.unit_07.right import COUNTED
from autograder.bank.unit_07.wrong_pass import BACKWARDS, FORWARDS
from autograder.bank.unit_07.wrong_run import RUNS
from autograder.bank.unit_07.wrong_steps import CAUSES, STEPS_WRONG


def _with_programs(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Each answer with the notebook's own programs that a check runs."""
    return tuple(answer._replace(source=COUNTED + answer.source) for answer in answers)


RIGHT = _with_programs(right.RIGHT)
WRONG = _with_programs((*FORWARDS, *BACKWARDS, *RUNS, *STEPS_WRONG, *CAUSES))
CHEATS = _with_programs(cheats.CHEATS)
