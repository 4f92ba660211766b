"""Cheats of unit 01: the answer imported or tabulated, data without messages, counters patched."""

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_01 import cheat_sources as sources
from autograder.bank.unit_01.right import RIGHT

_RINGS = ("ring_all_gather", "ring_reduce_scatter", "ring_all_reduce", "ring_all_reduce_fast")
_PROGRAMS = (*_RINGS, "tree_broadcast")


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


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
        tabulated("01", RIGHT[0].source),
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
