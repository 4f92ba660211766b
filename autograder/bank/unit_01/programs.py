"""What the wrong rank programs of unit 01 are made of."""

from textwrap import indent

from autograder.bank import Answer
from autograder.bank.unit_01.right import with_part

NEIGHBOURS = "right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size\n"
# All arrays to rank 0, whose answer goes back to each.
THROUGH_RANK_0 = """
if comm.rank:
    comm.send(x, 0)
    return comm.recv(0)
{sum}
for rank in range(1, comm.size):
    comm.send({back}, rank)
return {own}
"""


def wrong_program(name: str, id: str, body: str, expected: dict[str, tuple[int, str]]) -> Answer:
    """A right answer but for the rank program of that name, whose body this is."""
    function = f"\ndef {name}(comm, x):\n{indent((NEIGHBOURS + body).strip(), '    ')}\n"
    return Answer(id, with_part(name, function), expected)
