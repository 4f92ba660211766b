"""Cheats of unit 03: import the answer, tabulate the public cases, patch what counts, lie."""

from pathlib import Path

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_03.cheats_cause import CAUSE_CHEATS
from autograder.bank.unit_03.right import RIGHT


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_IMPORTS = """
from mpedu.cost import bubble_fraction, bubble_over_ideal
from mpedu.families import gpipe


def idle_share(timeline):
    return timeline.idle_share


def min_microbatches(n_stages, largest_share):
    return next(m for m in range(1, 99_999) if bubble_fraction(n_stages, m) <= largest_share)
"""
_ALIAS = """
import mpedu.cost
import mpedu.families
import mpedu.simulate

build = vars(mpedu.families)["one_f_one_b"]
share = mpedu.simulate.Timeline.idle_share.fget


def gpipe(n_stages, n_microbatches):
    lists = build(n_stages, n_microbatches)
    return [sorted(actions, key=lambda action: "FB".index(action.kind)) for actions in lists]


def idle_share(timeline):
    return share(timeline)
"""
_BUSY = """
def idle_share(timeline):
    return 1 - timeline.busy_s / (timeline.n_ranks * timeline.makespan_s)
"""
# A function made of the code as it stood before the check began.
_KEPT_CODE = """
import types

import mpedu.families

theirs = mpedu.families.gpipe
kept = types.FunctionType(theirs.__code__, vars(mpedu.families), None, theirs.__defaults__)


def gpipe(n_stages, n_microbatches):
    return kept(n_stages, n_microbatches)
"""
_OTHER_PATH = f"""
def gpipe(n_stages, n_microbatches):
    import sys

    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    for name in [name for name in sys.modules if name.split(".")[0] == "mpedu"]:
        del sys.modules[name]
    from mpedu.families import gpipe as answer

    return answer(n_stages, n_microbatches)
"""
_ORACLE = """
def gpipe(n_stages, n_microbatches):
    from autograder import oracle

    return oracle.gpipe(n_stages, n_microbatches)


def split_batch(n_samples, n_microbatches):
    from autograder.bank.unit_03.right import RIGHT

    names = {}
    exec(RIGHT[0].source, names)
    return names["split_batch"](n_samples, n_microbatches)
"""
_PATCHED_COUNTER = """
import mpedu.simulate
import mpedu.validate

mpedu.validate.validate_schedule = mpedu.simulate.validate_schedule = lambda *args: []
mpedu.simulate.simulate = mpedu.simulate.simulate_until_stuck = lambda *args: None
mpedu.simulate.Timeline.makespan_s = 0


def gpipe(n_stages, n_microbatches):
    return [[] for _ in range(n_stages)]
"""
_PATCHED_BUILTINS = """
import builtins
import fractions
import math

builtins.abs = lambda value: 0
builtins.round = lambda value, digits=0: 0
math.isclose = lambda *args, **kwargs: True
fractions.Fraction.__sub__ = lambda self, other: 0


def idle_share(timeline):
    return 0.5
"""
_PATCHED_ASSERTS = """
import numpy
import numpy.testing

numpy.allclose = numpy.isclose = lambda *args, **kwargs: True
for name in ("assert_allclose", "assert_equal", "assert_array_equal", "assert_almost_equal"):
    setattr(numpy.testing, name, lambda *args, **kwargs: None)


def bubble_fraction(n_stages, n_microbatches):
    return 0.2


def bubble_over_ideal(n_stages, n_microbatches):
    return 0.2


def min_microbatches(n_stages, largest_share):
    return 57
"""
_PATCHED_CHECK = """
import autograder.notebook

check = autograder.notebook.check = lambda *args: None


def split_batch(n_samples, n_microbatches):
    return []
"""
_LIES = """
from mpedu.schedule import Action


class Near(float):
    def __sub__(self, other):
        return 0.0

    __rsub__ = __sub__
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = float.__hash__


class Always(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 4


def gpipe(n_stages, n_microbatches):
    return Always()


def idle_share(timeline):
    return Near(0.5)
"""


CHEATS = (
    Answer(
        "imports_the_answers",
        _IMPORTS,
        _all_fail("gpipe", "gpipe_fast", "idle_share", "bubble", diagnosis="withheld"),
    ),
    Answer(
        "imports_under_another_name",
        _ALIAS,
        _all_fail("gpipe", "gpipe_fast", "idle_share", diagnosis="withheld"),
    ),
    Answer("adds_up_by_busy_s", _BUSY, _all_fail("idle_share", diagnosis="withheld")),
    Answer(
        "keeps_the_code",
        _KEPT_CODE,
        _all_fail("gpipe", "gpipe_fast", diagnosis="withheld"),
        needs_walls=True,
    ),
    Answer(
        "imports_from_another_path",
        _OTHER_PATH,
        _all_fail("gpipe", "gpipe_fast", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_oracle",
        _ORACLE,
        _all_fail("gpipe", "gpipe_fast", "split_batch", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("03", RIGHT[0].source),
        {
            **_all_fail("gpipe", diagnosis="not_a_schedule"),
            **_all_fail("gpipe_fast", diagnosis="illegal"),
            **_all_fail("idle_share", "bubble", "step_time", diagnosis="no_number"),
            **_all_fail("best_microbatches", diagnosis="no_int"),
            **_all_fail("split_batch", diagnosis="no_pairs"),
            **_all_fail("cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_the_counter",
        _PATCHED_COUNTER,
        {
            **_all_fail("gpipe", diagnosis="no_work"),
            **_all_fail("gpipe_fast", diagnosis="illegal"),
        },
        needs_walls=True,
    ),
    Answer(
        "patches_builtins",
        _PATCHED_BUILTINS,
        _all_fail("idle_share", diagnosis="constant"),
        needs_walls=True,
    ),
    Answer(
        "patches_numpy_testing",
        _PATCHED_ASSERTS,
        _all_fail("bubble", diagnosis="constant"),
        needs_walls=True,
    ),
    Answer(
        "patches_check",
        _PATCHED_CHECK,
        _all_fail("split_batch", diagnosis="no_pairs"),
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail("gpipe", "gpipe_fast", "idle_share", diagnosis="not_plain"),
    ),
    *CAUSE_CHEATS,
)
