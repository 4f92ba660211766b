"""The truths of unit 04, as `autograder.oracle`: exact, and without anything that is withheld."""

from collections.abc import Sequence

from autograder import oracle

HEALTHY_ERROR = 1e-5  # relative: above what rounding does, below what any fault does
LOST_TOLERANCE = 1e-9  # of the error 1 of a gradient that is not there


def most_held(n_layers: int, n_segments: int) -> int:
    """The most activations that checkpointing may hold: checkpoints and one segment."""
    return n_segments + -(-n_layers // n_segments)


def best_segment_length(n_layers: int) -> int:
    """The length of least stored checkpoints plus one segment, the smaller of equal ones."""
    lengths = range(1, n_layers + 1)
    return min(lengths, key=lambda length: (-(-n_layers // length) + length, length))


def recompute_forwards(n_layers: int, n_segments: int, keep_last: bool = False) -> int:
    """Layer forwards beside those of the first pass; the last segment is among the shortest."""
    sizes = oracle.split_sizes(n_layers, n_segments)
    return sum(sizes[:-1]) if keep_last else sum(sizes)


def gpipe_peak_activation(
    n_samples: int, n_layers: int, n_stages: int, n_microbatches: int, checkpoint: bool
) -> int:
    """Activations of one layer and sample on the fullest rank."""
    of_stage = oracle.split_sizes(n_layers, n_stages)[0]
    if not checkpoint:
        return n_samples * of_stage
    return n_samples + of_stage * oracle.split_sizes(n_samples, n_microbatches)[0]


def memory_cause(
    forwards: Sequence[int], held: Sequence[int], gradient_errors: Sequence[float]
) -> str:
    """Which of the named causes a checkpointed backward speaks for; ValueError for none."""
    wrong = [error for error in gradient_errors if error > HEALTHY_ERROR]
    if wrong:
        is_lost = all(abs(error - 1) < LOST_TOLERANCE for error in wrong)
        return "no_gradient" if is_lost else "mask_redrawn"
    if max(held) >= len(forwards):
        return "keeps_everything"
    most = max(forwards)
    if most <= 2:
        return "none"
    if most == 3 and forwards[0] == 3 and _is_flat(forwards):
        return "checkpointed_twice"
    if forwards[0] > forwards[-1] and not _is_flat(forwards):
        return "restarts_at_zero"
    raise ValueError("this run speaks for no named cause")


def _is_flat(forwards: Sequence[int]) -> bool:
    """Whether all layers were run as often, but for those of a last segment that was kept."""
    first = forwards[0]
    return set(forwards) <= {first, 1}
