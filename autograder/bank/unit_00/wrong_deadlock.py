"""Wrong answers to unit 00's `fix_deadlock`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_ALONE = "if comm.size == 1:\n    return x\n"
_NEIGHBOURS = "right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size\n"


def _mend(
    id: str,
    body: str,
    scores: tuple[int, int],
    diagnosis: str = "",
    fast: str = "",
    head: str = _ALONE,
) -> Answer:
    """fast: the diagnosis of the check of time, where it is not that of the first check."""
    source = "import numpy as np\n\n\ndef fix_deadlock(comm, x):\n"
    source += indent((head + _NEIGHBOURS + body).strip(), "    ") + "\n"
    first = "" if scores[0] == 4 else diagnosis or id
    second = "" if scores[1] == 2 else fast or diagnosis or id
    return Answer(
        id, source, {"fix_deadlock": (scores[0], first), "fix_deadlock_fast": (scores[1], second)}
    )


_CHAIN = """
if comm.rank == 0:
    comm.send(x, right)
    return comm.recv(left)
received = comm.recv(left)
comm.send(x, right)
return received
"""
_EXCHANGE = """
request = comm.isend(x, right)
received = comm.recv(left)
request.wait()
return received
"""
_EVEN = """
if comm.rank % 2:
    received = comm.recv(left)
    comm.send(x, right)
    return received
comm.send(x, right)
return comm.recv(left)
"""

DEADLOCKS = (
    _mend("unmended", "comm.send(x, right)\nreturn comm.recv(left)", (0, 0)),
    _mend(
        "receives_first_everywhere",
        "received = comm.recv(left)\ncomm.send(x, right)\nreturn received",
        (0, 0),
        "now_all_receive",
    ),
    _mend(
        "isend_and_wait_at_once",
        "comm.isend(x, right).wait()\nreturn comm.recv(left, out=x)",
        (0, 0),
        "unmended",
    ),
    _mend(
        "barrier_first",
        "comm.barrier()\ncomm.send(x, right)\nreturn comm.recv(left)",
        (0, 0),
        "unmended",
    ),
    _mend(
        "other_neighbour",
        "request = comm.isend(x, left)\nreceived = comm.recv(right)\nrequest.wait()\n"
        "return received",
        (0, 0),
    ),
    _mend("nothing_exchanged", "return x", (0, 0)),
    _mend(
        "sent_and_kept",
        "request = comm.isend(x, right)\ncomm.recv(left)\nrequest.wait()\nreturn x",
        (0, 0),
        "nothing_exchanged",
    ),
    _mend(
        "pairs",
        "partner = comm.rank ^ 1\nrequest = comm.isend(x, partner)\n"
        "received = comm.recv(partner)\nrequest.wait()\nreturn received",
        (0, 0),
    ),
    _mend(
        "by_all_gather",
        "return comm.all_gather(x.reshape(1, -1))[left]",
        (0, 0),
        "collective",
    ),
    _mend("one_after_another", _CHAIN, (4, 0)),
    _mend(
        "by_way_of_rank_0",
        """
if comm.rank:
    comm.send(x, 0)
    return comm.recv(0)
arrays = [x, *(comm.recv(rank) for rank in range(1, comm.size))]
for rank in range(1, comm.size):
    comm.send(arrays[rank - 1], rank)
return arrays[-1]
""",
        (4, 0),
        fast="slow",
    ),
    _mend(
        "a_barrier_between_steps",
        "received = None\nfor step in range(comm.size):\n    if comm.rank == step:\n"
        "        comm.send(x, right)\n    if left == step:\n        received = comm.recv(left)\n"
        "    comm.barrier()\nreturn received",
        (4, 0),
        fast="slow",
    ),
    _mend("not_alone", _EXCHANGE, (3, 2), "raised", head=""),
    _mend("even_ranks_first", _EVEN, (4, 0), fast="some_receive_first"),
    _mend(
        "some_receive_first",
        "if comm.rank == 0:\n    received = comm.recv(left)\n    comm.send(x, right)\n"
        "    return received\ncomm.send(x, right)\nreturn comm.recv(left)",
        (4, 0),
    ),
    _mend(
        "not_waited",
        "comm.isend(x, right)\nreturn comm.recv(left)",
        (3, 2),
    ),
    _mend(
        "overwrites_what_it_sends",
        "comm.isend(x, right)\nx[:] = comm.recv(left)\nreturn x",
        (3, 2),
        "not_waited",
    ),
    _mend(
        "odd_one_out",
        """
if comm.rank % 2:
    received = comm.recv(left)
    comm.send(x, right)
    return received
if comm.rank < comm.size - 1:
    comm.send(x, right)
return comm.recv(left)
""",
        (0, 0),
        "deadlock",
    ),
    _mend(
        "two_ranks_only",
        "if comm.rank == 0:\n    comm.send(x, 1)\n    return comm.recv(1)\n"
        "received = comm.recv(0)\ncomm.send(x, 0)\nreturn received",
        (0, 0),
        "deadlock",
    ),
    _mend(
        "request_returned",
        "comm.isend(x, right)\nreturn comm.irecv(left)",
        (0, 0),
        "not_plain",
    ),
    _mend(
        "zeros_came",
        "out = np.zeros_like(x)\nrequest = comm.isend(x, right)\nreceived = comm.irecv(left)\n"
        "request.wait()\nreceived.wait()\nreturn out",
        (0, 0),
        "differs",
    ),
)
