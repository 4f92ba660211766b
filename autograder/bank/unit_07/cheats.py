"""Cheats of unit 07: answers imported or tabulated, ranks that share, records that lie."""

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_07.right import RIGHT, with_part

_RUNS = ("run_actions", "run_actions_fast")
_PROGRAMS = ("stage_forward", "stage_backward", *_RUNS)


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_IMPORTS = """
from autograder.bank.unit_07.right import RIGHT

exec(RIGHT[0].source)
"""
_IMPORTS_THE_CAUSE = """
from autograder.checks.unit_07.cause_mistakes import true_cause as engine_cause
from autograder.checks.unit_07.steps_mistakes import due as all_steps
"""
# In a notebook all ranks share what is imported, though not what is defined there.
_SHARED = """
import numpy as np


def stage_forward(comm, stage, x, sent):
    np.box = {**getattr(np, "box", {}), comm.rank: x}
    comm.barrier()
    x = np.box[0]
    return stage.forward(x)
"""
_GLOBAL = """
BOX = {}


def stage_forward(comm, stage, x, sent):
    if comm.rank:
        comm.barrier()
        x = BOX[comm.rank - 1]
    y, kept = stage.forward(x)
    BOX[comm.rank] = y
    if not comm.rank:
        comm.barrier()
    return y, kept
"""
# Work of its own instead of the judge's, in the hope that returned numbers are believed.
_PATCHED = """
import numpy as np

np.allclose = np.isclose = np.array_equal = lambda *args, **kwargs: True


def stage_forward(comm, stage, x, sent):
    y, kept = stage.forward(np.zeros((1, 3)) if x is None else x)
    for owner in (comm, getattr(comm, "_exchange", None), getattr(comm, "_line", None)):
        try:
            owner.meter._counts[comm.rank, "send"] = [1, 1, 8, 0, 0]
        except Exception:
            pass
    return y, kept


def run_actions(comm, actions, stage, batch):
    stage.done = [(a.kind, a.microbatch) for a in actions]
    stage.gradient = None
    return 0.0


def engine_cause(run):
    return "none"
"""
_LIES = """
import numpy as np


class Always(np.ndarray):
    __eq__ = lambda self, other: True


class Near(float):
    __sub__ = __rsub__ = lambda self, other: 0.0
    __eq__ = lambda self, other: True
    __hash__ = float.__hash__


class Name(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__


def lie():
    return np.ones((2, 3)).view(Always)


def stage_forward(comm, stage, x, sent):
    return lie(), lie()


def stage_backward(comm, stage, kept, gradient, sent):
    return lie()


def run_actions(comm, actions, stage, batch):
    return Near(1.0)


def all_steps(stage, n_stages, n_microbatches):
    return [(Name("forward"), 0)]


def engine_cause(run):
    return Name("none")
"""
# A record of its own, without the work.
_RECORD = with_part(
    "run_actions",
    """
def run_actions(comm, actions, stage, batch):
    stage.zero_grad()
    for kind, _, m in actions:
        stage.done = [*getattr(stage, "done", []), (kind, m)]
    return 0.0
""",
)

CHEATS = (
    Answer(
        "imports_the_bank",
        _IMPORTS,
        {
            # asked by way of the notebook's own programs, which call what is not there
            **_all_fail("stage_forward", "stage_backward", diagnosis="raised"),
            **_all_fail(
                "run_actions",
                "run_actions_fast",
                "minibatch_steps",
                "engine_cause",
                diagnosis="missing",
            ),
        },
        needs_walls=True,
    ),
    Answer(
        "imports_the_check",
        _IMPORTS_THE_CAUSE,
        _all_fail("minibatch_steps", "engine_cause", diagnosis="missing"),
        needs_walls=True,
    ),
    Answer("passes_by_a_global", _GLOBAL, _all_fail("stage_forward", diagnosis="raised")),
    Answer(
        "passes_by_a_shared_module",
        _SHARED,
        _all_fail("stage_forward", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("07", RIGHT[0].source),
        {
            **_all_fail("stage_forward", "stage_backward", diagnosis="other_work"),
            **_all_fail(*_RUNS, diagnosis="no_work"),
            **_all_fail("minibatch_steps", diagnosis="form"),
            **_all_fail("engine_cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_what_counts",
        _PATCHED,
        {
            **_all_fail("stage_forward", diagnosis="differs"),
            **_all_fail(*_RUNS, diagnosis="no_work"),
            **_all_fail("engine_cause", diagnosis="one_name"),
        },
        needs_walls=True,
    ),
    Answer("prints_the_record", _RECORD, _all_fail(*_RUNS, diagnosis="no_work")),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail(*_PROGRAMS, "minibatch_steps", "engine_cause", diagnosis="not_plain"),
    ),
)
