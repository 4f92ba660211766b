import io
import sys
import threading
from functools import partial

import numpy as np
import pytest
import torch

from mpedu.comm import Link
from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError
from mpedu.simulate import Span
from mpedu.simulated import Simulated, Wire

simulated = partial(run_ranks, machine="simulated")


def notebook(code):
    """The variables of a notebook in which this cell has run."""
    variables = {"__name__": "__main__"}
    exec(code, variables)
    return variables


def test_ranks_share_no_variable_of_a_notebook():
    cell = notebook(
        "seen, box = [], {'n': 0}\n"
        "class Layer:\n"
        "    made = []\n"
        "    def __init__(self):\n"
        "        self.made.append(1)\n"
        "def helper(comm):\n"
        "    seen.append(comm.rank)\n"
        "    box['n'] += 1\n"
        "    Layer()\n"
        "def program(comm, given):\n"
        "    global total\n"
        "    total = comm.rank\n"
        "    helper(comm)\n"
        "    given.append(comm.rank)\n"
        "    comm.barrier()\n"
        "    helper(comm)\n"
        "    return seen, box, Layer.made, given, total\n"
    )
    given = ["from the caller"]
    run = simulated(cell["program"], 3, given)
    for rank, result in enumerate(run.results):
        assert result == ([rank, rank], {"n": 2}, [1, 1], ["from the caller", rank], rank)
    assert cell["seen"] == [] and cell["box"] == {"n": 0} and cell["Layer"].made == []
    assert given == ["from the caller"] and "total" not in cell


def test_ranks_share_no_variable_of_a_closure_and_no_default():
    counted = []

    def program(comm, own=[]):  # noqa: B006 -- as students write it
        counted.append(comm.rank)
        own.append(comm.rank)
        comm.barrier()
        return counted, own

    assert simulated(program, 2).results == [([0], [0]), ([1], [1])]
    assert counted == []


def test_a_second_run_begins_anew():
    cell = notebook("n = 0\ndef program(comm):\n    global n\n    n += 1\n    return n\n")
    assert [simulated(cell["program"], 2).results for _ in range(2)] == [[1, 1]] * 2


def test_results_are_the_objects_themselves():
    run = simulated(lambda comm: (threading.Lock(), lambda: comm.rank, torch.ones(2)), 2)
    assert [result[1]() for result in run.results] == [0, 1]


def test_ranks_print_whole_lines_behind_their_numbers(capsys):
    def program(comm):
        print("begun ", end="")
        comm.barrier()
        print("and ended", comm.rank)
        sys.stdout.write("one\ntwo\n\nlast")
        comm.barrier()

    out = sys.stdout
    simulated(program, 2)
    lines = capsys.readouterr().out.splitlines()
    for rank in range(2):
        own = [line.removeprefix(f"[rank {rank}] ") for line in lines if f"[rank {rank}]" in line]
        assert own == [f"begun and ended {rank}", "one", "two", "", "last"]
    assert len(lines) == 10 and sys.stdout is out


def test_what_was_printed_before_a_failure_is_shown(capsys):
    def program(comm):
        print("before", end="")
        comm.recv(1 - comm.rank)

    with pytest.raises(RankError):
        simulated(program, 2)
    assert capsys.readouterr().out == "[rank 0] before\n[rank 1] before\n"


