"""Wrong answers to unit 01's reduce-scatter, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_01.programs import THROUGH_RANK_0, wrong_program


def _scatter(id: str, body: str, diagnosis: str = "", score: int = 0) -> Answer:
    expected = {"ring_reduce_scatter": (score, diagnosis or id)}
    return wrong_program("ring_reduce_scatter", f"scatter_{id}", body, expected)


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
        THROUGH_RANK_0.format(
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
    _scatter("step_too_many", _steps(steps="comm.size")),
    _scatter("sends_its_own", _steps().replace("rank - step - 1)", "rank)"), "parts_mixed"),
    _scatter("adds_another_part", _steps(add="parts[comm.rank] + comm.recv(left)"), "parts_mixed"),
    _scatter(
        "swapped",
        "right, left = left, right" + _steps(),
        "parts_mixed",
    ),
    _scatter(
        "counts_up",
        _steps()
        .replace("rank - step - 1", "rank + step + 1")
        .replace("rank - step - 2", "rank + step + 2"),
        "parts_mixed",
    ),
    _scatter(
        "not_passed_on",
        _steps()
        .replace("rank - step - 1", "rank + step + 1")
        .replace("rank - step - 2", "rank + step"),
    ),
    _scatter(
        "direct",
        """
parts, total = np.array_split(x, comm.size), 0
sent = [comm.isend(parts[r], r) for r in range(comm.size) if r != comm.rank]
for rank in range(comm.size):
    total = total + (parts[rank] if rank == comm.rank else comm.recv(rank))
for request in sent:
    request.wait()
return total""",
        "not_a_ring",
        3,
    ),
)
