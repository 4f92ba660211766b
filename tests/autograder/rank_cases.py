"""Rank programs, right and wrong, that must give the same at home and behind walls."""

from ranks_toy import IMPORTS

RIGHT = {
    "nothing": "def f(comm, x): return None",
    "its numbers": "def f(comm, x): return [comm.rank, comm.size, comm.device]",
    "a ring": """
def f(comm, x):
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.rank == 0:
        comm.send(x, after)
        return [comm.recv(before), comm.now_s()]
    y = comm.recv(before)
    comm.send(y + comm.rank, after)
    return [y, comm.now_s()]
""",
    "receives into an array": """
def f(comm, x):
    out = np.zeros_like(x)
    if comm.rank:
        return comm.recv(0, out=out) is out and out
    for rank in range(1, comm.size): comm.send(x, rank, what="the array")
""",
    "tags out of order": """
def f(comm, x):
    if comm.rank == 0:
        sent = [comm.isend(x + tag, 1, tag=tag) for tag in range(5)]
        for one in sent: one.wait()
    if comm.rank == 1:
        got = [comm.irecv(0, tag=tag) for tag in (4, 2, 0, 3, 1)]
        return [one.wait() for one in got] + [got[0].wait()]
""",
    "empty, scalar and every dtype": """
def f(comm, x):
    for code in "?bhilqBHILQefdFD":
        for shape in ((), (0,), (2, 3), (2, 0)):
            a = np.ones(shape, dtype=code)
            if comm.rank == 0: comm.send(a, 1)
            if comm.rank == 1:
                b = comm.recv(0)
                assert (b.dtype, b.shape, b.tolist()) == (a.dtype, a.shape, a.tolist())
                b[...] = 0
""",
    "every collective": """
def f(comm, x):
    n, r = comm.size, comm.rank
    rows = np.arange(2.0 * n).reshape(n, 2) + r
    got = [
        comm.all_reduce(x), comm.all_reduce(x, op="max"), comm.all_gather(x),
        comm.all_gather(rows[:r], sizes=range(n)), comm.reduce_scatter(rows),
        comm.reduce_scatter(rows, sizes=[n] + [0] * (n - 1)), comm.all_to_all(rows),
        comm.all_to_all(rows, send_sizes=[n] + [0] * (n - 1)),
        comm.broadcast(x.copy(), root=n - 1), comm.barrier(),
    ]
    return got + [comm.now_s()]
""",
    "collectives beside work": """
def f(comm, x):
    first = comm.all_reduce(x, async_op=True)
    second = comm.broadcast(x.copy(), async_op=True)
    third = comm.barrier(async_op=True)
    if comm.rank == 0: comm.send(x, 1)
    if comm.rank == 1: comm.recv(0)
    return [third.wait(), second.wait(), first.wait(), comm.now_s()]
""",
    "groups of groups": """
def f(comm, x):
    half = comm.split(comm.rank % 2)
    one = half.split(0)
    y = one.all_reduce(x)
    if half.size > 1:
        if half.rank == 0: half.send(y, 1)
        elif half.rank == 1: y = half.recv(0)
    return [half.rank, half.size, one.size, y, comm.all_gather(y)]
""",
    "compute costs nothing": """
def f(comm, x):
    comm.compute(seconds=5.0)
    comm.split(0).compute(flops=1e12)
    return [comm.all_reduce(x), comm.now_s()]
""",
    "a record costs nothing": """
from mpedu.simulate import Span
def f(comm, x):
    comm.record(Span(comm.rank, "compute", -1, -1, 0.0, 99.0))
    return comm.report("told")
""",
    "globals of its own": """
seen = []
class Box: n = 0
def f(comm, x):
    seen.append(comm.rank)
    Box.n += 1
    return [seen, Box.n]
""",
    "its own random numbers": """
import random
def f(comm, x):
    np.random.seed(3); random.seed(3)
    comm.barrier()
    first = [np.random.rand(), random.random()]
    comm.barrier()
    return first + [np.random.rand(), random.random()]
""",
    "prints": "def f(comm, x): print('from', comm.rank); sys.stderr.write('err'); return comm.rank",
    "its own ValueError, caught": """
def f(comm, x):
    try: comm.send(x, 99)
    except ValueError as error: return str(error)
""",
    "a mismatch, caught": """
def f(comm, x):
    try:
        if comm.rank: comm.recv(0, out=np.zeros(7))
        else: [comm.send(x, rank) for rank in range(1, comm.size)]
    except ValueError as error: return str(error)
""",
    "calls another function": """
def g(comm, x): return comm.all_reduce(x)
def f(comm, x): return g(comm, x)
""",
}


