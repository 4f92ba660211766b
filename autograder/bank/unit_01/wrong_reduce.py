"""Wrong answers to unit 01's all-reduce, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_01.programs import THROUGH_RANK_0, wrong_program


def _reduce(id: str, body: str, score: int = 0, diagnosis: str = "", fast: str = "") -> Answer:
    expected = {"ring_all_reduce": (score, diagnosis or id)}
    if fast:
        expected["ring_all_reduce_fast"] = (0, fast)
    return wrong_program("ring_all_reduce", f"reduce_{id}", body, expected)


def _fast(id: str, body: str, score: int, diagnosis: str = "") -> Answer:
    return wrong_program(
        "ring_all_reduce",
        f"fast_{id}",
        body,
        {"ring_all_reduce": (2, ""), "ring_all_reduce_fast": (score, diagnosis or id)},
    )


_RESULT = "return ring_all_gather(comm, ring_reduce_scatter(comm, x))"
REDUCES = (
    _reduce("mean", _RESULT + " / comm.size", fast="mean"),
    _reduce(
        "only_on_rank_0",
        """
if comm.rank:
    comm.send(x, 0)
    return x
return x + sum(comm.recv(rank) for rank in range(1, comm.size))""",
    ),
    _reduce(
        "tail_lost",
        """
size = len(x) // comm.size * comm.size
summed = ring_all_gather(comm, ring_reduce_scatter(comm, x[:size]))
return np.concatenate([summed, x[size:]])""",
        1,
    ),
    _reduce("part_only", "return ring_reduce_scatter(comm, x)"),
    _reduce(
        "parts_turned",
        """
parts = list(np.array_split(x, comm.size))
for step in range(comm.size - 1):
    sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
    place = (comm.rank - step - 1) % comm.size
    parts[place] = parts[place] + comm.recv(left)
    sent.wait()
return ring_all_gather(comm, parts[(comm.rank + 1) % comm.size])""",
    ),
    _reduce(
        "own_twice",
        """
total, mine = x.copy(), x
for step in range(comm.size):
    sent = comm.isend(mine, right) if comm.size > 1 else None
    if sent:
        mine = comm.recv(left)
        total = total + mine
        sent.wait()
return total""",
    ),
    _reduce("nothing_added", "return x"),
    _reduce("collective", "return comm.all_reduce(x)", fast="collective"),
    _reduce(
        "sends_first",
        """
total, mine = x.copy(), x
for step in range(comm.size - 1):
    comm.send(mine, right)
    mine = comm.recv(left)
    total = total + mine
return total""",
        diagnosis="all_send_first",
        fast="all_send_first",
    ),
    _reduce(
        "last_part_not_gathered",
        """
