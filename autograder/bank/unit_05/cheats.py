"""Cheats of unit 05: import the answer, tabulate the public cases, patch what counts, lie."""

from pathlib import Path

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_05.right import RIGHT


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_IMPORTS = """
from mpedu.families import one_f_one_b
from mpedu.schedule import in_flight, needs


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    return max(in_flight(one_f_one_b(n_stages, n_microbatches)[stage]))


def ready(action, done, n_stages):
    return all(need in done for need in needs(action, done, n_stages))
"""
_ALIAS = """
import mpedu.families
import mpedu.schedule

build = vars(mpedu.families)["interleaved_zero_bubble"]
peaks = mpedu.schedule.peak_in_flight


def one_f_one_b(n_stages, n_microbatches):
    halves = build(n_stages, n_microbatches, 1)
    return [[a._replace(kind="F" if a.kind == "F" else "B") for a in actions if a.kind != "W"]
            for actions in halves]


def in_flight(actions):
    return [peaks([actions[: end + 1]])[0] for end in range(len(actions))]
"""
_BY_PART = """
from mpedu.families import interleaved
from mpedu.schedule import Action


def one_f_one_b(n_stages, n_microbatches):
    lists = []
    for stage in range(n_stages):
        forwards = [Action("F", stage, m) for m in range(n_microbatches)]
        backwards = [[Action("B", stage, m)] for m in range(n_microbatches)]
        ahead = min(n_microbatches, n_stages - 1 - stage)
        lists.append(interleaved.alternated(forwards, backwards, ahead))
    return lists
"""
_BY_NAME = """
from mpedu.families import make_schedule


def one_f_one_b(n_stages, n_microbatches):
    return make_schedule("1f1b", n_stages, n_microbatches)
"""
_BY_VALIDATOR = """
from mpedu.schedule import missing_work
from mpedu.validate import validate_schedule


def ready(action, done, n_stages):
    raise NotImplementedError


def can_finish(schedule, n_stages, n_microbatches):
    return not validate_schedule(schedule, n_stages, n_microbatches)
"""
# Neither needs a function that is withheld: they take messages in the order they were sent.
_BY_CLOCK = """
from mpedu.simulate import Costs, simulate


def ready(action, done, n_stages):
    raise NotImplementedError


def can_finish(schedule, n_stages, n_microbatches):
    try:
        simulate(schedule, Costs())
    except Exception:
        return False
    return sum(map(len, schedule)) == 2 * n_stages * n_microbatches
"""
_OTHER_PATH = f"""
def one_f_one_b(n_stages, n_microbatches):
    import sys

    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    for name in [name for name in sys.modules if name.split(".")[0] == "mpedu"]:
        del sys.modules[name]
    from mpedu.families import one_f_one_b as answer

    return answer(n_stages, n_microbatches)
"""
_ORACLE = """
def one_f_one_b(n_stages, n_microbatches):
    from autograder import oracle_05

    return oracle_05.one_f_one_b(n_stages, n_microbatches)


def can_finish(schedule, n_stages, n_microbatches):
    from autograder import oracle_05

    return oracle_05.can_finish(schedule, n_stages, n_microbatches)
"""
_PATCHED_COUNTER = """
import mpedu.schedule
import mpedu.simulate
import mpedu.validate

mpedu.validate.validate_schedule = mpedu.simulate.validate_schedule = lambda *args: []
mpedu.schedule.in_flight = lambda *args: [1]
mpedu.simulate.Timeline.makespan_s = 0


def one_f_one_b(n_stages, n_microbatches):
    return [[] for _ in range(n_stages)]
"""
_PATCHED_CHECK = """
import builtins

import autograder.notebook

check = autograder.notebook.check = lambda *args: None
builtins.sorted = lambda *args, **kwargs: []


def can_finish(schedule, n_stages, n_microbatches):
    return True


def ready(action, done, n_stages):
    return True
"""
_LIES = """
class Always(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 4


def one_f_one_b(n_stages, n_microbatches):
    return Always()


def in_flight(actions):
    return Always()


class Near(int):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = int.__hash__


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    return Near(4)
"""

CHEATS = (
    Answer(
        "imports_the_answers",
        _IMPORTS,
        _all_fail(
            "one_f_one_b",
            "one_f_one_b_lean",
            "in_flight",
            "one_f_one_b_peak",
            "ready",
            diagnosis="withheld",
        ),
    ),
    Answer(
        "imports_under_another_name",
        _ALIAS,
        _all_fail("one_f_one_b", "one_f_one_b_lean", "in_flight", diagnosis="withheld"),
    ),
    Answer(
        "imports_by_its_name_in_a_table",
        _BY_NAME,
        _all_fail("one_f_one_b", "one_f_one_b_lean", diagnosis="withheld"),
    ),
    Answer(
        "imports_the_turns_alone",
        _BY_PART,
        _all_fail("one_f_one_b", "one_f_one_b_lean", diagnosis="withheld"),
    ),
    Answer("imports_the_validator", _BY_VALIDATOR, {"can_finish": (0, "withheld")}),
    Answer("imports_the_clock", _BY_CLOCK, {"can_finish": (2, "differs")}),
    Answer(
        "imports_from_another_path",
        _OTHER_PATH,
        _all_fail("one_f_one_b", "one_f_one_b_lean", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_oracle",
        _ORACLE,
        _all_fail("one_f_one_b", "one_f_one_b_lean", "can_finish", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("05", RIGHT[0].source),
        {
            **_all_fail("in_flight", diagnosis="no_list"),
            **_all_fail("one_f_one_b", diagnosis="not_a_schedule"),
            **_all_fail("one_f_one_b_lean", diagnosis="illegal"),
            **_all_fail("one_f_one_b_peak", diagnosis="no_int"),
            **_all_fail("ready", "can_finish", diagnosis="no_bool"),
            **_all_fail("extra_time_of_latency_s", diagnosis="no_number"),
        },
    ),
    Answer(
        "patches_the_counter",
        _PATCHED_COUNTER,
        {
            **_all_fail("one_f_one_b", diagnosis="no_work"),
            **_all_fail("one_f_one_b_lean", diagnosis="illegal"),
        },
        needs_walls=True,
    ),
    Answer(
        "patches_check",
        _PATCHED_CHECK,
        {
            **_all_fail("can_finish", diagnosis="always_true"),
            **_all_fail("ready", diagnosis="always_ready"),
        },
        needs_walls=True,
    ),
    Answer(
        "numbers_that_lie",
        _LIES,
        {
            **_all_fail("one_f_one_b", "one_f_one_b_lean", "in_flight", diagnosis="not_plain"),
            **_all_fail("one_f_one_b_peak", diagnosis="not_plain"),
        },
    ),
)
