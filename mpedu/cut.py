"""Which layers a pipeline stage takes: evenly by number or by what they cost, or as is asked."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from mpedu.faults import require_at_least

EVEN = "even"


def layers_of_stage(n_layers: int, n_stages: int, stage: int) -> range:
    """The blocks of `stage`: consecutive, their counts differ by at most 1, larger ones first.

    The last stage has the head to compute besides its blocks, so it takes no block too many.
    """
    _require(n_layers, n_stages)
    require_at_least(0, stage=stage)
    if stage >= n_stages:
        raise ValueError(f"stage={stage} does not exist: n_stages={n_stages} is 0..{n_stages - 1}")
    n_each, n_larger = divmod(n_layers, n_stages)
    start = stage * n_each + min(stage, n_larger)
    return range(start, start + n_each + (stage < n_larger))


def cut_layers(n_layers: int, n_stages: int, cut: str | Sequence[int] = EVEN) -> list[range]:
    """The blocks of each stage, consecutive: EVEN, or so many as `cut` says, in order.

    ValueError for another word, another number of stages or blocks, and a stage without any.
    """
    if cut == EVEN:
        return [layers_of_stage(n_layers, n_stages, stage) for stage in range(n_stages)]
    if not isinstance(cut, tuple | list):
        raise ValueError(f"cut={cut!r} is unknown; give {EVEN!r}, or the blocks of each stage")
    shown = f"cut={','.join(map(str, cut))}"
    if not all(isinstance(size, int) and size >= 1 for size in cut):
        raise ValueError(f"{shown}: a stage takes a whole number of blocks, 1 or more")
    if (len(cut), sum(cut)) != (n_stages, n_layers):
        has, due = _counted(len(cut), sum(cut)), _counted(n_stages, n_layers)
        raise ValueError(
            f"{shown} is {has}, and the run has {due}; give {n_stages} "
            f"number{'s' * (n_stages != 1)}, together {n_layers}"
        )
    return [range(*ends) for ends in pairwise(accumulate(cut, initial=0))]


def _counted(n_stages: int, n_layers: int) -> str:
    return f"{n_layers} block{'s' * (n_layers != 1)} in {n_stages} stage{'s' * (n_stages != 1)}"


def balanced_layers(
    costs: Sequence[float], n_stages: int, first: float = 0.0, last: float = 0.0
) -> list[range]:
    """The blocks of each stage, consecutive and at least one: the least for the dearest stage.

    costs: of each block, such as seconds for a forward and a backward. first, last: of what the
    first and the last stage do besides, the embedding and the head.
    Of cuts with equal dearest stages an even one is taken, larger stages first.
    ValueError for fewer blocks than stages, or a cost below 0.
    """
    _require(len(costs), n_stages)
    if not all(cost >= 0 for cost in (*costs, first, last)):
        raise ValueError(f"costs={[first, *costs, last]}: a cost is a number of 0 or more")
    before = list(accumulate(costs, initial=0.0))  # of the blocks before each
    before[0] -= first
    before[-1] += last
    # The best cut of the first n blocks into the stages so far. The squares of the stages' costs
    # decide among equals only.
    best = {0: _Cut(0.0, 0.0, (0,))}
    for left in reversed(range(n_stages)):  # stages after this one, which need a block each
        best = {
            end: min(
                (cut.with_stage(end, before) for n, cut in best.items() if n < end), key=_worth
            )
            for end in range(n_stages - left, len(costs) - left + 1)
        }
    return [range(*ends) for ends in pairwise(best[len(costs)].ends)]


class _Cut(NamedTuple):
    dearest: float
    squares: float
    ends: tuple[int, ...]

    def with_stage(self, end: int, before: Sequence[float]) -> "_Cut":
        cost = before[end] - before[self.ends[-1]]
        return _Cut(max(self.dearest, cost), self.squares + cost**2, (*self.ends, end))


def _worth(cut: _Cut) -> tuple[float, float, int]:
    """Less is better; a late last stage is a small one."""
    return cut.dearest, cut.squares, -cut.ends[-2]


def _require(n_layers: int, n_stages: int) -> None:
    require_at_least(1, n_layers=n_layers, n_stages=n_stages)
    if n_stages > n_layers:
        raise ValueError(
            f"n_stages={n_stages} with n_layers={n_layers}: a stage would have no layer; "
            f"give n_stages <= {n_layers} or n_layers >= {n_stages}"
        )
