"""Right answers to all of unit 01, each in a manner of its own."""

from autograder.bank import Answer

FULL = {
    "ring_all_gather": 3,
    "ring_reduce_scatter": 4,
    "ring_all_reduce": 2,
    "ring_all_reduce_fast": 4,
    "cost_s": 4,
    "tree_broadcast": 0,
    "sum_cause": 3,
}

GATHER = """
import math

import numpy as np


def ring_all_gather(comm, x):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    parts = [None] * comm.size
    parts[comm.rank] = x
    for step in range(comm.size - 1):
        sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
        parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
        sent.wait()
    return np.concatenate(parts)
"""
SCATTER = """
def ring_reduce_scatter(comm, x):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    parts = np.array_split(x, comm.size)
    for step in range(comm.size - 1):
        sent = comm.isend(parts[(comm.rank - step - 1) % comm.size], right)
        place = (comm.rank - step - 2) % comm.size
        parts[place] = parts[place] + comm.recv(left)
        sent.wait()
    return parts[comm.rank]
"""
REDUCE = """
def ring_all_reduce(comm, x):
    return ring_all_gather(comm, ring_reduce_scatter(comm, x))
"""
COST = """
def cost_s(op, n_bytes, n_ranks, latency_s, bandwidth_bytes_per_s):
    whole_s = n_bytes / bandwidth_bytes_per_s
    ring_s = (n_ranks - 1) * (latency_s + whole_s / n_ranks)
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        return ring_s
    if op == "all_reduce":
        return 2 * ring_s
    if op == "broadcast":
        return math.ceil(math.log2(n_ranks)) * (latency_s + whole_s)
    if op == "naive_all_reduce":
        return 2 * latency_s + n_ranks * whole_s if n_ranks > 1 else 0.0
    raise ValueError(f"op={op!r} is unknown")
"""
TREE = """
def tree_broadcast(comm, x):
    distance = 1 << max(0, comm.size - 1).bit_length()
    while distance > 1:
        distance //= 2
        if comm.rank % (2 * distance) == 0 and comm.rank + distance < comm.size:
            comm.send(x, comm.rank + distance)
        elif comm.rank % (2 * distance) == distance:
            x = comm.recv(comm.rank - distance)
    return x
"""
CAUSE = """
def sum_cause(run):
    p, total = len(run.given), np.sum(run.given, axis=0)
    n_bytes = 8 * len(total)
    right = [np.array_equal(got, total) for got in run.got]
    if not all(right):
        if right[0]:
            return "only_rank_0"
        return "divided" if np.isclose(run.got[0][0] * p, total[0]) else "tail_lost"
    if sum(run.sent_bytes) > 2 * (p - 1) * n_bytes:
        return "whole_arrays"
    if run.sent_bytes[0] == (p - 1) * n_bytes:
        return "through_rank_0"
    ring_s = 2 * (p - 1) * (run.latency_s + n_bytes / p / run.bytes_per_s)
    return "in_turn" if run.time_s > 1.5 * ring_s else "none"
"""
PARTS = {
    "ring_all_gather": GATHER,
    "ring_reduce_scatter": SCATTER,
    "ring_all_reduce": REDUCE,
    "cost_s": COST,
    "tree_broadcast": TREE,
    "sum_cause": CAUSE,
}

# Receives posted first, buffers of the receiver, rounds on the machine.
_OTHERWISE = """
import numpy as np


def ring_all_gather(comm, x):
    # What came last goes on, and knows whose it is; the receive is posted first.
    parts, owner = {comm.rank: x}, comm.rank
    for _ in range(comm.size - 1):
        arriving = comm.irecv((comm.rank - 1) % comm.size)
        leaving = comm.isend(parts[owner], (comm.rank + 1) % comm.size)
        owner = (owner - 1) % comm.size
        parts[owner] = arriving.wait()
        leaving.wait()
    return np.concatenate([parts[rank] for rank in sorted(parts)])


def _bounds(n, p):
    size, more = divmod(n, p)
    return [rank * size + min(rank, more) for rank in range(p + 1)]


def ring_reduce_scatter(comm, x):
    # In place on a copy, cut by its ends.
    p, r = comm.size, comm.rank
    ends, work = _bounds(len(x), p), x.copy()
    for step in range(1, p):
        going, coming = (r - step) % p, (r - step - 1) % p
        sent = comm.isend(work[ends[going] : ends[going + 1]], (r + 1) % p)
        work[ends[coming] : ends[coming + 1]] += comm.recv((r - 1) % p)
        sent.wait()
    return work[ends[r] : ends[r + 1]].copy()


def ring_all_reduce(comm, x):
    # One loop of 2(p-1) steps; what comes in the first half is added, then it replaces.
    p, r = comm.size, comm.rank
    parts = list(np.array_split(x, p))
    for step in range(2 * p - 2):
        arriving = comm.irecv((r - 1) % p)
        leaving = comm.isend(parts[(r - step) % p], (r + 1) % p)
        came, place = arriving.wait(), (r - step - 1) % p
        parts[place] = came + parts[place] if step < p - 1 else came
        leaving.wait()
    return np.concatenate(parts)


def cost_s(op, n_bytes, n_ranks, latency_s, bandwidth_bytes_per_s):
    def message_s(size):
        return latency_s + size / bandwidth_bytes_per_s

    rounds = {"all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "all_reduce": 2}
    if op in rounds:
        one_s = message_s(n_bytes / n_ranks)
        return sum(one_s for _ in range(rounds[op] * (n_ranks - 1)))
    if op not in ("broadcast", "naive_all_reduce"):
        raise ValueError("there is no " + repr(op))
    if n_ranks == 1:
        return 0
    if op == "naive_all_reduce":
        there_s = message_s(n_bytes)
        return there_s + message_s((n_ranks - 1) * n_bytes)
    have, seconds = 1, 0.0
    while have < n_ranks:
        have, seconds = 2 * have, seconds + message_s(n_bytes)
    return seconds


def tree_broadcast(comm, x):
    # Doubling from below: in round k ranks below 2**k pass on to those 2**k further.
    have, pending = 1, []
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            pending.append(comm.isend(x, comm.rank + have))
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    for request in pending:
        request.wait()
    return x


def sum_cause(run):
    given, got = np.array(run.given), np.array(run.got)
    total, p = given.sum(0), len(given)
    if (got[0] == total).all() and (got[1:] == given[1:]).all():
        return "only_rank_0"
    if np.allclose(got * p, total):
        return "divided"
    if (got != total).any():
        return "tail_lost"
    n = given[0].nbytes
    ring = 2 * (p - 1) * n / p
    if min(run.sent_bytes) >= (p - 1) * n:
        return "whole_arrays"
    if run.sent_bytes[0] > 1.4 * ring:
        return "through_rank_0"
    slow = run.time_s / (run.latency_s + -(-len(total) // p) * 8 / run.bytes_per_s)
    return "none" if slow < 2 * p - 1 else "in_turn"
"""


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in FULL.items()})


def with_part(name: str, source: str) -> str:
    """The first right answer with the function of that name written otherwise."""
    parts = {**PARTS, name: source}
    imports = "import math\n\nimport numpy as np\n"
    return imports + "\n".join(part.replace(imports, "") for part in parts.values())


RIGHT = (
    _right("rings_with_places", with_part("ring_all_gather", GATHER)),
    _right("received_first_in_place_and_in_one_loop", _OTHERWISE),
)
