"""Wrong answers to unit 01's rank programs, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer
from autograder.bank.unit_01.right import with_part

_RING = "right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size\n"
_THROUGH_RANK_0 = """
if comm.rank:
    comm.send(x, 0)
    return comm.recv(0)
{sum}
for rank in range(1, comm.size):
    comm.send({back}, rank)
return {own}
"""


def _program(name: str, id: str, body: str, expected: dict[str, tuple[int, str]]) -> Answer:
    function = f"\ndef {name}(comm, x):\n{indent((_RING + body).strip(), '    ')}\n"
    return Answer(id, with_part(name, function), expected)


def _gather(id: str, body: str, diagnosis: str = "", score: int = 0) -> Answer:
    return _program(
        "ring_all_gather",
        f"gather_{id}",
        body,
        {"ring_all_gather": (score, diagnosis or id)},
    )


def _scatter(id: str, body: str, diagnosis: str = "", score: int = 0) -> Answer:
    return _program(
        "ring_reduce_scatter",
        f"scatter_{id}",
        body,
        {"ring_reduce_scatter": (score, diagnosis or id)},
    )


def _reduce(id: str, body: str, score: int = 0, diagnosis: str = "", fast: str = "") -> Answer:
    expected = {"ring_all_reduce": (score, diagnosis or id)}
    if fast:
        expected["ring_all_reduce_fast"] = (0, fast)
    return _program("ring_all_reduce", f"reduce_{id}", body, expected)


def _fast(id: str, body: str, score: int, diagnosis: str = "") -> Answer:
    return _program(
        "ring_all_reduce",
        f"fast_{id}",
        body,
        {"ring_all_reduce": (2, ""), "ring_all_reduce_fast": (score, diagnosis or id)},
    )


GATHERS = (
    _gather(
        "sends_first",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size - 1):
    comm.send(parts[(comm.rank - step) % comm.size], right)
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
return np.concatenate(parts)""",
        "all_send_first",
    ),
    _gather(
        "receives_first",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size - 1):
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    comm.send(parts[(comm.rank - step) % comm.size], right)
return np.concatenate(parts)""",
        "all_receive_first",
    ),
    _gather(
        "as_they_come",
        """
parts = [x]
for step in range(comm.size - 1):
    sent = comm.isend(parts[-1], right)
    parts.append(comm.recv(left))
    sent.wait()
return np.concatenate(parts)""",
    ),
    _gather(
        "mirrored",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size - 1):
    sent = comm.isend(parts[(comm.rank + step) % comm.size], right)
    parts[(comm.rank + step + 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate(parts)""",
    ),
    _gather(
        "own_part_again",
        """
parts = [x] * comm.size
for step in range(comm.size - 1):
    sent = comm.isend(x, right)
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate(parts)""",
    ),
    _gather(
        "step_missing",
        """
parts = {comm.rank: x}
for step in range(comm.size - 2):
    sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate([parts[rank] for rank in sorted(parts)])""",
        "step_missing",
    ),
    _gather("own_part_only", "return x"),
    _gather(
        "all_so_far",
        """
lengths, parts = [len(x)], [x]
counts = [np.array([len(x)])]
have = x
for step in range(comm.size - 1):
    sent = comm.isend(have, right)
    came = comm.recv(left)
    sent.wait()
    have = np.concatenate([came, x])
# What came stands from the furthest left to this rank; a part of each length tells where it ends.
total = have
n = len(total) // comm.size
if n * comm.size == len(total):
    return np.roll(total, (comm.rank + 1) * n)
return total""",
        "differs",
        1,
    ),
    _gather(
        "everything_again",
        """
have = {comm.rank: x}
for step in range(comm.size - 1):
    going = [(comm.rank - back) % comm.size for back in range(step + 1)]
    sent = [comm.isend(have[owner], right) for owner in going]
    for owner in going:
        have[(owner - 1) % comm.size] = comm.recv(left)
    for request in sent:
        request.wait()
return np.concatenate([have[rank] for rank in range(comm.size)])""",
        "all_so_far",
        2,
    ),
    _gather(
        "through_rank_0",
        _THROUGH_RANK_0.format(
            sum="whole = np.concatenate([x, *(comm.recv(r) for r in range(1, comm.size))])",
            back="whole",
            own="whole",
        ),
        "through_rank_0",
        2,
    ),
    _gather("collective", "return comm.all_gather(x)"),
    _gather(
        "list_of_parts",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size - 1):
    sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return parts""",
        "no_array",
    ),
    _gather(
        "equal_lengths",
        """
