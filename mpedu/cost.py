"""The lectures' closed forms. Both bubble definitions always carry their names."""

from mpedu.faults import require_at_least


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
