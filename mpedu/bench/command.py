"""`./course bench`: our engine and torch's, timed in turns on the same stages."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from mpedu.bench.engines import Engine, Task, differences, engines, race
from mpedu.bench.figures import (
    COLUMNS,
    VERDICT_COLUMNS,
    Show,
    Size,
    Times,
    Verdict,
    rows,
    shower,
    summary,
    verdict_rows,
    verdicts,
)
from mpedu.faults import Failure, require_at_least
from mpedu.launch import run_ranks
from mpedu.ranks.errors import RankError

NO_TRUST = "do not trust the figures, and measure again when it rests"
WAIT_S = 300.0  # longest single wait of a rank: longer than any step
CLOSE = 5e-6  # what gradients in float32 may differ by, relative
BUSY = 0.25  # cores in use by others, or load before the start, from which figures are disturbed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `./course bench`."""
    task = Task()
    samples, microbatches = zip(*task.sizes, strict=True)
    parser.description = (
        "Time steps (forward and backward of all micro-batches) of a small GPT, engine beside "
        "engine on the same stages, and say whether ours reaches its goals. A goal that is missed "
        "is told, and no error."
    )
    parser.epilog = (
        "example: ./course bench pipeline --vs torch --json bench.json; "
        "exit status: 0 measured, 1 the gradients of an engine are wrong or a rank failed"
    )
    parser.add_argument("what", choices=["pipeline"], help="pipeline: 1F1B and GPipe")
    parser.add_argument("--vs", choices=["torch"], default="torch", help="default: %(default)s")
    for name, default, text in (
        ("runs", 3, "runs, each on new processes"),
        ("repetitions", 30, "steps of each engine per run and size"),
        ("ranks", task.n_ranks, "ranks, one stage each"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text}; default: {default}"
        )
    for name, several, text in (
        ("samples", samples, "samples per batch, a number for each size"),
        ("microbatches", microbatches, "micro-batches, a number for each size"),
    ):
        shown = " ".join(map(str, several))
        parser.add_argument(
            f"--{name}", type=int, nargs="+", default=several, metavar="N",
            help=f"{text}; default: {shown}",
        )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="takes every single time")


def run(args: argparse.Namespace) -> int:
    """Measures and prints; 0. Failure where an engine computes something else, or a rank fails."""
    task = _task(args)
    if args.json is not None:
        args.json.open("a").close()  # a file that cannot be written is better told now
    found = bench(task, engines(), args.runs, args.repetitions, shower())
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def _task(args: argparse.Namespace) -> Task:
    """What was asked for; ValueError where torch could not run it."""
    require_at_least(1, runs=args.runs, repetitions=args.repetitions)
    require_at_least(2, ranks=args.ranks)
    if len(args.samples) != len(args.microbatches):
        raise ValueError(
            f"--samples has {len(args.samples)} numbers and --microbatches "
            f"{len(args.microbatches)}; give one of each for every size"
        )
    task = Task(tuple(map(Size, args.samples, args.microbatches)), args.ranks)
    if args.ranks > task.config.n_layers:
        raise ValueError(
            f"--ranks {args.ranks} with a model of {task.config.n_layers} blocks; "
            f"give 2 to {task.config.n_layers}"
        )
    for size in task.sizes:
        require_at_least(1, samples=size.n_samples)
        require_at_least(args.ranks, microbatches=size.n_microbatches)
        if size.n_samples % size.n_microbatches:
            raise ValueError(
                f"{size}: torch needs micro-batches of one size; give samples that can be "
                "divided by the micro-batches"
            )
    return task


def bench(
    task: Task, contestants: Mapping[str, Engine], n_runs: int, n_repetitions: int, show: Show
) -> dict[str, Any]:
    """Every time and verdict as plain data, shown as they come; Failure as in `run`."""
    machine = _machine()
    print(_heading(task, machine), flush=True)
    gradients = _check(task, contestants)
    runs: list[dict[Size, Times]] = []
    others: list[float] = []
    for number in range(1, n_runs + 1):
        times, used = _raced(task, contestants, n_repetitions, f"run {number} of {n_runs}")
        runs.append(times)
        others.append(used)
        for size, of_size in times.items():
            title = f"run {number}, {size}, {n_repetitions} repetitions"
            show(title, COLUMNS, rows(of_size, task.n_ranks, size))
        print(_disturbance(used), flush=True)
    found = verdicts(runs)
    show("median of the runs, time of mpedu / time of torch", VERDICT_COLUMNS, verdict_rows(found))
    print(f"\n{summary(found)}")
    return {
        "machine": machine,
        "n_ranks": task.n_ranks,
        "gradients": gradients,
        "runs": [
            {"cores_used_by_others": used, "sizes": [_plain_times(*each) for each in times.items()]}
            for used, times in zip(others, runs, strict=True)
        ],
        "verdicts": [_plain_verdict(verdict) for verdict in found],
    }


