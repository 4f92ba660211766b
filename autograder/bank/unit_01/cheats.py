"""Cheats of unit 01: the answer imported or tabulated, data without messages, counters patched."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder.bank import Answer
from autograder.bank.unit_01 import cheat_sources as sources
from autograder.bank.unit_01.right import RIGHT
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
        if name != "ring_all_reduce_fast"
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
    Answer("imports_the_answers", sources.IMPORTS, _all_fail("cost_s", diagnosis="withheld")),
    Answer("calls_collectives", sources.COLLECTIVES, _all_fail(*_PROGRAMS, diagnosis="collective")),
    Answer(
        "imports_the_patterns",
        sources.PATTERNS,
        _all_fail(*_RINGS, diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_bank",
        sources.ORACLE,
        _all_fail(*_PROGRAMS, "cost_s", "sum_cause", diagnosis="missing"),
        needs_walls=True,
    ),
    Answer(
        "passes_by_a_global",
        sources.GLOBAL,
        _all_fail("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast", diagnosis="raised"),
    ),
    Answer(
        "passes_by_a_shared_module",
        sources.SHARED,
        _all_fail("ring_all_gather", "ring_all_reduce", "ring_all_reduce_fast", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "passes_by_files",
        sources.FILES,
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
        sources.PATCHED_METER,
        {"ring_all_reduce": (2, ""), "ring_all_reduce_fast": (0, "whole_array")},
        needs_walls=True,
    ),
    Answer(
        "patches_numpy",
        sources.PATCHED_NUMPY,
        {
            **_all_fail("ring_all_gather", diagnosis="differs"),
            **_all_fail("sum_cause", diagnosis="one_name"),
        },
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        sources.LIES,
        _all_fail(*_PROGRAMS, "cost_s", "sum_cause", diagnosis="not_plain"),
    ),
)
