import numpy as np
import pytest

from mpedu.cost import (
    COLLECTIVES,
    bubble_interleaved,
    collective_bytes,
    collective_s,
    gpipe_peak_activation,
)
from mpedu.families import interleaved_1f1b
from mpedu.launch import run_ranks
from mpedu.simulate import simulate
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire

LATENCY_S, BYTES_PER_S = 0.25, 64.0  # so that times are exact in floats where p is a power of two
MACHINE = Simulated(Wire(LATENCY_S, BYTES_PER_S))
RANKS = range(1, 9)
RINGS = ("all_gather", "reduce_scatter", "all_reduce")
# Elements of eight bytes: they divide by every number of ranks, and there are none at all.
SIZES = (840, 0)


def naive_all_reduce(comm, x):
    if comm.rank:
        comm.send(x, 0)
        return comm.recv(0)
    total = x + sum(comm.recv(rank) for rank in range(1, comm.size))
    for rank in range(1, comm.size):
        comm.send(total, rank)
    return total


def one(comm, operation, n):
    x = np.arange(n)
    match operation:
        case "all_gather":
            comm.all_gather(np.arange(n // comm.size))
        case "reduce_scatter":
            comm.reduce_scatter(x)
        case "all_reduce":
            comm.all_reduce(x)
        case "broadcast":
            comm.broadcast(x, root=comm.size // 2)
        case "all_to_all":
            comm.all_to_all(x)
        case "barrier":
            comm.barrier()
        case "naive_all_reduce":
            naive_all_reduce(comm, x)


@pytest.mark.parametrize("operation", COLLECTIVES)
def test_times_and_bytes_are_those_of_the_simulated_machine(operation):
    for n_ranks in RANKS:
        for n in SIZES:
            run = run_ranks(one, n_ranks, operation, n, machine=MACHINE)
            time_s = collective_s(operation, 8 * n, n_ranks, LATENCY_S, BYTES_PER_S)
            took_s = run.timeline.makespan_s if run.timeline else 0.0  # nothing sent
            assert took_s == pytest.approx(time_s, rel=1e-12), (n_ranks, n)
            assert run.meter.total().bytes == collective_bytes(operation, 8 * n, n_ranks)


@pytest.mark.parametrize("operation", RINGS)
def test_rings_share_the_bytes_evenly_where_the_array_divides(operation):
    run = run_ranks(one, 5, operation, 840, machine=MACHINE)
    each = {run.meter.total(rank).bytes for rank in range(5)}
    assert each == {collective_bytes(operation, 8 * 840, 5) // 5}


@pytest.mark.parametrize("operation", ["reduce_scatter", "all_reduce"])
def test_uneven_rings_take_the_time_of_their_largest_part(operation):
    for n_ranks in RANKS[1:]:
        n = 840 + n_ranks // 2
        run = run_ranks(one, n_ranks, operation, n, machine=MACHINE)
        if_even = 8 * n_ranks * -(-n // n_ranks)
        time_s = collective_s(operation, if_even, n_ranks, LATENCY_S, BYTES_PER_S)
        assert run.timeline.makespan_s == pytest.approx(time_s, rel=1e-12)
        assert run.meter.total().bytes == collective_bytes(operation, 8 * n, n_ranks)


@pytest.mark.parametrize("operation", COLLECTIVES)
def test_one_rank_pays_nothing(operation):
    assert collective_s(operation, 100, 1, LATENCY_S, BYTES_PER_S) == 0
    assert collective_bytes(operation, 100, 1) == 0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: collective_s("all", 1, 2, 0, 1), "operation='all' is unknown; choose one of all_"),
        (lambda: collective_bytes("all", 1, 2), "operation='all' is unknown; choose one of all_"),
        (lambda: collective_s("all_gather", 1, 0, 0, 1), "n_ranks=0 is too small"),
        (lambda: collective_bytes("all_gather", -1, 2), "n_bytes=-1 is too small"),
        (lambda: collective_s("all_gather", -1, 2, 0, 1), "n_bytes=-1"),
        (lambda: collective_s("all_gather", 1, 2, -1, 1), "latency_s=-1"),
        (lambda: collective_s("all_gather", 1, 2, 0, 0), "bandwidth above 0"),
    ],
)
def test_what_is_no_collective_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    "n_samples, n_layers, n_stages, n_microbatches, plain, with_checkpoints",
    [
        (64, 16, 4, 1, 256, 64 + 4 * 64),
        (64, 16, 4, 8, 256, 64 + 4 * 8),
        (64, 16, 4, 64, 256, 64 + 4),
        (7, 5, 2, 3, 21, 7 + 3 * 3),
        (1, 1, 1, 1, 1, 2),
    ],
)
def test_gpipes_activations_are_inputs_and_one_microbatchs_layers(
    n_samples, n_layers, n_stages, n_microbatches, plain, with_checkpoints
):
    sizes = n_samples, n_layers, n_stages, n_microbatches
    assert gpipe_peak_activation(*sizes, checkpoint=False) == plain
    assert gpipe_peak_activation(*sizes, checkpoint=True) == with_checkpoints


@pytest.mark.parametrize("place", range(4))
def test_gpipes_activations_of_nothing_are_refused(place):
    sizes = [4, 4, 2, 2]
    sizes[place] = 0
    with pytest.raises(ValueError, match="=0 is too small"):
        gpipe_peak_activation(*sizes, checkpoint=True)


@pytest.mark.parametrize("n_chunks", [1, 2, 3])
@pytest.mark.parametrize("n_ranks, n_microbatches", [(1, 3), (2, 2), (4, 8), (3, 9)])
def test_the_interleaved_bubble_is_the_idle_share_on_the_model_clock(
    n_ranks, n_microbatches, n_chunks
):
    schedule = interleaved_1f1b(n_ranks, n_microbatches, n_chunks)
    share = bubble_interleaved(n_ranks, n_microbatches, n_chunks)
    assert share == pytest.approx(simulate(schedule).idle_share, abs=1e-12)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_the_interleaved_bubble_of_nothing_is_refused(sizes):
    with pytest.raises(ValueError, match="0"):
        bubble_interleaved(*sizes)
