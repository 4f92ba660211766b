"""Single messages on the model clock, and the two clocks of a rank: exactly, in binary times."""

import numpy as np

from mpedu.launch import run_ranks
from mpedu.simulate import Span
from mpedu.simulated import Simulated, Wire

LATENCY_S, BYTES_PER_S = 2**-10, 2.0**20
LINK = Wire(LATENCY_S, BYTES_PER_S)
ROWS = 24  # of each part of an array that is cut into one per rank
N_BYTES = 2**16
ON_THE_WIRE_S = N_BYTES / BYTES_PER_S


def on(link, program, n_ranks, **more):
    return run_ranks(program, n_ranks, machine=Simulated(link, **more))


def letter():
    return np.zeros(N_BYTES, np.uint8)


def test_a_blocking_send_ends_with_the_occupation_and_the_receive_with_the_arrival():
    def program(comm):
        if comm.rank == 0:
            comm.send(letter(), 1, tag=3)
        else:
            comm.recv(0, tag=3)
        return comm.now_s()

    run = on(LINK, program, 2)
    arrival_s = ON_THE_WIRE_S + LATENCY_S
    assert run.results == [ON_THE_WIRE_S, arrival_s]
    assert run.timeline.messages == (
        (0, 1, "send", N_BYTES, 0.0, ON_THE_WIRE_S, arrival_s, arrival_s, 3),
    )
    assert run.timeline.makespan_s == arrival_s and run.timeline.spans == []
    assert run.meter.counts == {(0, "send"): (1, 1, N_BYTES, 0, 0), (1, "recv"): (1, 0, 0, 0, 0)}


def test_an_isend_costs_no_time_and_messages_leave_one_after_the_other():
    def program(comm):
        if comm.rank:
            comm.recv(0)
            return comm.now_s()
        requests = [comm.isend(letter(), rank) for rank in (1, 2)]
        posted_s = comm.now_s()
        requests[0].wait()
        first_s = comm.now_s()
        requests[1].wait()
        return posted_s, first_s, comm.now_s()

    run = on(LINK, program, 3)
    assert run.results[0] == (0.0, ON_THE_WIRE_S, 2 * ON_THE_WIRE_S)
    assert run.results[1:] == [n * ON_THE_WIRE_S + LATENCY_S for n in (1, 2)]


def test_a_receiver_takes_the_later_of_its_clock_and_the_arrival():
    def program(comm, late_s):
        if comm.rank == 0:
            comm.send(letter(), 1)
            return comm.now_s()
        comm.compute(seconds=late_s)
        comm.recv(0)
        return comm.now_s()

    for late_s in (0.0, 2**-5, 8.0):
        run = run_ranks(program, 2, late_s, machine=Simulated(LINK))
        # rendezvous decides who may go on, and not when: a late receiver delays no sender
        assert run.results == [ON_THE_WIRE_S, max(late_s, ON_THE_WIRE_S + LATENCY_S)]
        assert run.timeline.messages[0].taken_s == run.results[1]


def test_a_receive_posted_early_hides_the_way_behind_work():
    def program(comm):
        request = comm.irecv(0) if comm.rank else comm.isend(letter(), 1)
        comm.compute(seconds=1.0)
        request.wait()
        return comm.now_s()

    assert on(LINK, program, 2).results == [1.0, 1.0]


def test_collectives_run_beside_work_one_after_the_other():
    def program(comm, work_s):
        x = np.zeros(comm.size * ROWS)
        requests = [comm.all_reduce(x, async_op=True) for _ in range(2)]
        comm.compute(seconds=work_s)
        times = [comm.now_s()]
        for request in requests:
            request.wait()
            times.append(comm.now_s())
        comm.all_gather(x[:ROWS])
        return [*times, comm.now_s()]

    step_s = LATENCY_S + 8 * ROWS / BYTES_PER_S
    reduced_s, gathered_s = 2 * 3 * step_s, 3 * step_s
    for work_s in (0.0, 1.5 * reduced_s, 8.0):
        run = run_ranks(program, 4, work_s, machine=Simulated(LINK))
        first_s, second_s = max(work_s, reduced_s), max(work_s, 2 * reduced_s)
        assert run.results == [[work_s, first_s, second_s, second_s + gathered_s]] * 4
        spans = [s for s in run.timeline.spans if s.rank == 2 and s.kind == "all_reduce"]
        assert [(s.start_s, s.end_s) for s in spans] == [(0, reduced_s), (reduced_s, 2 * reduced_s)]


def test_messages_and_collectives_do_not_share_a_link():
    def program(comm):
        if comm.rank == 0:
            comm.isend(letter(), 1)
        comm.all_reduce(np.zeros(comm.size * ROWS))
        reduced_s = comm.now_s()
        if comm.rank == 1:
            comm.recv(0)
        return reduced_s, comm.now_s()

    reduced_s = 2 * (LATENCY_S + 8 * ROWS / BYTES_PER_S)
    run = on(LINK, program, 2)
    assert run.results == [(reduced_s, reduced_s), (reduced_s, ON_THE_WIRE_S + LATENCY_S)]


def test_a_ring_waits_for_its_last_rank_and_the_last_rank_for_nobody():
    def program(comm):
        half = comm.split(comm.rank // 2)
        start_s = comm.now_s()
        comm.compute(seconds=comm.rank)
        half.all_gather(np.zeros(ROWS))
        return comm.now_s() - start_s

    send_s = 8 * ROWS / BYTES_PER_S
    ends_s = [1 + send_s + LATENCY_S, 1 + send_s]  # the other's part is there already
    assert on(LINK, program, 4).results == [*ends_s, *(2 + end_s for end_s in ends_s)]


def test_compute_by_flops_reckons_with_the_device():
    def program(comm):
        comm.compute(flops=3 * 2**20)
        comm.compute(seconds=0.25)
        comm.compute(seconds=np.float32(0.5))
        return comm.now_s()

    run = on(LINK, program, 1, flops_per_s=2.0**20)
    assert run.results == [3.75]
    assert run.timeline.spans == [
        Span(0, "compute", -1, -1, *ends) for ends in ((0, 3), (3, 3.25), (3.25, 3.75))
    ]


def test_two_ways_to_hand_in_the_same_calls_take_the_same_time():
    """The clock knows only when each rank called, and not in which order threads came to it."""

    def program(comm, backwards):
        peers = [rank for rank in range(comm.size) if rank != comm.rank]
        requests = {rank: comm.irecv(rank) for rank in (peers[::-1] if backwards else peers)}
        for step, rank in enumerate(peers):
            comm.compute(seconds=2.0 ** -(3 + step))
            comm.isend(np.zeros(100 * (comm.rank + 1)), rank)
        if backwards == comm.rank % 2:
            comm.all_reduce(np.zeros(7))
            return comm.now_s(), [requests[rank].wait().size for rank in peers], comm.now_s()
        early = comm.all_reduce(np.zeros(7), async_op=True)
        early.wait()
        return comm.now_s(), [requests[rank].wait().size for rank in peers], comm.now_s()

    runs = [run_ranks(program, 4, way, machine=Simulated(LINK)) for way in (0, 1)]
    assert runs[0].results == runs[1].results
    assert runs[0].meter.counts == runs[1].meter.counts
    posted = [sorted(run.timeline.messages) for run in runs]
    assert posted[0] == posted[1]
