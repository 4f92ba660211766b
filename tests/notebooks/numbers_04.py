"""The numbers and formulas of unit 04 in words, each with the expression that yields it."""

from collections.abc import Callable
from math import ceil, isqrt, sqrt, tanh
from typing import Any

from truths_04 import (
    DEEPSEEK,
    MINUTES,
    ROUNDING,
    again,
    best,
    block_over_input,
    checkpointed,
    dealt,
    forwards,
    from_x,
    gpipe_peak,
    group,
    held,
    held_unequal,
    longest_first,
    plain,
    points,
    stage_inputs,
    torch_s,
    with_length,
)

from autograder.checks.unit_04.sealed_runs import RUNS
from mpedu.held import counted_pass

RUN = {"04": 4}  # the unit's number, in a call
TEN = {"10": 10, "4": 4, "3": lambda: dealt(10, 4)[0], "2": lambda: dealt(10, 4)[-1]}
CHAIN = 4  # layers of section C's example, in two segments of two


def _sizes(what: Callable[[Any], int]) -> set[int]:
    return {what(run) for seed in range(40) for _, run in RUNS.drawn(seed)}


NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "100": lambda: 5 * -(-sum(MINUTES.values()) // 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {"5": MINUTES["A"]},
    "ask-least": {"8": 8, "64": 64, "65": lambda: held_plain(64)},
    "worked-function": {"9": MINUTES["B"]},
    "three-ways": {
        "32": MINUTES["C"],
        "0": 0,
        "1": 1,
        "2": CHAIN // 2,
        "3": (CHAIN - 1, lambda: counted_pass(checkpointed, CHAIN, 2).peak),
        "4": lambda: counted_pass(plain, CHAIN, 1).peak,
    },
    "e1": {
        "7": lambda: points("check-backward_with_checkpoints", "check-backward_memory"),
        "1": 1,
        "4": lambda: points("check-backward_with_checkpoints"),
        "2": (lambda: group("backward_with_checkpoints", 0), lambda: ceil(10 / 6)),
        "3": lambda: points("check-backward_memory"),
        "10": 10,
        "6": 6,
        "5": lambda: len(range(0, 10, ceil(10 / 6))),
    },
    "solution-backward_with_checkpoints": {"1": 1},
    "try-text": {"3": 3, "2": 2},
    "know-sawtooth": {
        "7": lambda: counted_pass(checkpointed, 16, 4).peak,
        "8": lambda: held(16, 4),
    },
    "e2": {
        "10": (MINUTES["D"], 10),
        "3": (3, lambda: points("check-best_segment_length")),
        "2": (2, lambda: best(10)),
        "5": (lambda: len(range(0, 10, 2)), 5),
        "7": (lambda: with_length(10, 2), lambda: with_length(10, 3), lambda: with_length(10, 5)),
        "4": (lambda: len(range(0, 10, 3)), lambda: 4 + 7 - with_length(10, 4)),
    },
    "solution-best_segment_length": {"8": lambda: best(64), "2": lambda: best(10), "1": 1},
    "reveal-text": {"64": 64},
    "know-root": {
        "64": 64,
        "65": lambda: held_plain(64),
        "9": lambda: longest_first(64)[2],
        "10": lambda: longest_first(64)[1],
        "12": lambda: held_unequal(64),
        "16": (lambda: held(64, 8), lambda: with_length(DEEPSEEK, best(DEEPSEEK))),
        "100": 100,
        "20": lambda: held(100, 10),
        "61": DEEPSEEK,
        "7": lambda: best(DEEPSEEK),
        "6": lambda: min(k for k in range(1, 65) if with_length(64, k) <= 17),
        "11": (
            lambda: max(k for k in range(1, 65) if with_length(64, k) <= 17),
            lambda: longest_first(64)[0],
        ),
        "17": lambda: max(with_length(64, k) for k in range(6, 12)),
    },
    "e3": {
        **TEN,
        "2": (dealt(10, 4)[-1], lambda: points("check-recompute_forwards")),
        "10": (10, lambda: again(10, 4)),
        "8": (MINUTES["E"], lambda: again(10, 4, True)),
    },
    "solution-recompute_forwards": {
        "1": 1,
        "10": lambda: again(10, 4),
        "8": lambda: again(10, 4, True),
    },
    "torch-text": {"64": 64, "8": 8, "2": 2, "1": 1},
    "know-work": {
        "15": lambda: torch_s(8),
        "8": 64 // 8,
        "7": lambda: torch_s(8) - 64 // 8,
        "33": lambda: torch_s(2),
        "1": 1,
        "64": (lambda: torch_s(1), lambda: torch_s(64), lambda: torch_s(0)),
        "3": 1 + 2,
        "4": lambda: 1 + 2 + again(64, 8) // 64,
        "5": 5,  # minutes
        "44": lambda: forwards(from_x, 8),
        "36": lambda: forwards(from_x, 8) - 8,
    },
    "ask-pieces": {
        "12": MINUTES["F"],
        "64": 64,
        "16": 16,
        "4": (4, 16 // 4),
        "320": lambda: gpipe_peak(64, 16, 4, 1, True),
    },
    "e4": {
        "5": lambda: points("check-gpipe_peak_activation"),
        "8": (8, 64 // 8),
        "64": 64,
        "4": 16 // 4,
        "256": lambda: gpipe_peak(64, 16, 4, 8, False),
        "32": lambda: gpipe_peak(64, 16, 4, 8, True) - 64,
        "96": lambda: gpipe_peak(64, 16, 4, 8, True),
        "2": lambda: group("gpipe_peak_activation", 1),
    },
    "solution-gpipe_peak_activation": {
        "1": 1,
        "96": lambda: gpipe_peak(64, 16, 4, 8, True),
        "256": lambda: gpipe_peak(64, 16, 4, 8, False),
    },
    "know-gpipe": {
        "68": lambda: gpipe_peak(64, 16, 4, 64, True),
        "64": 64,
        "320": lambda: gpipe_peak(64, 16, 4, 1, True),
        "256": lambda: gpipe_peak(64, 16, 4, 1, False),
    },
    "ranks": {"4": (MINUTES["G"], 4), "16": lambda: int(block_over_input())},
    "know-ranks": {
        "4": 4,
        "16": (lambda: int(block_over_input()), 4 * 4),
        "256": lambda: stage_inputs(0, 4 * 4),
        "68": lambda: stage_inputs(4, 4),
        "32": lambda: stage_inputs(4 * 4, 1),
    },
    "ask-sealed": {
        "17": MINUTES["H"],
        "16": lambda: len(RUNS.known("A")[0]),
        "9e-7": ROUNDING,
        "1": lambda: RUNS.known("B")[2][0],
    },
    **{f"run-{letter}": RUN for letter in "abcd"},
    "try-cause": RUN,
    "e5": {
        "3": (3, lambda: points("check-memory_cause")),
        "24": lambda: len(RUNS.drawn(0)),
        "9": lambda: min(_sizes(lambda run: len(run[0]))),
        "26": lambda: max(_sizes(lambda run: len(run[0]))),
        "5": 5,
        "7": 7,  # a run's number
    },
    "solution-memory_cause": {"9e-7": ROUNDING},
    "extra": {"10": 10},  # minutes
    "write": {"3": MINUTES["I"]},
    "question": {"4": lambda: points("answer")},
    "card": {
        "16": (16, lambda: with_length(DEEPSEEK, best(DEEPSEEK)), lambda: held(64, 8)),
        "4": lambda: best(16),
        "8": (lambda: best(64), lambda: held(16, 4)),
        "61": DEEPSEEK,
        "7": lambda: best(DEEPSEEK),
        "64": 64,
        "100": 100,
        "10": lambda: best(100),
        "20": lambda: held(100, 10),
    },
    "ask-record": {"2": 2},  # minutes
    "question-least-held": {"64": 64},
    "question-best-pieces": {
        "4": 4,
        "64": 64,
        "16": 16,
        "1": 1,
        "320": lambda: gpipe_peak(64, 16, 4, 1, True),
    },
    "hint-backward_with_checkpoints-2": {"0": 0, "1": 1, "2": 2, "3": CHAIN - 1},
    "hint-backward_memory-2": {"0": 0, "1": 1, "2": 2, "3": CHAIN - 1},
    "hint-best_segment_length-2": {
        "10": 10,
        "2": (2, lambda: best(10), lambda: len(range(0, 10, 5))),
        "5": (5, lambda: len(range(0, 10, 2))),
        "7": (lambda: with_length(10, 2), lambda: with_length(10, 5)),
        "3": (3, lambda: len(range(0, 10, 4))),
        "4": (4, lambda: len(range(0, 10, 3))),
    },
    "hint-recompute_forwards-2": TEN
    | {"10": lambda: again(10, 4), "8": lambda: again(10, 4, True)},
    "hint-gpipe_peak_activation-2": {
        "6": 6,
        "3": 3,
        "2": (2, 6 // 3, 4 // 2),
        "4": (4, lambda: gpipe_peak(6, 4, 2, 3, True) - 6),
        "12": lambda: gpipe_peak(6, 4, 2, 3, False),
        "10": lambda: gpipe_peak(6, 4, 2, 3, True),
    },
    "hint-memory_cause-2": {
        "9": 9,
        "2": 2,
        "6": lambda: held(9, 3),
        "4e-7": 4e-7,
        "4": 4,
        "3": 3,
        "0.3": 0.3,
        "0.7": 0.7,
        "1.2": 1.2,
        "1.0": 1.0,
    },
}


def held_plain(n_layers: int) -> int:
    """Activations held at the peak, x among them, where everything is kept."""
    return counted_pass(plain, n_layers, 1).peak + 1


def _each(holds: Callable[[int, int], bool]) -> Callable[[], bool]:
    """Whether something holds of (layers, segments) for many of both."""
    return lambda: all(holds(n, s) for n in range(1, 40) for s in range(1, n + 1))


def _lengths(holds: Callable[[int, int], bool]) -> Callable[[], bool]:
    """Whether something holds of (layers, length of a segment) for many of both."""
    return lambda: all(holds(n, k) for n in range(1, 80) for k in range(1, n + 1))


def _gpipe(holds: Callable[[int, int, int, int], bool]) -> Callable[[], bool]:
    """Whether something holds of (N, L, K, M) where K divides L and M divides N."""
    return lambda: all(
        holds(m * b, k * own, k, m)
        for m in range(1, 6)
        for b in range(1, 5)
        for k in range(1, 5)
        for own in range(1, 5)
    )


def _doubled(backward: Callable[..., Any]) -> float:
    """How many times the forwards are of a chain twice as long, long ones."""
    return forwards(backward, 400) / forwards(backward, 200)


FORMULAS: dict[str, Callable[[], bool]] = {
    "y = \\tanh x": lambda: tanh(0) == 0,
    "1 - y^2": lambda: all(
        abs((tanh(x + 1e-6) - tanh(x - 1e-6)) / 2e-6 - (1 - tanh(x) ** 2)) < 1e-8
        for x in (-2.0, -0.3, 0.0, 1.1)
    ),
    "O(n)": lambda: _doubled(plain) == 2 and counted_pass(plain, 50, 1).peak == 50,
    "O(1)": lambda: len({counted_pass(from_x, n, 1).peak for n in (5, 50, 200)}) == 1,
    "O(n^2)": lambda: abs(_doubled(from_x) - 4) < 0.05,
    "n^2": lambda: abs(_doubled(from_x) - 4) < 0.05,
    "n + n(n+1)/2": lambda: all(forwards(from_x, n) == n + n * (n + 1) // 2 for n in (1, 2, 7, 30)),
    "2n": _each(lambda n, s: n + again(n, s) == 2 * n),
    r"\lceil n/s \rceil": _lengths(lambda n, k: len(range(0, n, k)) == ceil(n / k)),
    r"\lceil n/s \rceil + s": lambda: (
        all(
            with_length(n, k) == ceil(n / k) + k and held(n, ceil(n / k)) <= with_length(n, k)
            for n in range(1, 40)
            for k in range(1, n + 1)
        )
        and all(held(s * k, s) == with_length(s * k, k) for s in range(1, 9) for k in range(1, 9))
    ),
    r"s = \sqrt{n}": lambda: all(best(root**2) == root for root in range(1, 13)),
    r"2\sqrt{n}": lambda: all(
        2 * sqrt(n) <= with_length(n, best(n)) < 2 * sqrt(n) + 1 + (isqrt(n) ** 2 != n)
        for n in range(1, 200)
    ),
    r"\sqrt{2n}": lambda: all(abs(held_unequal(n) - sqrt(2 * n)) < 1.6 for n in range(2, 150)),
    r"N \cdot L": _gpipe(lambda n, d, k, m: gpipe_peak(n, d, 1, 1, False) == n * d),
    r"N \cdot L / K": _gpipe(lambda n, d, k, m: gpipe_peak(n, d, k, m, False) == n * d // k),
    r"N + \frac{L}{K} \cdot \frac{N}{M}": _gpipe(
        lambda n, d, k, m: gpipe_peak(n, d, k, m, True) == n + d // k * (n // m)
    ),
    r"N + L/K \cdot N/M": _gpipe(
        lambda n, d, k, m: gpipe_peak(n, d, k, m, True) == n + d // k * (n // m)
    ),
}
