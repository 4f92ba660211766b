"""The named schedules: each a few lines that give a list."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mpedu.families.interleaved import interleaved_1f1b, interleaved_zero_bubble, looped_bfs
from mpedu.families.one_stage import gpipe, naive, one_f_one_b
from mpedu.families.v_shaped import dualpipe_v, zbv
from mpedu.families.zero_bubble import zero_bubble_h1
from mpedu.schedule import Schedule


class Family(NamedTuple):
    """A named schedule: how it is made, and how many stages it gives each rank.

    n_chunks: that number, or None where it is the reader's choice.
    """

    make: Callable[..., Schedule]
    n_chunks: int | None


SCHEDULES = {
    "naive": Family(naive, 1),
    "gpipe": Family(gpipe, 1),
    "1f1b": Family(one_f_one_b, 1),
    "zero-bubble-h1": Family(zero_bubble_h1, 1),
    "looped-bfs": Family(looped_bfs, None),
    "interleaved": Family(interleaved_1f1b, None),
    "interleaved-zero-bubble": Family(interleaved_zero_bubble, None),
    "zbv": Family(zbv, 2),
    "dualpipe-v": Family(dualpipe_v, 2),
}


def make_schedule(
    name: str, n_ranks: int, n_microbatches: int, n_chunks: int | None = None
) -> Schedule:
    """The schedule of that name, with n_chunks stages per rank (2 where the name leaves it open).

    ValueError: a name that SCHEDULES does not list, a number of chunks that it cannot have, or
    what the schedule itself refuses.
    """
    if name not in SCHEDULES:
        raise ValueError(f"schedule={name!r} is unknown; choose one of {', '.join(SCHEDULES)}")
    make, fixed = SCHEDULES[name]
    if fixed is None:
        return make(n_ranks, n_microbatches, 2 if n_chunks is None else n_chunks)
    if n_chunks not in (None, fixed):
        raise ValueError(
            f"n_chunks={n_chunks} with schedule={name!r}, which gives every rank {fixed} "
            f"stage{'s' * (fixed > 1)}; leave n_chunks out, or choose interleaved or looped-bfs"
        )
    return make(n_ranks, n_microbatches)


def named_schedules(placement: Sequence[int], n_microbatches: int) -> Iterator[Schedule]:
    """Every named schedule whose stages stand on these ranks; those that refuse are left out."""
    n_ranks = 1 + max(placement)
    n_chunks, left = divmod(len(placement), n_ranks)
    looped = list(range(n_ranks)) * n_chunks
    v_shaped = [*range(n_ranks), *reversed(range(n_ranks))]
    for make, fixed in SCHEDULES.values():
        shape = v_shaped if fixed == 2 else looped
        if left or list(placement) != shape or (fixed == 1 and n_chunks > 1):
            continue
        try:
            chunks = (n_chunks,) if fixed is None else ()
            yield make(n_ranks, n_microbatches, *chunks)
        except ValueError:
            pass


__all__ = [
    "SCHEDULES",
    "Family",
    "dualpipe_v",
    "gpipe",
    "interleaved_1f1b",
    "interleaved_zero_bubble",
    "looped_bfs",
    "make_schedule",
    "naive",
    "named_schedules",
    "one_f_one_b",
    "zbv",
    "zero_bubble_h1",
]
