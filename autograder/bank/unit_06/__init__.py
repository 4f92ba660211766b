"""The bank of unit 06: the wrong ones are real mistakes, each with the diagnosis it must draw."""

from autograder.bank import Answer
from autograder.bank.unit_06.cheats import CHEATS as CHEATS
from autograder.bank.unit_06.right import RIGHT as RIGHT
from autograder.bank.unit_06.wrong_bubble import BUBBLES
from autograder.bank.unit_06.wrong_cause import WRONG_CAUSES
from autograder.bank.unit_06.wrong_chunks import CHUNKS
from autograder.bank.unit_06.wrong_delay import DELAYS
from autograder.bank.unit_06.wrong_interleaved import SCHEDULES
from autograder.bank.unit_06.wrong_zero_bubble import ZERO_BUBBLES

WRONG: tuple[Answer, ...] = (
    *CHUNKS,
    *SCHEDULES,
    *BUBBLES,
    *DELAYS,
    *ZERO_BUBBLES,
    *WRONG_CAUSES,
)
