"""The cases of unit 06, drawn: sizes of models and of schedules, schedules to split.

What no drawing may leave out is fixed, and asked with every secret.
"""

from autograder import oracle_06
from autograder.diagnosis import Case
from autograder.exercise import Draw
from mpedu.families import gpipe, one_f_one_b
from mpedu.schedule import Schedule

Sizes = tuple[int, int, int]  # ranks, micro-batches, chunks


def whole_layers(draw: Draw) -> list[Case]:
    """Layers that chunks divide: the lecture's, one rank, one chunk, one layer each."""
    known = [(16, 4, 2), (6, 1, 3), (12, 4, 1), (12, 2, 6), (24, 3, 4)]
    drawn = []
    for _ in range(6):
        n_ranks, n_chunks = _ranks(draw), draw.int(2, 5)
        drawn.append((n_ranks * n_chunks * draw.int(1, 6), n_ranks, n_chunks))
    return [Case("chunk_layers", sizes) for sizes in [*known, *drawn]]


def layers_left_over(draw: Draw) -> list[Case]:
    """Layers that do not divide: one, several and all but one chunk longer."""
    drawn = [(10, 2, 2), (7, 3, 2), (11, 3, 2), (17, 4, 2)]
    for _ in range(6):
        n_ranks, n_chunks = _ranks(draw), draw.int(2, 4)
        n_stages = n_ranks * n_chunks
        drawn.append((n_stages * draw.int(1, 6) + draw.int(1, n_stages - 1), n_ranks, n_chunks))
    return [Case("chunk_layers", sizes) for sizes in drawn]


def _ranks(draw: Draw) -> int:
    return draw.int(5, 12) if draw.secret else draw.int(2, 6)


def whole_groups(draw: Draw, n_drawn: int) -> list[Case]:
    """Schedules whose ranks divide the micro-batches, of two chunks and more, and of one."""
    known = [(4, 8, 2), (2, 2, 2), (3, 6, 3), (1, 3, 2), (4, 4, 1), (2, 6, 4)]
    if draw.secret:
        n_ranks = draw.int(2, 6)
        known = [(n_ranks, n_ranks * draw.int(1, 3), 1), (1, draw.int(4, 20), draw.int(2, 4))]
        known += _drawn(draw, 2, 0)
    # One size once more with another number of chunks: what is remembered must hold all three.
    n_ranks, n_microbatches, n_chunks = known[-1]
    known.append((n_ranks, n_microbatches, n_chunks % 3 + 1))
    return [Case("interleaved_1f1b", sizes) for sizes in [*known, *_drawn(draw, n_drawn, 0)]]


def any_groups(draw: Draw, n_drawn: int) -> list[Case]:
    """Schedules whose ranks do not divide the micro-batches, fewer than ranks among them."""
    # A last group that is smaller than the ranks makes the first two wait for ever.
    known = [(4, 5, 3), (4, 9, 3), (4, 6, 2), (3, 2, 2), (5, 1, 2), (3, 7, 2)]
    if draw.secret:
        n_ranks, few = draw.int(5, 6), draw.int(3, 7)
        known = [(4, 9, 3), (n_ranks, n_ranks + 1, 3), (few, draw.int(1, few - 1), draw.int(2, 4))]
        known += _drawn(draw, 2, 1)
    return [Case("interleaved_1f1b", sizes) for sizes in [*known, *_drawn(draw, n_drawn, 1)]]


def _drawn(draw: Draw, n_drawn: int, least_over: int) -> list[Sizes]:
    """Drawn sizes with micro-batches left over, or none."""
    drawn = []
    for _ in range(n_drawn):
        n_ranks, n_chunks = draw.int(2, 6 if draw.secret else 4), draw.int(2, 4)
        n_groups = draw.int(1, 4 if draw.secret else 2)
        over = draw.int(1, n_ranks - 1) if least_over else 0
        drawn.append((n_ranks, n_ranks * n_groups + over, n_chunks))
    return drawn


def shares(draw: Draw) -> list[Case]:
    """Ranks, micro-batches that they divide, chunks."""
    known = [(4, 8, 2), (4, 16, 4), (1, 5, 3), (2, 2, 1), (8, 8, 8), (3, 3, 2)]
    most = (64, 32, 16) if draw.secret else (16, 8, 8)
    for _ in range(20):
        n_ranks, n_groups, n_chunks = (draw.int(1, top) for top in most)
        known.append((n_ranks, n_ranks * n_groups, n_chunks))
    return [Case("bubble_interleaved", sizes) for sizes in known]


def plain_lists(draw: Draw, n_drawn: int) -> list[Case]:
    """1F1B schedules to split: the one of the text, one stage, fewer micro-batches than stages."""
    pairs = draw.pairs(n_drawn, (8, 20) if draw.secret else (6, 10), [(4, 8), (1, 3), (4, 2)])
    return _to_split([one_f_one_b(*pair) for pair in pairs])


def other_lists(draw: Draw, n_drawn: int) -> list[Case]:
    """Interleaved schedules to split, and those of GPipe."""
    sizes = [(4, 8, 2), *_drawn(draw, n_drawn, 0)]
    pairs = [(3, 4), (draw.int(2, 5), draw.int(2, 9))]
    return _to_split([oracle_06.interleaved(*s) for s in sizes] + [gpipe(*p) for p in pairs])


class OfSchedule(Case):
    """A call with a schedule that prints as code that makes it, for a student to repeat."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.name}({oracle_06.name_of(self.args[0])})"


def _to_split(schedules: list[Schedule]) -> list[Case]:
    return [OfSchedule("delay_weight_gradients", (schedule,)) for schedule in schedules]


def stages_and_pieces(draw: Draw, n_drawn: int) -> list[Case]:
    """Stages and micro-batches for the zero-bubble schedule."""
    most = (8, 20) if draw.secret else (6, 10)
    pairs = draw.pairs(n_drawn, most, [(4, 8), (1, 3), (4, 2), (2, 2)])
    return [Case("zero_bubble_h1", pair) for pair in pairs]
