"""Wrong answers to unit 01's broadcast, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_01.programs import wrong_program


def _tree(id: str, body: str, diagnosis: str = "", score: int = 0) -> Answer:
    expected = {"tree_broadcast": (score, diagnosis or id)}
    return wrong_program("tree_broadcast", f"tree_{id}", body, expected)


TREES = (
    _tree(
        "served_in_turn",
        """
if comm.rank:
    return comm.recv(0)
for rank in range(1, comm.size):
    comm.send(x, rank)
return x""",
    ),
    _tree(
        "chain",
        """
if comm.rank:
    x = comm.recv(comm.rank - 1)
if comm.rank + 1 < comm.size:
    comm.send(x, comm.rank + 1)
return x""",
    ),
    _tree(
        "own_array",
        """
if comm.rank:
    comm.recv(0)
else:
    for rank in range(1, comm.size):
        comm.send(x, rank)
return x""",
    ),
    _tree("collective", "return comm.broadcast(x)"),
    _tree(
        "powers_of_two_only",
        """
distance = comm.size
while distance > 1:
    distance //= 2
    if comm.rank % (2 * distance) == 0:
        comm.send(x, comm.rank + distance)
    elif comm.rank % (2 * distance) == distance:
        x = comm.recv(comm.rank - distance)
return x""",
        "raised",
    ),
    _tree(
        "two_helpers",
        """
half = (comm.size + 1) // 2
first = 0 if comm.rank < half else half
if comm.rank == 0 and half < comm.size:
    comm.send(x, half)
elif comm.rank == half:
    x = comm.recv(0)
if comm.rank != first:
    return comm.recv(first)
for rank in range(first + 1, half if first == 0 else comm.size):
    comm.send(x, rank)
return x""",
        "slow",
    ),
)