def test_a_stream_of_the_caller_takes_the_lines_and_is_put_back(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    simulated(lambda comm: print("x"), 2)
    assert sys.stdout is stream and stream.getvalue() == "[rank 0] x\n[rank 1] x\n"


def test_reports_come_in_order_of_the_ranks_turns():
    def program(comm):
        comm.report(("first", comm.rank))
        comm.barrier()
        comm.split(comm.rank % 2).report(comm.rank)

    reports = []
    simulated(program, 3, on_report=lambda rank, value: reports.append((rank, value)))
    assert reports[:3] == [(rank, ("first", rank)) for rank in range(3)]
    assert sorted(reports[3:]) == [(rank, rank) for rank in range(3)]


def test_ranks_take_turns_and_only_where_they_must_wait():
    def program(comm):
        turns = []
        for _ in range(3):
            comm.report("a")
            comm.isend(np.array([comm.rank]), (comm.rank + 1) % comm.size)
            comm.report("b")  # nobody came in between
            comm.recv((comm.rank - 1) % comm.size)
        return turns

    reports = []
    simulated(program, 3, on_report=lambda rank, value: reports.append((rank, value)))
    pairs = list(zip(reports[::2], reports[1::2], strict=True))
    assert all(a == (rank, "a") and b == (rank, "b") for a, b in pairs for rank in [a[0]])
    # 0 must wait first; 1 and 2 find theirs there
    assert [a[0] for a, _ in pairs] == [0, 1, 1, 2, 2, 2, 0, 0, 1]


def test_channels_keep_the_two_directions_of_a_pair_apart():
    forth, back = Link(0, 1, "F"), Link(1, 0, "B")

    def program(comm):
        ends = comm.channels([back, forth, Link(1, 2, "F")])
        assert set(ends) == {link for link in (forth, back, Link(1, 2, "F")) if comm.rank in link}
        if comm.rank == 2:
            return None
        mine, other = (forth, back) if comm.rank == 0 else (back, forth)
        sending = ends[mine].isend(torch.tensor([comm.rank]), 5, "F0")
        ends[other].irecv((out := torch.tensor([-1])), 5, "B0").wait()
        sending.wait()
        return out.item()

    assert simulated(program, 3).results == [1, 0, None]


def test_a_message_is_a_copy_on_its_way_and_at_its_end():
    def program(comm):
        if comm.rank == 0:
            x = np.zeros(2)
            request = comm.isend(x, 1)
            x += 1
            request.wait()
            comm.send(x, 1)
            x += 1
            return x.tolist()
        first, second = comm.recv(0), comm.recv(0)
        first += 10
        return first.tolist(), second.tolist()

    assert simulated(program, 2).results == [[2, 2], ([10, 10], [1, 1])]


def test_a_second_wait_gives_the_same_and_writes_nothing():
    def program(comm):
        if comm.rank == 0:
            return comm.send(np.ones(1), 1)
        request = comm.irecv(0, out := np.zeros(1))
        assert request.wait() is out and out[0] == 1
        out[0] = 7
        assert request.wait() is out
        return out[0]

    assert simulated(program, 2).results == [None, 7]


@pytest.mark.parametrize("into", [np.zeros(3), torch.zeros(3, dtype=torch.float64)])
@pytest.mark.parametrize("sent", [np.arange(3.0), torch.arange(3, dtype=torch.float64)])
def test_arrays_and_tensors_are_received_into_each_other(sent, into):
    def program(comm):
        if comm.rank == 0:
            comm.send(sent, 1)
            return None
        return comm.recv(0, into)

    result = simulated(program, 2).results[1]
    assert type(result) is type(into) and result.tolist() == [0, 1, 2]


def test_messages_of_one_tag_arrive_in_order_and_tags_are_kept_apart():
    def program(comm):
        if comm.rank == 0:
            requests = [comm.isend(np.array([n]), 1, tag=n % 3) for n in range(12)]
            for request in requests[::-1]:
                request.wait()
            return None
        return [[comm.recv(0, tag=tag).item() for _ in range(4)] for tag in (2, 0, 1)]

    expected = [list(range(tag, 12, 3)) for tag in (2, 0, 1)]
    assert simulated(program, 2).results[1] == expected


def test_the_record_holds_work_collectives_messages_and_what_ranks_note():
    def program(comm):
        comm.compute(seconds=1.0)
        half = comm.split(0)
        half.record(Span(comm.rank, "F", 0, comm.rank, 5.0, 6.0))
        half.send(np.zeros(2), 1) if comm.rank == 0 else half.recv(0)

    timeline = run_ranks(program, 2, machine=Simulated(Wire())).timeline
    kinds = [(span.kind, span.rank) for span in timeline.spans]
    assert kinds == [(k, r) for k in ("compute", "split", "F") for r in (0, 1)]
    assert sorted(sent.kind for sent in timeline.messages) == ["send", "split", "split"]
    assert timeline.n_ranks == 2 and timeline.makespan_s == 6.0
    assert simulated(lambda comm: None, 2).timeline is None


def test_a_named_device_brings_its_wires_and_speed():
    def program(comm):
        comm.compute(flops=1e12)
        return comm.now_s()

    machine = Simulated.of("a100-80gb")
    assert run_ranks(program, 2, machine=machine).results == [1e12 / machine.flops_per_s] * 2
    with pytest.raises(ValueError, match="a100-80gb"):
        Simulated.of("abacus")


def test_ranks_may_run_ranks():
    def inner(comm, n):
        return comm.all_reduce(np.array(n)).item()

    def outer(comm):
        return run_ranks(inner, 3, comm.all_reduce(np.array(1)).item(), machine="simulated").results

    assert simulated(outer, 2).results == [[6, 6, 6]] * 2
