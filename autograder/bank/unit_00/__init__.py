"""The bank of unit 00: the wrong ones are real mistakes, each with the diagnosis it must draw."""

from autograder.bank import Answer
from autograder.bank.unit_00.cheats import CHEATS as CHEATS
from autograder.bank.unit_00.right import RIGHT as RIGHT
from autograder.bank.unit_00.wrong_blame import BLAMES
from autograder.bank.unit_00.wrong_deadlock import DEADLOCKS
from autograder.bank.unit_00.wrong_hello import HELLOS
from autograder.bank.unit_00.wrong_ring import RINGS

WRONG: tuple[Answer, ...] = (*HELLOS, *RINGS, *DEADLOCKS, *BLAMES)
