"""`Comm` on GPUs: over NCCL where there are two, through the host where ranks share them."""

import pytest
import torch

from mpedu.comm import Link
from mpedu.launch import run_ranks

pytestmark = pytest.mark.gpu
N_GPUS = torch.cuda.device_count()
ONE = pytest.mark.skipif(N_GPUS < 1, reason="needs a GPU")
TWO = pytest.mark.skipif(N_GPUS < 2, reason="needs two GPUs")
CHECKED = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])


def everything(comm):
    """What collectives and messages give on the device of this rank."""
    x = torch.arange(6.0, device=comm.device).reshape(6, 1) + comm.rank
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if comm.rank % 2 == 0:  # NCCL may hold a sender until its receiver has come
        comm.send(x, after)
        got = comm.recv(before, torch.empty_like(x))
    else:
        got = comm.recv(before, torch.empty_like(x))
        comm.send(x, after)
    sizes = [comm.rank + 1] * comm.size
    rows = torch.full((sum(sizes),), float(comm.rank), device=comm.device)
    started = comm.all_reduce(x, async_op=True)
    found = [
        got,
        comm.all_gather(x),
        comm.all_reduce(x, "max"),
        comm.all_reduce(x.bfloat16()),
        comm.reduce_scatter(x.repeat(comm.size, 1)),
        comm.all_to_all(rows, sizes),
        comm.broadcast(x.clone(), root=1),
        started.wait(),
        comm.all_reduce(x > 3),
    ]
    comm.barrier()
    assert all(one.device == torch.device(comm.device) for one in found)
    return [one.tolist() for one in found]


@TWO
@CHECKED
def test_nccl_gives_what_the_cpu_gives(checked):
    on_cpu = run_ranks(everything, 2, use_gpus=False).results
    assert run_ranks(everything, 2, check_messages=checked).results == on_cpu


@ONE
@CHECKED
def test_ranks_that_share_a_gpu_get_what_the_cpu_gives(checked):
    n_ranks = 2 * ((N_GPUS + 2) // 2)  # more than there are GPUs, and even
    on_cpu = run_ranks(everything, n_ranks, use_gpus=False).results
    assert run_ranks(everything, n_ranks, check_messages=checked).results == on_cpu


@ONE
def test_links_of_ranks_that_share_a_gpu_go_through_the_host():
    n_ranks = N_GPUS + 1

    def program(comm):
        ends = comm.channels([Link(0, 1, "F")])
        if comm.rank == 0:
            ends[Link(0, 1, "F")].isend(torch.full((3,), 7.0, device=comm.device), 0, "F0").wait()
        if comm.rank == 1:
            out = torch.empty(3, device=comm.device)
            ends[Link(0, 1, "F")].irecv(out, 0, "F0").wait()
            return out.tolist()

    assert run_ranks(program, n_ranks).results[1] == [7.0] * 3


@TWO
def test_each_rank_has_a_gpu_of_its_own_and_nccl_carries_its_messages():
    def program(comm):
        other = 1 - comm.rank
        x = torch.full((4,), float(comm.rank), device=comm.device)
        if comm.rank == 0:
            comm.send(x, other)
            out = comm.recv(other, torch.empty_like(x))
        else:
            out = comm.recv(other, torch.empty_like(x))
            comm.send(x, other)
        plain = comm.all_reduce(torch.tensor([comm.rank + 1]))  # on the CPU: gloo
        return comm.device, out.tolist(), comm.all_reduce(x + 1).tolist(), plain.item()

    assert run_ranks(program, 2).results == [
        ("cuda:0", [1.0] * 4, [3.0] * 4, 3),
        ("cuda:1", [0.0] * 4, [3.0] * 4, 3),
    ]


@TWO
def test_two_links_of_one_pair_of_gpus_never_take_each_others_messages():
    forth, again = Link(0, 1, "F"), Link(0, 1, "B")

    def program(comm):
        ends = comm.channels([forth, again])
        arrays = [torch.full((2,), float(n), device=comm.device) for n in (1, 2)]
        if comm.rank == 0:
            requests = [
                ends[again].isend(arrays[1], 0, "B0"),
                ends[forth].isend(arrays[0], 0, "F0"),
            ]
        else:
            requests = [
                ends[forth].irecv(arrays[1], 0, "F0"),
                ends[again].irecv(arrays[0], 0, "B0"),
            ]
        for request in requests:
            request.wait()
        return [array.tolist() for array in arrays]

    assert run_ranks(program, 2).results[1] == [[2.0, 2.0], [1.0, 1.0]]


@ONE
def test_ranks_can_be_told_to_leave_the_gpus_alone():
    run = run_ranks(lambda comm: (comm.device, torch.cuda.is_initialized()), 2, use_gpus=False)
    assert run.results == [("cpu", False)] * 2
