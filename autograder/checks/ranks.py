"""Rank programs in checks: *served* evidence.

Messages, bytes, clock and bought work are the judge's own figures. At home the ranks are simulated
in the notebook's process; in grading each has a walled process, with nothing but a socket to the
judge. Both run the same exchange in the same order, so that what passes at home passes there.
"""

from collections.abc import Sequence
from typing import Any

from autograder.diagnosis import Subject
from autograder.programs import RanksRun, Served
from mpedu.simulated import Simulated

__all__ = ["RanksRun", "Served", "ranks"]


def ranks(
    subject: Subject,
    name: str,
    n_ranks: int,
    arguments: Sequence[tuple[Any, ...]],
    machine: Simulated | None = None,
) -> RanksRun:
    """What the student's program `name(comm, *arguments[rank])` gives on `n_ranks` ranks.

    arguments: a tuple per rank, of plain data and of `Served` objects, whose methods the program
    calls and the judge computes and charges. `comm.compute` costs nothing here: only bought work
    takes time. machine: None for a link of 5 microseconds and 100 GB/s.
    StudentError: "deadlock", "unreceived" (a message or a started operation without its other
    end), "mismatch" (of shapes, dtypes or collectives), or as of a plain call, with the rank.
    """
    machine = Simulated() if machine is None else machine
    run: RanksRun = subject.run_ranks(name, n_ranks, list(arguments), machine)
    return run
