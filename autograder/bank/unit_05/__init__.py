"""The bank of unit 05: the wrong ones are real mistakes, each with the diagnosis it must draw.

What draws a general diagnosis ("differs", "missing", ...) was put in without a thought of any
mistake the checks know: it is caught because they compare with the truth.
"""

from autograder.bank import Answer
from autograder.bank.unit_05.cheats import CHEATS as CHEATS
from autograder.bank.unit_05.right import RIGHT as RIGHT
from autograder.bank.unit_05.wrong_held import HELD, PEAKS
from autograder.bank.unit_05.wrong_latency import LATENCIES
from autograder.bank.unit_05.wrong_order import ORDERS
from autograder.bank.unit_05.wrong_ready import FINISHES, READY

WRONG: tuple[Answer, ...] = (*HELD, *ORDERS, *PEAKS, *READY, *FINISHES, *LATENCIES)
