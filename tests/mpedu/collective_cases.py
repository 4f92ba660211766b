"""Drawn collectives on drawn worlds, and what they give by the serial formula."""

from typing import NamedTuple

import torch
from hypothesis import settings
from hypothesis import strategies as st

from mpedu.comm import even_sizes

NAMES = ("all_reduce", "max", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
WORLDS = st.integers(1, 8)
# The number of examples is for two cores; whoever looks for a fault may raise it.
DRAWN = settings(max_examples=40, derandomize=True, deadline=None, database=None)


class Case(NamedTuple):
    """One collective on `n_ranks` ranks: the rows of each rank, and of each pair of ranks."""

    name: str
    n_ranks: int
    rows: tuple[int, ...]
    rest: tuple[int, ...]
    pairs: tuple[tuple[int, ...], ...]
    parts: tuple[int, ...] | None
    root: int
    seed: int

    def shape(self, rank):
        return (self.rows[rank], *self.rest)

    def x(self, rank, dtype=torch.float64):
        """What this rank gives: the same wherever it is asked."""
        made = torch.Generator().manual_seed(100 * self.seed + rank)
        if dtype == torch.int64:
            return torch.randint(-(2**60), 2**60, self.shape(rank), generator=made)
        return torch.randn(self.shape(rank), generator=made, dtype=torch.float64).to(dtype)


def _cut(draw, n, n_parts):
    ends = sorted(draw(st.lists(st.integers(0, n), min_size=n_parts - 1, max_size=n_parts - 1)))
    return tuple(b - a for a, b in zip([0, *ends], [*ends, n], strict=True))


@st.composite
def cases(draw, names=NAMES, worlds=WORLDS, most=10_000):
    name, p = draw(st.sampled_from(names)), draw(worlds)
    rest = draw(st.sampled_from([(), (), (1,), (2, 3), (0,)]))
    most //= max(1, torch.Size(rest).numel())
    n = draw(st.one_of(st.sampled_from([0, 1, p, most]), st.integers(0, most)))
    rows, pairs, parts = (n,) * p, (), None
    if name == "all_gather":
        rows = draw(st.one_of(st.just((n // p,) * p), st.just(_cut(draw, n, p))))
    if name == "all_to_all":
        pairs = tuple(_cut(draw, rows[rank], p) for rank in range(p))
    if name == "reduce_scatter":
        parts = draw(st.one_of(st.none(), st.just(_cut(draw, n, p))))
    seed = draw(st.integers(0, 99))
    return Case(name, p, rows, rest, pairs, parts, draw(st.integers(0, p - 1)), seed)


def called(comm, case, x, async_op=False, asked=False):
    """The collective of this case; asked: rows to receive are not given, where they need not."""
    match case.name:
        case "all_reduce" | "max":
            return comm.all_reduce(x, "max" if case.name == "max" else "sum", async_op=async_op)
        case "all_gather":
            is_even = len(set(case.rows)) == 1
            sizes = None if asked and is_even else case.rows
            return comm.all_gather(x, sizes=sizes, async_op=async_op)
        case "reduce_scatter":
            return comm.reduce_scatter(x, sizes=case.parts, async_op=async_op)
        case "all_to_all":
            taken = None if asked else [sent[comm.rank] for sent in case.pairs]
            return comm.all_to_all(x, case.pairs[comm.rank], taken, async_op=async_op)
    return comm.broadcast(x, root=case.root, async_op=async_op)


def serial(case, xs):
    """What each rank gets, by the formula."""
    p = case.n_ranks
    if case.name == "broadcast":
        return [xs[case.root]] * p
    if case.name == "max":
        return [torch.stack(xs).amax(0)] * p
    if case.name == "all_gather":
        return [torch.cat(xs)] * p
    if case.name == "all_to_all":
        cut = [x.split(list(sizes)) for x, sizes in zip(xs, case.pairs, strict=True)]
        return [torch.cat([parts[rank] for parts in cut]) for rank in range(p)]
    total = torch.stack(xs).sum(0)
    if case.name == "all_reduce":
        return [total] * p
    return list(total.split(list(case.parts or even_sizes(case.rows[0], p))))


def is_close(got, expected, scale, tolerance=1e-12):
    """Whether each number is as near as that to the formula's, in parts of `scale`."""
    assert got.shape == expected.shape, f"{got.shape} and {expected.shape}"
    return bool(((got - expected).abs() <= tolerance * scale).all())
