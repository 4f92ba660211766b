"""`run_ranks` from a notebook cell against torch.multiprocessing's spawn, in turns in one kernel.

Both start the ranks, join them into a gloo group, sum one number over them, and end. spawn cannot
run a function of a cell: it gets its own from a file, `run_ranks` from the cell.

    python benchmarks/launch_ranks.py --ranks 4 --turns 5
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from jupyter_client.manager import start_new_kernel

SPAWNED = """
import os, tempfile
from datetime import timedelta
import torch, torch.distributed as dist, torch.multiprocessing as mp

def program(rank, n_ranks, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), n_ranks)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=n_ranks, timeout=timedelta(seconds=60)
    )
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.barrier()
    dist.destroy_process_group()
    assert x.item() == n_ranks

def run(n_ranks):
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(program, (n_ranks, folder), nprocs=n_ranks)
"""
CELL = """
import json, sys, time
sys.path.insert(0, {folder!r})
import torch, spawned
from mpedu.launch import run_ranks

def program(comm):
    return comm.all_reduce(torch.ones(1)).item()

def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start

def ours():
    assert run_ranks(program, {n_ranks}).results == [{n_ranks}] * {n_ranks}

first = timed(ours)
turns = []
for _ in range({n_turns}):
    turns.append((timed(ours), timed(lambda: spawned.run({n_ranks}))))
print(json.dumps([first, turns]))
"""


def main() -> None:
    """Prints every turn, the medians, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=4, metavar="N")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mpedu-bench-") as folder:
        Path(folder, "spawned.py").write_text(SPAWNED)
        first_s, turns = measured(folder, args.ranks, args.turns)
    print(f"{args.ranks} ranks from a notebook cell, {os.cpu_count()} cores, in turns:")
    print(f"  first run_ranks, the fork server's start included {first_s:8.3f} s")
    for ours_s, spawn_s in turns:
        print(f"  run_ranks {ours_s:8.3f} s   spawn {spawn_s:8.3f} s   {spawn_s / ours_s:6.1f}x")
    ours_s, spawn_s = (statistics.median(times) for times in zip(*turns, strict=True))
    print(f"medians: run_ranks {ours_s:.3f} s, spawn {spawn_s:.3f} s")
    print(f"ratio of medians {spawn_s / ours_s:.1f}x")


def measured(folder: str, n_ranks: int, n_turns: int) -> tuple[float, list[tuple[float, float]]]:
    """Seconds of the first call, and of (run_ranks, spawn) in each turn, in a fresh kernel."""
    manager, client = start_new_kernel(cwd=folder, stderr=subprocess.DEVNULL)
    said: list[str] = []

    def hear(message: dict) -> None:
        content = message["content"]
        said.append(content.get("text") or "\n".join(content.get("traceback", [])))

    try:
        cell = CELL.format(folder=folder, n_ranks=n_ranks, n_turns=n_turns)
        client.execute_interactive(cell, timeout=600, output_hook=hear)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    try:
        first_s, turns = json.loads("".join(said))
    except ValueError:
        raise SystemExit("".join(said)) from None
    return first_s, turns


if __name__ == "__main__":
    main()
