"""A right student who goes wrong in one case only is caught, wherever it is."""

import random

import numpy as np
import pytest
from judged import SECRETS, names_of

from autograder.bank.unit_01 import RIGHT
from autograder.exercise import find_exercise, load_unit
from autograder.judge import judge
from autograder.local import LocalSubject
from mpedu.runs import SUM_CAUSES

UNIT = load_unit("01")


def one_element_off(run, rng):
    """Of one rank; where there are no elements, one too many."""
    rank = rng.randrange(len(run.results))
    x = run.results[rank].copy()
    if len(x):
        x[rng.randrange(len(x))] += 1 if x.dtype.kind == "i" else 1e-9
    else:
        x = np.zeros(1, x.dtype)
    return run._replace(results=[*run.results[:rank], x, *run.results[rank + 1 :]])


def one_element_short(run, rng):
    rank = rng.randrange(len(run.results))
    x = np.append(run.results[rank], run.results[rank][:1] if len(run.results[rank]) else 0)
    x = x.astype(run.results[rank].dtype)
    return run._replace(results=[*run.results[:rank], x, *run.results[rank + 1 :]])


def other_dtype(run, rng):
    rank = rng.randrange(len(run.results))
    x = run.results[rank].astype(np.float32)
    return run._replace(results=[*run.results[:rank], x, *run.results[rank + 1 :]])


def one_byte_more(run, rng):
    run.meter.message(rng.randrange(len(run.results)), "send", 1, False)
    return run


def one_byte_less(run, rng):
    run.meter.message(rng.randrange(len(run.results)), "send", -1, False)
    return run


def called_collective(run, rng):
    run.meter.call(rng.randrange(len(run.results)), "all_reduce")
    return run


def later(run, rng):
    return run._replace(makespan_s=run.makespan_s + 1e-3 * max(1.0, run.makespan_s))


def far_later(run, rng):
    """Where the time that is allowed is that of a power of two ranks."""
    return run._replace(makespan_s=2 * run.makespan_s + 1)


def more(number, rng):
    return number + rng.choice([-1, 1]) * 1e-6 * max(1, number)


def other_cause(name, rng):
    return rng.choice([cause for cause in SUM_CAUSES if cause != name])


RESULTS = (one_element_off, one_element_short, other_dtype, called_collective)
SPOILS = {
    "ring_all_gather": (*RESULTS, one_byte_more, one_byte_less),
    "ring_reduce_scatter": (*RESULTS, one_byte_more, one_byte_less),
    "ring_all_reduce": RESULTS,
    "ring_all_reduce_fast": (*RESULTS, one_byte_more, one_byte_less, later),
    "cost_s": (more,),
    "tree_broadcast": (*RESULTS, far_later),
    "sum_cause": (other_cause,),
}
# Of an answer to these no byte is counted: they are asked for what comes out alone.
UNCOUNTED = {"ring_reduce_scatter": ("float64", "no elements")}


class Spoiled:
    """Right in all calls but in number `spoiled`."""

    def __init__(self, change, spoiled, rng):
        self.subject = LocalSubject(names_of(RIGHT[0].source), ())
        self.change, self.spoiled, self.rng, self.n_calls = change, spoiled, rng, 0
        self.what = ""

    def run_ranks(self, name, n_ranks, arguments, machine):
        run = self.subject.run_ranks(name, n_ranks, arguments, machine)
        ((x,), *_) = arguments
        kind = "no elements" if not len(x) and n_ranks == 2 else str(x.dtype)
        return self._spoilt(run, kind)

    def __getattr__(self, name):
        return lambda *args: self._spoilt(getattr(self.subject, name)(*args), name)

    def _spoilt(self, right, what):
        self.n_calls += 1
        if self.n_calls - 1 != self.spoiled:
            return right
        self.what = what
        return self.change(right, self.rng)


@pytest.mark.parametrize("exercise_id", SPOILS)
def test_one_wrong_answer_among_right_ones_costs_points(exercise_id):
    exercise = find_exercise(exercise_id)
    counted = Spoiled(None, -1, None)
    judge(exercise, counted, SECRETS[0])
    for change in SPOILS[exercise_id]:
        for spoiled in range(counted.n_calls):
            subject = Spoiled(change, spoiled, random.Random(spoiled))
            verdict = judge(exercise, subject, SECRETS[0])
            uncounted = change in (one_byte_more, one_byte_less)
            if uncounted and subject.what in UNCOUNTED.get(exercise_id, ()):
                continue
            assert verdict.status != "passed", (change.__name__, spoiled)
