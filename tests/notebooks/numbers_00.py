"""The numbers of unit 00 in words, each with the expression that yields it.

Times are those of the notebook's own programs on the simulated machine.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autograder.exercise import find_exercise
from mpedu.simulated import Simulated, Wire, run_simulated

NOTEBOOK = Path(__file__).parents[2] / "notebooks/00-start-here/00-start-here.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CLOCK = Simulated(link=Wire(latency_s=1.0))
MINUTES = {
    letter: int(minutes)
    for cell in CELLS
    for letter, minutes in re.findall(r"(?m)^## (\w)\. .* \((\d+) min", "".join(cell["source"]))
}
FUNCTIONS: dict[str, Any] = {"__name__": "__main__", "np": np}
for cell in CELLS:
    if cell["id"].startswith("solution-") or cell["id"] in ("greet", "programs"):
        exec("".join(cell["source"]), FUNCTIONS)


def points(*exercises: str) -> int:
    """What the exercises are worth together; without any, all of the unit's."""
    worth = {
        cell["id"].removeprefix("check-"): cell["metadata"]["nbgrader"]["points"]
        for cell in CELLS
        if cell["id"].startswith("check-")
    }
    assert all(find_exercise(id).points == n for id, n in worth.items())
    return sum(worth[id] for id in exercises or worth)


def takes_s(program: str, n_ranks: int, *arguments: Any) -> float:
    """Seconds of a program of the notebook on its model clock."""
    timeline = run_simulated(FUNCTIONS[program], n_ranks, arguments, CLOCK).timeline
    assert timeline is not None
    return float(timeline.makespan_s)


def round_s(n_ranks: int) -> float:
    """Seconds of a token's round."""
    return takes_s("ring_pass", n_ranks, np.array([7]))


def hello_messages() -> int:
    """Messages of `hello` on four ranks."""
    return run_simulated(FUNCTIONS["hello"], 4, (), CLOCK).meter.total().messages


def mended_s(n_sending: int, n_ranks: int = 3) -> tuple[float, float]:
    """When rank 2 and when rank 0 have their arrays, if so many ranks send first: 0, then 2."""

    def program(comm: Any) -> float:
        following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        if comm.rank in (0, 2)[:n_sending]:
            comm.send(np.array(comm.rank), following)
            comm.recv(before)
            return float(comm.now_s())
        comm.recv(before)
        at_s = comm.now_s()
        comm.send(np.array(comm.rank), following)
        return float(at_s)

    results = run_simulated(program, n_ranks, (), CLOCK).results
    return results[2], results[0]


def program_b_s() -> float:
    """Seconds of program B, the same for all numbers of ranks."""
    (time_s,) = {takes_s("program_b", n_ranks) for n_ranks in range(2, 9)}
    return time_s


def exchange_s() -> float:
    """Seconds of the mended exchange, the same for all numbers of ranks."""
    times = {takes_s("fix_deadlock", n_ranks, np.array([7])) for n_ranks in range(2, 9)}
    (time_s,) = times
    return time_s


SEALED = {"00": 0}  # the unit's number in a call
NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "70": lambda: sum(MINUTES.values()),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: next(
            cell["metadata"]["nbgrader"]["points"] for cell in CELLS if cell["id"] == "answer"
        ),
    },
    "words": {"6": MINUTES["A"], "0": 0, "1": CLOCK.link.latency_s},
    "worked-greet": {"12": MINUTES["B"]},
    "e1": {"4": lambda: points("hello")},
    "solution-hello": {"3": 3, "0": 0, "1": 1, "2": 2},
    "know-hello": {"1": lambda: takes_s("hello", 4), "3": hello_messages},
    "worked-ring": {"11": MINUTES["C"], "2": lambda: round_s(2), "8": 8},
    "e2": {
        "5": lambda: points("ring_pass", "ring_pass_fast"),
        "2": lambda: points("ring_pass_fast"),
    },
    "solution-ring_pass": {"0": 0},
    "ask-programs": {"18": MINUTES["D"]},
    "ask-waits": {"1": 1},
    "read-programs": {
        "6": lambda: points("fix_deadlock", "fix_deadlock_fast"),
        "1": 1,  # of the four of the first check; `test_checks_00` adds them up
        "2": (2, lambda: points("fix_deadlock_fast")),
        "8": 8,
    },
    "know-deadlock": {"1": exchange_s, "2": program_b_s},
    "ask-real": {"5": MINUTES["E"]},
    "ask-sealed": {"16": MINUTES["F"]},
    "sealed-stops": SEALED,
    "e4": {"5": lambda: points("blame"), "3": 3, "2": 2, "1": 1},
    "solution-blame": {"1": 1, "2": 2},
    "try-blame": SEALED,
    "run-sealed-a": SEALED,
    "run-sealed-b": SEALED,
    "run-sealed-c": SEALED,
    "run-sealed-d": SEALED,
    "question": {"2": MINUTES["G"], "4": 4},
    "ask-record": {"1": 1},
    "question-ring-8": {"8": lambda: round_s(8)},
    "question-waits-a": {"4": 4, "1": 1},
    "question-waits-b": {"4": 4, "1": 1},
    "question-waits-c": {"4": 4, "1": 1},
    "hint-hello-2": {"1": 1, "0": 0},
    "hint-ring_pass-2": {"1": 1},
    "hint-ring_pass_fast-2": {"1": lambda: round_s(2) / 2, "2": lambda: round_s(2)},
    "hint-ring_pass_fast-3": {"4": 4},
    "hint-fix_deadlock-2": {"0": 0, "2": 2, "1": 1, "3": 3},
    "hint-fix_deadlock_fast-2": {
        "1": (1, CLOCK.link.latency_s),
        "0": 0,
        "2": (2, lambda: mended_s(1)[0], lambda: max(mended_s(2))),
        "3": lambda: mended_s(1)[1],
    },
    "hint-blame-2": {"1": 1, "2": 2},
}
FORMULAS: dict[str, Callable[[], bool]] = {}
