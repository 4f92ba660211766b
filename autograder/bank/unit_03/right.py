"""Right answers to all of unit 03, each in a manner of its own."""

from autograder.bank import Answer
from autograder.bank.unit_03.right_cause import CAUSES
from autograder.bank.unit_03.right_exact import FRACTIONS, RECURSION

_FULL = {
    "gpipe": 3,
    "gpipe_fast": 2,
    "idle_share": 3,
    "bubble": 3,
    "step_time": 2,
    "best_microbatches": 2,
    "split_batch": 2,
    "cause": 3,
}


def _right(id: str, source: str) -> Answer:
    source += CAUSES[id]
    return Answer(id, source, {exercise: (points, "") for exercise, points in _FULL.items()})


_COMPREHENSIONS = """
import math

from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}: give 1 or more")
    return [
        [Action(kind, stage, m) for kind in "FB" for m in range(n_microbatches)]
        for stage in range(n_stages)
    ]


def idle_share(timeline):
    start = min(span.start_s for span in timeline.spans)
    makespan = max(span.end_s for span in timeline.spans) - start
    busy = sum(span.end_s - span.start_s for span in timeline.spans)
    return 1 - busy / (timeline.n_ranks * makespan)


def bubble_fraction(n_stages, n_microbatches):
    return (n_stages - 1) / (n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages, n_microbatches):
    return (n_stages - 1) / n_microbatches


def min_microbatches(n_stages, largest_share):
    if not 0 < largest_share < 1:
        raise ValueError("the share must lie between 0 and 1")
    share = largest_share + 1e-12
    return max(1, math.ceil((n_stages - 1) * (1 - share) / share))


def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    b = n_samples / n_microbatches
    return 3 * (n_microbatches + n_stages - 1) * (overhead_s + b * sample_s)


def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    counts = range(1, n_samples + 1)
    times = [step_time_s(n_stages, m, n_samples, sample_s, overhead_s) for m in counts]
    return next(m for m in counts if times[m - 1] <= min(times) * (1 + 1e-9))


def split_batch(n_samples, n_microbatches):
    if n_microbatches < 1 or n_microbatches > n_samples:
        raise ValueError(f"{n_samples} samples do not make {n_microbatches} pieces")
    size, more = divmod(n_samples, n_microbatches)
    sizes = [size + (piece < more) for piece in range(n_microbatches)]
    return [(size, size / n_samples) for size in sizes]
"""

_LOOPS = """
from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
    for count in (n_stages, n_microbatches):
        if count <= 0:
            raise ValueError(f"{count} is not a count")
    schedule = []
    for stage in range(n_stages):
        actions = []
        for m in reversed(range(n_microbatches)):
            actions.append(Action("F", stage, m))
        for m in reversed(range(n_microbatches)):
            actions.append(Action("B", stage, m))
        schedule.append(actions)
    return schedule


def idle_share(timeline):
    if len(timeline.spans) == 0:
        raise ValueError("no spans")
    first, last = float("inf"), float("-inf")
    for span in timeline.spans:
        first, last = min(first, span.start_s), max(last, span.end_s)
    idle = 0.0
    for rank in range(timeline.n_ranks):
        idle += last - first
        for span in timeline.spans:
            if span.rank == rank:
                idle -= span.end_s - span.start_s
    return idle / (timeline.n_ranks * (last - first))


def bubble_fraction(n_stages, n_microbatches):
    return 1 - n_microbatches / (n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages, n_microbatches):
    share = bubble_fraction(n_stages, n_microbatches)
    return share / (1 - share)


def min_microbatches(n_stages, largest_share):
    if not (largest_share > 0 and largest_share < 1):
        raise ValueError(largest_share)
    m = 1
    while bubble_fraction(n_stages, m) > largest_share + 1e-12:
        m += 1
    return m


def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    total = 0.0
    for _ in range(n_microbatches + n_stages - 1):
        forward = overhead_s + n_samples / n_microbatches * sample_s
        total += forward
        total += 2 * forward
    return total


def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    best, least = 1, step_time_s(n_stages, 1, n_samples, sample_s, overhead_s)
    for m in range(2, n_samples + 1):
        time = step_time_s(n_stages, m, n_samples, sample_s, overhead_s)
        if time < least * (1 - 1e-9):
            best, least = m, time
    return best


def split_batch(n_samples, n_microbatches):
    if not 0 < n_microbatches <= n_samples:
        raise ValueError(f"n_samples={n_samples}, n_microbatches={n_microbatches}")
    sizes = [0] * n_microbatches
    for sample in range(n_samples):
        sizes[sample % n_microbatches] += 1
    pieces = []
    for size in sizes:
        pieces.append((size, size / sum(sizes)))
    return pieces
"""

_NUMPY = """
import numpy as np

from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
    if min(n_stages, n_microbatches) < 1:
        raise ValueError(f"{min(n_stages, n_microbatches)} is too small")
    order = np.random.default_rng(0).permutation(n_microbatches)
    return [
        [Action("F", s, m) for m in order] + [Action("B", s, m) for m in order[::-1]]
        for s in np.arange(n_stages)
    ]


def idle_share(timeline):
    starts = np.array([span.start_s for span in timeline.spans])
    ends = np.array([span.end_s for span in timeline.spans])
    return 1 - (ends - starts).sum() / (timeline.n_ranks * (ends.max() - starts.min()))


def bubble_fraction(n_stages, n_microbatches):
    return np.float64(n_stages - 1) / (n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages, n_microbatches):
    return np.float64(n_stages - 1) / n_microbatches


def min_microbatches(n_stages, largest_share):
    if np.isnan(largest_share) or largest_share <= 0 or largest_share >= 1:
        raise ValueError(f"{largest_share} is not inside (0, 1)")
    counts = np.arange(1, 300_000)
    shares = (n_stages - 1) / (counts + n_stages - 1)
    return counts[np.argmax(shares <= largest_share + 1e-12)]


def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    forward = overhead_s + np.divide(n_samples, n_microbatches) * sample_s
    return (n_microbatches + n_stages - 1) * np.sum([forward, 2 * forward])


def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    m = np.arange(1, n_samples + 1)
    times = (m + n_stages - 1) * (overhead_s + n_samples / m * sample_s)
    return m[np.argmax(times <= times.min() * (1 + 1e-9))]


def split_batch(n_samples, n_microbatches):
    if n_microbatches < 1:
        raise ValueError("a batch is cut into at least one piece")
    if n_microbatches > n_samples:
        raise ValueError(f"{n_microbatches} pieces of {n_samples} samples")
    parts = np.array_split(np.arange(n_samples), n_microbatches)
    return [(len(part), np.float64(len(part) / n_samples)) for part in parts]
"""

RIGHT = (
    _right("comprehensions", _COMPREHENSIONS),
    _right("loops", _LOOPS),
    _right("numpy", _NUMPY),
    _right("fractions", FRACTIONS),
    _right("recursion", RECURSION),
)