def _plain_times(size: Size, times: Times) -> dict[str, Any]:
    return {"size": size._asdict(), "seconds": times}


def _plain_verdict(verdict: Verdict) -> dict[str, Any]:
    goal, size, ratios = verdict
    shown = {"ratios": ratios, "median": verdict.middle, "verdict": verdict.word}
    return {**goal._asdict(), "size": size._asdict(), **shown}


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _heading(task: Task, machine: Mapping[str, Any]) -> str:
    config, load, cores = task.config, machine["load_average"], machine["cores"] or 1
    lines = [
        f"GPT of {config.n_layers} blocks, d_model {config.d_model}, {config.n_heads} heads, "
        f"vocabulary {config.vocab_size}, {config.n_positions} tokens, float32",
        f"{task.n_ranks} ranks with one thread each; {cores} cores, load average "
        f"{'unknown' if load is None else f'{load:.2f}'}; Python {machine['python']}, "
        f"torch {machine['torch']}",
        f"ideal: time of one process / {task.n_ranks} * (M + {task.n_ranks - 1}) / M",
    ]
    if load is not None and load > BUSY * cores:
        lines.append(f"This machine is busy: {NO_TRUST}.")
    if cores < task.n_ranks:
        lines.append(f"{task.n_ranks} ranks share {cores} cores: the ideal cannot be reached.")
    return "\n".join(lines)


def _disturbance(others: float) -> str:
    """What other processes did to a run, by the cores they used."""
    said = f"other processes used {others:.2f} cores meanwhile"
    return f"{said}: too many; {NO_TRUST}." if others > BUSY else f"{said}."


def _check(task: Task, contestants: Mapping[str, Engine]) -> dict[str, float]:
    """Per engine the difference of its gradients from one process's; Failure if one is large."""
    of_ranks = _on_ranks(differences, task, contestants)
    worst = {name: max(found[name] for found in of_ranks) for name in contestants}
    for name, difference in worst.items():
        if not difference <= CLOSE:
            raise Failure(
                f"the gradients of {name} differ by {difference:.1e} (relative) from those of one "
                f"process, and at most {CLOSE:.0e} is rounding; its times would mean nothing, so "
                "nothing was timed"
            )
    print(
        f"gradients: largest relative difference from one process {max(worst.values()):.1e} "
        f"(allowed: {CLOSE:.0e})",
        flush=True,
    )
    return worst


def _raced(
    task: Task, contestants: Mapping[str, Engine], n_repetitions: int, label: str
) -> tuple[dict[Size, Times], float]:
    """Seconds from the first rank's start to the last one's end; cores that others used meanwhile.

    The first by size and engine.
    """

    def progress(_rank: int, done: tuple[Size, int]) -> None:
        size, n_done = done
        if sys.stderr.isatty():
            print(f"\r{label}, {size}: {n_done}/{n_repetitions} ", end="", file=sys.stderr)
        elif n_done == n_repetitions:
            print(f"{label}, {size}: done", file=sys.stderr)

    start_s, busy_s, own_s = time.perf_counter(), _busy_s(), time.process_time()
    of_ranks = _on_ranks(race, task, contestants, n_repetitions, on_report=progress)
    own_s = time.process_time() - own_s + sum(cpu_s for _, cpu_s in of_ranks)
    others = (_busy_s() - busy_s - own_s) / (time.perf_counter() - start_s)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return {
        size: {
            name: [
                max(end_s for _, end_s in spans) - min(start_s for start_s, _ in spans)
                for spans in zip(*(found[size][name] for found, _ in of_ranks), strict=True)
            ]
            for name in of_ranks[0][0][size]
        }
        for size in task.sizes
    }, max(0.0, others)


def _busy_s() -> float:
    """CPU seconds that all processes of this machine have used so far."""
    import psutil  # type: ignore[import-untyped]

    now = psutil.cpu_times()
    idle_s = now.idle + getattr(now, "iowait", 0.0)
    counted_twice_s = getattr(now, "guest", 0.0) + getattr(now, "guest_nice", 0.0)
    return float(sum(now) - idle_s - counted_twice_s)


def _on_ranks(
    program: Callable[..., Any],
    task: Task,
    *arguments: object,
    on_report: Callable[[int, Any], None] | None = None,
) -> list[Any]:
    try:
        return run_ranks(
            program,
            task.n_ranks,
            task,
            *arguments,
            timeout_s=None,
            wait_s=WAIT_S,
            on_report=on_report,
            use_gpus=False,
            check_messages=False,
        ).results
    except RankError as error:
        raise Failure(str(error)) from error
