"""Cheats of unit 06: import the answer, tabulate the public cases, patch what counts, lie."""

from pathlib import Path

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_06.right import RIGHT


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_SCHEDULES = ("interleaved_1f1b", "interleaved_1f1b_fast")
_SPLIT = ("delay_weight_gradients", "delay_weight_gradients_fast")
_IMPORTS = """
from mpedu.cost import bubble_interleaved
from mpedu.families import interleaved_1f1b, zero_bubble_h1
"""
# The parts that the answers are made of, and the answers to neighbouring questions.
_PARTS = """
import mpedu.cost
import mpedu.families.interleaved as parts

from mpedu.families import one_f_one_b
from mpedu.schedule import Action

split, alternated = vars(parts)["split"], vars(parts)["alternated"]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    forwards, backwards, group = parts._order(n_ranks, n_microbatches, n_chunks)
    return [
        alternated(
            [Action("F", rank + c * n_ranks, m) for c, m in forwards],
            [[Action("B", rank + c * n_ranks, m)] for c, m in backwards],
            min(len(forwards), 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * group),
        )
        for rank in range(n_ranks)
    ]


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    return mpedu.cost.bubble_fraction(n_ranks, n_chunks * n_microbatches)


def zero_bubble_h1(n_stages, n_microbatches):
    places = [(0, m) for m in range(n_microbatches)]
    return [[half for one in split(places, stage) for half in one] for stage in range(n_stages)]
"""
_OTHER_FAMILY = """
from mpedu.families import make_schedule


def whole(schedule):
    return [
        [a._replace(kind="B") if a.kind == "I" else a for a in actions if a.kind != "W"]
        for actions in schedule
    ]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    name = "looped-bfs" if n_chunks == 1 else "interleaved-zero-bubble"
    return whole(make_schedule(name, n_ranks, n_microbatches, n_chunks))


def zero_bubble_h1(n_stages, n_microbatches):
    return make_schedule("zero-bubble-h1", n_stages, n_microbatches)
"""
_OTHER_PATH = f"""
def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    import sys

    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    for name in [name for name in sys.modules if name.split(".")[0] == "mpedu"]:
        del sys.modules[name]
    from mpedu.families import interleaved_1f1b as answer

    return answer(n_ranks, n_microbatches, n_chunks)
"""
_ORACLE = """
def chunk_layers(n_layers, n_ranks, n_chunks):
    from autograder import oracle_06

    return oracle_06.chunk_layers(n_layers, n_ranks, n_chunks)


def delay_weight_gradients(schedule):
    from autograder import oracle_06

    return oracle_06.filled(schedule)


def timeline_cause(timeline):
    from autograder import oracle_06

    return oracle_06.timeline_cause(timeline)
"""
_PATCHED_COUNTER = """
import mpedu.schedule
import mpedu.simulate
import mpedu.validate

mpedu.validate.validate_schedule = lambda *args: []
mpedu.schedule.peak_in_flight = lambda *args: [0]
mpedu.simulate.Timeline.makespan_s = 0


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    return [[] for _ in range(n_ranks)]


def delay_weight_gradients(schedule):
    return [[] for _ in schedule]
"""
_PATCHED_CHECK = """
import builtins

import autograder.notebook

check = autograder.notebook.check = lambda *args: None
builtins.abs = lambda value: 0
builtins.round = lambda value, digits=0: 0


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    return 0.25
"""
_LIES = """
class Near(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = float.__hash__


class Always(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 4


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    return Near(0.5)


def chunk_layers(n_layers, n_ranks, n_chunks):
    return Always()


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    return Always()


def delay_weight_gradients(schedule):
    return Always()


def timeline_cause(timeline):
    class Any(str):
        __eq__ = lambda self, other: True
        __hash__ = str.__hash__

    return Any("none")
"""


CHEATS = (
    Answer(
        "imports_the_answers",
        _IMPORTS,
        _all_fail(*_SCHEDULES, "bubble_interleaved", "zero_bubble_h1", diagnosis="withheld"),
    ),
    Answer(
        "imports_the_parts",
        _PARTS,
        _all_fail(*_SCHEDULES, "bubble_interleaved", "zero_bubble_h1", diagnosis="withheld"),
    ),
    Answer(
        "imports_other_families",
        _OTHER_FAMILY,
        _all_fail(*_SCHEDULES, "zero_bubble_h1", diagnosis="withheld"),
    ),
    Answer(
        "imports_from_another_path",
        _OTHER_PATH,
        _all_fail(*_SCHEDULES, diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_truth",
        _ORACLE,
        _all_fail("chunk_layers", *_SPLIT, "timeline_cause", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("06", RIGHT[0].source),
        {
            **_all_fail("chunk_layers", diagnosis="form"),
            **_all_fail("interleaved_1f1b", "delay_weight_gradients", diagnosis="not_a_schedule"),
            **_all_fail("interleaved_1f1b_fast", diagnosis="illegal"),
            **_all_fail("delay_weight_gradients_fast", diagnosis="illegal"),
            **_all_fail("zero_bubble_h1", diagnosis="not_a_schedule"),
            **_all_fail("bubble_interleaved", diagnosis="no_number"),
            **_all_fail("timeline_cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_what_counts",
        _PATCHED_COUNTER,
        {
            "interleaved_1f1b": (0, "empty"),
            "interleaved_1f1b_fast": (0, "illegal"),
            "delay_weight_gradients": (0, "empty"),
            "delay_weight_gradients_fast": (0, "illegal"),
        },
        needs_walls=True,
    ),
    Answer(
        "patches_the_check",
        _PATCHED_CHECK,
        {"bubble_interleaved": (0, "constant")},
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail(
            "chunk_layers",
            *_SCHEDULES,
            "bubble_interleaved",
            *_SPLIT,
            "timeline_cause",
            diagnosis="not_plain",
        ),
    ),
)
