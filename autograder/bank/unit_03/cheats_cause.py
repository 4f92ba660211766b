"""Cheats of unit 03's `cause`: ask the oracle, look at the judge, count the public runs."""

from autograder import oracle
from autograder.bank import Answer
from autograder.checks.unit_03.sealed_runs import RUNS

_ORACLE = """
def cause(run):
    from autograder.oracle import cause as answer

    return answer(run)
"""
_GENERATOR = """
from mpedu.sealed import sealed_run


def cause(run):
    import autograder.checks.unit_03.sealed_runs as sealed

    known = {repr(r): name for seed in range(99) for name, r in sealed.RUNS.drawn(seed)}
    return known[repr(run)]
"""
_FRAMES = """
def cause(run):
    import sys

    frame = sys._getframe()
    while frame:
        if "_plan" in frame.f_locals or "names" in frame.f_locals:
            return next(iter(frame.f_locals["names"]))
        frame = frame.f_back
    return None
"""


def _in_order() -> str:
    """The source of an answer that knows the causes of the public runs in the order asked."""
    names = [oracle.cause(run) for run in RUNS.public.values()]
    return f"""
import itertools

NAMES = itertools.cycle({names!r})


def cause(run):
    return next(NAMES)
"""


CAUSE_CHEATS = (
    Answer("imports_the_oracle_of_causes", _ORACLE, {"cause": (0, "raised")}, needs_walls=True),
    Answer("imports_the_generator", _GENERATOR, {"cause": (0, "missing")}, needs_walls=True),
    Answer("looks_at_the_judge", _FRAMES, {"cause": (0, "no_name")}, needs_walls=True),
    Answer("counts_the_public_runs", _in_order(), {"cause": (0, "ratio_evidence")}),
)
