"""`Comm` over NCCL: runs where there are two GPUs, and nowhere else."""

import pytest
import torch

from mpedu.comm import Link
from mpedu.launch import run_ranks

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]


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


def test_ranks_can_be_told_to_leave_the_gpus_alone():
    run = run_ranks(lambda comm: (comm.device, torch.cuda.is_initialized()), 2, use_gpus=False)
    assert run.results == [("cpu", False)] * 2
