"""Every number and formula that unit 06 states in words, with the expression that yields it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from formulas_06 import FORMULAS as FORMULAS
from hints_06 import HINTS, TEN, TWO
from truths_06 import (
    LAYERS,
    MINUTES,
    K,
    M,
    V,
    by_rule,
    chunked,
    first_work,
    halved,
    held,
    idle,
    n_messages,
    over_ideal,
    plain,
    points,
    seconds,
    whenever_idle,
)

from autograder.arena import CAP, N_MICROBATCHES, N_RANKS
from autograder.checks.unit_06.sealed_runs import RUNS
from mpedu.families import gpipe, zbv, zero_bubble_h1
from mpedu.search import search_schedule
from mpedu.simulate import Costs, Timeline

UNIT = {"06": 6}  # in a call


def capped() -> Any:
    """1F1B's caps on every rank until W, searched."""
    return search_schedule(range(K), M, Costs(1, 2, 1, 1), [4, 3, 2, 1], "W")


def share(n_microbatches: int, n_chunks: int) -> Callable[[], Fraction]:
    """The idle share of interleaved 1F1B on four ranks."""
    return lambda: idle(chunked(n_microbatches, n_chunks))


def further() -> Any:
    """1F1B with the longer warm-up of rule 2."""
    return by_rule([K, K], 1)


def runs() -> list[Timeline]:
    """The runs that the check asks."""
    return [run for _, run in RUNS.drawn(0)]


NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "120": lambda: 5 * -(-sum(MINUTES.values()) // 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {
        "4": (MINUTES["A"], lambda: held(plain())[0]),
        "0": 0,
        "8": lambda: held(gpipe(K, M))[0],
        "1": 1,
        "2": 2,
    },
    "chunks": {
        "8": K * V,
        "33": lambda: seconds(plain()),
        "24": lambda: seconds(plain(M, 1)),
        "27.3%": lambda: idle(plain()),
        "3": (K - 1, lambda: points("check-chunk_layers")),
        "16": LAYERS,
        "4": K,
        "12": first_work(LAYERS // K),
        "6": first_work(LAYERS // K // V),
        "1": 1,
        "2": LAYERS // K // V,
        "9": K * 2 + 1,
        "10": (MINUTES["B"], K * 2 + 2),
    },
    "solution-chunk_layers": TEN,
    "worked-list": {
        "30": MINUTES["C"],
        "2": lambda: max(a.stage for a in TWO[0]),
        "3": lambda: max(a.stage for a in TWO[1]),
    },
    "ask-idle": {"0": (0, 0), "1": 1, "4": K, "8": M},
    "e2": {
        "7": lambda: points("check-interleaved_1f1b", "check-interleaved_1f1b_fast"),
        "4": lambda: points("check-interleaved_1f1b"),
        "3": lambda: points("check-interleaved_1f1b_fast"),
        "2": 2,  # a rule's number
    },
    "solution-interleaved_1f1b": {"0": 0, "1": 1, "2": 2},
    "know-schedule": {
        "33": lambda: seconds(plain()),
        "28.5": lambda: seconds(chunked()),
        "6": 6,
        "4": K,
        "2": 6 - K,
        "27.5": lambda: seconds(by_rule([4, 2])),
        "22.5": lambda: seconds(chunked(6)),
    },
    "derivation": {
        "6": MINUTES["D"],
        "8": M,
        "4": K,
        "2": (V, lambda: points("check-bubble_interleaved")),
        "3/19": share(M, V),
        "15.8%": share(M, V),
        "3/16": lambda: over_ideal(chunked()),
        "18.75%": lambda: over_ideal(chunked()),
    },
    "solution-bubble_interleaved": {"0.0769": lambda: idle(chunked(4, 3, 2))},
    "ten-percent": {
        "10%": Fraction(10, 100),  # the paper's
        "28.5": lambda: seconds(chunked()),
        "33": lambda: seconds(plain()),
        "15.8%": lambda: seconds(plain()) / seconds(chunked()) - 1,
        "32": 32,
        "4.5%": lambda: seconds(plain(32)) / seconds(chunked(32)) - 1,
    },
    "ask-messages": {"9": MINUTES["E"]},
    "latency": {"5": lambda: Fraction(n_messages(4), n_messages(1)), "4": 4},
    "memory": {
        "4": K,
        "8": M,
        "33": (lambda: seconds(gpipe(K, M)), lambda: seconds(plain()), lambda: seconds(further())),
        "36": (lambda: seconds(gpipe(K, M), 0.5), lambda: seconds(further(), 0.5)),
        "39": (lambda: seconds(gpipe(K, M), 1), lambda: seconds(further(), 1)),
        "7": (lambda: held(further())[0], lambda: seconds(chunked(), 1) - seconds(further(), 1)),
        "5": lambda: held(further())[1],
        "3": lambda: held(further())[2],
        "1": lambda: held(further())[3],
        "41": lambda: seconds(plain(), 0.5),
        "49": lambda: seconds(plain(), 1),
        "28.5": (lambda: seconds(chunked()), lambda: seconds(by_rule([K, K], short=True))),
        "35.5": lambda: seconds(chunked(), 0.5),
        "46": lambda: seconds(chunked(), 1),
        "43.5": lambda: seconds(by_rule([K, K], short=True), 0.5),
        "58.5": lambda: seconds(by_rule([K, K], short=True), 1),
        "26.25": lambda: seconds(chunked(M, 4)),
        "45": lambda: seconds(chunked(M, 4), 0.5),
        "69": lambda: seconds(chunked(M, 4), 1),
        "2": 2,
    },
    "know-price": {
        "11": lambda: held(chunked())[0],
        "5.5": lambda: Fraction(held(chunked())[0], V),
        "4": lambda: held(plain())[0],
        "37.5%": lambda: Fraction(held(chunked())[0], V * held(plain())[0]) - 1,
        "15.8%": lambda: seconds(plain()) / seconds(chunked()) - 1,
    },
    "halves": {
        "32": MINUTES["F"],
        "28.5": lambda: seconds(chunked()),
        "24": lambda: seconds(plain(M, 1)),
        "1": 1,
        "7": lambda: seconds(whenever_idle(plain(2, 2))),
        "9": lambda: seconds(plain(2, 2)),
    },
    "picture-halves": {"0": 0, "1": 1},
    "ask-idle-halves": {"8": M, "27.3%": lambda: idle(plain())},
    "e4": {
        "5": lambda: points("check-delay_weight_gradients", "check-delay_weight_gradients_fast"),
        "3": lambda: points("check-delay_weight_gradients"),
        "2": lambda: points("check-delay_weight_gradients_fast"),
    },
    "freed": {
        "27": (lambda: seconds(zero_bubble_h1(K, M)), lambda: seconds(whenever_idle(plain()))),
        "33": lambda: seconds(plain()),
        "1/9": lambda: idle(zero_bubble_h1(K, M)),
        "4": (lambda: held(plain())[0], lambda: max(held(zero_bubble_h1(K, M), "W"))),
        "3": lambda: held(zero_bubble_h1(K, M))[1],
        "2": lambda: held(plain())[2],
        "1": lambda: held(capped(), "W")[3],
        "8": lambda: min(held(whenever_idle(plain()), "W")),
        "30": lambda: seconds(capped()),
    },
    "e5": {"10": 10},  # minutes
    "v-shape": {"25.5": lambda: seconds(zbv(K, M))},
    "know-zero": {"6": lambda: seconds(plain()) - seconds(zero_bubble_h1(K, M))},
    "ranks": {"4": MINUTES["G"], "5": 5, "10": 2 * 5},
    "run-text": {"10": 10, "1e-6": 1e-6},
    "ask-sealed": {
        "20": MINUTES["H"],
        "4": lambda: len({span.microbatch for span in RUNS.shown["A"].spans}),
        "1": lambda: min(span.end_s - span.start_s for span in RUNS.shown["A"].spans),
        "27": lambda: 2 * seconds(halved(chunked(4), lambda rank: rank)),
    },
    **{f"run-{letter}": UNIT for letter in "abcd"},
    "try-cause": UNIT,
    "e6": {
        "3": lambda: points("check-timeline_cause"),
        "18": lambda: len(runs()),
        "2": lambda: min(run.n_ranks for run in runs()),
        "4": lambda: max(run.n_ranks for run in runs()),
        "7": 7,  # a run's number
    },
    "arena": {
        "4": (N_RANKS, CAP),
        "8": N_MICROBATCHES,
        "1": 1,
        "27": lambda: seconds(zero_bubble_h1(N_RANKS, N_MICROBATCHES)),
        "25.5": lambda: seconds(zbv(N_RANKS, N_MICROBATCHES)),
    },
    "write": {"3": MINUTES["J"]},
    "question": {"4": lambda: points("answer"), "10%": Fraction(10, 100)},
    "ask-record": {"2": 2},  # minutes
    **HINTS,
}
