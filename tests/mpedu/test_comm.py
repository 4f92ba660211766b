import sys

import cloudpickle
import numpy as np
import pytest
import torch

from mpedu.comm import USER_TAGS, Link
from mpedu.launch import run_ranks
from mpedu.ranks.errors import RankError
from mpedu.schedule import Action
from mpedu.simulate import Span

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def zeros_like(x):
    return np.zeros_like(x) if isinstance(x, np.ndarray) else torch.zeros_like(x)


MAKERS = {
    "numpy": lambda *numbers: np.array(numbers, dtype=np.float64),
    "torch": lambda *numbers: torch.tensor(numbers, dtype=torch.float64),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_operation_gives_what_it_promises_for_both_kinds_of_array(make):
    def program(comm):
        here, size = comm.rank, comm.size
        after, before = (here + 1) % size, (here - 1) % size
        sending = comm.isend(make(here, 10 + here), after, tag=7)
        ring = comm.recv(before, make(0, 0), tag=7).tolist()
        sending.wait()
        own = make(here, -here)
        reduced = [comm.all_reduce(own, op) for op in ("sum", "max")]
        shared = make(here, here)
        assert comm.broadcast(shared, root=2) is shared
        comm.barrier()
        assert type(reduced[0]) is type(own) and own.tolist() == [here, -here]
        return ring, [r.tolist() for r in reduced], shared.tolist()

    for rank, (ring, reduced, shared) in enumerate(run_ranks(program, 3).results):
        before = (rank - 1) % 3
        assert ring == [before, 10 + before]
        assert reduced == [[3, -3], [2, 0]]
        assert shared == [2, 2]


def test_messages_of_one_pair_are_told_apart_by_tag():
    def program(comm):
        if comm.rank == 0:
            requests = [comm.isend(torch.tensor([tag]), 1, tag=tag) for tag in (5, 0, 3)]
            for request in requests:
                request.wait()
            return None
        return [int(comm.recv(0, torch.tensor([-1]), tag=tag)) for tag in (3, 5, 0)]

    assert run_ranks(program, 2).results[1] == [3, 5, 0]


def test_messages_of_one_tag_arrive_in_the_order_they_were_sent():
    def program(comm):
        if comm.rank == 0:
            requests = [comm.isend(torch.tensor([n]), 1) for n in range(20)]
            for request in requests:
                request.wait()
            return None
        outs = [torch.tensor([-1]) for _ in range(20)]
        requests = [comm.irecv(0, out) for out in outs]
        for request in requests:
            request.wait()
            request.wait()  # a second time does nothing
        return [int(out) for out in outs]

    assert run_ranks(program, 2).results[1] == list(range(20))


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(0),
        torch.tensor(3.5),
        torch.arange(6, dtype=torch.int32).reshape(2, 3),
        torch.tensor([True, False]),
        torch.tensor([1.5, -2], dtype=torch.bfloat16),
        np.array(2.5),
        np.arange(4, dtype=np.uint8),
    ],
    ids=["empty", "scalar", "int", "bool", "bfloat16", "numpy-scalar", "numpy-bytes"],
)
def test_arrays_of_every_shape_and_dtype_arrive_as_they_were(x):
    def program(comm):
        if comm.rank == 0:
            comm.send(x, 1)
        else:
            comm.recv(0, (out := zeros_like(x)))
            assert out.dtype == x.dtype and out.tolist() == x.tolist()

    run_ranks(program, 2)


def test_what_must_not_be_written_to_can_be_sent():
    def program(comm):
        x = np.arange(3.0)
        x.flags.writeable = False
        if comm.rank == 0:
            comm.send(x, 1)
            return comm.all_reduce(x).tolist()
        assert comm.recv(0, np.zeros(3)).tolist() == [0, 1, 2]
        return comm.all_reduce(x).tolist()

    assert run_ranks(program, 2).results == [[0, 2, 4]] * 2


def test_whole_numbers_of_numpy_name_ranks_tags_and_colours():
    def program(comm):
        other, tag = np.int64(1 - comm.rank), np.int32(4)
        sending = comm.isend(torch.tensor([comm.rank]), other, tag)
        assert int(comm.recv(other, torch.tensor([-1]), tag)) == other
        sending.wait()
        comm.broadcast(torch.zeros(1), np.int64(1))
        return comm.split(np.int64(0)).size

    assert run_ranks(program, 2).results == [2, 2]


def test_split_groups_those_of_one_colour_in_their_order_and_again():
    def program(comm):
        half = comm.split(comm.rank % 2)
        x = half.all_reduce(torch.tensor([comm.rank])).item()
        if half.rank == 0:
            half.send(torch.tensor([10 * comm.rank]), 1)
        else:
            x += half.recv(0, torch.tensor([0])).item()
        alone = half.split(half.rank)
        assert alone.size == 1 and alone.all_reduce(torch.tensor([5])).item() == 5
        half.record(Span(comm.rank, "F", 0, 0, 1.0, 2.0))
        return half.rank, half.size, x

    run = run_ranks(program, 4)
    assert run.results == [(0, 2, 2), (0, 2, 4), (1, 2, 2), (1, 2, 14)]
    assert len(run.timeline.spans) == 4


def test_a_report_from_a_group_names_ranks_by_their_number_among_all():
    def program(comm):
        half = comm.split(comm.rank % 2)
        if comm.rank == 1:
            half.recv(1, torch.zeros(1), what="a letter")

    with pytest.raises(RankError, match=r"rank 1 waits in recv from rank 3 \(a letter\)"):
        run_ranks(program, 4, wait_s=0.3)


