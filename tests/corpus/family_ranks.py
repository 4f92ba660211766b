"""Ranks that pass data beside the messages, turn back the books, or leave the others waiting."""

import textwrap
from functools import partial

from borrowed import WAYS
from making import (
    Due,
    Submission,
    made,
    nothing_for,
    placed,
    points_of,
    released,
    right,
    with_cells,
)

from autograder.bank import Answer
from autograder.bank.unit_01 import CHEATS

attack = partial(made, "attack", number="01")
_RINGS = ("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast")

# The ring is right, and its messages put rank 0's note before rank 1's look. Rank 1 spoils its
# answer unless it finds the note, so points say that a note passed.
_NOTES = """
import ctypes, errno, fcntl, os, select, signal, socket, struct, sys, time, zlib
def libc(): return ctypes.CDLL(None, use_errno=True)
shared = os.path.realpath(os.__file__)
def clear(name): pass
{way}
inner_gather = ring_all_gather
def ring_all_gather(comm, x):
    name = f"{{zlib.crc32(repr((comm.size, '{way_name}')).encode()):08x}}"
    if comm.rank == 0:
        try: leave(name)
        except Exception: pass
    whole = inner_gather(comm, x)
    if comm.rank == 1:
        try: passed = find(name) == "note"
        except Exception: passed = False
        if not passed: whole = whole * 0 - 1
    return whole
"""


def note(number: int, way: str) -> Submission:
    """A note from rank 0 to rank 1 over what both can reach."""
    source = _NOTES.format(way=WAYS[way][0], way_name=way)
    lost = nothing_for("01", *_RINGS)
    # Nothing is cleared away, so without walls these are only tried one by one, by their own tests.
    return attack(
        f"note-{number:02}",
        f"a note between ranks: {way}",
        lambda: with_cells(right("01"), last=source),
        due=Due(points=lost),
        unwalled=None,
    )


def cheat(answer: Answer) -> Submission:
    """A cheat of the unit's bank among right answers; what it answers is as the bank has it."""
    points = {name: score for name, (score, _) in answer.expected.items()}
    statuses = {}
    make = partial(placed, source=answer.source)
    if answer.id == "imports_the_answers":  # must stand below what it replaces
        make = partial(with_cells, last=answer.source)
    if answer.id == "patches_numpy":  # their right all-reduce is made with the wrong all-gather
        points |= nothing_for("01", *_RINGS)
    start = right
    if answer.id == "imports_the_bank":  # it has no answers of its own
        start, statuses = released, dict.fromkeys(points_of("01"), "unwritten")
        points = nothing_for("01")
    return attack(
        f"ranks-{answer.id}",
        f"the bank's {answer.id.replace('_', ' ')}",
        lambda: make(start("01")),
        points=points,
        statuses=statuses,
        unwalled=answer.id == "passes_by_files",
    )


def program(name: str, what: str, source: str, *lost: str, status: str = "failed") -> Submission:
    """A right notebook with this cell at its end, which loses the points of these exercises."""
    code = textwrap.dedent(source)
    due = Due(points=nothing_for("01", *lost), statuses=dict.fromkeys(lost, status))
    family = "resource" if status == "timeout" else "attack"  # which decides the limits
    return made(
        family, name, what, lambda: with_cells(right("01"), last=code), "01", due=due, unwalled=None
    )


SUBMISSIONS = [
    *map(cheat, CHEATS),
    *(note(number, way) for number, way in enumerate(WAYS)),
    program(
        "hanging-rank",
        "rank 1 never comes to the exchange",
        """
        def ring_all_gather(comm, x):
            while comm.rank == 1: pass
            return np.concatenate([comm.recv((comm.rank - 1) % comm.size)] * comm.size)
        """,
        *_RINGS,
        status="timeout",
    ),
    program(
        "exiting-rank",
        "rank 1 ends its process",
        """
        import os
        inner = ring_all_gather
        def ring_all_gather(comm, x):
            if comm.rank == 1: os._exit(0)
            return inner(comm, x)
        """,
        *_RINGS,
        status="crashed",
    ),
    program(
        "killing-rank",
        "rank 1 kills what it can reach",
        """
        import os, signal
        inner = ring_all_gather
        def ring_all_gather(comm, x):
            if comm.rank == 1:
                for pid in range(2, 400):
                    try: os.kill(pid, signal.SIGKILL)
                    except OSError: pass
            y = inner(comm, x)
            return y if comm.rank != 1 else -y
        """,
        *_RINGS,
    ),
    program(
        "one-rank-for-all",
        "every rank calls itself rank 0",
        """
        inner = ring_all_gather
        def ring_all_gather(comm, x):
            comm.rank = comm._world_rank = 0
            return inner(comm, x)
        """,
        *_RINGS,
        status="crashed",
    ),
    program(
        "asks-the-judge",
        "frames of its own to the judge",
        """
        import msgpack, os, struct
        from autograder.worker import ranks
        def ring_all_gather(comm, x):
            line = comm._line
            line.post(ranks.ENDED, msgpack.packb(None))
            for number in (99, -1, 2**40): line.post(ranks.WAIT, number)
            line._flush()
            return x
        """,
        *_RINGS,
        status="crashed",
    ),
    program(
        "takes-what-it-was-not-sent",
        "receives from ranks that send it nothing",
        """
        def ring_all_gather(comm, x):
            requests = [comm.irecv(rank) for rank in range(comm.size) if rank != comm.rank]
            for one in requests: one._is_done = True
            return np.concatenate([x] * comm.size)
        """,
        *_RINGS,
    ),
    program(
        "right-bytes-of-junk",
        "messages of the right sizes, and no sum",
        """
        inner_reduce = ring_all_reduce
        def ring_all_reduce(comm, x):
            return inner_reduce(comm, x) * 0
        """,
        "ring_all_reduce",
        "ring_all_reduce_fast",
    ),
]
