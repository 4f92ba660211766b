"""The bank of unit 04: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "wrong_y", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_04.cheats import CHEATS as CHEATS
from autograder.bank.unit_04.right import RIGHT as RIGHT
from autograder.bank.unit_04.wrong_cause import WRONG_CAUSES
from autograder.bank.unit_04.wrong_chain import CHAINS
from autograder.bank.unit_04.wrong_gpipe import PEAKS
from autograder.bank.unit_04.wrong_lengths import FORWARDS, LENGTHS

WRONG: tuple[Answer, ...] = (*CHAINS, *LENGTHS, *FORWARDS, *PEAKS, *WRONG_CAUSES)
