"""The judge of rank programs: walled ranks against simulated ones, in turns in one run.

Four programs, each on its own ranks: `messages` (a ring in which every rank sends and receives
`--messages` times), `all_reduce`, `nothing`, and what an exercise of one all-reduce takes with its
processes. CPU seconds are those of this process, of the judge alone.

    python benchmarks/judge_ranks.py --ranks 4 --messages 200 --bytes 8192 --turns 9
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from autograder.checks.ranks import ranks
from autograder.exercise import Exercise, Unit
from autograder.local import LocalSubject
from autograder.sandbox import Sandbox, build_runtime

CELL = """
def messages(comm, x, n_messages):
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    for _ in range(n_messages):
        if comm.rank % 2:
            received = comm.recv(before)
            comm.send(x, after)
        else:
            comm.send(x, after)
            received = comm.recv(before)
        x = received
    return float(x.sum())

def all_reduce(comm, x, n_messages):
    return comm.all_reduce(x)

def nothing(comm, x, n_messages):
    return None
"""
NAMES = ("messages", "all_reduce", "nothing")


def main() -> None:
    """Prints a line per program, and the ratio of walled to simulated ranks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=4, metavar="N")
    parser.add_argument("--messages", type=int, default=200, metavar="N")
    parser.add_argument("--bytes", type=int, default=8192, metavar="N")
    parser.add_argument("--turns", type=int, default=9, metavar="N")
    args = parser.parse_args()
    exercise = Exercise("bench", "Bench", 1, NAMES, "served", (), (), "99", lambda s, d: None)
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder) / "runtime"
        build_runtime(Unit("99", "bench", (exercise,), ()), runtime)
        with Sandbox(runtime) as sandbox:
            print(f"{args.ranks} ranks, {os.cpu_count()} cores, {sandbox.rung}; least of the turns")
            measure(sandbox, args)


def measure(sandbox: Sandbox, args: argparse.Namespace) -> None:
    """Times every program in turns, at home and behind walls."""
    x = np.arange(args.bytes // 8, dtype=np.float64)
    given = [(x + rank, args.messages) for rank in range(args.ranks)]
    names: dict[str, object] = {"__name__": "__main__"}
    exec(CELL, names)
    home = LocalSubject(names, NAMES)
    with sandbox.open([("bench", CELL)], NAMES) as walled:
        for name in NAMES:
            asked = [
                lambda subject=subject, name=name: ranks(subject, name, args.ranks, given)
                for subject in (home, walled)
            ]
            tell(name, in_turns(asked, args.turns))

    def exercise() -> None:
        with sandbox.open([("bench", CELL)], NAMES) as fresh:
            ranks(fresh, "all_reduce", args.ranks, given)

    tell(
        "exercise",
        in_turns([lambda: ranks(home, "all_reduce", args.ranks, given), exercise], args.turns),
    )


def in_turns(asked: list[Callable[[], object]], n_turns: int) -> list[tuple[float, float]]:
    """The least (seconds, CPU seconds of this process) of each, one after the other every turn."""
    taken: list[list[tuple[float, float]]] = [[] for _ in asked]
    for _ in range(n_turns):
        for one, times in zip(asked, taken, strict=True):
            start_s, cpu_s = time.perf_counter(), time.process_time()
            one()
            times.append((time.perf_counter() - start_s, time.process_time() - cpu_s))
    return [(min(t for t, _ in times), min(c for _, c in times)) for times in taken]


def tell(name: str, taken: list[tuple[float, float]]) -> None:
    """One line."""
    (home_s, _), (walled_s, cpu_s) = taken
    print(
        f"{name:12s} simulated {1e3 * home_s:7.1f} ms   walled {1e3 * walled_s:7.1f} ms "
        f"(judge's CPU {1e3 * cpu_s:6.1f} ms)   ratio {walled_s / home_s:5.1f}"
    )


if __name__ == "__main__":
    main()
