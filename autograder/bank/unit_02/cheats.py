"""Cheats of unit 02: import the answer, tabulate the public cases, patch what counts, lie."""

from pathlib import Path

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_02.right import RIGHT


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_IMPORTS = """
from mpedu.families import naive


def utilisation(timeline):
    return 1 - timeline.idle_share
"""
_ALIAS = """
import mpedu.families
import mpedu.simulate

build = vars(mpedu.families)["gpipe"]
busy = mpedu.simulate.Timeline.busy_s.fget


def naive(n_stages, n_microbatches):
    one = build(n_stages, 1)
    return [[a._replace(microbatch=m) for m in range(n_microbatches) for a in lists]
            for lists in one]


def utilisation(timeline):
    return busy(timeline) / (timeline.n_ranks * timeline.makespan_s)
"""
_OTHER_PATH = f"""
def naive(n_stages, n_microbatches):
    import sys

    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    for name in [name for name in sys.modules if name.split(".")[0] == "mpedu"]:
        del sys.modules[name]
    from mpedu.families import naive as answer

    return answer(n_stages, n_microbatches)
"""
_ORACLE = """
def memory_bill(config, n_stages, n_held=1):
    from autograder import oracle_02

    return oracle_02.memory_bill(config, n_stages, n_held)


def boundary_bytes(*sizes):
    from autograder import oracle_02

    return oracle_02.boundary_bytes(*sizes)


def bill_cause(planned, measured):
    from autograder import oracle_02

    return oracle_02.bill_cause(planned, measured)
"""
_PATCHED_COUNTER = """
import mpedu.schedule
import mpedu.simulate
import mpedu.validate

mpedu.validate.validate_schedule = mpedu.simulate.validate_schedule = lambda *args: []
mpedu.schedule.peak_in_flight = lambda *args: [1]
mpedu.simulate.Timeline.makespan_s = 0


def naive(n_stages, n_microbatches):
    return [[] for _ in range(n_stages)]
"""
_PATCHED_MODEL = """
from mpedu.published import ModelConfig

for name in ("layer_parameters", "norm_parameters", "vocabulary_parameters"):
    setattr(ModelConfig, name, 0)


def memory_bill(config, n_stages, n_held=1):
    zero = {"parameters": 0, "gradients": 0, "optimiser": 0, "activations": 0}
    return [dict(zero) for _ in range(n_stages)]
"""
_PATCHED_CHECK = """
import builtins

import autograder.notebook

check = autograder.notebook.check = lambda *args: None
builtins.abs = lambda value: 0


def utilisation(timeline):
    return 0.5
"""
_LIES = """
class Near(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = float.__hash__


class Always(dict):
    __eq__ = lambda self, other: True


def utilisation(timeline):
    return Near(0.5)


def boundary_bytes(batch, seq, hidden, bytes_per_element, n_stages):
    return Near(1)


def memory_bill(config, n_stages, n_held=1):
    return [Always() for _ in range(n_stages)]


def bill_cause(planned, measured):
    class Any(str):
        __eq__ = lambda self, other: True
        __hash__ = str.__hash__

    return Any("none")
"""


CHEATS = (
    Answer(
        "imports_the_answer",
        _IMPORTS,
        _all_fail("naive", "naive_busy", "utilisation", diagnosis="withheld"),
    ),
    Answer(
        "imports_another_family",
        _ALIAS,
        _all_fail("naive", "naive_busy", "utilisation", diagnosis="withheld"),
    ),
    Answer(
        "imports_from_another_path",
        _OTHER_PATH,
        _all_fail("naive", "naive_busy", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_truth",
        _ORACLE,
        _all_fail("memory_bill", "boundary_bytes", "bill_cause", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("02", RIGHT[0].source),
        {
            **_all_fail("naive", diagnosis="not_a_schedule"),
            **_all_fail("naive_busy", diagnosis="illegal"),
            **_all_fail("utilisation", diagnosis="no_number"),
            **_all_fail("boundary_bytes", diagnosis="not_whole"),
            **_all_fail("memory_bill", diagnosis="form"),
            **_all_fail("bill_cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_what_counts",
        _PATCHED_COUNTER,
        {"naive": (0, "no_work"), "naive_busy": (0, "illegal")},
        needs_walls=True,
    ),
    Answer(
        "patches_the_model",
        _PATCHED_MODEL,
        {"memory_bill": (0, "differs_parameters")},
        needs_walls=True,
    ),
    Answer(
        "patches_the_check",
        _PATCHED_CHECK,
        {"utilisation": (0, "constant")},
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail("utilisation", "boundary_bytes", "memory_bill", "bill_cause",
                  diagnosis="not_plain"),
    ),
)  # fmt: skip
