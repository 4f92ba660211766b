"""The numbers and formulas of unit 01 in words, each with the expression that yields it.

Times and bytes are those of the notebook's own programs, or of the machine's collectives, on the
simulated machine; the package's closed forms are used nowhere.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autograder.checks.unit_01.sealed_runs import RUNS, planted_run
from mpedu.runs import SumRun
from mpedu.simulated import Simulated, Wire, run_simulated

NOTEBOOK = Path(__file__).parents[2] / "notebooks/01-collectives/01-collectives.ipynb"
CELLS = {cell["id"]: cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}
SOURCES = {id: "".join(cell["source"]) for id, cell in CELLS.items()}
MINUTES = {
    letter: int(minutes)
    for source in SOURCES.values()
    for letter, minutes in re.findall(r"(?m)^## (\w)\. .* \((\d+) min", source)
}
FUNCTIONS: dict[str, Any] = {"__name__": "__main__", "np": np, "SumRun": SumRun}
for id, source in SOURCES.items():
    if id.startswith("solution-") or id == "naive":
        exec(source, FUNCTIONS)

LATENCY_S, BYTES_PER_S, ELEMENT = 2.0, 8.0, 8
CLOCK = Simulated(link=Wire(LATENCY_S, BYTES_PER_S))
P, N = 4, 8  # ranks and elements of the pictures
FAST = 8, 5e-6, 10e9  # ranks, latency and bandwidth of section E
WORKED = planted_run("in_turn", [[1] * 7 for _ in range(3)], Wire(1.0, 8.0))


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells, or for all that are checked."""
    wanted = cells or [id for id in CELLS if id.startswith("check-")]
    return sum(CELLS[id]["metadata"]["nbgrader"]["points"] for id in wanted)


