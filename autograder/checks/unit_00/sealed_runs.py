"""The sealed programs of unit 00: each ends in a stop, of six ranks."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from autograder.checks.causes import LETTERS, SealedRuns
from autograder.checks.unit_00.stops import Waits, drawn_stop, truth

_CAUSES = ("cycle", "cycle", "never_sent", "never_taken")
N_RANKS = 6


class SealedRun(NamedTuple):
    """Where each rank of a program stands in the end, and the program itself, for six ranks."""

    waits: Waits
    program: Callable[[Any], None]


def _shown(rng: random.Random) -> list[SealedRun]:
    causes = rng.sample(_CAUSES, len(_CAUSES))
    stops = [(letter, _long(cause, rng)) for letter, cause in zip(LETTERS, causes, strict=True)]
    return [SealedRun(waits, _program(letter, waits)) for letter, waits in stops]


RUNS = SealedRuns("00", "blame", _shown)


def n_to_blame(letter: str) -> int:
    """How many ranks are to blame for the end of that run."""
    return len(truth(RUNS.known(letter).waits)[1])


def _long(cause: str, rng: random.Random) -> Waits:
    """A stop in which at least four ranks wait, and not only those to blame."""
    while True:
        waits = drawn_stop(cause, N_RANKS, rng)
        n_waiting = sum(wait is not None for wait in waits)
        if n_waiting >= 4 and n_waiting > len(truth(waits)[1]):
            return waits


def _program(letter: str, waits: Waits) -> Callable[[Any], None]:
    def program(comm: Any) -> None:
        number = np.array(comm.rank)
        request = comm.isend(number, (comm.rank + 1) % comm.size)
        comm.recv((comm.rank - 1) % comm.size)
        request.wait()  # up to here all is well
        call, peer = waits[comm.rank] or ("", 0)
        if call == "send":
            comm.send(number, peer)
        elif call:
            comm.recv(peer)

    program.__name__ = program.__qualname__ = f"sealed_{letter}"
    return program
