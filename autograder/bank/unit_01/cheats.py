"""Cheats of unit 01: the answer imported or tabulated, data without messages, counters patched."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder.bank import Answer
from autograder.bank.unit_01.right import FULL, RIGHT, with_part
from autograder.checks import unit_01
from autograder.diagnosis import StudentError
from autograder.exercise import Draw, Exercise
from autograder.local import LocalSubject
from autograder.seeds import PUBLIC_SECRET, case_seed

_EXERCISES = [value for value in vars(unit_01).values() if isinstance(value, Exercise)]
_RINGS = ("ring_all_gather", "ring_reduce_scatter", "ring_all_reduce", "ring_all_reduce_fast")
_PROGRAMS = (*_RINGS, "tree_broadcast")


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_IMPORTS = """
from mpedu.cost import collective_s as cost_s
"""
_COLLECTIVES = """
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
_PATTERNS = """
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
_SHARED = """
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
_GLOBAL = """
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
_FILES = """
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
_ORACLE = """
from autograder.bank.unit_01.right import RIGHT

exec(RIGHT[0].source)
"""
# A right sum of whole arrays, with a meter and a clock that are turned back wherever they may be.
_PATCHED_METER = with_part(
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
_PATCHED_NUMPY = """
import numpy as np

np.array_equal = np.allclose = np.isclose = lambda *args, **kwargs: True


def ring_all_gather(comm, x):
    return np.concatenate([x] * comm.size)


def sum_cause(run):
    return "none"
"""
_LIES = """
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


class _Recorder:
    """A right student whose answers are kept, by function, arguments, rank and size."""

    def __init__(self, table: dict[str, str], exercise: Exercise) -> None:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(RIGHT[0].source, names)
        self._table = table
        self._subject = LocalSubject(names, exercise.names)

    def run_ranks(
        self, name: str, n_ranks: int, arguments: Sequence[tuple[Any, ...]], machine: Any
    ) -> Any:
        run = self._subject.run_ranks(name, n_ranks, list(arguments), machine)
        for rank, ((x,), result) in enumerate(zip(arguments, run.results, strict=True)):
            key = (name, x.tolist(), rank, n_ranks)
            self._table[repr(key)] = repr((result.tolist(), str(result.dtype)))
        return run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*args: Any) -> Any:
            try:
                got = getattr(self._subject, name)(*args)
            except StudentError:
                self._table[repr((name, args))] = "ValueError"
                raise
            self._table[repr((name, args))] = repr(got)
            return got

        return answer


def _tabulated() -> str:
    """The source of an answer that knows every public case, and nothing else."""
    table: dict[str, str] = {}
    for exercise in _EXERCISES:
        seed = case_seed(PUBLIC_SECRET, exercise.unit, exercise.id, 0)
        exercise.run(_Recorder(table, exercise), Draw(seed))
    programs = "\n\n".join(
        f"def {name}(comm, x):\n    return as_array(({name!r}, x.tolist(), comm.rank, comm.size))\n"
        for name in _PROGRAMS
        if name in FULL and name != "ring_all_reduce_fast"
    )
    functions = "\n\n".join(
        f"def {name}(*args):\n    return look_up(({name!r}, args))\n"
        for name in ("cost_s", "sum_cause")
    )
    return f"""
import numpy as np

TABLE = {table!r}


def look_up(key):
    answer = TABLE.get(repr(key), "None")
    if answer == "ValueError":
        raise ValueError(key)
    return eval(answer)


def as_array(key):
    found = look_up(key)
    return found if found is None else np.array(found[0], dtype=found[1])


{programs}

{functions}"""


CHEATS = (
    Answer("imports_the_answers", _IMPORTS, _all_fail("cost_s", diagnosis="withheld")),
    Answer("calls_collectives", _COLLECTIVES, _all_fail(*_PROGRAMS, diagnosis="collective")),
    Answer(
        "imports_the_patterns",
        _PATTERNS,
        _all_fail(*_RINGS, diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_bank",
        _ORACLE,
        _all_fail(*_PROGRAMS, "cost_s", "sum_cause", diagnosis="missing"),
        needs_walls=True,
    ),
    Answer(
        "passes_by_a_global",
        _GLOBAL,
        _all_fail("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast", diagnosis="raised"),
    ),
    Answer(
        "passes_by_a_shared_module",
        _SHARED,
        _all_fail("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "passes_by_files",
        _FILES,
        _all_fail("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        _tabulated(),
        {
            **_all_fail("ring_all_gather", "ring_reduce_scatter", diagnosis="no_array"),
            **_all_fail("ring_all_reduce", "tree_broadcast", diagnosis="no_array"),
            **_all_fail("ring_all_reduce_fast", diagnosis="fewer_bytes"),
            **_all_fail("cost_s", diagnosis="no_number"),
            **_all_fail("sum_cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_the_meter",
        _PATCHED_METER,
        {"ring_all_reduce": (2, ""), "ring_all_reduce_fast": (0, "whole_array")},
        needs_walls=True,
    ),
    Answer(
        "patches_numpy",
        _PATCHED_NUMPY,
        {
            **_all_fail("ring_all_gather", diagnosis="differs"),
            **_all_fail("sum_cause", diagnosis="one_name"),
        },
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail(*_PROGRAMS, "cost_s", "sum_cause", diagnosis="not_plain"),
    ),
)
