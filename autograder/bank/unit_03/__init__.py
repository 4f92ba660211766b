"""The bank of unit 03: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "missing", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_03.cheats import CHEATS as CHEATS
from autograder.bank.unit_03.right import RIGHT as RIGHT
from autograder.bank.unit_03.wrong_cause import WRONG_CAUSES
from autograder.bank.unit_03.wrong_number import BUBBLES, TIMES
from autograder.bank.unit_03.wrong_schedule import SCHEDULES
from autograder.bank.unit_03.wrong_share import SHARES
from autograder.bank.unit_03.wrong_split import SPLITS

WRONG: tuple[Answer, ...] = (
    *SCHEDULES,
    *SHARES,
    *BUBBLES,
    *TIMES,
    *SPLITS,
    *WRONG_CAUSES,
)
