"""The truths that checks compare with: exact, and computed without anything that is withheld.

A check in a notebook runs while the package's own answers refuse, so nothing here calls them. No
student's process can import this module.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from mpedu.runs import RunReport
from mpedu.schedule import Action, Schedule
from mpedu.simulate import Timeline

Number = int | float | Fraction
TIME_TOLERANCE = Fraction(1, 10**9)  # relative
EVIDENCE_TOLERANCE = 1e-6  # far above what floats do, far below what any cause does
SHARE_TOLERANCE = Fraction(1, 10**12)  # shares closer than this count as equal


def gpipe(n_stages: int, n_microbatches: int) -> Schedule:
    """A GPipe schedule, micro-batches ascending."""
    pieces = range(n_microbatches)
    return [
        [Action("F", stage, m) for m in pieces] + [Action("B", stage, m) for m in pieces]
        for stage in range(n_stages)
    ]


def least_makespan_s(
    n_stages: int, n_microbatches: int, costs: tuple[Number, Number] = (1, 2)
) -> Number:
    """The least makespan of any legal schedule at `costs` of a forward and a backward.

    One stage per rank, all equal, messages free. The last stage cannot start before n_stages - 1
    forwards, and as many backwards follow its own work. GPipe reaches it.
    """
    return (n_microbatches + n_stages - 1) * sum(costs)


def idle_share(timeline: Timeline) -> Fraction:
    """Idle share of device time, exact for whole and dyadic times."""
    busy_s = math.fsum(span.end_s - span.start_s for span in timeline.spans)
    return 1 - Fraction(busy_s) / (timeline.n_ranks * makespan_s(timeline))


def makespan_s(timeline: Timeline) -> Fraction:
    """From the start of the first span to the end of the last."""
    first_s = min(span.start_s for span in timeline.spans)
    return Fraction(max(span.end_s for span in timeline.spans)) - Fraction(first_s)


def bubble_fraction(n_stages: int, n_microbatches: int) -> Fraction:
    """Idle share of total time of GPipe."""
    return Fraction(n_stages - 1, n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages: int, n_microbatches: int) -> Fraction:
    """Ratio of idle to ideal time of GPipe."""
    return Fraction(n_stages - 1, n_microbatches)


def min_microbatches(n_stages: int, largest_share: Number) -> int:
    """The fewest micro-batches whose share is at most `largest_share`, or equal within 1e-12."""
    bound = Fraction(largest_share) + SHARE_TOLERANCE
    return max(1, math.ceil((n_stages - 1) * (1 - bound) / bound))


def step_time_s(
    n_stages: int, n_microbatches: int, n_samples: int, sample_s: Number, overhead_s: Number
) -> Fraction:
    """Seconds of one GPipe step whose every forward costs an overhead, backward twice that."""
    forward_s = Fraction(overhead_s) + Fraction(n_samples, n_microbatches) * Fraction(sample_s)
    return 3 * (n_microbatches + n_stages - 1) * forward_s


def best_microbatches(n_stages: int, n_samples: int, sample_s: Number, overhead_s: Number) -> int:
    """The number of micro-batches in 1..n_samples of least step time, the smaller of equal ones.

    The time is convex in their number, so the least lies beside the root of the derivative.
    """
    if overhead_s == 0:
        return 1 if n_stages == 1 else n_samples
    squared = (n_stages - 1) * n_samples * Fraction(sample_s) / Fraction(overhead_s)
    below = math.isqrt(math.floor(squared))
    candidates = {min(max(1, m), n_samples) for m in (below, below + 1)}
    return min(
        candidates, key=lambda m: (step_time_s(n_stages, m, n_samples, sample_s, overhead_s), m)
    )


def is_best(machine: tuple[int, int, Number, Number], n_microbatches: int) -> bool:
    """Whether the step takes the least time, or a time equal to it within 1e-9 relative."""
    n_stages, n_samples, *costs = machine
    best = best_microbatches(*machine)
    least_s, time_s = (step_time_s(n_stages, m, n_samples, *costs) for m in (best, n_microbatches))
    return time_s <= least_s * (1 + TIME_TOLERANCE)


def smallest_best(machine: tuple[int, int, Number, Number]) -> int:
    """The smallest number of micro-batches of least step time, equal within 1e-9 relative."""
    m = best_microbatches(*machine)
    while m > 1 and is_best(machine, m - 1):
        m -= 1
    return m


def split_sizes(n_samples: int, n_microbatches: int) -> list[int]:
    """Sizes that differ by at most 1, larger first."""
    size, n_larger = divmod(n_samples, n_microbatches)
    return [size + 1] * n_larger + [size] * (n_microbatches - n_larger)


def backward_orders(run: RunReport) -> list[list[int]]:
    """The micro-batches of each stage's backwards, in order."""
    return [[a.microbatch for a in actions if a.kind == "B"] for actions in run.schedule]


def near(values: Sequence[float], expected: Sequence[float]) -> bool:
    """Whether all values are what is expected, but for what floats do."""
    return all(
        math.isclose(value, due, rel_tol=EVIDENCE_TOLERANCE, abs_tol=EVIDENCE_TOLERANCE)
        for value, due in zip(values, expected, strict=True)
    )


def expected_ratios(cause: str, run: RunReport) -> list[float]:
    """The gradient ratios that follow from a cause, where the order is the same everywhere."""
    n_samples, n_microbatches = sum(run.sizes), run.n_microbatches
    shares = [size / n_samples for size in run.sizes]
    if cause == "loss_not_divided":
        return [1.0] * n_microbatches
    if cause == "divided_twice":
        return [share / n_microbatches for share in shares]
    if cause == "equal_weights":
        return [1 / n_microbatches] * n_microbatches
    if cause == "only_last_microbatch":
        last = backward_orders(run)[0][-1]
        return [share * (m == last) for m, share in enumerate(shares)]
    return shares


def cause(run: RunReport) -> str:
    """Which of the named causes all the evidence of a run speaks for; ValueError for none."""
    orders = backward_orders(run)
    if any(order != orders[0] for order in orders):
        return "order_differs"
    if near(run.gradient_ratios, expected_ratios("none", run)):
        return "none" if near(run.losses, run.serial_losses) else "gradients_not_cleared"
    for name in ("loss_not_divided", "divided_twice", "equal_weights", "only_last_microbatch"):
        if near(run.gradient_ratios, expected_ratios(name, run)):
            return name
    raise ValueError("the evidence of this run speaks for no named cause")
