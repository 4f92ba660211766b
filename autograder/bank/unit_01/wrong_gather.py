"""Wrong answers to unit 01's all-gather, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_01.programs import THROUGH_RANK_0, wrong_program


def _gather(id: str, body: str, diagnosis: str = "", score: int = 0) -> Answer:
    expected = {"ring_all_gather": (score, diagnosis or id)}
    return wrong_program("ring_all_gather", f"gather_{id}", body, expected)


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
        THROUGH_RANK_0.format(
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
    _gather(
        "direct",
        """
peers = [rank for rank in range(comm.size) if rank != comm.rank]
sent = [comm.isend(x, rank) for rank in peers]
parts = {rank: comm.recv(rank) for rank in peers} | {comm.rank: x}
for request in sent:
    request.wait()
return np.concatenate([parts[rank] for rank in range(comm.size)])""",
        "not_a_ring",
        2,
    ),
    _gather(
        "step_too_many",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size):
    sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
    parts[(comm.rank - step - 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate(parts)""",
    ),
    _gather(
        "sends_none",
        """
parts = [None] * comm.size
parts[comm.rank] = x
for step in range(comm.size - 1):
    sent = comm.isend(parts[(comm.rank - step) % comm.size], right)
    parts[(comm.rank + step + 1) % comm.size] = comm.recv(left)
    sent.wait()
return np.concatenate(parts)""",
    ),
)
