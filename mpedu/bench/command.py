"""`./course bench`: our engine and torch's, timed in turns on the same stages."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mpedu.bench.engines import PEERS, Engine, Task, chosen, engines, require_fit
from mpedu.bench.figures import ONE_PROCESS, Round, Size, Times
from mpedu.bench.goals import Verdict, goals, summary, verdicts
from mpedu.bench.race import Checked, Lap, check, race
from mpedu.bench.tables import COLUMNS, VERDICT_COLUMNS, Show, rows, shower, verdict_rows
from mpedu.faults import Failure, require_at_least
from mpedu.launch import run_ranks
from mpedu.plot import bench_figure
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
        "example: ./course bench pipeline --engines 1f1b,Schedule1F1B --json bench.json; "
        "exit status: 0 measured, 1 the gradients of an engine are wrong or a rank failed"
    )
    parser.add_argument("what", choices=["pipeline"], help="pipeline: every schedule that is known")
    parser.add_argument("--vs", choices=["torch"], default="torch", help="default: %(default)s")
    names = ", ".join(name.split()[1] for name in engines())
    parser.add_argument("--engines", metavar="NAME,...", help=f"some of {names}; default: all")
    for name, default, text in (
        ("runs", 3, "runs, each on new processes"),
        ("repetitions", 30, "steps of each engine per run and size"),
        ("ranks", task.n_ranks, "ranks, with one or two stages each"),
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
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu",
        help="cuda: a GPU for every rank; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="takes every single time")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="takes a chart, .png or .svg")


def run(args: argparse.Namespace) -> int:
    """Measures and prints; 0. Failure where an engine computes something else, or a rank fails."""
    task = _task(args)
    contestants = chosen(args.engines.split(",")) if args.engines else engines()
    require_fit(task, contestants.values())
    if args.picture is not None and args.picture.suffix not in (".png", ".svg"):
        raise ValueError(f"--picture {args.picture}; give a name ending in .png or .svg")
    for file in (args.json, args.picture):
        if file is not None:
            file.open("a").close()  # a file that cannot be written is better told now
    found = bench(task, contestants, args.runs, args.repetitions, shower())
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.picture is not None:
        bench_figure(found).save(args.picture)
    return 0


def _task(args: argparse.Namespace) -> Task:
    """What was asked for; ValueError where it says nothing that can be done."""
    require_at_least(1, runs=args.runs, repetitions=args.repetitions)
    if len(args.samples) != len(args.microbatches):
        raise ValueError(
            f"--samples has {len(args.samples)} numbers and --microbatches "
            f"{len(args.microbatches)}; give one of each for every size"
        )
    if args.device == "cuda" and torch.cuda.device_count() < args.ranks:
        raise ValueError(
            f"--device cuda with {args.ranks} ranks, and torch finds {torch.cuda.device_count()} "
            "GPUs; torch's engines need one for every rank: give fewer ranks, or --device cpu"
        )
    sizes = tuple(map(Size, args.samples, args.microbatches))
    return Task(sizes, args.ranks, use_gpus=args.device == "cuda")


def bench(
    task: Task, contestants: Mapping[str, Engine], n_runs: int, n_repetitions: int, show: Show
) -> dict[str, Any]:
    """Every time and verdict as plain data, shown as they come; Failure as in `run`."""
    machine = _machine()
    print(_heading(task, machine), flush=True)
    checked = _check(task, contestants)
    peaks = {
        size: {name: [of.peaks[size][name] for of in checked] for name in checked[0].peaks[size]}
        for size in task.sizes
    }
    runs: list[list[Round]] = []
    others: list[float] = []
    for number in range(1, n_runs + 1):
        rounds, used = _raced(task, contestants, n_repetitions, f"run {number} of {n_runs}")
        runs.append(rounds)
        others.append(used)
        for found in rounds:
            title = f"run {number}, {found.size}, {n_repetitions} repetitions"
            show(title, COLUMNS, rows(found, PEERS, peaks[found.size]))
        print(_disturbance(used), flush=True)
    judged = verdicts(runs, goals(PEERS))
    show("goals", VERDICT_COLUMNS, verdict_rows(judged))
    print(f"\n{summary(judged)}")
    return {
        "machine": machine,
        "n_ranks": task.n_ranks,
        "gradients": _worst(checked),
        "peak_bytes": [
            {"size": size._asdict(), "ranks": of_engines} for size, of_engines in peaks.items()
        ],
        "runs": [
            {"cores_used_by_others": used, "sizes": [_plain_round(found) for found in rounds]}
            for used, rounds in zip(others, runs, strict=True)
        ],
        "verdicts": [_plain_verdict(verdict) for verdict in judged],
    }


def _plain_round(found: Round) -> dict[str, Any]:
    return {
        "size": found.size._asdict(),
        "ideal_seconds": found.ideal_s(found.median_s(ONE_PROCESS)),
        "seconds": {name: each.seconds for name, each in found.times.items()},
        "cpu_seconds": {name: each.cpu_s for name, each in found.times.items()},
    }


def _plain_verdict(verdict: Verdict) -> dict[str, Any]:
    goal, size, values = verdict
    shown = {"values": values, "median": verdict.middle, "verdict": verdict.word}
    return {"goal": goal.text, "limit": goal.bound, "size": size._asdict(), **shown}


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


def _check(task: Task, contestants: Mapping[str, Engine]) -> list[Checked]:
    """What each rank found; Failure if gradients are not those of one process."""
    checked: list[Checked] = _on_ranks(check, task, contestants)
    worst = _worst(checked)
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
    return checked


def _worst(checked: Sequence[Checked]) -> dict[str, float]:
    """Per engine the largest difference of its gradients from one process's, on any rank."""
    return {name: max(of.differences[name] for of in checked) for name in checked[0].differences}


def _raced(
    task: Task, contestants: Mapping[str, Engine], n_repetitions: int, label: str
) -> tuple[list[Round], float]:
    """A round for each size; cores that others used meanwhile.

    A step lasts from the first rank's start to the last one's end.
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
    laps_of = [found for found, _ in of_ranks]
    rounds = [
        Round(
            {name: _times([laps[size][name] for laps in laps_of]) for name in laps_of[0][size]},
            size,
            task.n_ranks,
        )
        for size in task.sizes
    ]
    return rounds, max(0.0, others)


def _times(of_ranks: Sequence[Sequence[Lap]]) -> Times:
    """Of every repetition, from the laps of the ranks that took part."""
    steps = list(zip(*filter(None, of_ranks), strict=True))
    return Times(
        [max(lap.end_s for lap in step) - min(lap.start_s for lap in step) for step in steps],
        [sum(lap.cpu_s for lap in step) for step in steps],
    )


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
            use_gpus=task.use_gpus,
            check_messages=False,
        ).results
    except RankError as error:
        raise Failure(str(error)) from error
