"""The code of unit 01's cheats."""

from autograder.bank.unit_01.right import with_part

IMPORTS = """
from mpedu.cost import collective_s as cost_s
"""
COLLECTIVES = """
def ring_all_gather(comm, x):
    return comm.all_gather(x, sizes=sizes(comm, x))


def sizes(comm, x):
    import numpy as np

    return comm.all_gather(np.array(len(x))).tolist()


def ring_reduce_scatter(comm, x):
    return getattr(comm, "reduce" + "_scatter")(x)


def ring_all_reduce(comm, x):
    return comm.all_reduce(x, async_op=True).wait()


def tree_broadcast(comm, x):
    half = comm.split(0)
    return half.broadcast(x.copy(), 0)
"""
# Not called as collectives: the package's patterns, driven by hand over send and receive.
PATTERNS = """
def driven(comm, operation, x, **more):
    from mpedu.collectives import pattern_of
    from mpedu.comm import Call

    pattern, got = pattern_of(comm, Call(operation, x, **more)), None
    while True:
        try:
            got = pattern.send(got).wait()
        except StopIteration as stop:
            return stop.value


def ring_all_gather(comm, x):
    return driven(comm, "all_gather", x)


def ring_reduce_scatter(comm, x):
    from mpedu.comm import even_sizes

    return driven(comm, "reduce_scatter", x, op="sum", sizes=even_sizes(len(x), comm.size))


def ring_all_reduce(comm, x):
    return driven(comm, "all_reduce", x, op="sum")
"""
# In a notebook all ranks share what is imported, though not what is defined there.
SHARED = """
import numpy as np


def ring_all_gather(comm, x):
    np.box = {**getattr(np, "box", {}), comm.rank: x}
    comm.barrier()
    return np.concatenate([np.box[rank] for rank in range(comm.size)])


def ring_all_reduce(comm, x):
    np.box = {**getattr(np, "box", {}), comm.rank: x}
    comm.barrier()
    return sum(np.box[rank] for rank in range(comm.size))
"""
GLOBAL = """
import numpy as np

BOX = {}


def ring_all_gather(comm, x):
    BOX[comm.rank] = x
    comm.barrier()
    return np.concatenate([BOX[rank] for rank in range(comm.size)])


def ring_all_reduce(comm, x):
    BOX[comm.rank] = x
    comm.barrier()
    return sum(BOX[rank] for rank in range(comm.size))
"""
FILES = """
import numpy as np


def ring_all_gather(comm, x):
    np.save(f"/tmp/part-{comm.rank}.npy", x)
    comm.barrier()
    return np.concatenate([np.load(f"/tmp/part-{rank}.npy") for rank in range(comm.size)])


def ring_all_reduce(comm, x):
    np.save(f"/tmp/part-{comm.rank}.npy", x)
    comm.barrier()
    return sum(np.load(f"/tmp/part-{rank}.npy") for rank in range(comm.size))
"""
ORACLE = """
from autograder.bank.unit_01.right import RIGHT

exec(RIGHT[0].source)
"""
# A right sum of whole arrays, with a meter and a clock that are turned back wherever they may be.
PATCHED_METER = with_part(
    "ring_all_reduce",
    """
from contextlib import suppress


def ring_all_reduce(comm, x):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    total, mine = x.copy(), x
    for step in range(comm.size - 1):
        sent = comm.isend(mine, right)
        mine = comm.recv(left)
        total = total + mine
        sent.wait()
    for owner in (comm, getattr(comm, "_exchange", None), getattr(comm, "_socket", None)):
        with suppress(Exception):
            owner.clock_s[:] = [0.0] * comm.size
        with suppress(Exception):
            for row in owner.meter._counts.values():
                row[2] = 2 * (comm.size - 1) * x.nbytes // comm.size
    return total
""",
)
PATCHED_NUMPY = """
import numpy as np

np.array_equal = np.allclose = np.isclose = lambda *args, **kwargs: True


def ring_all_gather(comm, x):
    return np.concatenate([x] * comm.size)


def sum_cause(run):
    return "none"
"""
LIES = """
class Always(list):
    __eq__ = lambda self, other: True
    shape = (6,)


class Near(float):
    def __sub__(self, other):
        return 0.0

    __rsub__ = __sub__
    __eq__ = lambda self, other: True
    __hash__ = float.__hash__


class Name(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__


def ring_all_gather(comm, x):
    return Always()


def ring_reduce_scatter(comm, x):
    return Always()


def ring_all_reduce(comm, x):
    return Always()


def tree_broadcast(comm, x):
    return Always()


def cost_s(*args):
    return Near(1.0)


def sum_cause(run):
    return Name("none")
"""
