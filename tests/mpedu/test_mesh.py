import pytest
import torch

from mpedu.alone import Alone
from mpedu.launch import run_ranks
from mpedu.mesh import Mesh, Place, places


def members(comm, ranks):
    return ranks.all_gather(torch.tensor([comm.rank])).tolist()


def seen(comm, pp, dp):
    mesh = Mesh(comm, pp=pp, dp=dp)
    axes = mesh.pp, mesh.data
    return mesh.place, [axis.rank for axis in axes], [axis.size for axis in axes], axes, mesh


@pytest.mark.parametrize("degrees", [(2, 3), (3, 2), (6, 1), (1, 6)])
def test_the_first_axis_is_the_slowest_and_every_axis_has_its_ranks(degrees):
    pp, dp = degrees

    def program(comm):
        place, ranks, sizes, axes, mesh = seen(comm, pp, dp)
        assert mesh.world is comm
        groups = [members(comm, axis) if axis.size > 1 else [comm.rank] for axis in axes]
        return place, ranks, sizes, groups

    results = run_ranks(program, 6, machine="simulated").results
    for rank, (place, ranks, sizes, groups) in enumerate(results):
        assert place == Place(*divmod(rank, dp)) == places(pp, dp)[rank]
        assert (ranks, sizes) == ([place.pp, place.dp], [pp, dp])
        assert groups[0] == [place.dp + dp * p for p in range(pp)]
        assert groups[1] == [place.pp * dp + d for d in range(dp)]


def test_two_meshes_of_one_run_do_not_meet():
    def program(comm):
        across, along = Mesh(comm, pp=2, dp=2), Mesh(comm, pp=4)
        return members(comm, across.pp), members(comm, along.pp), members(comm, across.data)

    run = run_ranks(program, 4, machine="simulated")
    assert run.results[1] == ([1, 3], [0, 1, 2, 3], [0, 1])


@pytest.mark.parametrize(
    ("degrees", "said"),
    [
        (
            {"pp": 2, "dp": 2},
            "pp=2 x dp=2 is a mesh of 4 ranks and 1 run; start 4, or give degrees",
        ),
        ({"pp": 0}, "pp=0 is too small; give pp >= 1"),
        ({"dp": 1.5}, "dp=1.5 is not a whole number"),
    ],
)
def test_degrees_that_do_not_fit_are_told(degrees, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        Mesh(Alone(), **degrees)


def test_an_axis_of_one_rank_keeps_its_tensors_where_all_do():
    world = Alone()
    world.device = "cuda:3"
    assert Mesh(world).pp is world

    def program(comm):
        comm.device = "cuda:3"
        return Mesh(comm, pp=2).data.device

    assert run_ranks(program, 2, machine="simulated").results == ["cuda:3", "cuda:3"]
