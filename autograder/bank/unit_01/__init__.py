"""The bank of unit 01: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "raised", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_01.cheats import CHEATS as CHEATS
from autograder.bank.unit_01.right import RIGHT as RIGHT
from autograder.bank.unit_01.wrong_numbers import CAUSES, COSTS
from autograder.bank.unit_01.wrong_rings import GATHERS, REDUCES, SCATTERS, TREES

WRONG: tuple[Answer, ...] = (*GATHERS, *SCATTERS, *REDUCES, *COSTS, *TREES, *CAUSES)
