"""Messages of real ranks that are checked: what arrives, in which order, and what is counted."""

import sys

import cloudpickle
import numpy as np
import pytest
import torch

from mpedu.launch import run_ranks
from mpedu.memory import LiveBytes

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
CHECKED = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])


@CHECKED
def test_a_send_is_over_when_the_receive_was_started(checked):
    """Also of a message that does not go with its head."""

    def program(comm):
        x = torch.arange(5000.0)
        if comm.rank == 0:
            receiving = comm.irecv(1, torch.empty(5000))
            comm.send(x, 1)
            return receiving.wait().sum().item()
        comm.send(x, 0)
        return comm.recv(0, torch.empty(5000)).sum().item()

    assert run_ranks(program, 2, check_messages=checked).results == [x := sum(range(5000)), x]


def test_receives_of_one_line_may_be_waited_for_in_any_order():
    sizes = [3, 5000, 1, 9000, 2000]

    def program(comm):
        if comm.rank == 0:
            requests = [comm.isend(np.full(size, float(size)), 1) for size in sizes]
            return [request.wait() for request in requests]
        requests = [comm.irecv(0) for _ in sizes]
        for place in (3, 0, 4, 2, 1):
            requests[place].wait()
        return [
            request.wait().tolist() == [size] * size
            for request, size in zip(requests, sizes, strict=True)
        ]

    assert run_ranks(program, 2).results[1] == [True] * len(sizes)


def test_a_message_without_out_is_a_new_array_of_the_senders_kind():
    def program(comm):
        sent = [
            np.arange(4, dtype=np.int16),
            np.array(2.5),
            torch.tensor([True]),
            torch.zeros(0, 3),
        ]
        sent += [torch.ones(3000, dtype=torch.bfloat16), np.zeros((2, 3), dtype=complex)]
        if comm.rank == 0:
            for x in sent:
                comm.send(x, 1)
            return
        for x in sent:
            got = comm.recv(0)
            assert type(got) is type(x) and got.dtype == x.dtype and got.shape == x.shape
            assert got.tolist() == x.tolist()

    run_ranks(program, 2)


def test_what_was_sent_may_be_changed_as_soon_as_the_send_is_over():
    def program(comm):
        x = np.zeros(5000)
        if comm.rank == 0:
            comm.send(x, 1)
            x[:] = 1
            comm.barrier()
        else:
            receiving = comm.irecv(0)
            comm.barrier()
            assert not receiving.wait().any()

    run_ranks(program, 2)


def test_the_meter_counts_calls_of_all_ranks_and_the_bytes_of_messages():
    def program(comm):
        half = comm.split(comm.rank // 2)
        half.all_reduce(np.zeros(3))
        if half.rank == 0:
            half.send(np.zeros(5), 1)
        else:
            half.recv(0)
        comm.barrier()

    meter = run_ranks(program, 4).meter
    assert meter.total(kind="send") == (2, 2, 80, 0, 0)
    assert meter.total(rank=2, kind="send").bytes == 40 and not meter.total(1, "send").calls
    assert meter.total(kind="recv").calls == 2
    assert meter.total(kind="all_reduce").calls == meter.total(kind="barrier").calls == 4


def test_what_has_been_sent_is_not_kept():
    def program(comm):
        grown = []
        with LiveBytes() as live:
            for _ in range(3):
                for n in range(20):
                    sending = comm.isend(torch.full((3000,), float(n)), (comm.rank + 1) % 2)
                    assert comm.recv((comm.rank + 1) % 2)[0] == n
                    sending.wait()
                    comm.all_gather(torch.zeros(3000, dtype=torch.int64), async_op=True).wait()
                del sending
                comm.barrier()
                grown.append(live.live_bytes)
        return grown

    for grown in run_ranks(program, 2).results:
        assert grown[2] - grown[0] < 3000 * 4
