"""Cheats of unit 00: no messages, the answer imported or tabulated, counters patched, lies."""

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_00.right import RIGHT

_RING = ("ring_pass", "ring_pass_fast")
_MEND = ("fix_deadlock", "fix_deadlock_fast")


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_COLLECTIVES = """
def hello(comm):
    numbers = comm.all_gather(np.array(comm.rank)).tolist()
    return numbers if comm.rank == 0 else []


def ring_pass(comm, token):
    return comm.broadcast(token, 0)


def fix_deadlock(comm, x):
    return comm.all_gather(x.reshape(1, -1))[comm.rank - 1].copy()


import numpy as np
"""
# In a notebook all ranks share what is imported, though not what is defined there.
_SHARED = """
import numpy as np


def hello(comm):
    return list(range(comm.size)) if comm.rank == 0 else []


def ring_pass(comm, token):
    np.box = {**getattr(np, "box", {}), comm.rank: token}
    return np.box[0]


def fix_deadlock(comm, x):
    np.box = {**getattr(np, "box", {}), comm.rank: x}
    return np.box[comm.rank - 1 if comm.rank else comm.size - 1]
"""
_GLOBAL = """
BOX = {}


def ring_pass(comm, token):
    BOX[comm.rank] = token
    comm.barrier()
    return BOX[0]


def fix_deadlock(comm, x):
    BOX[comm.rank] = x
    comm.barrier()
    return BOX[(comm.rank - 1) % comm.size]
"""
_FILES = """
import numpy as np


def put(comm, x):
    with open(f"/tmp/rank-{comm.rank}", "w") as file:
        file.write(" ".join(map(str, x.tolist())))
    comm.barrier()


def get(rank):
    with open(f"/tmp/rank-{rank}") as file:
        return np.array([int(word) for word in file.read().split()])


def ring_pass(comm, token):
    put(comm, token)
    return get(0)


def fix_deadlock(comm, x):
    put(comm, x)
    return get((comm.rank - 1) % comm.size)
"""
_ORACLE = """
from autograder.bank.unit_00.right import RIGHT

exec(RIGHT[0].source)
"""
_PATCHED_METER = """
from contextlib import suppress


def hello(comm):
    for rank in range(1, comm.size):
        with suppress(Exception):
            comm.meter.message(rank, "send", 8, False)
    return list(range(comm.size)) if comm.rank == 0 else []
"""
# The right answers, in the slow way, with a clock that is turned back wherever it may be.
_PATCHED_CLOCK = """
from contextlib import suppress

import mpedu.simulate

mpedu.simulate.Timeline.makespan_s = 0


def fix_deadlock(comm, x):
    received = chain(comm, x) if comm.size > 1 else x
    for owner in (comm, getattr(comm, "_exchange", None), getattr(comm, "_socket", None)):
        with suppress(Exception):
            owner.clock_s[:] = [0.0] * comm.size
    with suppress(Exception):
        comm.now_s = lambda: 0.0
    return received


def chain(comm, x):
    if comm.rank == 0:
        comm.send(x, 1)
        return comm.recv(comm.size - 1)
    received = comm.recv(comm.rank - 1)
    comm.send(x, (comm.rank + 1) % comm.size)
    return received
"""
_LIES = """
class Always(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 4


class Name(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__


def hello(comm):
    return Always()


def ring_pass(comm, token):
    return Always()


def fix_deadlock(comm, x):
    return Always()


def blame(waits):
    return Name("cycle"), Always()
"""


CHEATS = (
    Answer(
        "calls_a_collective",
        _COLLECTIVES,
        _all_fail("hello", *_RING, *_MEND, diagnosis="collective"),
    ),
    Answer("passes_by_a_global", _GLOBAL, _all_fail(*_RING, *_MEND, diagnosis="raised")),
    Answer(
        "passes_by_a_shared_module",
        _SHARED,
        {
            **_all_fail("hello", diagnosis="no_messages"),
            **_all_fail(*_RING, *_MEND, diagnosis="raised"),
        },
        needs_walls=True,
    ),
    Answer(
        "passes_by_files",
        _FILES,
        _all_fail(*_RING, *_MEND, diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_bank",
        _ORACLE,
        _all_fail("hello", *_RING, *_MEND, "blame", diagnosis="missing"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("00", RIGHT[0].source),
        {
            **_all_fail("hello", diagnosis="no_messages"),
            **_all_fail("ring_pass", diagnosis="no_array"),
            **_all_fail("ring_pass_fast", diagnosis="too_fast"),
            **_all_fail(*_MEND, diagnosis="no_array"),
            **_all_fail("blame", diagnosis="no_pair"),
        },
    ),
    Answer("patches_the_meter", _PATCHED_METER, _all_fail("hello", diagnosis="no_messages")),
    Answer(
        "patches_the_clock",
        _PATCHED_CLOCK,
        {"fix_deadlock": (4, ""), "fix_deadlock_fast": (0, "one_after_another")},
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail("hello", *_RING, *_MEND, "blame", diagnosis="not_plain"),
    ),
)