WRONG = {
    "all receive first": (
        "deadlock",
        "deadlock: rank 0 waits for rank 3, rank 3 waits for rank 2, rank 2 waits for rank 1, "
        "rank 1 waits for rank 0 (rank 0 in recv from rank 3",
        "def f(comm, x):\n  y = comm.recv(comm.rank - 1 if comm.rank else 3)\n  comm.send(x, 0)",
    ),
    "all send first": (
        "deadlock",
        "rank 0 waits for rank 1, rank 1 waits for rank 2",
        "def f(comm, x):\n  comm.send(x, (comm.rank + 1) % 4)\n  comm.recv((comm.rank - 1) % 4)",
    ),
    "waits for one that has finished": (
        "deadlock",
        "rank 2 waits for rank 1, which has finished (rank 2 in recv from rank 1 (a token, tag 5))",
        "def f(comm, x):\n  if comm.rank == 2: comm.recv(1, tag=5, what='a token')",
    ),
    "one leaves out a collective": (
        "deadlock",
        "which has finished",
        "def f(comm, x):\n  if comm.rank != 1: comm.all_reduce(x)",
    ),
    "a message nobody takes": (
        "unreceived",
        "rank 1 never received what rank 0 sent it: float64 [4].",
        "def f(comm, x):\n  if comm.rank == 0: comm.isend(x, 1)",
    ),
    "a receive never served": (
        "unreceived",
        "rank 1 never sent what rank 0 started to receive from it (and 2 more).",
        "def f(comm, x):\n  if comm.rank == 0: [comm.irecv(1) for _ in range(3)]",
    ),
    "a collective only started": (
        "unreceived",
        "rank 3 started barrier, and rank 0 never did",
        "def f(comm, x):\n  if comm.rank == 3: comm.barrier(async_op=True)",
    ),
    "other shapes": (
        "mismatch",
        "recv on rank 1: rank 0 sends float64 [4], and the array to receive into is float32 [4]; "
        "both ends must give the same dtype and shape.",
        "def f(comm, x):\n"
        "  if comm.rank == 0: comm.send(x, 1)\n"
        "  if comm.rank == 1: comm.recv(0, out=x.astype('f4'))",
    ),
    "other collectives": (
        "mismatch",
        "rank 1 calls all_gather where rank 0 calls all_reduce",
        "def f(comm, x):\n  return comm.all_gather(x) if comm.rank else comm.all_reduce(x)",
    ),
    "other collectives, only started": (
        "mismatch",
        "rank 1 calls barrier where rank 0 calls all_reduce",
        "def f(comm, x):\n"
        "  y = comm.barrier(True) if comm.rank else comm.all_reduce(x, async_op=True)\n"
        "  return y.wait()",
    ),
    "an exception on one rank": (
        "raised",
        "rank 2: your code raises ZeroDivisionError: division by zero.",
        "def f(comm, x):\n  comm.barrier()\n  return 1 / (comm.rank - 2)",
    ),
    "exceptions on all": (
        "raised",
        "rank 0: your code raises KeyError: 0.",
        "def f(comm, x):\n  raise KeyError(comm.rank)",
    ),
    "one fails while others wait": (
        "raised",
        "rank 3: your code raises IndexError",
        "def f(comm, x):\n  return [][1] if comm.rank == 3 else comm.recv(3)",
    ),
    "an exception kept from others": (
        "raised",
        "rank 1: your code raises RuntimeError: from 1.",
        "def f(comm, x):\n"
        "  try: comm.recv(1) if comm.rank != 1 else [][0]\n"
        "  except IndexError: raise RuntimeError('from 1')\n"
        "  except BaseException: return 5",
    ),
    "a rank that does not exist": (
        "raised",
        "rank 3: your code raises ValueError: send on rank 3: no rank 4; there are 0..3.",
        "def f(comm, x):\n  if comm.rank: comm.recv(comm.rank - 1)\n  comm.send(x, comm.rank + 1)",
    ),
    "no array": (
        "raised",
        "ValueError: send on rank 0: list is no array; give a NumPy array or a tensor.",
        "def f(comm, x):\n  comm.send([1, 2], 1)",
    ),
    "an array too large to pass": (
        "raised",
        "graded programs send at most 8384512 at once; send parts of it.",
        "def f(comm, x):\n  comm.broadcast(np.zeros(2**20))",
    ),
    "channels": (
        "raised",
        "ValueError: channels on rank 0: programs that are graded use send and recv",
        "from mpedu.comm import Link\ndef f(comm, x):\n  comm.channels([Link(0, 1, 'F')])",
    ),
    "a mismatch after a caught one": (
        "raised",
        "rank 1: your code raises TypeError: told.",
        "def f(comm, x):\n"
        "  try: comm.broadcast(x) if comm.rank else comm.barrier()\n"
        "  except ValueError: raise TypeError('told')",
    ),
    "a set": (
        "not_plain",
        "rank 1: the answer is a set",
        "def f(comm, x):\n  return {1} if comm.rank else 1",
    ),
    "a subclass": (
        "not_plain",
        "rank 0: answer[0] is a F, a subclass of float",
        "class F(float): pass\ndef f(comm, x):\n  return [F(1)]",
    ),
    "what cannot be copied": (
        "raised",
        "rank 0: your code raises ValueError: f and its arguments cannot be sent to the ranks",
        "import threading\nlock = threading.Lock()\ndef f(comm, x):\n  return lock.locked()",
    ),
    "no function": ("raised", "rank 0: your code raises ValueError: 3 cannot be called", "f = 3"),
    "other arguments": (
        "raised",
        "rank 0: your code raises TypeError: f() takes 1 positional argument but 2 were given.",
        "def f(comm): pass",
    ),
    "not there": ("missing", "`f` is not defined.", "g = 1"),
    "not written": (
        "unwritten",
        "`f` is not written yet.",
        "def f(comm, x):\n  raise NotImplementedError",
    ),
    "not written on one rank": (
        "unwritten",
        "`f` is not written yet.",
        "def f(comm, x):\n  if comm.rank == 2: raise NotImplementedError\n  comm.barrier()",
    ),
    "exits": (
        "raised",
        "rank 1: your code raises SystemExit: 3.",
        "def f(comm, x):\n  comm.rank and sys.exit(3)",
    ),
    "interrupts": (
        "raised",
        "rank 0: your code raises KeyboardInterrupt.",
        "def f(comm, x):\n  raise KeyboardInterrupt",
    ),
    "recursion": (
        "raised",
        "rank 0: your code raises RecursionError",
        "def f(comm, x):\n  return f(comm, x)",
    ),
    "a global of another rank": (
        "raised",
        "rank 3: your code raises IndexError: pop from empty list.",
        "box = []\ndef f(comm, x):\n"
        "  if comm.rank == 0: box.append(x)\n"
        "  comm.barrier()\n"
        "  return box.pop()",
    ),
    "an attribute of its own": (
        "raised",
        "rank 3: your code raises AttributeError: 'function' object has no attribute 'kept'.",
        "def f(comm, x):\n  if comm.rank == 0: f.kept = x\n  comm.barrier()\n  return f.kept",
    ),
}


