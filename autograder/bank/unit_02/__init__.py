"""The bank of unit 02: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "missing", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_02.cheats import CHEATS as CHEATS
from autograder.bank.unit_02.right import RIGHT as RIGHT
from autograder.bank.unit_02.wrong_bill import BILLS
from autograder.bank.unit_02.wrong_bytes import BYTES
from autograder.bank.unit_02.wrong_cause import WRONG_CAUSES
from autograder.bank.unit_02.wrong_naive import SCHEDULES
from autograder.bank.unit_02.wrong_share import SHARES

WRONG: tuple[Answer, ...] = (*SCHEDULES, *SHARES, *BYTES, *BILLS, *WRONG_CAUSES)
