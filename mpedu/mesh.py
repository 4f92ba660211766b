"""The mesh: a run's ranks on named axes, an object that is passed around and never a global.

An axis is a way to divide the work: `pp` the model's stages, `dp` the batch. The first axis is the
slowest, so that with pp=2 and dp=3 rank 4 stands at pp 1, dp 1.
"""

from math import prod
from typing import NamedTuple

from mpedu.alone import Alone
from mpedu.comm import Comm
from mpedu.faults import require_at_least


class Place(NamedTuple):
    """Where a rank stands on each axis."""

    pp: int
    dp: int


def places(pp_size: int, dp_size: int) -> list[Place]:
    """The place of every rank, in order of rank."""
    return [Place(pp, dp) for pp in range(pp_size) for dp in range(dp_size)]


class Mesh:
    """All ranks of `world` on their axes, seen from one of them; every rank makes it alike.

    place: where this rank stands. pp: the ranks of its own pipeline, in order. data: the ranks that
    hold the same parameters, each with its own samples; gradients are summed over them.
    ValueError where the degrees do not multiply to the number of ranks.
    """

    def __init__(self, world: Comm, pp: int = 1, dp: int = 1) -> None:
        degrees = {"pp": pp, "dp": dp}
        require_at_least(1, **degrees)
        n_ranks = prod(degrees.values())
        if n_ranks != world.size:
            asked = " x ".join(f"{axis}={degree}" for axis, degree in degrees.items())
            raise ValueError(
                f"{asked} is a mesh of {n_ranks} ranks and {world.size} run; start {n_ranks}, "
                f"or give degrees whose product is {world.size}"
            )
        self.world = world
        self.place = places(pp, dp)[world.rank]
        self.pp = _ranks_of(world, pp, self.place.dp)
        self.data = _ranks_of(world, dp, self.place.pp)


def _ranks_of(world: Comm, size: int, color: int) -> Comm:
    """The `size` ranks that give one `color`; groups are made only where they are a part of all."""
    if size == world.size:
        return world
    if size > 1:
        return world.split(color)
    alone = Alone()
    alone.device = world.device
    return alone
