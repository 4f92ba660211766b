"""The gradients that an engine of unit 07 gives, one by one of its faults or without any."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from autograder.checks.unit_07.work import Array, Problem
from mpedu.schedule import Action, all_needs, run_order

Keeps = Literal["own", "latest", "last"]
Weight = Callable[[int, Problem], float]  # of the loss of a micro-batch of so many samples


def by_samples(size: int, problem: Problem) -> float:
    """The weight that makes the mean over the batch."""
    return 1 / sum(problem.sizes)


def added(
    problem: Problem,
    weight: Weight = by_samples,
    keeps: Keeps = "own",
    loss_of: Literal["own", "kept", "latest"] = "own",
    gradient: Literal["received", "ones"] = "received",
    again: float = 1.0,
) -> list[dict[int, Array]]:
    """By stage, what each backward adds to the gradient of the weights, in order.

    weight: of a micro-batch's summed loss. keeps: whose kept values a backward uses: its own, those
    of the latest forward, or of the last one without a backward. loss_of: whose loss the
    last stage differentiates: its own, that of the kept values, that of the latest forward.
    gradient: "ones" where the received one is not used. again: a factor on every gradient that is
    passed back. ValueError where the sizes do not fit.
    """
    last, xs = problem.n_ranks - 1, problem.xs
    found: list[dict[int, Array]] = [{} for _ in problem.layers]
    passed: dict[tuple[int, int], Array] = {}
    held: list[list[int]] = [[] for _ in problem.layers]
    latest = [0] * len(held)
    for rank, (kind, _, m) in run_order(problem.schedule, all_needs(problem.schedule, last + 1))[0]:
        if kind == "F":
            held[rank].append(m)
            latest[rank] = m
            continue
        places = {"own": m, "latest": latest[rank], "last": held[rank][-1]}
        used = places[keeps]
        held[rank].remove(m if keeps == "latest" else used)
        x, y = xs[rank][used], xs[rank + 1][used]
        if rank == last:
            of = {"own": m, "kept": used, "latest": latest[rank]}[loss_of]
            g = (xs[-1][of] - problem.targets[of]) * weight(len(xs[-1][of]), problem)
        else:
            g = passed.pop((rank, m)) if gradient == "received" else np.ones_like(xs[rank + 1][m])
        inner = g * (1 - y * y)
        found[rank][m] = x.T @ inner
        passed[rank - 1, m] = again * (inner @ problem.layers[rank].T)
    return found


def totals(
    problem: Problem,
    contributions: Sequence[dict[int, Array]],
    clears: Literal["once", "never", "each", "forwards", "end"],
) -> list[Array]:
    """By stage, the gradient in the end; clears: when the old one was cleared.

    "each" is before every backward, "forwards" before every forward.
    """
    zeros = [np.zeros_like(one) for one in problem.left]
    begins = problem.left if clears == "never" else zeros
    if clears == "end":
        return zeros
    if clears == "forwards":
        contributions = [
            _after_forwards(*pair) for pair in zip(problem.schedule, contributions, strict=True)
        ]
    return [
        [*of_stage.values()][-1] if clears == "each" else sum(of_stage.values(), begin)
        for begin, of_stage in zip(begins, contributions, strict=True)
    ]


def _after_forwards(actions: list[Action], of_stage: dict[int, Array]) -> dict[int, Array]:
    """What the backwards add that come after the last forward."""
    kinds = [action.kind for action in actions]
    after = actions[len(kinds) - kinds[::-1].index("F") :]
    return {action.microbatch: of_stage[action.microbatch] for action in after}
