"""The numbers of unit 03's sections on real ranks and on sealed runs, from the runs themselves."""

import math
from fractions import Fraction
from functools import cache
from typing import Any

from truths_03 import B_S, F_S, MINUTES, RAGGED, TIE, K, M, points, share

from autograder.checks.causes import LETTERS
from autograder.checks.unit_03.sealed_runs import RUNS as SEALED
from autograder.notebook import sealed_run
from mpedu.families import gpipe
from mpedu.train_step import train_step

CLOCK_MS = 5  # a forward of the emulated devices
REAL = 2, 4  # stages and micro-batches of the real training
SHOWN = [sealed_run(letter) for letter in LETTERS]
WORKED = [2, 2, 2, 1, 1]  # sizes of the pieces in E6's worked case
LARGER, SMALLER = Fraction(RAGGED[0], sum(RAGGED)), Fraction(RAGGED[-1], sum(RAGGED))


@cache
def largest_difference(skip_division: bool = False) -> float:
    """By how much gradients of real ranks differ from those of one process, relatively."""
    return max(train_step(gpipe, *REAL, skip_division=skip_division).differences.values())


def magnitude(value: float) -> float:
    """The power of ten nearest to a value."""
    return float(f"1e{round(math.log10(value))}")


@cache
def counts_asked() -> list[tuple[int, int]]:
    """Stages and micro-batches of the runs that E6's check draws, under many secrets."""
    return [(r.n_stages, r.n_microbatches) for seed in range(40) for _, r in SEALED.drawn(seed)]


RUNS: dict[str, dict[str, Any]] = {
    "ask-ranks": {
        "27.3%": lambda: share(K, M),
        "6": MINUTES["F"],
        "5": CLOCK_MS,
        "10": CLOCK_MS * B_S / F_S,
    },
    "ask-real": {"27.3%": lambda: share(K, M), "4": REAL[1], "20": 20},
    "know-ranks": {
        "1e-6": lambda: magnitude(largest_difference()),
        "0": 0,
        "20%": lambda: share(*REAL),
    },
    "ask-undivided": {"25": MINUTES["G"], "4": REAL[1]},
    "ask-sealed": {
        "3.0": lambda: largest_difference(skip_division=True),
        "4": (REAL[1], lambda: 1 + round(largest_difference(skip_division=True), 3)),
        "10": sum(SHOWN[0].sizes),
        "3": (SHOWN[0].sizes[0], SHOWN[0].sizes[1]),
        "2": (SHOWN[0].sizes[2], SHOWN[0].sizes[3]),
    },
    "read-sealed": {"0.3": LARGER, "0.2": SMALLER},
    "e6": {
        "1.3003": (*(run.losses[0] for run in SHOWN), SHOWN[0].serial_losses[0]),
        "0.4073": min(run.losses[1] for run in SHOWN),
        "0.7347": SHOWN[0].serial_losses[1],
        "3": lambda: points("check-cause"),
        "2": (2, WORKED[0], lambda: min(map(min, counts_asked()))),
        "1": WORKED[-1],
        "0.05": Fraction(WORKED[0], sum(WORKED)) / len(WORKED),
        "0.025": Fraction(WORKED[-1], sum(WORKED)) / len(WORKED),
        "0.25": Fraction(WORKED[0], sum(WORKED)),
        "0.125": Fraction(WORKED[-1], sum(WORKED)),
        "24": lambda: len(SEALED.drawn(0)),
        "6": lambda: max(n_stages for n_stages, _ in counts_asked()),
        "12": lambda: max(n_microbatches for _, n_microbatches in counts_asked()),
        "7": 7,  # a number that `sealed_run` takes
    },
    "solution-cause": {"1e-12": TIE},
    "know-causes": {"1": 1, "0": 0},
}