STEPS = (
    IMPORTS
    + """
def f(comm, steps):
    comms, started, got = [comm], [], []
    for name, *parts in steps:
        at = comms[parts[0] % len(comms)]
        peer, x = (at.rank + parts[1]) % at.size, np.arange(parts[2]) + comm.rank
        if peer == at.rank and name in ("send", "recv", "isend", "irecv"): continue
        if name == "send": at.send(x, peer, tag=parts[3])
        if name == "recv": got.append(at.recv(peer, tag=parts[3]))
        if name == "isend": started.append(at.isend(x, peer, tag=parts[3]))
        if name == "irecv": started.append(at.irecv(peer, tag=parts[3]))
        if name == "wait" and started: got.append(started.pop(0).wait())
        if name == "all_reduce": got.append(at.all_reduce(x))
        if name == "all_gather": started.append(at.all_gather(x, async_op=True))
        if name == "broadcast": got.append(at.broadcast(x, root=parts[3] % at.size))
        if name == "barrier": at.barrier()
        if name == "split": comms.append(at.split(parts[3]))
        if name == "now": got.append(at.now_s())
    return got + [one.wait() for one in started]
"""
)


def drawn_steps(rng, n_ranks):
    """Steps of each rank: a ring with collectives in between, and now and then one too many."""
    mine = [[] for _ in range(n_ranks)]
    for _ in range(rng.randint(1, 6)):
        group, shift, n, tag = (
            rng.randint(0, 2),
            rng.randint(1, 3),
            rng.randint(0, 5),
            rng.randint(0, 2),
        )
        name = rng.choice(["ring", "all_reduce", "all_gather", "broadcast", "barrier", "split"])
        for steps in mine:
            if name == "ring":
                steps.append(("isend", group, shift, n, tag))
                steps.append((rng.choice(["recv", "irecv"]), group, -shift, n, tag))
            else:
                steps.append((name, group, shift, n, tag))
            steps.append((rng.choice(["wait", "now", "now"]), 0, 0, 0, 0))
    if rng.random() < 0.5:
        steps, name = (
            rng.choice(mine),
            rng.choice(["send", "recv", "isend", "all_reduce", "barrier"]),
        )
        steps.insert(rng.randint(0, len(steps)), (name, 0, 1, rng.randint(0, 5), 0))
    return [(steps,) for steps in mine]
