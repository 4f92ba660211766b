"""A unit of rank programs for tests: behind walls and at home, and what they gave there."""

import re

import numpy as np

from autograder.checks.ranks import ranks
from autograder.diagnosis import StudentError
from autograder.exercise import Exercise, Unit
from autograder.local import LocalSubject

EXERCISE = Exercise("toy", "Toy", 1, ("f",), "served", (), (), "99", lambda s, d: None)
TOY = Unit("99", "toy", (EXERCISE,), ())
IMPORTS = "import os, sys, time\nimport numpy as np\n"


def at_home(source, names=("f",)):
    namespace = {"__name__": "__main__"}
    exec(compile(source, "<your cell>", "exec"), namespace)
    return LocalSubject(namespace, names)


def behind_walls(sandbox, source, names=("f",)):
    return sandbox.open([("solution", source)], names)


def both(sandbox, source, names=("f",)):
    """The subject at home, then the one behind walls."""
    yield at_home(source, names)
    with behind_walls(sandbox, source, names) as subject:
        yield subject


def vectors(n_ranks, n=4):
    return [(np.arange(n, dtype=float) + 10 * rank,) for rank in range(n_ranks)]


def outcome(subject, n_ranks, arguments, machine=None, name="f"):
    """What a run gave, in parts that can be compared; of a failure without the cell's name."""
    try:
        run = ranks(subject, name, n_ranks, arguments, machine)
    except StudentError as error:
        message = re.sub(r" \((your cell|solution), line \d+\)", "", error.message)
        return error.kind, message, error.type_name, error.line
    meter = {key: tuple(count) for key, count in run.meter.counts.items()}
    return "", listed(run.results), meter, run.makespan_s, run.timeline, run.bought


def listed(value):
    """Arrays with their dtype, shape and entries, so that `==` compares them."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tolist())
    if isinstance(value, list | tuple):
        return type(value)(map(listed, value))
    return value


# Frames written past `Comm`.
RAW = """
import struct, msgpack
from autograder.worker.ranks import *
def write(data): os.write(3, data)
def raw(*parts):
    data = msgpack.packb(parts)
    write(struct.pack(">I", len(data)) + data)
def isend(at=0, to=0, tag=0, what="", dtype="<f8", shape=(1,), data=bytes(8)):
    raw(ISEND, at, to, tag, what, dtype, shape, data)
def start(name, dtype="<f8", shape=(2,), data=bytes(16), op=None, root=None, sizes=None, more=None):
    raw(START, 0, name, dtype, shape, data, op, root, sizes, more)
"""
