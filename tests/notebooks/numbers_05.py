"""The numbers and formulas of unit 05 in words, each with the expression that yields it."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from truths_05 import (
    B_S,
    F_S,
    LATE_S,
    MANY,
    MINUTES,
    SEALED_M,
    K,
    M,
    both,
    clock,
    copies,
    everywhere,
    late,
    over_ideal,
    pauses_before_backwards,
    peaks,
    points,
    seconds,
    share,
    span,
    updates_before,
    version,
    warmed_up,
)

from autograder.exercise import Draw, find_exercise
from autograder.local import LocalSubject
from autograder.notebook import sealed_run
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.schedule import Schedule, in_flight
from mpedu.train_step import train_step
from mpedu.validate import validate_schedule

PIECE, LAYERS = 8, 4  # samples of a micro-batch and layers of a stage in unit 04's example
CLOCK_MS = 5  # a forward of the emulated devices
EAGER = warmed_up(lambda stage: 2 * (K - 1 - stage))
HELD = in_flight(gpipe(2, 2)[0])


def group(exercise: str, number: int) -> int:
    """Points of one group of an exercise's check, told by what an empty notebook misses."""
    found = find_exercise(exercise)
    return found.run(LocalSubject({}, found.names), Draw(b""))[number].points


def that_finish() -> list[Schedule]:
    """The sealed lists that are legal, the one that holds most first."""
    runs = [sealed_run(letter, "05") for letter in "ABCD"]
    legal = [run for run in runs if not validate_schedule(run, K, SEALED_M)]
    return sorted(legal, key=peaks, reverse=True)


@cache
def largest_difference() -> float:
    """By how much gradients of real ranks differ from those of one process, relatively."""
    return max(train_step(one_f_one_b, 2, 4).differences.values())


@cache
def ranks_peaks() -> list[int]:
    """What real ranks held at most."""
    return train_step(one_f_one_b, K, M, device_clock_ms=CLOCK_MS).peaks


def held_by(stage: int, n_microbatches: int = M) -> Callable[[], int]:
    """The most that a stage of 1F1B holds."""
    return lambda: peaks(one_f_one_b(K, n_microbatches))[stage]


def run(kinds: str) -> list[int]:
    """What is held after each action, by their kinds."""
    return list(accumulate(1 if kind == "F" else -1 for kind in kinds))


NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "100": lambda: 5 * -(-sum(MINUTES.values()) // 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {"6": MINUTES["A"], "0": 0},
    "ask-picture": {
        "8": M,
        "1": F_S,
        "2": B_S,
        "4": lambda: span(gpipe(K, M), "3F0").end_s,
        "11": lambda: span(gpipe(K, M), "3B0").start_s,
    },
    "ask-held": {
        "8": (lambda: peaks(gpipe(K, M))[0], lambda: span(gpipe(K, M), "0F7").end_s),
        "33": lambda: seconds(gpipe(K, M)),
    },
    "e1": {"8": MINUTES["B"], "3": lambda: points("check-in_flight")},
    "solution-in_flight": {"1": (HELD[0], HELD[2]), "2": HELD[1], "0": HELD[3]},
    "worked": {"26": MINUTES["C"]},
    "e2": {
        "8": lambda: points("check-one_f_one_b", "check-one_f_one_b_lean"),
        "3": lambda: points("check-one_f_one_b"),
        "5": lambda: points("check-one_f_one_b_lean"),
        "2": (
            lambda: group("one_f_one_b_lean", 0),
            lambda: group("one_f_one_b_lean", 1),
            lambda: _warm_up(3, 4, 0),
        ),
        "1": (lambda: group("one_f_one_b_lean", 2), lambda: _warm_up(3, 4, 1)),
        "0": lambda: _warm_up(3, 4, 2),
    },
    "solution-one_f_one_b": {"0": 0, "1": 1},
    "know-order": {
        "8": tuple(lambda s=s: peaks(gpipe(K, M))[s] for s in range(K)),
        "4": (held_by(0), lambda: span(one_f_one_b(K, M), "0F3").end_s),
        "3": held_by(1),
        "2": held_by(2),
        "1": held_by(3),
        "10": lambda: span(one_f_one_b(K, M), "0B0").start_s,
        "33": (lambda: seconds(one_f_one_b(K, M)), lambda: seconds(gpipe(K, M))),
    },
    "bubble": {
        "10": MINUTES["D"],
        "27.3%": lambda: share(M),
        "37.5%": lambda: over_ideal(K, M),
        "32": (MANY, lambda: peaks(gpipe(K, MANY))[0]),
        "8.6%": lambda: share(MANY),
        "3": lambda: points("check-one_f_one_b_peak"),
    },
    "solution-one_f_one_b_peak": {"1": held_by(3), "0": 0},
    "know-peak": {
        "32": (lambda: held_by(0)() * PIECE, LAYERS * PIECE),
        "64": lambda: held_by(0)() * PIECE + LAYERS * PIECE,
        "96": lambda: peaks(gpipe(K, M))[0] * PIECE + LAYERS * PIECE,
    },
    "e4": {"20": MINUTES["E"], "6": lambda: points("check-ready", "check-can_finish")},
    "solution-ready": {"1": 1, "2": 2},
    "ask-sealed": {"8": MINUTES["F"], "6": lambda: len(that_finish()[0][0]) // 2},
    "read-sealed": {"27": lambda: seconds(one_f_one_b(K, SEALED_M))},
    "know-sealed": {
        **{
            str(5 - stage): lambda stage=stage: peaks(that_finish()[0])[stage] for stage in range(K)
        },
        "45": lambda: seconds(that_finish()[1]),
    },
    "ask-latency": {"6": MINUTES["G"], "36": lambda: seconds(gpipe(K, M), LATE_S)},
    "know-latency": {
        "3": (
            lambda: seconds(gpipe(K, M), LATE_S) - seconds(gpipe(K, M)),
            lambda: peaks(EAGER)[2],
        ),
        "1": (1, lambda: peaks(EAGER)[3]),
        "39": lambda: seconds(gpipe(K, M), 1),
        "49": lambda: seconds(one_f_one_b(K, M), 1),
        "6": 2 * 3,
        "4": 2 * 2,
        "2": 2 * 1,
        "0": 2 * 0,
        "7": (lambda: peaks(EAGER)[0], lambda: pauses_before_backwards(0, LATE_S)),
        "8": M,
        "5": lambda: peaks(EAGER)[1],
        "36": (lambda: seconds(EAGER, LATE_S), lambda: seconds(gpipe(K, M), LATE_S)),
    },
    "e5": {"15": 15, "1": F_S, "2": B_S},  # the first in minutes
    "solution-extra_time_of_latency_s": {
        "2": (2, B_S),
        "1": F_S,
        "8.0": lambda: late(K, M, LATE_S),
    },
    "pipedream": {"7": MINUTES["H"]},
    "know-pipedream": {
        "4": (
            lambda: copies()[0],
            lambda: updates_before("0B4"),
        ),
        "3": lambda: copies()[1],
        "2": lambda: copies()[2],
        "1": (lambda: copies()[3], lambda: version("0B4")),
    },
    "ask-ranks": {"4": MINUTES["I"], "5": CLOCK_MS, "10": Fraction(CLOCK_MS * B_S, F_S)},
    "ask-real": {
        "27.3%": lambda: share(M),
        **{str(K - stage): lambda stage=stage: ranks_peaks()[stage] for stage in range(K)},
    },
    "know-ranks": {"1e-6": lambda: float(f"1e{round(math.log10(largest_difference()))}")},
    "next": {
        "3": MINUTES["J"],
        "4": lambda: Fraction(peaks(one_f_one_b(K, M))[0], peaks(one_f_one_b(K, M))[3]),
    },
    "question": {"4": lambda: points("answer"), "8": M},
    "card": {
        "8": (M, *(lambda s=s: peaks(gpipe(K, M))[s] for s in range(K))),
        "0": 0,
        "4": held_by(0),
        "3": (3, held_by(1)),
        "2": (2, held_by(2)),
        "1": (1, held_by(3)),
    },
    "ask-record": {"2": 2},  # minutes
    "hint-in_flight-2": {
        "1": (lambda: run("FFFBBB")[0], lambda: run("FFFBBB")[4]),
        "2": (lambda: run("FFFBBB")[1], lambda: run("FFFBBB")[3]),
        "3": lambda: run("FFFBBB")[2],
        "0": lambda: run("FFFBBB")[5],
    },
    "hint-one_f_one_b_lean-2": {
        "1": (F_S, lambda: peaks(one_f_one_b(2, 4))[1]),
        "2": (B_S, lambda: peaks(one_f_one_b(2, 4))[0]),
        "15": (lambda: seconds(one_f_one_b(2, 4)), lambda: seconds(gpipe(2, 4))),
        "24": lambda: seconds(naive(2, 4)),
    },
    "hint-one_f_one_b_lean-3": {"4": K, "8": M},
    "hint-one_f_one_b_peak-2": {
        "3": 3,
        "2": (2, lambda: peaks(one_f_one_b(3, 5))[1]),  # the first is a stage's number
        "1": (lambda: peaks(one_f_one_b(3, 5))[2], lambda: max(peaks(one_f_one_b(3, 1)))),
    },
    "hint-ready-2": {"5": 5},  # a micro-batch
    "hint-extra_time_of_latency_s-1": {"2": 2, "4": 4, "6": 6, "8": 8},  # micro-batches
    "hint-extra_time_of_latency_s-2": {
        "2": (2, lambda: late(2, 2, 1)),
        "1": 1,
        "4": (4, lambda: late(2, 4, 1)),
        "3": 3,
        "6": (6, lambda: late(3, 3, 1)),
        "10": lambda: late(3, 6, 1),
    },
    "question-held-1f1b": {"8": M},
    "question-makespan-1f1b": {
        "1": F_S,
        "2": B_S,
        "33": lambda: seconds(gpipe(K, M)),
        "8": M,
    },
    "question-latency-1f1b": {"36": lambda: seconds(gpipe(K, M), LATE_S)},
}


def _waits_for(n_boundaries: Callable[[int, int], Any]) -> Callable[[], bool]:
    """Whether GPipe takes so many latencies longer, for several pipelines and latencies."""
    cases = [(k, m, c) for k in (1, 2, 5) for m in (1, 4, 9) for c in (Fraction(1, 3), 2)]
    return lambda: all(
        seconds(gpipe(k, m), c) - seconds(gpipe(k, m)) == c * n_boundaries(k, m)
        for k, m, c in cases
    )


def _late_by(n_messages: Callable[[int, int], Any]) -> Callable[[], bool]:
    """Whether 1F1B takes so many latencies longer, where K divides M."""
    cases = [(k, k * n, c) for k in (2, 3, 5) for n in (1, 2, 4) for c in (Fraction(1, 3), 2)]
    return lambda: all(late(k, m, c) == c * n_messages(k, m) for k, m, c in cases)


def _starts(k: int, m: int, f: int, b: int) -> list[Any]:
    """When the last stage takes up each micro-batch."""
    spans = clock(one_f_one_b(k, m), f, b).spans
    return [s.start_s for s in spans if s.rank == k - 1 and s.kind == "F"]


def _warm_up(k: int, m: int, stage: int) -> int:
    """Forwards before the turns; a turn begins with the forward before the first backward."""
    kinds = [action.kind for action in one_f_one_b(k, m)[stage]]
    return kinds.index("B") - 1


FORMULAS: dict[str, Callable[[], bool]] = {
    "K-1": everywhere(
        lambda k, m, f, b: (
            min(s.start_s for s in clock(one_f_one_b(k, m), f, b).spans if s.rank == k - 1)
            == (k - 1) * f
        )
    ),
    "(M+K-1)(t_f+t_b)": everywhere(
        lambda k, m, f, b: both(k, m, f, b) == {Fraction((m + k - 1) * (f + b))}
    ),
    "(K-1)/(M+K-1)": everywhere(
        lambda k, m, f, b: clock(one_f_one_b(k, m), f, b).idle_share == Fraction(k - 1, m + k - 1)
    ),
    "(K-1)/M": everywhere(lambda k, m, f, b: over_ideal(k, m) == Fraction(k - 1, m)),
    "2c(K-1)": _waits_for(lambda k, m: 2 * (k - 1)),
    "K-r": lambda: copies() == [K - rank for rank in range(K)],
    "K/M": everywhere(
        lambda k, m, f, b: m < k or Fraction(peaks(one_f_one_b(k, m))[0], m) == Fraction(k, m)
    ),
    r"M \le K": everywhere(
        lambda k, m, f, b: (peaks(one_f_one_b(k, m))[0] == peaks(gpipe(k, m))[0]) == (m <= k)
    ),
    "t_f+t_b": everywhere(
        lambda k, m, f, b: (
            {Fraction(t - s) for s, t in pairwise(_starts(k, m, f, b))} <= {Fraction(f + b)}
        )
    ),
    "2(K-1)": _late_by(lambda k, m: late(k, m + k, 1) - 2 * (k - 1)),
    "2(K-2)": _late_by(lambda k, m: late(k, m, 1) - late(k, k, 1) + 2 * (k - 1) + 2 * (k - 2)),
    "c (2(K-1)M/K + 2(K-2))": _late_by(lambda k, m: Fraction(2 * (k - 1) * m, k) + 2 * (k - 2)),
    "K-1-r": everywhere(
        lambda k, m, f, b: all(
            _warm_up(k, m, stage) == min(m, k - 1 - stage + 1) - 1 for stage in range(k)
        )
    ),
    r"\min(M, K-r)": everywhere(
        lambda k, m, f, b: peaks(one_f_one_b(k, m)) == [min(m, k - stage) for stage in range(k)]
    ),
}
