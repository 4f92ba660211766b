"""The cases of unit 01's `cost_s`, its truth, and the typical mistakes with their sentences."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from autograder.checks.values import differs_from, formula_mistake, wrong_number
from autograder.diagnosis import Case, Mistake
from autograder.exercise import Draw

Number = int | float | Fraction
Cost = Callable[[int, int, Fraction, Fraction], Number]  # of n bytes, p, latency, seconds per byte
RINGS_OF = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
OTHER = ("all_to_all", "broadcast", "naive_all_reduce")


def seconds(op: str, n: int, p: int, latency_s: float, bandwidth: float) -> Fraction:
    """The truth: rounds times the time of one message, exactly."""
    latency, whole = Fraction(latency_s), Fraction(n) / Fraction(bandwidth)
    if op in RINGS_OF:
        return RINGS_OF[op] * (p - 1) * (latency + whole / p)
    if op == "all_to_all":
        return (p - 1) * (latency + whole / p)
    if op == "broadcast":
        return (p - 1).bit_length() * (latency + whole)
    return 2 * latency + p * whole if p > 1 else Fraction(0)


def _machine(draw: Draw) -> tuple[float, float]:
    """A latency in eighths of a second and a bandwidth in bytes per second, exact in floats."""
    return draw.int(1, 40) / 8, float(draw.int(1, 32))


def _bytes(draw: Draw) -> int:
    return draw.int(1, 10**6) if draw.secret else 8 * draw.int(1, 100)


def ring_cases(draw: Draw) -> list[Case]:
    """Each ring on several machines, the first one of round numbers."""
    cases = [Case("cost_s", (op, 64, 4, 2.0, 8.0)) for op in RINGS_OF] if not draw.secret else []
    for _ in range(4):
        for op in RINGS_OF:
            cases.append(Case("cost_s", (op, _bytes(draw), draw.int(2, 64), *_machine(draw))))
    return cases


def other_cases(draw: Draw) -> list[Case]:
    """Each of the others; a tree on a power of two ranks."""
    cases = [Case("cost_s", (op, 64, 4, 2.0, 8.0)) for op in OTHER] if not draw.secret else []
    for exponent in draw.rng.sample(range(2, 8), 4):
        for op in OTHER:
            p = 2**exponent if op == "broadcast" else draw.int(3, 64)
            cases.append(Case("cost_s", (op, _bytes(draw), p, *_machine(draw))))
    return cases


def edge_cases(draw: Draw) -> list[Case]:
    """One rank; no bytes, on two ranks, where hardly any pattern differs from another."""
    sizes = [(_bytes(draw), 1), (0, 2)]
    return [
        Case("cost_s", (op, n, p, *_machine(draw))) for op in (*RINGS_OF, *OTHER) for n, p in sizes
    ]


_wrong = wrong_number(seconds)
differs = differs_from(
    seconds,
    "Count: how many messages follow one another, and how many bytes has each?",
    "the seconds differ from those of the pattern's messages, one after the other.",
    1e-12,
)


def _told(case: Case, got: Any, why: str) -> str:
    return f"{_wrong(case, got)} {why}"


def _ring(id: str, cost: Callable[..., Number], why: str, general: str) -> Mistake:
    """`cost(steps, p, latency, whole)`: of a ring of that many steps, `whole` seconds for all.

    For an all_reduce either of all its steps, or twice that of one round.
    """

    def of_all(op: str, n: int, p: int, latency_s: float, bandwidth: float) -> Number:
        steps = RINGS_OF[op] * (p - 1)
        return cost(steps, p, Fraction(latency_s), Fraction(n) / Fraction(bandwidth))

    def of_rounds(op: str, n: int, p: int, latency_s: float, bandwidth: float) -> Number:
        one = cost(p - 1, p, Fraction(latency_s), Fraction(n) / Fraction(bandwidth))
        return RINGS_OF[op] * one

    formulas = [of_all, of_rounds]
    return formula_mistake(id, formulas, lambda case, got: _told(case, got, why), general)


def _other(id: str, op: str, cost: Callable[..., Number], why: str, general: str) -> Mistake:
    """`cost(p, latency, whole)`, wrong for `op` alone."""

    def formula(asked: str, n: int, p: int, latency_s: float, bandwidth: float) -> Number:
        if asked != op:
            return seconds(asked, n, p, latency_s, bandwidth)
        return cost(p, Fraction(latency_s), Fraction(n) / Fraction(bandwidth))

    return formula_mistake(id, [formula], lambda case, got: _told(case, got, why), general)


def _one_round(op: str, n: int, p: int, latency_s: float, bandwidth: float) -> Number:
    return (p - 1) * (Fraction(latency_s) + Fraction(n) / Fraction(bandwidth) / p)


def _times_bandwidth(op: str, n: int, p: int, latency_s: float, bandwidth: float) -> Number:
    return RINGS_OF[op] * (p - 1) * (Fraction(latency_s) + Fraction(n) * Fraction(bandwidth) / p)


RINGS = (
    _ring(
        "latency_once",
        lambda steps, p, latency, whole: latency + steps * whole / p,
        "You pay the latency once. A step cannot start before the one before it has arrived: a "
        "ring pays it in each of its p-1 or 2(p-1) steps.",
        "the latency is paid once; a ring pays it in every step.",
    ),
    _ring(
        "no_latency",
        lambda steps, p, latency, whole: steps * whole / p,
        "There is no latency in it.",
        "the latency is left out.",
    ),
    _ring(
        "whole_each_step",
        lambda steps, p, latency, whole: steps * (latency + whole),
        "In each step a part of n/p bytes travels, not the whole array.",
        "each step carries one part, not the whole array.",
    ),
    _ring(
        "one_step_more",
        lambda steps, p, latency, whole: steps * p / (p - 1) * (latency + whole / p),
        "One step too many in each round: a part visits p-1 other ranks.",
        "one step too many in each round: a part visits the other ranks only.",
    ),
    formula_mistake(
        "one_round",
        [_one_round],
        lambda case, got: _told(
            case, got, "An all_reduce goes round twice: reduce_scatter, then all_gather."
        ),
        "an all_reduce goes round twice.",
    ),
    formula_mistake(
        "times_bandwidth",
        [_times_bandwidth],
        lambda case, got: _told(case, got, "Bytes over bandwidth are seconds; you multiply them."),
        "bytes are multiplied by the bandwidth.",
    ),
    _ring(
        "bits",
        lambda steps, p, latency, whole: steps * (latency + 8 * whole / p),
        "The bandwidth is in bytes per second, so nothing is to be turned into bits.",
        "the bandwidth is in bytes per second, not in bits.",
    ),
    _ring(
        "added_up",
        lambda steps, p, latency, whole: p * steps * (latency + whole / p),
        "You add up what all ranks do; they do it at the same time.",
        "what all ranks do is added up; they do it at the same time.",
    ),
)
OTHERS = (
    _other(
        "in_a_row",
        "broadcast",
        lambda p, latency, whole: (p - 1) * (latency + whole),
        "That is rank 0 serving one rank after the other. On a tree whoever has the array passes "
        "it on: after each round twice as many have it.",
        "a tree doubles in each round those who have the array.",
    ),
    _other(
        "natural_logarithm",
        "broadcast",
        lambda p, latency, whole: math.log(p) * (latency + whole),
        "The rounds are the base-2 logarithm of p: `math.log2`, or count doublings.",
        "the rounds of a tree are the base-two logarithm.",
    ),
    _other(
        "ring_of_parts",
        "broadcast",
        lambda p, latency, whole: (p - 1).bit_length() * (latency + whole / p),
        "A broadcast passes on the whole array in each round; nothing is cut.",
        "a broadcast passes on the whole array in each round.",
    ),
    _other(
        "collected_in_turn",
        "naive_all_reduce",
        lambda p, latency, whole: 2 * (p - 1) * (latency + whole),
        "All ranks send to rank 0 at once, each on its own link; and rank 0 need not wait for one "
        "copy to arrive before it sends the next.",
        "arrays sent on different links travel at the same time.",
    ),
    _other(
        "links_without_end",
        "naive_all_reduce",
        lambda p, latency, whole: 2 * (latency + whole),
        "On the way back p-1 arrays leave rank 0 on one link, one after the other.",
        "on the way back all arrays leave rank zero on one link.",
    ),
    _other(
        "whole_to_each",
        "all_to_all",
        lambda p, latency, whole: (p - 1) * (latency + whole),
        "Of a rank's n bytes each other rank gets n/p.",
        "each other rank gets a part of what a rank has.",
    ),
)
EDGES = (
    _other(
        "alone_it_pays",
        "naive_all_reduce",
        lambda p, latency, whole: 2 * latency + p * whole,
        "One rank has nobody to send to: no messages, no time.",
        "one rank sends no messages and needs no time.",
    ),
)