def test_channels_keep_the_two_directions_of_a_pair_apart():
    forth, back = Link(0, 1, "F"), Link(1, 0, "B")

    def program(comm):
        ends = comm.channels([back, forth, Link(1, 2, "F")])
        assert set(ends) == {link for link in (forth, back, Link(1, 2, "F")) if comm.rank in link}
        if comm.rank == 2:
            return None
        mine, other = (forth, back) if comm.rank == 0 else (back, forth)
        sending = ends[mine].isend(torch.tensor([comm.rank]), USER_TAGS + 5, str(mine))
        ends[other].irecv((out := torch.tensor([-1])), USER_TAGS + 5, str(other)).wait()
        sending.wait()
        return out.item()

    assert run_ranks(program, 3).results == [1, 0, None]


def test_spans_of_all_ranks_come_back_as_one_timeline():
    def program(comm):
        comm.record(Span(comm.rank, "F", comm.rank, 0, comm.rank, comm.rank + 1.0))

    timeline = run_ranks(program, 2).timeline
    assert timeline.n_ranks == 2
    assert [(s.rank, *Action(*s[1:4])) for s in timeline.spans] == [(0, "F", 0, 0), (1, "F", 1, 0)]
    assert run_ranks(lambda comm: None, 1).timeline is None


BAD = {
    "send to a rank that is not": (
        lambda c: c.send(torch.zeros(1), 2),
        "send on rank 1: no rank 2; there are 0..1",
    ),
    "receive from rank -1": (
        lambda c: c.recv(-1, torch.zeros(1)),
        "recv on rank 1: no rank -1; there are 0..1",
    ),
    "a rank of another type": (
        lambda c: c.send(torch.zeros(1), "0"),
        "send on rank 1: no rank '0'; there are 0..1",
    ),
    "send to itself": (
        lambda c: c.send(torch.zeros(1), 1),
        "send on rank 1: it named itself; messages go between ranks",
    ),
    "a negative tag": (
        lambda c: c.send(torch.zeros(1), 0, tag=-1),
        "send on rank 1: tag=-1 is no tag; give an int from 0 to 536870911",
    ),
    "True as tag": (
        lambda c: c.send(torch.zeros(1), 0, tag=True),
        "send on rank 1: tag=True is no tag; give an int from 0 to 536870911",
    ),
    "a list": (
        lambda c: c.send([1.0], 0),
        "send on rank 1: list is no array; give a NumPy array or a tensor",
    ),
    "text": (
        lambda c: c.send(np.array(["a"]), 0),
        "send on rank 1: an array str32 [1] is no array of numbers; send numbers",
    ),
    "objects": (
        lambda c: c.all_reduce(np.array([None])),
        "all_reduce on rank 1: an array object [1] is no array of numbers; send numbers",
    ),
    "the byte order of another machine": (
        lambda c: c.send(np.ones(1, ">f8"), 0),
        "send on rank 1: an array float64 [1] has the byte order of another machine; "
        "give x.astype(x.dtype.newbyteorder('='))",
    ),
    "a tensor that needs a gradient": (
        lambda c: c.send(torch.zeros(1, requires_grad=True), 0),
        "send on rank 1: the tensor needs a gradient, and messages carry none; give x.detach() "
        "and send the gradient back as a message of its own",
    ),
    "a transposed tensor": (
        lambda c: c.send(torch.zeros(2, 3).T, 0),
        "send on rank 1: a tensor float32 [3, 2] is not contiguous; give x.contiguous()",
    ),
    "every second number": (
        lambda c: c.recv(0, np.zeros(6)[::2]),
        "recv on rank 1: an array float64 [3] is not contiguous; give x.copy()",
    ),
    "receive into what must not be written to": (
        lambda c: c.recv(0, np.broadcast_to(np.zeros(1), (1,))),
        "recv on rank 1: an array float64 [1] cannot be written to; give an array of your own",
    ),
    "a tensor without data": (
        lambda c: c.send(torch.zeros(1, device="meta"), 0),
        "send on rank 1: the tensor lies on meta, this rank's are on cpu; move it there",
    ),
    "an unknown sum": (
        lambda c: c.all_reduce(torch.zeros(1), "mean"),
        "all_reduce on rank 1: op='mean' is unknown; choose sum or max",
    ),
    "a root that is not": (
        lambda c: c.broadcast(torch.zeros(1), 5),
        "broadcast on rank 1: no rank 5; there are 0..1",
    ),
    "a negative colour": (lambda c: c.split(-1), "split on rank 1: color=-1; give an int >= 0"),
    "a report that cannot travel": (
        lambda c: c.report(n for n in [1]),
        "what it reports cannot be sent (TypeError: cannot pickle 'generator' object); open files, "
        "locks and generators stay where they were made: give plain data",
    ),
}


def test_bad_input_is_one_sentence_on_the_rank_that_gave_it():
    def program(comm):
        told = {}
        for name, (call, _) in BAD.items() if comm.rank == 1 else ():
            try:
                call(comm)
            except ValueError as error:
                told[name] = str(error)
        comm.barrier()  # no message has been sent: the ranks still understand each other
        return told

    nothing, told = run_ranks(program, 2).results
    assert nothing == {} and set(told) == set(BAD)
    for name, text in told.items():
        assert text == BAD[name][1]


def test_a_comm_of_one_rank_says_that_it_is_alone():
    def program(comm):
        assert comm.all_reduce(torch.tensor([2.0])).item() == 2
        comm.send(torch.zeros(1), 1)

    with pytest.raises(RankError, match="no rank 1; rank 0 is alone"):
        run_ranks(program, 1)
