"""The sealed runs of unit 01: an all-reduce with a planted fault, run on the simulated machine."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.checks.causes import SealedRuns
from mpedu.comm import Comm
from mpedu.runs import SumRun
from mpedu.simulated import Simulated, run_simulated
from mpedu.simulated.exchange import Wire

ELEMENT_BYTES = 8
N_OF_EACH = {
    "none": 4,
    "only_rank_0": 3,
    "divided": 3,
    "tail_lost": 3,
    "whole_arrays": 4,
    "through_rank_0": 4,
    "in_turn": 3,
}
_SHOWN = ("tail_lost", "whole_arrays", "through_rank_0", "in_turn")
_SHOWN_RANKS, _SHOWN_ELEMENTS = 4, 10


def _drawn(rng: random.Random) -> list[tuple[str, SumRun]]:
    """Each planted cause with its run, 24 of them; 3 to 8 ranks."""
    wanted = [cause for cause, n in N_OF_EACH.items() for _ in range(n)]
    return [(cause, _drawn_run(cause, rng, at)) for at, cause in enumerate(wanted)]


def _shown(rng: random.Random) -> list[SumRun]:
    """Four runs of the same numbers."""
    given = [[rng.randint(1, 9) for _ in range(_SHOWN_ELEMENTS)] for _ in range(_SHOWN_RANKS)]
    link = Wire(latency_s=2.0, bytes_per_s=8.0)
    return [planted_run(cause, given, link) for cause in rng.sample(_SHOWN, len(_SHOWN))]


RUNS = SealedRuns("01", "sum_cause", _shown, _drawn)


def right_sums() -> int:
    """In how many of the notebook's runs every rank has the sum."""
    return sum(_is_right(run) for run in RUNS.shown.values())


def _is_right(run: SumRun) -> bool:
    total = [sum(column) for column in zip(*run.given, strict=True)]
    return all(got == total for got in run.got)


def _drawn_run(cause: str, rng: random.Random, at: int) -> SumRun:
    """By turns on links where latency costs more than a part's bytes, and less.

    Of the healthy runs, which come first, two divide by the ranks and two do not: so that whoever
    leaves out one kind of evidence is wrong with every seed.
    """
    p = rng.randint(3, 8)
    # More elements than ranks twice over, so that a ring's uneven parts look like nothing else.
    n = 2 * p + rng.randint(0, 3 * p)
    if cause == "none" and at < N_OF_EACH["none"] // 2:
        n -= n % p
    elif cause in ("none", "tail_lost") and n % p == 0:
        n += rng.randint(1, p - 1)
    given = [[rng.randint(1, 99) for _ in range(n)] for _ in range(p)]
    far, narrow = Wire(float(rng.randint(7, 9)), 16.0), Wire(1.0, float(rng.randint(3, 5)))
    link = narrow if at % 2 else far
    return planted_run(cause, given, link)


def planted_run(cause: str, given: list[list[int]], link: Wire) -> SumRun:
    """One all-reduce of these numbers, by rank, with that fault."""
    numbers = np.array(given, dtype=np.int64)

    def program(comm: Comm) -> tuple[list[float], float]:
        return _PROGRAMS[cause](comm, numbers[comm.rank]).tolist(), comm.now_s()

    run = run_simulated(program, len(given), (), Simulated(link=link))
    got, ends_s = zip(*run.results, strict=True)
    sent = tuple(run.meter.total(rank).bytes for rank in range(len(given)))
    return SumRun(given, list(got), sent, max(ends_s), *link)


def _ring(comm: Comm, x: Any) -> Any:
    parts = np.array_split(x.copy(), comm.size)
    for step in range(2 * (comm.size - 1)):
        sent = comm.isend(parts[(comm.rank - step - 1) % comm.size].copy(), _right(comm))
        place = (comm.rank - step - 2) % comm.size
        came = comm.recv(_left(comm))
        parts[place] = parts[place] + came if step < comm.size - 1 else came
        sent.wait()
    return np.concatenate(parts)


def _ring_in_turn(comm: Comm, x: Any) -> Any:
    """As a ring, and each rank sends only when it has received; rank 0 begins."""
    parts = np.array_split(x.copy(), comm.size)
    for step in range(2 * (comm.size - 1)):
        mine, place = (comm.rank - step - 1) % comm.size, (comm.rank - step - 2) % comm.size
        if comm.rank == 0:
            comm.send(parts[mine], _right(comm))
        came = comm.recv(_left(comm))
        if comm.rank:
            comm.send(parts[mine], _right(comm))
        parts[place] = parts[place] + came if step < comm.size - 1 else came
    return np.concatenate(parts)


def _divided(comm: Comm, x: Any) -> Any:
    return _ring(comm, x) / comm.size


def _tail_lost(comm: Comm, x: Any) -> Any:
    summed = len(x) // comm.size * comm.size
    return np.concatenate([_ring(comm, x[:summed]), x[summed:]])


def _only_rank_0(comm: Comm, x: Any) -> Any:
    if comm.rank:
        comm.send(x, 0)
        return x
    return sum((comm.recv(rank) for rank in range(1, comm.size)), x)


def _whole_arrays(comm: Comm, x: Any) -> Any:
    total, passing = x.copy(), x
    for _ in range(comm.size - 1):
        sent = comm.isend(passing, _right(comm))
        came = comm.recv(_left(comm))
        sent.wait()
        total, passing = total + came, came
    return total


def _through_rank_0(comm: Comm, x: Any) -> Any:
    total = _only_rank_0(comm, x)
    if comm.rank:
        return comm.recv(0)
    for rank in range(1, comm.size):
        comm.send(total, rank)
    return total


def _right(comm: Comm) -> int:
    return (comm.rank + 1) % comm.size


def _left(comm: Comm) -> int:
    return (comm.rank - 1) % comm.size


_PROGRAMS: dict[str, Callable[[Comm, Any], Any]] = {
    "none": _ring,
    "only_rank_0": _only_rank_0,
    "divided": _divided,
    "tail_lost": _tail_lost,
    "whole_arrays": _whole_arrays,
    "through_rank_0": _through_rank_0,
    "in_turn": _ring_in_turn,
}
