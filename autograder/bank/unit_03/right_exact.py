"""Two of unit 03's right answers: in exact fractions, and by recursion and bisection."""

FRACTIONS = """
from fractions import Fraction
from math import ceil, isqrt

from mpedu.schedule import Action


def gpipe(n_stages, n_microbatches):
    if n_stages < 1:
        raise ValueError(f"n_stages={n_stages}")
    if n_microbatches < 1:
        raise ValueError(f"n_microbatches={n_microbatches}")
    evens_first = sorted(range(n_microbatches), key=lambda m: (m % 2, m))
    return [
        list(map(lambda m: Action("F", stage, m), evens_first))
        + list(map(lambda m: Action("B", stage, m), range(n_microbatches)))
        for stage in range(n_stages)
    ]


def idle_share(timeline):
    if not timeline.spans:
        raise ValueError("empty")
    times = [(Fraction(span.start_s), Fraction(span.end_s)) for span in timeline.spans]
    makespan = max(end for _, end in times) - min(start for start, _ in times)
    return 1 - sum(end - start for start, end in times) / (timeline.n_ranks * makespan)


def bubble_fraction(n_stages, n_microbatches):
    return Fraction(n_stages - 1, n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages, n_microbatches):
    return Fraction(n_stages - 1, n_microbatches)


def min_microbatches(n_stages, largest_share):
    if largest_share != largest_share or not 0 < largest_share < 1:
        raise ValueError(f"largest_share={largest_share}")
    bound = Fraction(largest_share) + Fraction(1, 10**12)
    return max(1, ceil((n_stages - 1) / bound) - (n_stages - 1))


def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    forward = Fraction(overhead_s) + Fraction(n_samples, n_microbatches) * Fraction(sample_s)
    return (n_microbatches + n_stages - 1) * 3 * forward


def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    if overhead_s == 0 and n_stages > 1:
        return n_samples
    if n_stages == 1:
        return 1
    square = (n_stages - 1) * n_samples * Fraction(sample_s) / Fraction(overhead_s)
    near = isqrt(int(square))
    around = [min(max(1, m), n_samples) for m in (near, near + 1)]
    times = {m: step_time_s(n_stages, m, n_samples, sample_s, overhead_s) for m in around}
    return min(m for m in around if times[m] <= min(times.values()) * (1 + Fraction(1, 10**9)))


def split_batch(n_samples, n_microbatches):
    if n_samples < n_microbatches or n_microbatches < 1:
        raise ValueError(f"{n_samples} < {n_microbatches}")
    ends = [-(-n_samples * m // n_microbatches) for m in range(n_microbatches + 1)]
    sizes = sorted((b - a for a, b in zip(ends, ends[1:])), reverse=True)
    return [(size, Fraction(size, n_samples)) for size in sizes]
"""

RECURSION = """
from mpedu.schedule import Action


def work(kind, stage, n):
    return [] if n == 0 else work(kind, stage, n - 1) + [Action(kind, stage, n - 1)]


def gpipe(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(f"both must be above 0: {n_stages}, {n_microbatches}")
    last = work("F", n_stages - 1, n_microbatches) + work("B", n_stages - 1, n_microbatches)
    return (gpipe(n_stages - 1, n_microbatches) if n_stages > 1 else []) + [last]


def idle_share(timeline):
    by_start = sorted(timeline.spans, key=lambda span: span.start_s)
    if not by_start:
        raise ValueError("a timeline needs spans")
    by_end = sorted(timeline.spans, key=lambda span: span.end_s)
    makespan = by_end[-1].end_s - by_start[0].start_s
    shares = []
    for rank in range(timeline.n_ranks):
        own = [span.end_s - span.start_s for span in by_start if span.rank == rank]
        shares.append(1 - sum(own) / makespan)
    return sum(shares) / len(shares)


def bubble_over_ideal(n_stages, n_microbatches):
    if n_stages == 1:
        return 0
    return 1 / n_microbatches + bubble_over_ideal(n_stages - 1, n_microbatches)


def bubble_fraction(n_stages, n_microbatches):
    ratio = bubble_over_ideal(n_stages, n_microbatches)
    return ratio / (1 + ratio)


def min_microbatches(n_stages, largest_share):
    if not 0 < largest_share < 1:
        raise ValueError(f"{largest_share}")
    enough = lambda m: (n_stages - 1) / (m + n_stages - 1) <= largest_share + 1e-12

    def between(low, high):
        if low == high:
            return low
        middle = (low + high) // 2
        return between(low, middle) if enough(middle) else between(middle + 1, high)

    return between(1, 10**9)


def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    forward = overhead_s + n_samples * sample_s / n_microbatches
    ramp_up, steady, drain = n_stages - 1, n_microbatches, n_stages - 1
    return forward * (ramp_up + steady) + 2 * forward * (steady + drain)


def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    time = lambda m: step_time_s(n_stages, m, n_samples, sample_s, overhead_s)
    m = 1
    while m < n_samples and time(m + 1) < time(m) * (1 - 1e-13):
        m += 1
    return m


def split_batch(n_samples, n_microbatches):
    if n_microbatches > n_samples or n_microbatches <= 0:
        raise ValueError(f"cannot cut {n_samples} into {n_microbatches}")

    def sizes(left, pieces):
        first = -(-left // pieces)
        return [first] if pieces == 1 else [first] + sizes(left - first, pieces - 1)

    return [(size, size / n_samples) for size in sizes(n_samples, n_microbatches)]
"""
