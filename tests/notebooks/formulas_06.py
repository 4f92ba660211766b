"""Every formula that unit 06 states, with the expression that is True where it holds."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from truths_06 import (
    K,
    M,
    by_rule,
    chunked,
    clock,
    everywhere,
    halved,
    held,
    idle,
    n_messages,
    over_ideal,
    plain,
    seconds,
    slots,
    whenever_idle,
)

from mpedu.families import zero_bubble_h1
from mpedu.schedule import stage_to_rank


def work(k: int, m: int, v: int) -> Fraction:
    """Slots that each rank works."""
    return slots(chunked(m, v, k), v) * (1 - idle(chunked(m, v, k)))


def first_backward(actions: Any) -> int:
    """Forwards before the first backward: the warm-up, and one of the first pair if any is left."""
    return next(i for i, action in enumerate(actions) if action.kind == "B")


def never_waits(n_ranks: int, n_microbatches: int) -> bool:
    """Whether 2K-1 micro-batches ahead, in halves, leave no rank waiting once it has begun."""
    schedule = whenever_idle(by_rule([n_microbatches], 1, n_ranks))
    by_rank = [[s for s in clock(schedule).spans if s.rank == rank] for rank in range(n_ranks)]
    spent_s = [max(s.end_s for s in own) - min(s.start_s for s in own) for own in by_rank]
    return set(spent_s) == {3 * n_microbatches} and held(schedule)[0] == 2 * n_ranks - 1


def linear_backward() -> bool:
    """Whether the two products of a linear layer's backward are its gradients, by differences."""
    rng = np.random.default_rng(0)
    x, w, g = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    dx, dw = g @ w.T, x.T @ g
    small = 1e-6
    for array, gradient in ((x, dx), (w, dw)):
        for place in np.ndindex(array.shape):
            before = float(np.sum(x @ w * g))
            array[place] += small
            slope = (float(np.sum(x @ w * g)) - before) / small
            array[place] -= small
            if abs(slope - gradient[place]) > 1e-5:
                return False
    return True


FORMULAS: dict[str, Callable[[], bool]] = {
    formula: everywhere(holds)
    for formula, holds in {
        "cK + r": lambda k, m, v: all(
            stage_to_rank(chunked(m, v, k))[c * k + r] == r for c in range(v) for r in range(k)
        ),
        "2(K-1-r) + (v-1)K": lambda k, m, v: (
            v == 1
            or all(
                first_backward(actions) == min(v * m, 2 * (k - 1 - r) + (v - 1) * k + 1)
                for r, actions in enumerate(chunked(m, v, k))
            )
        ),
        "(t_f+t_b)/v": lambda k, m, v: work(k, m, v) * Fraction(3, v) == seconds(plain(m, 1)),
        "vM": lambda k, m, v: work(k, m, v) == v * m,
        "K-1": lambda k, m, v: slots(chunked(m, v, k), v) - work(k, m, v) == k - 1,
        "vM+K-1": lambda k, m, v: slots(chunked(m, v, k), v) == v * m + k - 1,
        "(K-1)/(vM+K-1)": lambda k, m, v: idle(chunked(m, v, k)) == Fraction(k - 1, v * m + k - 1),
        "(K-1)/(vM)": lambda k, m, v: over_ideal(chunked(m, v, k)) == Fraction(k - 1, v * m),
        "vK": lambda k, m, v: len(stage_to_rank(chunked(m, v, k))) == v * k,
        "(K-1-r) + (v-1)K": lambda k, m, v: (
            seconds(by_rule([k] * (m // k), v, k, short=True)) == (v * m + k - 1) * Fraction(3, v)
        ),
        "3M": lambda k, m, v: seconds(zero_bubble_h1(k, m)) - (k - 1) == 3 * m,
        "(K-1)/(3M+K-1)": lambda k, m, v: (
            idle(zero_bubble_h1(k, m)) == Fraction(k - 1, 3 * m + k - 1)
        ),
        "1/v": lambda k, m, v: seconds(chunked(m, v, 1)) == seconds(plain(m, 1)) == 3 * m,
    }.items()
} | {
    "cK+r": lambda: FORMULAS["cK + r"](),
    "2K-1": lambda: all(never_waits(k, m) for k in (2, 3, 4, 6) for m in (2 * k - 1, 12)),
    "vK-1": lambda: all(n_messages(v) == 2 * (v * K - 1) * M for v in (1, 2, 3, 4)),
    "2(K-1)M": lambda: n_messages(1) == 2 * (K - 1) * M,
    "2(vK-1)M": lambda: all(n_messages(v) == 2 * (v * K - 1) * M for v in (1, 2, 3, 4)),
    "(vK-1)/(K-1)": lambda: all(
        Fraction(n_messages(v), n_messages(1)) == Fraction(v * K - 1, K - 1) for v in (2, 3, 4)
    ),
    "2(K-1)+(v-1)K+1": lambda: all(
        held(chunked(12, v, k))[0] == min(12 * v, 2 * (k - 1) + (v - 1) * k + 1)
        for k in (2, 3, 4)
        for v in (2, 3)
    ),
    "y = xA": linear_backward,
    "gA^T": linear_backward,
    "x^Tg": linear_backward,
    r"M \geq K": lambda: (
        all(
            idle(halved(plain(m, k), lambda rank: rank)) == Fraction(k - 1, 3 * m + k - 1)
            for k in (2, 3, 4)
            for m in range(k, 9)
        )
        and idle(halved(plain(3, 4), lambda rank: rank)) > Fraction(3, 12)
    ),
}
