"""Right answers to all of unit 00, each in a manner of its own."""

from autograder.bank import Answer

_FULL = {
    "hello": 4,
    "ring_pass": 3,
    "ring_pass_fast": 2,
    "fix_deadlock": 4,
    "fix_deadlock_fast": 2,
    "blame": 5,
}

# As the notebook's solutions: loops over ranks, isend, the way as a list.
_PLAIN = """
import numpy as np


def hello(comm):
    if comm.rank == 0:
        return [0, *(int(comm.recv(source)) for source in range(1, comm.size))]
    comm.send(np.array(comm.rank), 0)
    return []


def ring_pass(comm, token):
    if comm.size == 1:
        return token
    following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if comm.rank == 0:
        comm.send(token, following)
        return comm.recv(before)
    received = comm.recv(before)
    comm.send(received, following)
    return received


def fix_deadlock(comm, x):
    if comm.size == 1:
        return x
    request = comm.isend(x, (comm.rank + 1) % comm.size)
    received = comm.recv((comm.rank - 1) % comm.size)
    request.wait()
    return received


def blame(waits):
    waiting = [rank for rank, wait in enumerate(waits) if wait]
    if not waiting:
        return "none", []
    way = [waiting[0]]
    while True:
        call, peer = waits[way[-1]]
        if waits[peer] is None:
            return ("never_sent" if call == "recv" else "never_taken"), [way[-1], peer]
        if peer in way:
            break
        way.append(peer)
    circle = way[way.index(peer) :]
    start = circle.index(min(circle))
    return "cycle", circle[start:] + circle[:start]
"""
# Questions and answers under tags, receives posted before sends, blame by taking victims away.
_ASKING = """
import numpy as np


def hello(comm):
    number = np.zeros(1, dtype=np.int64)
    numbers = [0]
    if comm.rank:
        comm.recv(0, out=number, tag=1)
        comm.send(number + comm.rank, 0, tag=2)
        return []
    for rank in range(1, comm.size):
        comm.send(number, rank, tag=1)
        numbers.append(comm.recv(rank, tag=2).item())
    return numbers


def ring_pass(comm, token):
    following = comm.rank + 1 if comm.rank + 1 < comm.size else 0
    if comm.rank == 0 and comm.size > 1:
        comm.isend(token, following).wait()
    elif comm.size == 1:
        return token.copy()
    token = comm.irecv(comm.rank - 1 if comm.rank else comm.size - 1).wait()
    if comm.rank > 0:
        comm.isend(token, following).wait()
    return token


def fix_deadlock(comm, x):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if left == comm.rank:
        return np.array(x)
    out = np.empty_like(x)
    arriving = comm.irecv(left, out=out)
    comm.send(x, right)
    return arriving.wait()


def blame(waits):
    stuck = {rank: wait for rank, wait in enumerate(waits) if wait is not None}
    for rank, (call, peer) in stuck.items():
        if peer not in stuck:
            return {"send": "never_taken", "recv": "never_sent"}[call], [rank, peer]
    while len(stuck) > len({peer for _, peer in stuck.values()}):
        awaited = {peer for _, peer in stuck.values()}
        stuck = {rank: wait for rank, wait in stuck.items() if rank in awaited}
    if not stuck:
        return "none", []
    ranks = [min(stuck)]
    while stuck[ranks[-1]][1] != ranks[0]:
        ranks.append(stuck[ranks[-1]][1])
    return "cycle", ranks
"""
# Even ranks send first; everything received before anything is made of it; recursion.
_EVEN_FIRST = """
import numpy as np


def hello(comm):
    numbers = np.arange(comm.size)
    if comm.rank > 0:
        comm.send(numbers[comm.rank :][:1].copy(), 0)
        return []
    requests = [comm.irecv(source) for source in range(1, comm.size)]
    return [comm.rank] + [int(request.wait()[0]) for request in requests]


def ring_pass(comm, token):
    for source in range(comm.size) if comm.size > 1 else ():
        destination = (source + 1) % comm.size
        if comm.rank == source:
            comm.send(token, destination)
        if comm.rank == destination:
            token = comm.recv(source)
    return token


def fix_deadlock(comm, x):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.size == 1:
        return x
    if comm.rank % 2 == 0:
        comm.send(x, right)
        return comm.recv(left)
    request = comm.irecv(left)
    comm.send(x, right)
    return request.wait()


def blame(waits):
    def follow(rank, passed):
        if rank in passed:
            circle = passed[passed.index(rank) :]
            return "cycle", min(circle[i:] + circle[:i] for i in range(len(circle)))
        if waits[rank] is None:
            call = waits[passed[-1]][0]
            return ("never_sent" if call == "recv" else "never_taken"), [passed[-1], rank]
        return follow(waits[rank][1], [*passed, rank])

    waiting = [rank for rank in range(len(waits)) if waits[rank]]
    return follow(waiting[-1], []) if waiting else ("none", [])
"""
# One rank alone receives first; the last rank starts to count.
_ONE_FIRST = """
import numpy as np


def hello(comm):
    others = range(1, comm.size)
    got = {rank: comm.recv(rank) for rank in reversed(others)} if comm.rank == 0 else {}
    if comm.rank in others:
        comm.send(np.int64(comm.rank).reshape(1), destination=0)
    return [0, *(int(got[rank][0]) for rank in others)] if comm.rank == 0 else []


def ring_pass(comm, token):
    n, me = comm.size, comm.rank
    if n == 1:
        return token
    if me:
        token = comm.recv(me - 1)
    comm.send(token, (me + 1) % n)
    return token if me else comm.recv(n - 1)


def fix_deadlock(comm, x):
    n, me = comm.size, comm.rank
    first = comm.irecv(n - 1) if n > 1 and me == 0 else None
    if n > 1:
        comm.send(x, (me + 1) % n)
        return first.wait() if me == 0 else comm.recv(me - 1)
    return x


def blame(waits):
    rank = next((rank for rank, wait in enumerate(waits) if wait), None)
    if rank is None:
        return ["none", []]
    for _ in waits:  # after so many steps it stands in the circle, if there is one
        call, peer = waits[rank]
        if waits[peer] is None:
            return ["never_taken" if call == "send" else "never_sent", [rank, peer]]
        rank = peer
    circle, at = [rank], waits[rank][1]
    while at != rank:
        circle.append(at)
        at = waits[at][1]
    least = circle.index(min(circle))
    return ["cycle", circle[least:] + circle[:least]]
"""


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in _FULL.items()})


RIGHT = (
    _right("plain", _PLAIN),
    _right("asking", _ASKING),
    _right("even_first", _EVEN_FIRST),
    _right("one_first", _ONE_FIRST),
)
