"""The numbers in the hints and guesses of unit 03, each with the expression that yields it."""

from fractions import Fraction
from typing import Any

import numpy as np
from truths_03 import (
    LIMIT,
    K,
    M,
    N,
    best,
    clock,
    deal,
    fewest,
    idle_slots,
    one_by_one,
    over_ideal,
    share,
    slots,
    step_s,
)

from mpedu.families import gpipe
from mpedu.sealed import sealed_run

BOXES = ((5, 6), (6, 7), (7, 9), (9, 11))  # starts and ends, on two devices
WORK_S = sum(end_s - start_s for start_s, end_s in BOXES)
CLOCK_S = BOXES[-1][1] - BOXES[0][0]
FORWARD_S = 3 + Fraction(8, 2) * 1  # of 8 samples in 2 pieces, 1 s each, 3 s overhead
SEVEN = deal(7, 3)

HINTS: dict[str, dict[str, Any]] = {
    "hint-gpipe_fast-2": {
        "12": lambda: one_by_one(2, 2, 2).makespan_s,
        "1": 1,
        "2": 2,
        "9": lambda: clock(2, 2).makespan_s,
    },
    "hint-gpipe_fast-3": {"1": lambda: K + M - slots(K, M)},
    "hint-idle_share-2": {
        "5": BOXES[0][0],
        "6": (BOXES[0][1], BOXES[1][0], CLOCK_S, WORK_S),
        "7": (BOXES[1][1], BOXES[2][0]),
        "9": (BOXES[2][1], BOXES[3][0]),
        "11": BOXES[3][1],
        "2": 2,  # devices
        "12": 2 * CLOCK_S,
        "0.5": Fraction(2 * CLOCK_S - WORK_S, 2 * CLOCK_S),
    },
    "hint-bubble-1": {
        "1": (1, lambda: K - idle_slots(K, M), lambda: K + M - slots(K, M)),
        "2": 2,
        "3": 3,
    },
    "hint-bubble-2": {
        "2": 2,
        "3": (3, lambda: slots(2, 3) - idle_slots(2, 3), lambda: fewest(_quarter, 2)),
        "1": lambda: idle_slots(2, 3),
        "1/4": lambda: share(2, 3),
        "1/3": lambda: over_ideal(2, 3),
    },
    "hint-step_time-1": {"1": lambda: K + M - slots(K, M)},
    "hint-step_time-2": {
        "2": 2,
        "8": 8,
        "1": 1,
        "3": (3, lambda: slots(2, 2)),
        "4": Fraction(8, 2),
        "7": FORWARD_S,
        "14": 2 * FORWARD_S,
        "21": 3 * FORWARD_S,
        "63": lambda: step_s(2, 2, 8, Fraction(3)),
    },
    "hint-best_microbatches-2": {
        "4": 4,
        "2": (2, lambda: best(2, 4)),
        "1": 1,
        "30": (lambda: step_s(1, 2, 4), lambda: step_s(4, 2, 4)),
        "27": lambda: step_s(2, 2, 4),
        "3": 3,
        "28": lambda: step_s(3, 2, 4),
        "8": 4 * 2,
    },
    "hint-split_batch-2": {
        "7": (7, sum(SEVEN)),
        "3": (3, len(SEVEN), SEVEN[0]),
        "2": (SEVEN[1], SEVEN[2]),
        "1": (SEVEN[0] - SEVEN[2], sum(Fraction(size, 7) for size in SEVEN)),
        "3/7": Fraction(SEVEN[0], 7),
        "2/7": (Fraction(SEVEN[1], 7), Fraction(SEVEN[2], 7)),
    },
    "hint-cause-2": {
        "5": 3 + 2,
        "3": 3,
        "2": (2, lambda: len(_ratios("none"))),
        "3/5": lambda: _ratios("none")[0],
        "2/5": (lambda: _ratios("none")[1], lambda: _ratios("only_last_microbatch")[1]),
        "1": (lambda: _ratios("loss_not_divided")[0], lambda: _ratios("loss_not_divided")[1]),
        "1/2": (lambda: _ratios("equal_weights")[0], lambda: _ratios("equal_weights")[1]),
        "3/10": lambda: _ratios("divided_twice")[0],
        "1/5": lambda: _ratios("divided_twice")[1],
        "0": lambda: _ratios("only_last_microbatch")[0],
    },
    "question-idle-m8": {"8": M, "4": K},
    "question-m-for-5-percent": {"5%": LIMIT},
    "question-best-m": {"64": N, "4": K},
}


def _ratios(cause: str) -> list[Fraction]:
    """The gradient ratios of a real run in pieces of 3 and 2 samples, but for what floats do."""
    run = sealed_run(cause, gpipe(2, 2), (3, 2), np.random.default_rng(0))
    return [Fraction(ratio).limit_denominator(100) for ratio in run.gradient_ratios]


def _quarter(reached: Fraction) -> bool:
    return reached <= Fraction(1, 4)
