"""Tensors that travel through buffers of the host: the copies, tried on tensors of the CPU."""

import sys

import cloudpickle
import pytest
import test_comm_collectives
import torch
from test_comm_collectives import every_collective

from mpedu.comm import Link
from mpedu.distributed.staging import LEAST_BYTES, HostBuffers, device_of
from mpedu.launch import run_ranks

# The ranks need not import these files, and with them pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(test_comm_collectives)
CHECKED = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])


def staged(comm):
    """Lets tensors of this rank travel as those of a shared GPU do."""
    comm._world.host = HostBuffers(pinned=False)
    return comm._world.host


def test_a_buffer_that_was_given_back_is_lent_again_for_what_fits():
    buffers = HostBuffers(pinned=False)
    first, second = buffers.lend(700), buffers.lend(1000)
    assert (len(first), len(second), buffers.n_made) == (700, 1000, 2)
    assert first.dtype == torch.uint8 and first.data_ptr() != second.data_ptr()
    buffers.give_back(first)
    again = buffers.lend(1024)
    assert len(again) == 1024 and again.data_ptr() == first.data_ptr() and buffers.n_made == 2
    assert len(buffers.lend(0)) == 0 and len(buffers.lend(LEAST_BYTES + 1)) == LEAST_BYTES + 1
    assert buffers.n_made == 4


@CHECKED
def test_every_collective_gives_the_same_through_buffers_that_are_reused(checked):
    def program(comm):
        torch.set_grad_enabled(checked)
        buffers = staged(comm)
        n_made = []
        for _ in range(3):
            for dtype in ("float64", "bfloat16", "int64", "bool", "int16"):
                for shape in ((5, 2), (0,), ()):
                    assert every_collective(comm, dtype, "torch", shape) == []
            n_made.append(buffers.n_made)
        assert 0 < n_made[0] == n_made[1] == n_made[2] < 20
        n_before = buffers.n_made
        assert every_collective(comm, "float64", "numpy", (5, 2)) == []
        assert buffers.n_made == n_before  # NumPy arrays are the host's own

    run_ranks(program, 3, check_messages=checked)


@CHECKED
def test_messages_arrive_through_buffers_and_only_when_they_are_waited_for(checked):
    def program(comm):
        buffers = staged(comm)
        other = 1 - comm.rank
        for size in (3, 5000, 0):
            x = torch.full((size,), float(comm.rank))
            sending = comm.isend(x, other)
            out = torch.full((size,), -1.0)
            assert comm.recv(other, out) is out and out.tolist() == [float(other)] * size
            sending.wait()
        return buffers.n_made

    n_made = run_ranks(program, 2, check_messages=checked).results
    assert n_made == ([0, 0] if checked else [4, 4])  # checked ones are copies anyway


@CHECKED
def test_channels_lend_a_buffer_for_each_message_on_its_way(checked):
    forth, back = Link(0, 1, "F"), Link(1, 0, "B")

    def program(comm):
        buffers = staged(comm)
        ends = comm.channels([forth, back])
        mine, other = (forth, back) if comm.rank == 0 else (back, forth)
        for number in range(4):
            x = torch.full((300,), float(comm.rank + number))
            sending = ends[mine].isend(x, 2**30 + number, str(number))
            out = torch.zeros(300)
            ends[other].irecv(out, 2**30 + number, str(number)).wait()
            sending.wait()
            assert out.tolist() == [float(1 - comm.rank + number)] * 300
        return buffers.n_made

    n_made = run_ranks(program, 2, check_messages=checked).results
    assert n_made == ([0, 0] if checked else [2, 2])


@pytest.mark.parametrize(
    ("n_gpus", "n_local", "wanted"),
    [
        (0, 2, [("cpu", False)] * 2),
        (2, 2, [("cuda:0", False), ("cuda:1", False)]),
        (1, 2, [("cuda:0", True)] * 2),
        (2, 3, [("cuda:0", True), ("cuda:1", True), ("cuda:0", True)]),
    ],
)
def test_ranks_share_gpus_where_there_are_too_few(n_gpus, n_local, wanted, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n_gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    assert [device_of(rank, n_local) for rank in range(n_local)] == wanted
    assert device_of(0, n_local, use_gpus=False) == ("cpu", False)
