"""The cases of unit 04 with numbers: layers, segments, and GPipe's sizes.

What no drawing may leave out is fixed, and asked with every secret.
"""

from autograder.diagnosis import Case
from autograder.exercise import Draw


def squares(draw: Draw) -> list[Case]:
    """Square numbers of layers, from 1 on."""
    most = 20 if draw.secret else 10
    roots = [
        1,
        *([draw.int(15, 19)] if draw.secret else [4, 8, 20]),
        *draw.rng.sample(range(2, most), 4),
    ]
    return [Case("best_segment_length", (root * root,)) for root in dict.fromkeys(roots)]


def layers(draw: Draw) -> list[Case]:
    """Any number of layers: roundings of the root differ, several are best, far from it, primes."""
    most = 400 if draw.secret else 120
    known = [2, 3, 12, 43] if draw.secret else [61, 2, 3, 10, 12, 20, 43, 73, 90, 198, 325]
    if draw.secret:
        known.append(draw.rng.choice((170, 227, 258, 292, 308)))  # far from the root
    return [Case("best_segment_length", (n,)) for n in [*known, *_drawn(draw, 12, most, known)]]


def _drawn(draw: Draw, n: int, most: int, known: list[int]) -> list[int]:
    return draw.rng.sample([k for k in range(5, most) if k not in known], n)


def segmented(draw: Draw, keep_last: bool) -> list[Case]:
    """Layers in segments, equal and not; the last one kept or not."""
    most = 40 if draw.secret else 9
    n = draw.int(5, 99)
    sizes = [(1, 1), (n, 1), (n, n)] if draw.secret else [(64, 8), (61, 9), (1, 1), (9, 1), (7, 7)]
    for _ in range(7):
        n_segments = draw.int(2, most)
        sizes.append((n_segments * draw.int(1, 9) + draw.int(0, n_segments - 1), n_segments))
    kept = (True,) if keep_last else ()
    return [Case("recompute_forwards", (*pair, *kept)) for pair in sizes]


def pipelines(draw: Draw, checkpoint: bool) -> list[Case]:
    """(samples, layers, stages, micro-batches) where everything divides; the classes included."""
    sizes = [(64, 16, 4, 8), (64, 16, 4, 1), (64, 16, 4, 64), (8, 6, 1, 2), (6, 4, 4, 3)]
    if draw.secret:
        n = draw.int(65, 99)
        sizes = [(n, 6, 3, 1), (n, 6, 3, n), (2 * n, 6, 1, 2), (3 * n, 4, 4, 3)]
    most = 12 if draw.secret else 5
    for _ in range(5):
        n_stages, n_microbatches = draw.int(2, most), draw.int(2, most)
        n_samples, n_layers = n_microbatches * draw.int(2, 7), n_stages * draw.int(2, 7)
        sizes.append((n_samples, n_layers, n_stages, n_microbatches))
    return [Case("gpipe_peak_activation", (*each, checkpoint)) for each in sizes]


def ragged(draw: Draw) -> list[Case]:
    """Layers left over, samples left over, or both, with and without checkpoints."""
    sizes = [] if draw.secret else [(10, 6, 4, 4), (12, 7, 3, 4), (11, 8, 2, 5)]
    if draw.secret:
        n = draw.int(3, 9)
        sizes = [(4 * n, 3 * n + 1, 3, 4), (4 * n + 1, 3 * n, 3, 4)]
    most = 12 if draw.secret else 5
    for _ in range(5):
        n_stages, n_microbatches = draw.int(3, most), draw.int(3, most)
        n_samples = n_microbatches * draw.int(2, 5) + draw.int(1, n_microbatches - 1)
        n_layers = n_stages * draw.int(2, 5) + draw.int(1, n_stages - 1)
        sizes.append((n_samples, n_layers, n_stages, n_microbatches))
    return [
        Case("gpipe_peak_activation", (*each, checkpoint))
        for each in sizes
        for checkpoint in (True, False)
    ]
