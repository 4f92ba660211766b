"""Wrong answers to unit 00's `hello`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer


def _hello(id: str, body: str, score: int, diagnosis: str = "") -> Answer:
    source = f"import numpy as np\n\n\ndef hello(comm):\n{indent(body.strip(), '    ')}\n"
    return Answer(id, source, {"hello": (score, diagnosis or id)})


_SEND = "\ncomm.send(np.array(comm.rank), 0)\nreturn []"

HELLOS = (
    _hello("no_messages", "return list(range(comm.size)) if comm.rank == 0 else []", 0),
    _hello(
        "relayed",
        """
got = comm.recv(comm.rank + 1).tolist() if comm.rank + 1 < comm.size else []
numbers = [comm.rank, *got]
if comm.rank == 0:
    return numbers
comm.send(np.array(numbers), comm.rank - 1)
return []
""",
        0,
    ),
    _hello(
        "by_all_gather",
        "numbers = comm.all_gather(np.array(comm.rank)).tolist()\n"
        "return numbers if comm.rank == 0 else []",
        0,
        "collective",
    ),
    _hello(
        "sends_zeros",
        """
if comm.rank:
    comm.send(np.array(0), 0)
    return []
for source in range(1, comm.size):
    comm.recv(source)
return list(range(comm.size))
""",
        2,
        "not_its_number",
    ),
    _hello(
        "counts_from_one",
        """
if comm.rank:
    comm.send(np.array(comm.rank + 1), 0)
    return []
return [0, *(int(comm.recv(source)) - 1 for source in range(1, comm.size))]
""",
        2,
        "not_its_number",
    ),
    _hello(
        "empty_messages",
        """
if comm.rank:
    comm.send(np.zeros(0), 0)
    return []
return [0, *(source + comm.recv(source).size for source in range(1, comm.size))]
""",
        2,
        "not_its_number",
    ),
    _hello(
        "own_missing",
        "if comm.rank == 0:\n"
        f"    return [int(comm.recv(source)) for source in range(1, comm.size)]{_SEND}",
        2,
    ),
    _hello(
        "other_order",
        "if comm.rank == 0:\n"
        f"    return [0] + [int(comm.recv(r)) for r in range(comm.size - 1, 0, -1)]{_SEND}",
        2,
    ),
    _hello(
        "others_return_their_own",
        """
numbers = [comm.rank]
if comm.rank == 0:
    numbers += [int(comm.recv(source)) for source in range(1, comm.size)]
else:
    comm.send(np.array(comm.rank), 0)
return numbers
""",
        2,
        "others_return",
    ),
    _hello(
        "others_return_nothing",
        "if comm.rank == 0:\n"
        "    return [0] + [int(comm.recv(r)) for r in range(1, comm.size)]\n"
        "comm.send(np.array(comm.rank), 0)",
        2,
        "others_return",
    ),
    _hello(
        "arrays_in_the_list",
        "if comm.rank == 0:\n"
        f"    return [0] + [comm.recv(source) for source in range(1, comm.size)]{_SEND}",
        2,
        "no_list",
    ),
    _hello(
        "one_array",
        "if comm.rank == 0:\n"
        f"    return np.array([0] + [comm.recv(r) for r in range(1, comm.size)]){_SEND}",
        2,
        "no_list",
    ),
    _hello(
        "int_of_an_array_of_one",
        "if comm.rank == 0:\n"
        "    return [0] + [int(comm.recv(r)) for r in range(1, comm.size)]\n"
        "comm.send(np.array([comm.rank]), 0)\nreturn []",
        0,
        "raised",
    ),
    _hello(
        "sends_the_size",
        "if comm.rank == 0:\n"
        "    return [0] + [int(comm.recv(r)) for r in range(1, comm.size)]\n"
        "comm.send(np.array(comm.size), 0)\nreturn []",
        2,
        "not_its_number",
    ),
    _hello(
        "asks_rank_0_too",
        "comm.send(np.array(comm.rank), 0)\n"
        "return [int(comm.recv(r)) for r in range(comm.size)] if comm.rank == 0 else []",
        0,
        "raised",
    ),
    _hello(
        "sends_an_int",
        "if comm.rank == 0:\n"
        "    return [0] + [int(comm.recv(r)) for r in range(1, comm.size)]\n"
        "comm.send(comm.rank, 0)\nreturn []",
        0,
        "raised",
    ),
    _hello(
        "asks_one_rank_too_few",
        "if comm.rank == 0:\n"
        f"    return [0] + [int(comm.recv(r)) for r in range(1, comm.size - 1)]{_SEND}",
        0,
        "not_taken",
    ),
    _hello(
        "nobody_sends",
        "if comm.rank == 0:\n"
        "    return [0] + [int(comm.recv(r)) for r in range(1, comm.size)]\nreturn []",
        0,
        "not_sent",
    ),
    _hello(
        "everyone_receives",
        "numbers = [comm.rank]\n"
        "for rank in range(comm.size):\n"
        "    if rank != comm.rank:\n"
        "        numbers.append(int(comm.recv(rank)))\n"
        "        comm.send(np.array(comm.rank), rank)\n"
        "return sorted(numbers) if comm.rank == 0 else []",
        0,
        "deadlock",
    ),
    _hello(
        "sends_and_forgets",
        "request = comm.isend(np.array(comm.rank), 0) if comm.rank else None\n"
        "return list(range(comm.size)) if comm.rank == 0 else []",
        0,
        "unreceived",
    ),
    _hello(
        "four_ranks_only",
        f"if comm.rank == 0:\n    return [0] + [int(comm.recv(r)) for r in (1, 2, 3)]{_SEND}",
        0,
        "raised",
    ),
)
