"""The model clock and the search on it: microseconds per action, and seconds per search.

256 ranks and 1024 micro-batches, half a million actions and more, built and run; then searches
under tight caps on 8 ranks with 32 micro-batches, one or two stages on each. CPU time, of the runs
the least of all turns, since whatever else runs only adds. Bytes per action, and how work grows,
are tested.

    python benchmarks/model_clock.py --turns 3
"""

import argparse
import os
import time

from mpedu.families import make_schedule
from mpedu.search import search_schedule
from mpedu.simulate import Costs, simulate

N_RANKS, N_MICROBATCHES, MOST_US = 256, 1024, 3.0
NAMES = ("1f1b", "gpipe", "zero-bubble-h1", "interleaved")
LATE = Costs(1.0, 2.0, latency_s=0.1, message_s=0.1)
RANKS, MOST_SEARCH_S = [*range(8)], 20.0
SEARCHES = {  # placement, and the activations that a rank may hold
    "one stage per rank": (RANKS, 5),
    "looped": (RANKS + RANKS, 12),
    "V": (RANKS + RANKS[::-1], 8),
}


def turn(name: str, costs: Costs, n_ranks: int, n_microbatches: int) -> tuple[float, float]:
    """Microseconds per action, of building and of running."""
    start_s = time.process_time()
    schedule = make_schedule(name, n_ranks, n_microbatches)
    built_s = time.process_time()
    n_actions = len(simulate(schedule, costs).spans)
    end_s = time.process_time()
    return (built_s - start_s) / n_actions * 1e6, (end_s - built_s) / n_actions * 1e6


def run_actions(n_turns: int, n_ranks: int, n_microbatches: int) -> None:
    """Prints what an action costs."""
    print(f"{n_ranks} ranks, {n_microbatches} micro-batches, us per action, least of {n_turns}:")
    worst = 0.0
    for name in NAMES:
        for words, costs in (("", Costs()), (", busy links", LATE)):
            turns = [turn(name, costs, n_ranks, n_microbatches) for _ in range(n_turns)]
            build_us, run_us = map(min, zip(*turns, strict=True))
            worst = max(worst, build_us + run_us)
            total = f"{build_us + run_us:5.2f}"
            print(f"  {name + words:28s} build {build_us:5.2f}   run {run_us:5.2f}   sum {total}")
    tell("building and running an action", worst, MOST_US, "us")


def run_searches() -> None:
    """Prints what a search costs, and what it finds."""
    print("8 ranks, 32 micro-batches, F = I = W = 1:")
    worst = 0.0
    costs = Costs(1, 2, 1, 1)
    for name, (placement, cap) in SEARCHES.items():
        for split in (True, False):
            start_s = time.process_time()
            found = search_schedule(placement, 32, costs, cap, split=split)
            spent_s = time.process_time() - start_s
            worst = max(worst, spent_s)
            words = f"{name}, cap {cap}, {'halves' if split else 'whole backwards'}"
            makespan_s = simulate(found, costs).makespan_s
            print(f"  {words:44s} {spent_s:5.1f} s for a makespan of {makespan_s:g}")
    tell("a search", worst, MOST_SEARCH_S, "s")


def tell(what: str, value: float, most: float, unit: str) -> None:
    """Prints whether a goal is held."""
    held = "held" if value <= most else "missed"
    print(f"goal {held}: {value:.2f} {unit} for {what}, at most {most:g} {unit}")


def main() -> None:
    """Prints the figures of both, and whether the goals are held."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    parser.add_argument("--ranks", type=int, default=N_RANKS, metavar="K")
    parser.add_argument("--microbatches", type=int, default=N_MICROBATCHES, metavar="M")
    args = parser.parse_args()
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    print(f"{os.cpu_count()} cores, load average before {load}")
    run_actions(args.turns, args.ranks, args.microbatches)
    run_searches()


if __name__ == "__main__":
    main()
