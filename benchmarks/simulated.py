"""The simulated machine: what a message costs, and a small program, with meter and record on.

Two ranks send 8 bytes to each other, in turns. Beside it, on the same core, two threads hand over
a lock each as often as ranks hand over the baton: no message between threads can cost
less. The least of all turns counts, since whatever else runs only adds.

    python benchmarks/simulated.py --turns 5
"""

import argparse
import os
import threading
import time
from collections.abc import Callable

import numpy as np

from mpedu.launch import RankError, run_ranks

N_MESSAGES = (1_000, 10_000, 50_000)
MOST_US, MOST_MS, MOST_FAULT_MS = 25.0, 5.0, 100.0
N_ROUND_TRIPS = 10_000


def ping_pong(comm, n_messages):
    """As many messages of 8 bytes, one after the other."""
    x = np.zeros(1)
    for _ in range(n_messages // 2):
        if comm.rank == 0:
            comm.send(x, 1)
            comm.recv(1)
        else:
            comm.recv(0)
            comm.send(x, 0)


def all_reduce(comm):
    """The sum of one array of 8 KB."""
    return comm.all_reduce(np.ones(1000))


FAULTS = {
    "all receive first": lambda comm: comm.recv((comm.rank + 1) % comm.size),
    "all send first": lambda comm: comm.send(np.ones(1), (comm.rank + 1) % comm.size),
    "one ends early": lambda comm: comm.recv(0) if comm.rank == 1 else None,
    "one leaves out a collective": lambda comm: comm.rank or comm.barrier(),
    "two collectives": lambda comm: comm.all_reduce(np.ones(1)) if comm.rank else comm.barrier(),
    "two shapes": lambda comm: comm.all_reduce(np.ones(1 + comm.rank)),
    "a message left over": lambda comm: comm.rank or comm.isend(np.ones(1), 1),
    "a receive left over": lambda comm: comm.rank or comm.irecv(1),
    "an error": lambda comm: comm.all_gather(np.ones(1 // comm.rank)),
    "no such rank": lambda comm: comm.send(np.ones(1), comm.size),
}


def fault_s(program: Callable[..., object]) -> float:
    """Seconds until a wrong program on 4 ranks is told."""
    start_s = time.perf_counter()
    try:
        run_ranks(program, 4, machine="simulated")
    except RankError:
        return time.perf_counter() - start_s
    raise SystemExit("a wrong program ran to its end")


def timed_s(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def messages_s(n_messages: int) -> float:
    """Seconds of a run of two ranks with so many messages."""
    return timed_s(lambda: run_ranks(ping_pong, 2, n_messages, machine="simulated"))


def all_reduce_s(n_ranks: int) -> float:
    """Seconds of a run with one all-reduce."""
    return timed_s(lambda: run_ranks(all_reduce, n_ranks, machine="simulated"))


def round_trips_s() -> float:
    """Seconds in which two threads on one core hand over to each other and back, with two locks."""
    turns = [threading.Lock(), threading.Lock()]
    for turn in turns:
        turn.acquire()

    def live(own: int) -> None:
        stay_on_one_core()
        for _ in range(N_ROUND_TRIPS):
            turns[own].acquire()
            turns[1 - own].release()

    threads = [threading.Thread(target=live, args=(own,)) for own in (0, 1)]
    for thread in threads:
        thread.start()

    def run() -> None:
        turns[0].release()
        for thread in threads:
            thread.join()

    return timed_s(run)


def stay_on_one_core() -> None:
    """As a simulated rank does, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(os.getpid()))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def main() -> None:
    """Prints the least of all turns, the ratios, and whether the goals are held."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--torch", action="store_true", help="with torch loaded, as in most runs")
    args = parser.parse_args()
    if args.torch:
        import torch  # noqa: F401 -- its random state is then swapped too
    messages_s(100), all_reduce_s(4)  # whatever is only done once
    turns = [
        [round_trips_s() / N_ROUND_TRIPS, all_reduce_s(4), *map(messages_s, N_MESSAGES)]
        for _ in range(args.turns)
    ]
    bare_s, reduced_s, *runs_s = map(min, zip(*turns, strict=True))
    print(f"{os.cpu_count()} cores, least of {args.turns} turns:")
    print(f"  round trip of two bare locks     {bare_s * 1e6:8.1f} us")
    each_us = [seconds / n * 1e6 for n, seconds in zip(N_MESSAGES, runs_s, strict=True)]
    for n, us in zip(N_MESSAGES, each_us, strict=True):
        print(f"  a message of {n:7,d}             {us:8.1f} us   {us / bare_s / 1e6:5.1f}x")
    print(f"  50,000 against 10,000, each one  {each_us[2] / each_us[1]:8.2f}x")
    print(f"  all-reduce of 4 ranks, all of it {reduced_s * 1e3:8.2f} ms")
    faults_ms = {
        name: min(fault_s(program) for _ in range(args.turns)) * 1e3
        for name, program in FAULTS.items()
    }
    slowest = max(faults_ms, key=faults_ms.__getitem__)
    print(f"  {len(FAULTS)} faults told, the slowest      {faults_ms[slowest]:8.2f} ms   {slowest}")
    for name, value, most, unit in (
        ("message", each_us[1], MOST_US, "us"),
        ("all-reduce", reduced_s * 1e3, MOST_MS, "ms"),
        ("fault", faults_ms[slowest], MOST_FAULT_MS, "ms"),
    ):
        held = "held" if value <= most else "missed"
        print(f"goal {held}: {name} {value:.1f} {unit}, at most {most:g} {unit}")


if __name__ == "__main__":
    main()