@cache
def ran(op: str, n: int, p: int, latency_s: float, bytes_per_s: float) -> tuple[float, list[int]]:
    """Seconds of a collective of n elements (of any rank, or of all parts), and bytes by rank."""

    def program(comm: Any) -> float:
        x = np.arange(n)
        if op == "naive_all_reduce":
            FUNCTIONS[op](comm, x)
        elif op == "all_gather":
            comm.all_gather(np.arange(n // p))
        elif op == "broadcast":
            comm.broadcast(x)
        else:
            getattr(comm, op)(x)
        return float(comm.now_s())

    run = run_simulated(program, p, (), Simulated(link=Wire(latency_s, bytes_per_s)))
    return max(run.results), [run.meter.total(rank).bytes for rank in range(p)]


def own_s(name: str, *sizes: int, p: int = P) -> float:
    """Seconds of a program of the notebook on the clock of its pictures."""

    def program(comm: Any) -> float:
        FUNCTIONS[name](comm, FUNCTIONS["numbers"](comm, *sizes))
        return float(comm.now_s())

    return max(run_simulated(program, p, (), CLOCK).results)


def results(name: str, *arrays: list[int]) -> list[list[int]]:
    """What a program of the notebook gives on ranks with these arrays."""

    def program(comm: Any) -> Any:
        return FUNCTIONS[name](comm, np.array(arrays[comm.rank])).tolist()

    return list(run_simulated(program, len(arrays), (), CLOCK).results)


def share_of_rank_0() -> float:
    """Of the bytes of the naive all-reduce on eight ranks."""
    _, sent = ran("naive_all_reduce", N, 8, LATENCY_S, BYTES_PER_S)
    return sent[0] / sum(sent)


def line(op: str, p: int, latency_s: float, bytes_per_s: float) -> tuple[float, float]:
    """Seconds of no bytes, and seconds more for each byte: a pattern's time is a straight line."""
    n = 8 * 9 * 5 * 7
    none_s, some_s = (ran(op, size, p, latency_s, bytes_per_s)[0] for size in (0, n))
    return none_s, (some_s - none_s) / (n * ELEMENT)


def knee_kb() -> float:
    """Kilobytes at which a ring's latency and its bytes cost the same."""
    floor_s, per_byte_s = line("all_reduce", *FAST)
    return round(floor_s / per_byte_s / 1000, 6)


def everywhere(holds: Callable[[int, int, float, float], bool]) -> Callable[[], bool]:
    """True where `holds(elements, ranks, latency, bandwidth)` does, over a grid of cases.

    The elements divide by all numbers of ranks.
    """
    grid = [(n, p, *link) for n in (0, 840) for p in (1, 2, 4, 8) for link in ((2, 8), (0.5, 64))]
    return lambda: all(holds(*case) for case in grid)


def takes(op: str, formula: Callable[[int, float, float, float], float]) -> Callable[[], bool]:
    """Whether the collective takes `formula(p, L, n, B)` seconds, from two ranks on."""

    def holds(n: int, p: int, latency_s: float, bytes_per_s: float) -> bool:
        if p == 1:
            return True
        due_s = formula(p, latency_s, n * ELEMENT, bytes_per_s)
        return abs(ran(op, n, p, latency_s, bytes_per_s)[0] - due_s) < 1e-9

    return everywhere(holds)


def all_take(*forms: Callable[[], bool]) -> Callable[[], bool]:
    """Whether all of these hold."""
    return lambda: all(form() for form in forms)


def each_sends(op: str, formula: Callable[[int, int], float]) -> Callable[[], bool]:
    """Whether every rank sends `formula(p, n)` bytes."""
    return everywhere(lambda n, p, *link: set(ran(op, n, p, *link)[1]) == {formula(p, n * ELEMENT)})


def together(op: str, formula: Callable[[int, int], float]) -> Callable[[], bool]:
    """Whether all ranks together send `formula(p, n)` bytes."""
    return everywhere(lambda n, p, *link: sum(ran(op, n, p, *link)[1]) == formula(p, n * ELEMENT))


SEALED = {"01": 1}  # the unit's number in a call
ON_TWO = {"2": 2, "1": 1, "3": 3, "10": 10, "20": 20, "30": 30}
SUMS = [1, 2, 3], [10, 20, 30]
NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "95": lambda: 5 * round(sum(MINUTES.values()) / 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {
        "8": (MINUTES["A"], ELEMENT),
        "2": LATENCY_S,
        "1": ELEMENT / BYTES_PER_S,
    },
    "ask-naive": {"8": N},
    "naive": {"10": 10, "1": 1},
    "ask-rank-0-share": {"36": lambda: own_s("naive_all_reduce", N), "8": 8, "0": 0, "1": 1},
    "worked-gather": {"16": MINUTES["B"], "0": 0, "2": 3 - 1},
    "e1": {"3": lambda: points("check-ring_all_gather")},
    "solution-ring_all_gather": {
        "1": lambda: results("ring_all_gather", [1, 2], [3])[0][0],
        "2": (2, lambda: results("ring_all_gather", [1, 2], [3])[1][1]),
        "3": lambda: results("ring_all_gather", [1, 2], [3])[1][2],
    },
    "know-gather": {
        "2": (LATENCY_S, N / P * ELEMENT / BYTES_PER_S),
        "3": P - 1,
        "12": lambda: own_s("ring_all_gather", N // P),
    },
    "worked-scatter": {"20": MINUTES["C"], "0": 0},
    "e2": {"4": lambda: points("check-ring_reduce_scatter")},
    "solution-ring_reduce_scatter": {
        **ON_TWO,
        "11": lambda: results("ring_reduce_scatter", *SUMS)[0][0],
        "22": lambda: results("ring_reduce_scatter", *SUMS)[0][1],
    },
    "ask-ring-faster": {"9": MINUTES["D"], "10": FAST[2] / 1e9, "80": 80, "8": FAST[0], "5": 5},
    "e3": {
        "6": lambda: points("check-ring_all_reduce", "check-ring_all_reduce_fast"),
        "2": lambda: points("check-ring_all_reduce"),
        "4": lambda: points("check-ring_all_reduce_fast"),
    },
    "solution-ring_all_reduce": {
        **ON_TWO,
        "11": lambda: results("ring_all_reduce", *SUMS)[0][0],
        "22": lambda: results("ring_all_reduce", *SUMS)[1][1],
        "33": lambda: results("ring_all_reduce", *SUMS)[1][2],
    },
    "know-reduce": {
        "24": lambda: own_s("ring_all_reduce", N),
        "36": lambda: own_s("naive_all_reduce", N),
        "1.5": lambda: ran("all_reduce", 840, P, 1, 8)[1][0] / (840 * ELEMENT),
        "4": P,
        "2": lambda: 2 * round(ran("all_reduce", 960, 64, 1, 8)[1][0] / (960 * ELEMENT) / 2),
    },
    "derivation": {
        "17": MINUTES["E"],
        "8": FAST[0],
        "5": FAST[1] * 1e6,
        "10": FAST[2] / 1e9,
    },
    "e4": {
        "4": (lambda: points("check-cost_s"), P),
        "64": N * ELEMENT,
        "2": (LATENCY_S, 16 / BYTES_PER_S),
        "8": BYTES_PER_S,
        "16": N * ELEMENT / P,
        "3": P - 1,
        "12": lambda: ran("all_gather", N, P, LATENCY_S, BYTES_PER_S)[0],
    },
    "solution-cost_s": {"12.0": lambda: ran("all_gather", N, P, LATENCY_S, BYTES_PER_S)[0]},
    "know-cost": {"400": knee_kb, "11": 11, "15": 15},  # the last two are units
    "e5": {"12": 12, "1": 1, "2": 2, "4": 4, "8": 8},
    "ask-ranks": {"5": MINUTES["F"], "10": 10},
    "ask-sealed": {"17": MINUTES["G"], "10": lambda: len(RUNS.shown["A"].given[0])},
    "sealed-a": SEALED,
    "sealed-b": SEALED,
    "sealed-c": SEALED,
    "sealed-d": SEALED,
    "e6": {
        "3": (
            lambda: points("check-sum_cause"),
            len(WORKED.given),
            lambda: min(len(run.given) for seed in range(20) for _, run in RUNS.drawn(seed)),
        ),
        "7": len(WORKED.given[0]),
        "56": len(WORKED.given[0]) * ELEMENT,
        "2": 7 // 3,
        "1": WORKED.latency_s,
        "8": (
            WORKED.bytes_per_s,
            lambda: max(len(run.given) for seed in range(20) for _, run in RUNS.drawn(seed)),
        ),
        "72": (WORKED.sent_bytes[0], WORKED.sent_bytes[2]),
        "80": WORKED.sent_bytes[1],
        "224": sum(WORKED.sent_bytes),
        "40": WORKED.time_s,
        "4": 2 * (3 - 1),
        "16": lambda: planted_run("none", WORKED.given, Wire(1.0, 8.0)).time_s,
        "24": lambda: len(RUNS.drawn(0)),
    },
    "solution-sum_cause": {"8": ELEMENT},
    "show-causes": SEALED,
    "question": {"3": MINUTES["H"], "4": lambda: points("answer"), "64": 64},
    "ask-record": {"2": 2},  # minutes
    "hint-ring_all_gather-2": {"3": 3, "0": 0, "2": 2, "1": 1},
    "hint-ring_reduce_scatter-2": {"3": 3, "0": 0, "2": 3 - 1},
    "hint-ring_all_reduce-2": {
        "2": 2,
        "1": 1,
        "10": 10,
        "20": 20,
        "11": lambda: results("ring_all_reduce", [1, 2], [10, 20])[0][0],
        "22": lambda: results("ring_all_reduce", [1, 2], [10, 20])[1][1],
    },
    "hint-ring_all_reduce_fast-2": {
        "2": 2,
        "8": (8, lambda: sum(ran("all_reduce", 1, 2, 1, 8)[1]) / 2),
        "4": (8 // 2, 4),
        "24": (4 - 1) * 8,
        "12": lambda: ran("all_reduce", 4, 4, 1, 8)[1][0] / 4,
    },
    "hint-cost_s-2": {
        "12": 12,
        "3": 3,
        "1": (1, 4 / 4),
        "4": (4, 12 / 3, lambda: 2 * (1 + 4 / 4)),
        "2": 3 - 1,
        "8": lambda: 2 * 2 * (1 + 4 / 4),
    },
    "hint-tree_broadcast-1": {"1": 1, "2": 2, "4": 4, "8": 8},
    "hint-tree_broadcast-2": {"4": 4, "0": 0, "1": 1, "8": 8},
    "hint-sum_cause-2": {
        "3": 3,
        "6": 6,
        "48": (6 * ELEMENT, lambda: ran("naive_all_reduce", 6, 3, 1, 8)[1][1]),
        "4": 2 * (3 - 1),
        "16": 6 * ELEMENT / 3,
        "64": lambda: ran("all_reduce", 6, 3, 1, 8)[1][0],
        "192": (
            lambda: sum(ran("all_reduce", 6, 3, 1, 8)[1]),
            lambda: sum(ran("naive_all_reduce", 6, 3, 1, 8)[1]),
        ),
        "96": (
            lambda: planted_run("whole_arrays", [[1] * 6] * 3, Wire(1.0, 8.0)).sent_bytes[1],
            lambda: ran("naive_all_reduce", 6, 3, 1, 8)[1][0],
        ),
    },
    "question-rank-0-share": {"8": 8},
    "question-ring-faster": {"80": 80, "8": FAST[0]},
    "question-break-even-kb": {"8": FAST[0], "5": FAST[1] * 1e6, "10": FAST[2] / 1e9},
}

ONE_MESSAGE = takes("broadcast", lambda p, L, n, B: (p - 1).bit_length() * (L + n / B))
ROUND = all_take(
    takes("all_gather", lambda p, L, n, B: (p - 1) * (L + n / (p * B))),
    takes("reduce_scatter", lambda p, L, n, B: (p - 1) * (L + n / (p * B))),
    takes("all_to_all", lambda p, L, n, B: (p - 1) * (L + n / (p * B))),
)
TWO_ROUNDS = takes("all_reduce", lambda p, L, n, B: 2 * (p - 1) * (L + n / (p * B)))
NAIVE = takes("naive_all_reduce", lambda p, L, n, B: 2 * L + p * n / B)
OF_A_ROUND = all_take(
    each_sends("all_gather", lambda p, n: (p - 1) * n / p),
    each_sends("reduce_scatter", lambda p, n: (p - 1) * n / p),
)
FORMULAS: dict[str, Callable[[], bool]] = {
    "b/B": ONE_MESSAGE,
    "L + b/B": ONE_MESSAGE,
    "L + n/B": ONE_MESSAGE,
    "p-1": ROUND,
    "2(p-1)": TWO_ROUNDS,
    "n/p": all_take(ROUND, OF_A_ROUND),
    "(p-1)(L + n/(pB))": ROUND,
    "2(p-1)(L + n/(pB))": TWO_ROUNDS,
    r"\log_2 p": ONE_MESSAGE,
    r"\log_2 p (L + n/B)": ONE_MESSAGE,
    "2L + pn/B": NAIVE,
    "(p-1)n": everywhere(
        lambda n, p, *link: ran("naive_all_reduce", n, p, *link)[1][0] == (p - 1) * n * ELEMENT
    ),
    "(p-1)/p n": OF_A_ROUND,
    "2(p-1)/p n": each_sends("all_reduce", lambda p, n: 2 * (p - 1) * n / p),
    "2(p-1)/p": each_sends("all_reduce", lambda p, n: 2 * (p - 1) / p * n),
    "2(p-1)n": all_take(
        together("all_reduce", lambda p, n: 2 * (p - 1) * n),
        together("naive_all_reduce", lambda p, n: 2 * (p - 1) * n),
    ),
    "n = pLB": lambda: all(
        abs(a / b - p * latency_s * bytes_per_s) < 1e-6 * p * latency_s * bytes_per_s
        for p, latency_s, bytes_per_s in (FAST, (4, 2.0, 8.0), (5, 0.5, 64.0))
        for a, b in [line("all_reduce", p, latency_s, bytes_per_s)]
    ),
}
