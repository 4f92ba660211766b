"""The bank of unit 01: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "raised", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_01.cheats import CHEATS as CHEATS
from autograder.bank.unit_01.right import RIGHT as RIGHT
from autograder.bank.unit_01.wrong_gather import GATHERS
from autograder.bank.unit_01.wrong_numbers import CAUSES, COSTS
from autograder.bank.unit_01.wrong_reduce import REDUCES
from autograder.bank.unit_01.wrong_scatter import SCATTERS
from autograder.bank.unit_01.wrong_tree import TREES

WRONG: tuple[Answer, ...] = (*GATHERS, *SCATTERS, *REDUCES, *COSTS, *TREES, *CAUSES)
