"""The numbers and formulas of unit 02 in words, each with the expression that yields it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from truths_02 import (
    A100,
    ATTENTION,
    BATCH,
    COSTS,
    FEED_FORWARD,
    GB,
    GPT3,
    GRADIENT,
    LLAMA,
    MINUTES,
    NOISE,
    NORMS,
    STATES,
    WEIGHT,
    K,
    activations_gb,
    best_cuts,
    busy,
    clock,
    everywhere,
    gpt3_gb,
    group,
    largest_gb,
    lightest,
    message_s,
    points,
    stages,
    states_gb,
    work_s,
)

from autograder.checks.unit_02.sealed_runs import RUNS
from mpedu.families import gpipe
from mpedu.published import count_parameters
from mpedu.simulate import simulate

ALL_BYTES = WEIGHT + GRADIENT + STATES
N_PARAMETERS = count_parameters(LLAMA).total
TENSOR = 2 * 3 * 4 * 2  # sequences, tokens, width, bytes
BOXES = ((5, 6), (6, 7), (7, 9), (9, 11))  # starts and ends, on two devices
SEVEN = [3, 2, 2]  # layers of section F's example, 10 parameters each
HELD_BY = [3 * 10 + 100, 2 * 10, 2 * 10 + 1 + 100]  # parameters: vocabulary 100, norm 1
EXAMPLE = {
    "1": 1,
    "2": (WEIGHT, SEVEN[1]),
    "3": (len(SEVEN), SEVEN[0]),
    "7": sum(SEVEN),
    "10": 10,
    "20": HELD_BY[1],
    "40": WEIGHT * HELD_BY[1],
    "100": 100,
    "121": HELD_BY[2],
    "130": HELD_BY[0],
    "240": STATES * HELD_BY[1],
}
PLANNED = 200, 220  # parameters of two ranks, in a hint
TWO = {"02": 2}  # the unit's number, in a call

NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "95": lambda: 5 * -(-sum(MINUTES.values()) // 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {"5": MINUTES["A"], "0": 0},
    "ask-cut": {
        "13": MINUTES["B"],
        "3": (
            COSTS[0],
            lambda: stages(COSTS, [3, 3, 2, 2])[1],
            lambda: stages([2, 1, 2], [1, 2])[1],
        ),
        "1": COSTS[1],
        "4": COSTS[-1],
        "2": (lambda: stages(COSTS, [3, 3, 2, 2])[2], lambda: stages([2, 1, 2], [2, 1])[1]),
        "5": (lambda: stages(COSTS, [3, 3, 2, 2])[0], lambda: stages(COSTS, [3, 3, 2, 2])[3]),
    },
    "solution-partition_layers": {
        "1": lambda: best_cuts([3, 1, 1, 1], 2)[0][0],
        "3": lambda: best_cuts([3, 1, 1, 1], 2)[0][1],
    },
    "know-cut": {
        "5": lambda: max(stages(COSTS, [3, 3, 2, 2])),
        "4": (lambda: lightest(COSTS, K), COSTS[-1]),
    },
    "worked-list": {"12": MINUTES["C"], "1": 1, "2": 2},
    "e1": {
        "5": lambda: points("check-naive", "check-naive_busy"),
        "3": lambda: points("check-naive"),
        "2": (lambda: points("check-naive_busy"), lambda: group("naive", 0)),
        "1": 1,
    },
    "solution-naive": {"0": 0, "1": 1},
    "pieces": {
        "8": 8,
        "16": 16,
        "96": (lambda: clock(K, 1, 8, 16).makespan_s, lambda: clock(K, 4, 2, 4).makespan_s),
        "4": 4,
    },
    "know-schedule": {"96": lambda: clock(K, 4, 2, 4).makespan_s},
    "e2": {
        "8": MINUTES["D"],
        "1": 1,
        "2": 2,
        "6": (lambda: clock(2, 1).busy_s, lambda: clock(2, 1).makespan_s),
        "12": lambda: 2 * clock(2, 1).makespan_s,
        "0.5": lambda: busy(clock(2, 1)),
    },
    "ask-e2": {
        "3": lambda: points("check-utilisation"),
        "0": 0,
        "2": lambda: group("utilisation", 0),
    },
    "solution-utilisation": {
        "0": 0,
        "1": 1,
        "1.0": lambda: busy(clock(1, 3)),
        "0.25": lambda: busy(clock(4, 8)),
    },
    "one-over-k": {"1": 1},
    "ask-message-share": {
        "8": MINUTES["E"],
        "2": 2,
        "4096": LLAMA.n_positions,
        "25": A100.between_bytes_per_s / GB,
        "9.6": A100.between_latency_s * 1e6,
        "312": A100.flops_per_s / 1e12,
    },
    "e3": {
        "3": (lambda: points("check-boundary_bytes"), 3),
        "2": (2, lambda: group("boundary_bytes", 0)),
        "4": 4,
        "48": TENSOR,
        "192": 2 * 2 * TENSOR,
    },
    "solution-boundary_bytes": {"0": 0, "192": 2 * 2 * TENSOR, "1": 1},
    "messages": {
        "201": round(2 * (K - 1) * LLAMA.n_positions * LLAMA.d_model * 2 / 1e6),
        "6": 2 * (K - 1),
        "25": A100.between_bytes_per_s / GB,
        "8.1": lambda: 1e3 * message_s(A100.between_bytes_per_s, A100.between_latency_s),
        "520": lambda: round(1e3 * work_s()),
        "300": A100.link_bytes_per_s / GB,
        "0.1%": lambda: message_s(A100.link_bytes_per_s, A100.latency_s) / work_s(),
        "1": 1,
    },
    "know-messages": {
        "30": lambda: clock(K, 1, 2, 4, 1).makespan_s,
        "24": lambda: clock(K, 1, 2, 4).makespan_s,
        "20%": lambda: busy(clock(K, 1, 2, 4, 1)),
        "25%": lambda: busy(clock(K, 1, 2, 4)),
    },
    "ask-memory": {
        "22": MINUTES["F"],
        "16": ALL_BYTES,
        "2": (WEIGHT, GRADIENT),
        "12": STATES,
        "4": 4,
        "6.74": N_PARAMETERS / GB,
        "13.5": WEIGHT * N_PARAMETERS / GB,
    },
    "activations": {
        "34": ATTENTION + FEED_FORWARD + NORMS,
        "11": ATTENTION,
        "19": FEED_FORWARD,
        "4": NORMS,
        "2": 2,
    },
    "e4": {"6": lambda: points("check-memory_bill"), **EXAMPLE},
    "solution-memory_bill": {
        "2": (WEIGHT, GRADIENT),
        "12": STATES,
        "34": ATTENTION + FEED_FORWARD + NORMS,
        "1": 1,
    },
    "whole-batch": {"16": BATCH, "80": A100.memory_bytes / GB},
    "two-ways": {
        "107.8": ALL_BYTES * N_PARAMETERS / GB,
        "28.0": lambda: max(states_gb(rank) for rank in range(K)),
        "73.0": lambda: activations_gb(BATCH),
        "101.0": lambda: largest_gb(BATCH),
        "32.6": lambda: largest_gb(1),
        "3": 3,  # GPT-3
        "64": 64,
        "80": A100.memory_bytes / GB,
    },
    "know-memory": {
        "16": ALL_BYTES,
        "8": ALL_BYTES // WEIGHT,
        "3": 3,  # GPT-3
        "64": 64,
        "96": GPT3.n_layers,
        "70.0": lambda: gpt3_gb(0),
        "39.7": lambda: gpt3_gb(63),
        "10.0": lambda: A100.memory_bytes / GB - gpt3_gb(0),
        "5": lambda: (A100.memory_bytes / GB - gpt3_gb(0)) // (gpt3_gb(0, 2) - gpt3_gb(0)),
    },
    "ranks": {
        "5": (MINUTES["G"], 5),
        "10": 2 * 5,
        "75%": lambda: 1 - busy(clock(K, 4)),
    },
    "run-text": {"2": 2, "10": 10, "1e-6": 1e-6},
    "ask-sealed": {
        "15": MINUTES["H"],
        "30": lambda: round(
            sum(bill["activations"] for bill in RUNS.known("A")[0])
            / (8 * activations_gb(1, 32) * GB)
        ),
        "8": 8,
        "80": A100.memory_bytes / GB,
    },
    **{f"run-{letter}": TWO for letter in "abcd"},
    "try-cause": TWO,
    "e5": {
        "1%": NOISE,
        "3": lambda: points("check-bill_cause"),
        "4": 4,
        "24": lambda: len(RUNS.drawn(0)),
        "7": 7,  # a run's number
        "2": lambda: min(len(run[0]) for seed in range(40) for _, run in RUNS.drawn(seed)),
        "6": lambda: max(len(run[0]) for seed in range(40) for _, run in RUNS.drawn(seed)),
    },
    "solution-bill_cause": {"0": 0, "1%": NOISE},
    "write": {"3": MINUTES["I"]},
    "question": {"4": lambda: points("answer"), "16": BATCH},
    "card": {
        "2": (WEIGHT, GRADIENT),
        "12": STATES,
        "16": ALL_BYTES,
        "34": ATTENTION + FEED_FORWARD + NORMS,
        "13.5": WEIGHT * N_PARAMETERS / GB,
        "80.9": STATES * N_PARAMETERS / GB,
        "107.8": ALL_BYTES * N_PARAMETERS / GB,
    },
    "ask-record": {"2": 2},  # minutes
    "question-message-share": {"2": 2},
    "question-training-gb": {"2": 2, "13.5": WEIGHT * N_PARAMETERS / GB},
    "question-sealed-over": {"80": A100.memory_bytes / GB},
    "hint-naive_busy-2": {
        "12": lambda: clock(2, 2).makespan_s,
        "1": 1,
        "2": 2,
        "6": lambda: clock(2, 2).busy_s / 2,
        "9": lambda: simulate(gpipe(2, 2)).makespan_s,
    },
    "hint-naive_busy-3": {"0": 0, "1": 1, "2": 2},
    "hint-utilisation-2": {
        "5": BOXES[0][0],
        "6": (BOXES[0][1], BOXES[-1][1] - BOXES[0][0], sum(end - start for start, end in BOXES)),
        "7": BOXES[1][1],
        "9": BOXES[2][1],
        "11": BOXES[3][1],
        "2": 2,
        "12": 2 * (BOXES[-1][1] - BOXES[0][0]),
        "0.5": Fraction(6, 12),
    },
    "hint-boundary_bytes-2": {"2": 2, "3": 3, "4": 4, "48": TENSOR, "96": 2 * TENSOR},
    "hint-memory_bill-2": EXAMPLE | {"30": 10 * SEVEN[0]},
    "hint-bill_cause-2": {
        "200": PLANNED[0],
        "220": PLANNED[1],
        "201": PLANNED[0] + 1,
        "221": PLANNED[1] + 1,
        "441": 2 * PLANNED[1] + 1,
        "421": sum(PLANNED) + 1,
        "422": sum(PLANNED) + 2,
        "180": PLANNED[0] - 20,
        "241": PLANNED[1] + 20 + 1,
    },
}

FORMULAS: dict[str, Callable[[], bool]] = {
    "1/K": everywhere(lambda k, m, f, b, line: busy(line) == Fraction(1, k)),
    "M K (t_f+t_b)": everywhere(
        lambda k, m, f, b, line: line.busy_s == line.makespan_s == m * k * (f + b)
    ),
    "M K^2 (t_f+t_b)": everywhere(
        lambda k, m, f, b, line: line.n_ranks * line.makespan_s == m * k**2 * (f + b)
    ),
    "K-1": everywhere(
        lambda k, m, f, b, line: (
            len({span.stage for span in line.spans}) - 1 == k - 1
            and clock(k, m, f, b, 1).makespan_s - line.makespan_s == 2 * m * (k - 1)
        )
    ),
    r"34 \cdot n_{positions} \cdot d_{model}": lambda: (
        abs(activations_gb(1, 32) * GB - 34 * LLAMA.n_positions * LLAMA.d_model) < 1
    ),
}
