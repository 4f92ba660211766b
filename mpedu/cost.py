"""The lectures' closed forms. Both bubble definitions always carry their names."""

from mpedu.calls import even_sizes
from mpedu.faults import require_at_least

COLLECTIVES = (
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "broadcast",
    "all_to_all",
    "barrier",
    "naive_all_reduce",
)


def bubble_fraction(n_stages: int, n_microbatches: int) -> float:
    """Idle share of total time, (K-1) / (M+K-1), in [0, 1), for K stages and M micro-batches.

    Holds for GPipe and 1F1B with equal stages and free messages (GPipe, section 2.3).
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    return (n_stages - 1) / (n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages: int, n_microbatches: int) -> float:
    """Ratio of idle time to ideal time, (K-1) / M, for K stages and M micro-batches.

    The other usual definition (Megatron-LM, Narayanan et al. 2021, section 2.2.1).
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    return (n_stages - 1) / n_microbatches


def gpipe_peak_activation(
    n_samples: int, n_layers: int, n_stages: int, n_microbatches: int, checkpoint: bool
) -> int:
    """Activations that the fullest of K devices holds at most, N + L/K * N/M with checkpoints.

    One unit is what one layer leaves for one sample, or the input of a stage for one sample. All
    stage inputs are held, and one stage's layers for the micro-batch whose backward runs (GPipe,
    Huang et al. 2019, section 2.3); without checkpoints every layer for all samples, L/K * N.
    Where they do not divide, the largest stage and the largest micro-batch count.
    """
    require_at_least(1, n_samples=n_samples, n_layers=n_layers)
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    n_own = even_sizes(n_layers, n_stages)[0]
    if not checkpoint:
        return n_own * n_samples
    return n_samples + n_own * even_sizes(n_samples, n_microbatches)[0]


def bubble_interleaved(n_ranks: int, n_microbatches: int, n_chunks: int) -> float:
    """Idle share of total time with v chunks per rank, (K-1) / (v M + K-1), in [0, 1).

    Holds for interleaved 1F1B on K ranks with equal stages and free messages, where K divides the
    M micro-batches (Megatron-LM, Narayanan et al. 2021, section 2.2.2, which gives the ratio to
    ideal time, (K-1) / (v M)).
    """
    require_at_least(1, n_ranks=n_ranks, n_microbatches=n_microbatches, n_chunks=n_chunks)
    return (n_ranks - 1) / (n_chunks * n_microbatches + n_ranks - 1)


def collective_bytes(operation: str, n_bytes: int, n_ranks: int) -> int:
    """Bytes that all ranks together send in one collective, by the patterns of `collective_s`.

    n_bytes: of the whole array, as there. On a ring each rank sends an equal share, if the array
    divides by the ranks; in naive_all_reduce rank 0 sends half of all.
    """
    require_at_least(1, n_ranks=n_ranks)
    require_at_least(0, n_bytes=n_bytes)
    once = (n_ranks - 1) * n_bytes
    match operation:
        case "all_gather" | "reduce_scatter" | "all_to_all" | "broadcast":
            return once
        case "all_reduce" | "naive_all_reduce":
            return 2 * once
        case "barrier":
            return 0
    raise ValueError(f"operation={operation!r} is unknown; choose one of {', '.join(COLLECTIVES)}")


def collective_s(
    operation: str,
    n_bytes: float,
    n_ranks: int,
    latency_s: float,
    bandwidth_bytes_per_s: float,
) -> float:
    """Seconds of one collective that all ranks enter at once, on links that carry nothing else.

    n_bytes: of the whole array: what all_gather gives, what one rank hands to the others. Parts of
    equal size; where they are uneven a ring takes as long as if all were as large as the largest.
    With p ranks, n bytes, latency L and bandwidth B: rings of all_gather and reduce_scatter and
    pairwise all_to_all (p-1)(L + n/(pB)), ring all_reduce twice that (Patarasuk and Yuan 2009,
    section 3), binomial tree of broadcast ceil(log2 p) rounds of L + n/B or less, dissemination
    barrier ceil(log2 p) L, naive_all_reduce through rank 0 2L + pn/B.
    """
    require_at_least(1, n_ranks=n_ranks)
    if not (n_bytes >= 0 and latency_s >= 0 and bandwidth_bytes_per_s > 0):
        raise ValueError(
            f"n_bytes={n_bytes!r}, latency_s={latency_s!r}, "
            f"bandwidth_bytes_per_s={bandwidth_bytes_per_s!r}: give 0 or more, bandwidth above 0"
        )
    whole_s, p = n_bytes / bandwidth_bytes_per_s, n_ranks
    match operation:
        case "all_gather" | "reduce_scatter" | "all_to_all":
            return (p - 1) * (latency_s + whole_s / p)
        case "all_reduce":
            return 2 * (p - 1) * (latency_s + whole_s / p)
        case "broadcast":
            return _tree_s(p, latency_s, whole_s)
        case "barrier":
            return (p - 1).bit_length() * latency_s
        case "naive_all_reduce":
            return 2 * latency_s + p * whole_s if p > 1 else 0.0
    raise ValueError(f"operation={operation!r} is unknown; choose one of {', '.join(COLLECTIVES)}")


def _tree_s(n_ranks: int, latency_s: float, whole_s: float) -> float:
    """Until the last rank of a binomial tree has it; each sends to its largest subtree first."""
    had_s = {0: 0.0}
    for place in range(n_ranks):
        bit = place & -place or 1 << (n_ranks - 1).bit_length()
        subtrees = [place + bit // 2**i for i in range(1, bit.bit_length())]
        children = [child for child in subtrees if child < n_ranks]
        for n_sent, child in enumerate(children, start=1):
            had_s[child] = had_s[place] + n_sent * whole_s + latency_s
    return max(had_s.values())