part = ring_reduce_scatter(comm, x)
result = np.array_split(x, comm.size)
result[comm.rank] = part
for step in range(comm.size - 2):
    sent = comm.isend(result[(comm.rank - step) % comm.size], right)
    result[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate(result)""",
        diagnosis="differs",
    ),
    _reduce(
        "nothing_returned",
        "total = ring_all_gather(comm, ring_reduce_scatter(comm, x))",
        diagnosis="no_array",
    ),
    _reduce(
        "shape_of_a_row",
        "return ring_all_gather(comm, ring_reduce_scatter(comm, x))[None]",
        diagnosis="wrong_shape",
    ),
    _fast(
        "whole_array",
        """
total, mine = x.copy(), x
for step in range(comm.size - 1):
    sent = comm.isend(mine, right)
    mine = comm.recv(left)
    total = total + mine
    sent.wait()
return total""",
        0,
    ),
    _fast(
        "through_rank_0",
        THROUGH_RANK_0.format(
            sum="total = x + sum(comm.recv(rank) for rank in range(1, comm.size))",
            back="total",
            own="total",
        ),
        0,
    ),
    _fast(
        "two_trees",
        """
total, distance = x, 1
while distance < comm.size:
    if comm.rank % (2 * distance) == distance:
        comm.send(total, comm.rank - distance)
        break
    if comm.rank + distance < comm.size:
        total = total + comm.recv(comm.rank + distance)
    distance *= 2
return tree_broadcast(comm, total)""",
        0,
        "uneven_bytes",
    ),
    _fast(
        "in_turn",
        """
parts = list(np.array_split(x, comm.size))
for step in range(2 * comm.size - 2):
    mine, place = (comm.rank - step) % comm.size, (comm.rank - step - 1) % comm.size
    if comm.rank == 0:
        comm.send(parts[mine], right)
    came = comm.recv(left)
    if comm.rank:
        comm.send(parts[mine], right)
    parts[place] = parts[place] + came if step < comm.size - 1 else came
return np.concatenate(parts)""",
        2,
    ),
    _fast(
        "even_ranks_first",
        """
parts = list(np.array_split(x, comm.size))
for step in range(2 * comm.size - 2):
    mine, place = (comm.rank - step) % comm.size, (comm.rank - step - 1) % comm.size
    if comm.rank % 2 == 0:
        comm.send(parts[mine], right)
    came = comm.recv(left)
    if comm.rank % 2:
        comm.send(parts[mine], right)
    parts[place] = parts[place] + came if step < comm.size - 1 else came
return np.concatenate(parts)""",
        2,
        "slow",
    ),
    _fast(
        "sizes_sent_first",
        """
for step in range(comm.size - 1):
    sent = comm.isend(np.array(len(x)), right)
    comm.recv(left)
    sent.wait()
return ring_all_gather(comm, ring_reduce_scatter(comm, x))""",
        0,
        "more_bytes",
    ),
    _reduce(
        "gathered_first",
        "return ring_reduce_scatter(comm, ring_all_gather(comm, x))",
        fast="differs",
    ),
    _reduce("not_summed", "return ring_all_gather(comm, x)", fast="wrong_shape"),
    _fast(
        "direct",
        """
parts = np.array_split(x, comm.size)
peers = [rank for rank in range(comm.size) if rank != comm.rank]
sent = [comm.isend(parts[rank], rank) for rank in peers]
parts[comm.rank] = parts[comm.rank] + sum(comm.recv(rank) for rank in peers)
sent += [comm.isend(parts[comm.rank], rank) for rank in peers]
for rank in peers:
    parts[rank] = comm.recv(rank)
for request in sent:
    request.wait()
return np.concatenate(parts)""",
        0,
        "not_a_ring",
    ),
    _fast(
        "halving_and_doubling",
        """
def like(x, parts):
    return np.split(x, np.cumsum([len(part) for part in parts])[:-1])


# Halving and doubling where the ranks are a power of two: as few bytes, fewer steps.
p, r = comm.size, comm.rank
if p & (p - 1):
    return ring_all_gather(comm, ring_reduce_scatter(comm, x))
parts = np.array_split(x, p)
low, high, distance, steps = 0, p, p // 2, []
while distance:
    peer, middle = r ^ distance, low + distance
    mine, theirs = (low, middle), (middle, high)
    if r >= middle:
        mine, theirs = theirs, mine
    sent = comm.isend(np.concatenate(parts[slice(*theirs)]), peer)
    came = like(comm.recv(peer), parts[slice(*mine)])
    sent.wait()
    parts[slice(*mine)] = [a + b for a, b in zip(parts[slice(*mine)], came)]
    steps.append((peer, mine, theirs))
    (low, high), distance = mine, distance // 2
for peer, mine, theirs in reversed(steps):
    sent = comm.isend(np.concatenate(parts[slice(*mine)]), peer)
    came = comm.recv(peer)
    sent.wait()
    parts[slice(*theirs)] = like(came, parts[slice(*theirs)])
return np.concatenate(parts)""",
        0,
        "not_a_ring",
    ),
)
