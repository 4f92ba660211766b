"""The numbers and formulas of unit 03 in words, each with the expression that yields it."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hints_03 import HINTS
from runs_03 import RUNS
from truths_03 import (
    B_S,
    F_S,
    LIMIT,
    LOSSES,
    LUMPED,
    MARGIN,
    MINUTES,
    OVERHEAD,
    RAGGED,
    TIE,
    TIE_RELATIVE,
    K,
    M,
    N,
    S,
    best,
    clock,
    efficiency,
    every_wait,
    everywhere,
    fewest,
    hardly_longer,
    mean,
    one_by_one,
    over_ideal,
    piece_means,
    points,
    ragged_s,
    root_is_beside_best,
    share,
    step_s,
    two_terms_change,
    waits,
)

from mpedu.families import gpipe
from mpedu.schedule import peak_in_flight

SIX = (1, 2, 4, 8, 16, 32)  # the micro-batches of the card's table, and its two columns
SHARES = ("75.0%", "60.0%", "42.9%", "27.3%", "15.8%", "8.6%")
RATIOS = ("300%", "150%", "75%", "37.5%", "18.75%", "9.4%")

NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "95": lambda: 5 * round(sum(MINUTES.values()) / 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {"6": MINUTES["A"], "0": 0},
    "ask-idle-m8": {
        "96": lambda: one_by_one(K, 1).makespan_s,
        "75%": lambda: one_by_one(K, 1).idle_share,
        "8": M,
        "0": 0,
        "1": 1,
    },
    "chain": {"2": 2, "96": lambda: one_by_one(K, 2).makespan_s},
    "worked-lists": {
        "17": MINUTES["B"],
        "96": lambda: one_by_one(K, 2).makespan_s,
        "1": F_S,
        "2": B_S,
    },
    "e1": {
        "5": lambda: points("check-gpipe", "check-gpipe_fast"),
        "3": lambda: points("check-gpipe"),
        "2": lambda: points("check-gpipe_fast"),
    },
    "solution-gpipe": {"0": 0, "1": 1},
    "know-schedule": {
        "96": lambda: one_by_one(K, 1).makespan_s,
        "33": lambda: clock(K, M).makespan_s,
        "24": lambda: Fraction(clock(K, M).busy_s) / K,
    },
    "ask-area": {"16": MINUTES["C"]},
    "worked-count": {"3": lambda: points("check-idle_share")},
    "e2": {
        "1": F_S,
        "2": B_S,
        "6": (lambda: one_by_one(2, 1, 1).busy_s, lambda: one_by_one(2, 1, 1).makespan_s),
        "12": lambda: 2 * one_by_one(2, 1, 1).makespan_s,
        "0.5": lambda: one_by_one(2, 1, 1).idle_share,
        "0": 0,
        "75%": lambda: one_by_one(K, 1, 1).idle_share,
    },
    "solution-idle_share": {
        "0": 0,
        "1": (1, F_S),
        "2": B_S,
        "0.0": lambda: share(1, M),
        "0.2727": lambda: share(K, M),
    },
    "derivation": {
        "4": K,
        "8": M,
        "11": lambda: clock(K, M).makespan_s / (F_S + B_S),
        "3": F_S + B_S,
        "33": lambda: clock(K, M).makespan_s,
        "3/11": lambda: share(K, M),
        "27.3%": lambda: share(K, M),
        "3/8": lambda: over_ideal(K, M),
        "37.5%": lambda: over_ideal(K, M),
    },
    "e3": {"3": lambda: points("check-bubble"), "5%": LIMIT, "1/3": Fraction(1, 3), "1e-12": TIE},
    "solution-bubble": {"0.25": lambda: share(2, 3), "0.3333": lambda: over_ideal(2, 3)},
    "solution-min_microbatches": {
        "1e-12": TIE,
        "9": lambda: fewest(lambda s: s <= Fraction(1, 4)),
        "25%": lambda: share(K, 9),
        "10": lambda: fewest(lambda s: s < Fraction(1, 4)),
        "0": 0,
        "1": 1,
    },
    "ask-figure": {"5%": LIMIT, "1": 1, "32": 8 * K, "16": 4 * K},
    "negligible": {
        "15.8%": lambda: share(K, 4 * K),
        "18.75%": lambda: over_ideal(K, 4 * K),
        "8": 2 * K,
        "32": 4 * 2 * K,
        "17.9%": lambda: share(8, 32),
        "1/5": lambda: round((10**14 - 1) / (5 * 10**14 - 1), 12),  # its formula, many stages
        "5%": (LIMIT, lambda: share(K, 57)),
        "57": lambda: fewest(lambda s: s <= LIMIT),
        "58": lambda: fewest(lambda s: s < LIMIT),
    },
    "ask-best-m": {"14": MINUTES["D"], "64": N},
    "overhead": {"4": 4, "80%": lambda: efficiency(4), "50%": lambda: efficiency(1)},
    "e4": {
        "4": (lambda: points("check-step_time", "check-best_microbatches"), K, N // 16),
        "16": 4 * K,
        "64": N,
        "5": OVERHEAD + 4 * S,
        "10": 2 * (OVERHEAD + 4 * S),
        "1": 1,
        "19": 16 + K - 1,
        "15": 3 * (OVERHEAD + 4 * S),
        "285.0": lambda: step_s(16),
        "2": (lambda: points("check-step_time"), lambda: points("check-best_microbatches")),
        "1%": MARGIN,
    },
    "solution-step_time": {"285.0": lambda: step_s(16)},
    "solution-best_microbatches": {"1": 1, "1e-9": TIE_RELATIVE, "3": lambda: best(2, 8)},
    "know-optimum": {
        "14": best,
        "284.1": lambda: step_s(best()),
        "64": N,
        "402.0": lambda: step_s(N),
        "16": 16,
        "285.0": lambda: step_s(16),
        "0.3%": lambda: step_s(16) / step_s(best()) - 1,
        "11": lambda: hardly_longer()[0],
        "17": lambda: hardly_longer()[-1],
        "1%": MARGIN,
        "10": 10,  # minutes
        "13.9": lambda: math.sqrt((K - 1) * N * S / OVERHEAD),
        "1": 1,
        "0": 0,
    },
    "ragged": {
        "7": MINUTES["E"],
        "64": N,
        "14": best,
        "10": len(LOSSES),
        "3": RAGGED[0],
        "2": RAGGED[-1],
        "1": lambda: piece_means()[0],
        "5": lambda: piece_means()[-1],
    },
    "e5": {
        "2.0": lambda: mean(piece_means()),
        "1.8": lambda: mean(LOSSES),
        "11%": lambda: mean(piece_means()) / mean(LOSSES) - 1,
        "1": F_S,
        "2": (lambda: points("check-split_batch"), B_S, RAGGED[-1], LUMPED[0]),
        "3": RAGGED[0],
        "4": LUMPED[-1],
        "10": (sum(RAGGED), sum(LUMPED)),
        "57": lambda: ragged_s(RAGGED),
        "66": lambda: ragged_s(LUMPED),
    },
    "solution-split_batch": {
        "1": 1,
        "3": RAGGED[0],
        "2": RAGGED[-1],
        "0.3": Fraction(RAGGED[0], sum(RAGGED)),
        "0.2": Fraction(RAGGED[-1], sum(RAGGED)),
    },
    "memory": {
        "3": MINUTES["H"],
        "8": (
            lambda: max(peak_in_flight(gpipe(K, M))),
            lambda: min(peak_in_flight(gpipe(K, M))),
        ),
    },
    "question": {"4": lambda: points("answer")},
    "card": {
        "1": 1,
        "2": 2,
        "4": K,
        "8": M,
        "16": 16,
        "32": 32,
        **dict(zip(SHARES, (share(K, m) for m in SIX), strict=True)),
        **dict(zip(RATIOS, (over_ideal(K, m) for m in SIX), strict=True)),
    },
    "ask-record": {"2": 2},  # minutes
    **RUNS,
    **HINTS,
}

FORMULAS: dict[str, Callable[[], bool]] = {
    "M(t_f+t_b)": everywhere(lambda k, m, f, b: clock(k, m, f, b).busy_s == k * m * (f + b)),
    "k t_f": every_wait(0, lambda k, stage, f, b: stage * f),
    "(K-1-k)(t_f+t_b)": every_wait(1, lambda k, stage, f, b: (k - 1 - stage) * (f + b)),
    "k t_b": every_wait(2, lambda k, stage, f, b: stage * b),
    "(K-1)(t_f+t_b)": everywhere(
        lambda k, m, f, b: all(sum(waits(k, m, s, f, b)) == (k - 1) * (f + b) for s in range(k))
    ),
    "(M+K-1)(t_f+t_b)": everywhere(
        lambda k, m, f, b: clock(k, m, f, b).makespan_s == (m + k - 1) * (f + b)
    ),
    "t_f+t_b": everywhere(lambda k, m, f, b: clock(k, m, f, b).makespan_s % (f + b) == 0),
    "(K-1)/(M+K-1)": everywhere(
        lambda k, m, f, b: clock(k, m, f, b).idle_share == Fraction(k - 1, m + k - 1)
    ),
    "(K-1)/M": everywhere(lambda k, m, f, b: over_ideal(k, m) == Fraction(k - 1, m)),
    "(K-1)/(5K-1)": lambda: all(
        share(k, 4 * k) == Fraction(k - 1, 5 * k - 1) for k in range(1, 12)
    ),
    "M > 4K": lambda: share(K, 4 * K + 1) > LIMIT,  # the lecture's condition, and not negligible
    "M = 4K = 16": lambda: 4 * K == 16,
    "M = 4K": lambda: 4 * 2 * K == 32,
    "K-1": lambda: all(clock(k, m).makespan_s == 3 * (m + k - 1) for k, m in ((1, 3), (5, 2))),
    "b = N/M": lambda: Fraction(N, 16) == 4,
    "o = s": lambda: OVERHEAD == S,
    "o=s=1": lambda: OVERHEAD == S == 1,
    "o + b s": lambda: step_s(16) == 3 * (16 + K - 1) * (OVERHEAD + 4 * S),
    "b s": lambda: efficiency(4) * (OVERHEAD + 4 * S) == 4 * S,
    "b s/(o + b s)": lambda: all(efficiency(b) == b * S / (OVERHEAD + b * S) for b in range(1, 9)),
    "3(M+K-1)(o+Ns/M)": lambda: all(
        step_s(m, k, n, o) == 3 * (m + k - 1) * (o + Fraction(n, m))
        for k, m, n, o in ((1, 4, 8, Fraction(1)), (3, 7, 12, Fraction(2)), (4, 1, 64, Fraction(0)))
    ),
    "M o": lambda: two_terms_change(),
    "(K-1)Ns/M": lambda: two_terms_change(),
    r"M^* = \sqrt{(K-1) N s/o}": lambda: root_is_beside_best(),
    r"\sqrt{(K-1) N s/o}": lambda: root_is_beside_best(),
    r"3(10 + 3 b_{\max})": lambda: all(
        ragged_s(sizes) == 3 * (10 + 3 * max(sizes)) for sizes in (RAGGED, LUMPED, [4, 4, 2])
    ),
}