n = len(x)
result = np.zeros(n * comm.size, dtype=x.dtype)
result[comm.rank * n : (comm.rank + 1) * n] = x
going = x
for step in range(comm.size - 1):
    sent = comm.isend(going, right)
    owner = (comm.rank - step - 1) % comm.size
    going = comm.recv(left)
    result[owner * n : (owner + 1) * n] = going
    sent.wait()
return result""",
        "raised",
        1,
    ),
    _gather(
        "float_zeros",
        """
n = len(x)
result = np.zeros((comm.size, n))
result[comm.rank] = x
for step in range(comm.size - 1):
    sent = comm.isend(result[(comm.rank - step) % comm.size], right)
    result[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return result.reshape(-1)""",
        "wrong_dtype",
    ),
)
_STEP = """
parts = np.array_split(x, comm.size)
for step in range({steps}):
    sent = comm.isend(parts[(comm.rank - step{send}) % comm.size], right)
    place = (comm.rank - step{place}) % comm.size
    parts[place] = {add}
    sent.wait()
return {result}"""
_PLACED = {"send": " - 1", "place": " - 2", "steps": "comm.size - 1", "result": "parts[comm.rank]"}
_ADDED = "parts[place] + comm.recv(left)"
_CUT = """
size = len(x) // comm.size
parts = [x[r * size : (r + 1) * size] for r in range(comm.size)]
"""


def _steps(**changes: str) -> str:
    return _STEP.format(**{**_PLACED, "add": _ADDED, **changes})


SCATTERS = (
    _scatter(
        "sends_first",
        """
parts = np.array_split(x, comm.size)
for step in range(comm.size - 1):
    comm.send(parts[(comm.rank - step - 1) % comm.size], right)
    place = (comm.rank - step - 2) % comm.size
    parts[place] = parts[place] + comm.recv(left)
return parts[comm.rank]""",
        "all_send_first",
    ),
    _scatter(
        "one_rank_further",
        _steps(send="", place=" - 1", result="parts[(comm.rank + 1) % comm.size]"),
    ),
    _scatter(
        "whole_sum",
        """
mine = x
total = x.copy()
for step in range(comm.size - 1):
    sent = comm.isend(mine, right)
    mine = comm.recv(left)
    total += mine
    sent.wait()
return total""",
    ),
    _scatter("nothing_added", _steps(add="comm.recv(left)")),
    _scatter("part_kept", _steps(send="", place=" - 1"), "own_numbers"),
    _scatter(
        "own_twice",
        _steps(
            result="parts[comm.rank] + np.array_split(x, comm.size)[comm.rank] * (comm.size > 1)"
        ),
    ),
    _scatter("mean", _steps(result="parts[comm.rank] / comm.size")),
    _scatter("step_missing", _steps(steps="comm.size - 2"), "own_numbers"),
    _scatter(
        "tail_lost",
        _steps().replace("\nparts = np.array_split(x, comm.size)", _CUT),
        "tail_lost",
        1,
    ),
    _scatter(
        "uneven_parts",
        _steps().replace(
            "\nparts = np.array_split(x, comm.size)",
            _CUT + "parts[-1] = x[(comm.size - 1) * size :]",
        ),
        "uneven_parts",
        1,
    ),
    _scatter(
        "whole_array",
        """
mine = x
total = x.copy()
for step in range(comm.size - 1):
    sent = comm.isend(mine, right)
    mine = comm.recv(left)
    total += mine
    sent.wait()
return np.array_split(total, comm.size)[comm.rank]""",
        "whole_array",
        3,
    ),
    _scatter(
        "through_rank_0",
        _THROUGH_RANK_0.format(
            sum="total = x + sum(comm.recv(rank) for rank in range(1, comm.size))\n"
            "parts = np.array_split(total, comm.size)",
            back="parts[rank]",
            own="parts[0]",
        ),
        "through_rank_0",
        3,
    ),
    _scatter("collective", "return comm.reduce_scatter(x)"),
    _scatter(
        "in_place_of_int",
        _steps(add="(parts[place] + comm.recv(left)).astype(np.int64)"),
        "wrong_dtype",
        3,
    ),
)
_RESULT = "return ring_all_gather(comm, ring_reduce_scatter(comm, x))"
REDUCES = (
    _reduce("mean", _RESULT + " / comm.size"),
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
        fast="deadlock",
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
        _THROUGH_RANK_0.format(
            sum="total = x + sum(comm.recv(rank) for rank in range(1, comm.size))",
            back="total",
            own="total",
        ),
        1,
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
        1,
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
)
_TREE = "\ndef tree_broadcast(comm, x):\n{}\n"


def _tree(id: str, body: str, diagnosis: str = "") -> Answer:
    source = with_part("tree_broadcast", _TREE.format(indent(body.strip(), "    ")))
    return Answer(f"tree_{id}", source, {"tree_broadcast": (0, diagnosis or id)})


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
