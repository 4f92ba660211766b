"""Wrong answers to unit 00's `ring_pass`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_NEIGHBOURS = """
if comm.size == 1:
    return token
following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
"""


def _ring(
    id: str,
    body: str,
    scores: tuple[int, int],
    diagnosis: str = "",
    fast: str = "",
    head: str = _NEIGHBOURS,
) -> Answer:
    """fast: the diagnosis of the check of time, where it is not that of the first check."""
    source = "import numpy as np\n\n\ndef ring_pass(comm, token):\n"
    source += indent((head + body).strip(), "    ") + "\n"
    first = "" if scores[0] == 3 else diagnosis or id
    second = "" if scores[1] == 2 else fast or diagnosis or id
    return Answer(
        id, source, {"ring_pass": (scores[0], first), "ring_pass_fast": (scores[1], second)}
    )


_PASS = """
if comm.rank == 0:
    comm.send(token, following)
    return comm.recv(before)
token = comm.recv(before)
comm.send(token, following)
return token
"""
_RIGHT = _NEIGHBOURS + _PASS

RINGS = (
    _ring(
        "all_receive_first",
        "received = comm.recv(before)\ncomm.send(received, following)\nreturn received",
        (0, 0),
    ),
    _ring(
        "all_send_first",
        "comm.send(token, following)\nreturn comm.recv(before)",
        (0, 0),
    ),
    _ring(
        "neighbours_token",
        "request = comm.isend(token, following)\nreceived = comm.recv(before)\n"
        "request.wait()\nreturn received",
        (0, 0),
    ),
    _ring(
        "own_token",
        "if comm.rank == 0:\n    comm.send(token, following)\n    comm.recv(before)\n"
        "else:\n    comm.send(comm.recv(before), following)\nreturn token",
        (0, 0),
    ),
    _ring(
        "never_home",
        "if comm.rank == 0:\n    comm.send(token, following)\n    return token\n"
        "token = comm.recv(before)\ncomm.send(token, following)\nreturn token",
        (0, 0),
    ),
    _ring(
        "last_one_keeps_it",
        "if comm.rank > 0:\n    token = comm.recv(before)\n"
        "if comm.rank < comm.size - 1:\n    comm.send(token, following)\nreturn token",
        (1, 0),
        "link_missing",
        "too_fast",
    ),
    _ring(
        "star",
        "if comm.rank == 0:\n    for rank in range(1, comm.size):\n"
        "        comm.send(token, rank)\n    return token\nreturn comm.recv(0)",
        (1, 0),
        fast="too_fast",
    ),
    _ring("backwards", "following, before = before, following" + _PASS, (1, 2)),
    _ring(
        "twice_round",
        "for _ in range(2):\n    if comm.rank == 0:\n        comm.send(token, following)\n"
        "        token = comm.recv(before)\n    else:\n        token = comm.recv(before)\n"
        "        comm.send(token, following)\nreturn token",
        (1, 0),
        fast="slow",
    ),
    _ring(
        "with_receipts",
        "nothing = np.zeros(0)\nif comm.rank == 0:\n    comm.send(token, following)\n"
        "    comm.recv(following)\ntoken = comm.recv(before)\ncomm.send(nothing, before)\n"
        "if comm.rank > 0:\n    comm.send(token, following)\n    comm.recv(following)\n"
        "return token",
        (1, 0),
        "too_many",
        "slow",
    ),
    _ring(
        "a_barrier_at_each_step",
        "for step in range(comm.size):\n    if comm.rank == step:\n"
        "        comm.send(token, following)\n    if comm.rank == (step + 1) % comm.size:\n"
        "        token = comm.recv(before)\n    comm.barrier()\nreturn token",
        (3, 0),
        fast="slow",
    ),
    _ring("by_broadcast", "comm.broadcast(token, 0)\nreturn token", (0, 0), "collective"),
    _ring(
        "no_way_back",
        _PASS,
        (0, 0),
        "raised",
        head="if comm.size == 1:\n    return token\n"
        "following, before = comm.rank + 1, comm.rank - 1\n",
    ),
    _ring(
        "not_alone",
        _PASS,
        (2, 2),
        "raised",
        head="following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size\n",
    ),
    _ring(
        "four_ranks_only",
        _PASS,
        (0, 0),
        "raised",
        "deadlock",
        head="if comm.size == 1:\n    return token\n"
        "following, before = (comm.rank + 1) % 4, (comm.rank - 1) % 4\n",
    ),
    _ring(
        "returns_nothing",
        "if comm.rank == 0:\n    comm.send(token, following)\n    comm.recv(before)\n"
        "else:\n    comm.send(comm.recv(before), following)",
        (0, 0),
        "no_array",
    ),
    _ring(
        "adds_one",
        "if comm.rank == 0:\n    comm.send(token, following)\n    return comm.recv(before)\n"
        "token = comm.recv(before) + 1\ncomm.send(token, following)\nreturn token",
        (0, 0),
        "differs",
    ),
)
