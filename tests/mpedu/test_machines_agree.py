"""The same programs on simulated ranks and on processes: the same results, and the same faults."""

import re
import sys
from functools import partial

import cloudpickle
import collective_cases
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from collective_cases import NAMES, Case, called, is_close, serial

from mpedu.differentiable import copy_to, gather_tokens, reduce_from, reduce_scatter_tokens
from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError

# The ranks need not import these files, and with them pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(collective_cases)

WORLDS = (2, 4)
SIZES = (0, 1, 7, 10_000)


def collectives(n_ranks):
    """Cases of all collectives: even, uneven and empty parts, with and without more axes."""
    made = []
    for seed, n in enumerate(SIZES):
        uneven = (n - n // 3, n // 3, *[0] * (n_ranks - 2))
        for name in NAMES:
            rows = uneven if name == "all_gather" and seed % 2 else (n,) * n_ranks
            pairs = tuple(uneven[rank:] + uneven[:rank] for rank in range(n_ranks))
            parts = uneven if seed % 2 else None
            rest = (2, 3) if n == 7 else ()
            made.append(Case(name, n_ranks, rows, rest, pairs, parts, seed % n_ranks, seed))
    return made


def integers(comm):
    cases = collectives(comm.size)
    arrays = [case.x(comm.rank, torch.int64) for case in cases]
    tensors = [called(comm, case, x) for case, x in zip(cases, arrays, strict=True)]
    arrays = [x.numpy().astype(np.int32) for x in arrays]
    return tensors, [called(comm, case, x) for case, x in zip(cases, arrays, strict=True)]


def doubles(comm):
    cases = collectives(comm.size)
    return [called(comm, case, case.x(comm.rank)) for case in cases]


def gradients(comm):
    found = []
    for case in collectives(comm.size):
        if case.name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            x = case.x(comm.rank).requires_grad_(comm.rank != 1)
            (called(comm, case, x) ** 2).sum().backward()
            found.append(x.grad)
    return found


def pairs(comm):
    made = torch.Generator().manual_seed(3)
    x, up, down = (
        torch.randn(shape, generator=made, dtype=torch.float64)
        for shape in ((5, 6), (6, 8), (8, 6))
    )
    up = up.chunk(comm.size, 1)[comm.rank].contiguous().requires_grad_()
    down = down.chunk(comm.size)[comm.rank].contiguous().requires_grad_()
    y = reduce_from(F.gelu(copy_to(x.requires_grad_(), comm) @ up) @ down, comm)
    sizes = [5 - comm.size + 1, *[1] * (comm.size - 1)]
    own = x.detach().split(sizes)[comm.rank].clone().requires_grad_()
    z = reduce_scatter_tokens(gather_tokens(own, comm, sizes) @ up @ down, comm, sizes)
    (y.square().sum() + z.square().sum()).backward()
    return [y.detach(), z.detach(), x.grad, own.grad, up.grad, down.grad]


def messages(comm):
    """Sends and receives of every kind, in every order."""
    size, rank = comm.size, comm.rank
    after, before = (rank + 1) % size, (rank - 1) % size
    made = np.random.default_rng(rank)
    dtypes = [np.float32, np.float64, np.complex64, np.int8, np.uint16, np.bool_]
    parts = [made.normal(size=(n, 2)).astype(dtype) for n, dtype in enumerate(dtypes)]
    sends = [comm.isend(part, after, tag) for tag, part in enumerate(parts)]
    got = [comm.recv(before, tag=tag) for tag in range(len(parts))[::-1]]
    tensor = torch.randn(3, generator=torch.Generator().manual_seed(rank)).bfloat16()
    sends.append(comm.isend(tensor, before))
    got.append(comm.recv(after).float())
    sends.append(comm.isend(np.array(rank), after))
    got.append(comm.recv(before, torch.zeros((), dtype=torch.int64)))
    for request in sends[::-1]:
        request.wait()
    half = comm.split(rank % 2)
    if half.size > 1:
        for turn in range(3):
            x = np.full(1000, turn + rank / 7)
            if half.rank == turn % 2:
                half.send(x, 1 - half.rank)
            else:
                got.append(half.recv(1 - half.rank))
    return got


def started_together(comm):
    """Collectives beside each other and beside messages, waited for in another order."""
    requests = [comm.all_reduce(np.arange(n) * (comm.rank + 1), async_op=True) for n in (3, 0, 50)]
    requests.append(comm.barrier(async_op=True))
    sending = comm.isend(np.array([comm.rank]), (comm.rank + 1) % comm.size)
    got = [comm.recv((comm.rank - 1) % comm.size)]
    sending.wait()
    return got + [requests[place].wait() for place in (2, 3, 0, 1)][::2]


def mixed(comm):
    """NumPy arrays on some ranks and tensors on others; numbers without axes; True and False."""
    ones = np.ones(comm.size, np.float32) if comm.rank % 2 else torch.ones(comm.size)
    flag = np.array(comm.rank == 1)
    results = [comm.all_reduce(ones), comm.all_gather(ones), comm.all_to_all(ones)]
    results += [comm.all_reduce(flag), comm.all_gather(flag), comm.all_reduce(flag, "max")]
    results += [comm.all_reduce(torch.tensor(comm.rank)), comm.all_gather(torch.tensor(comm.rank))]
    results.append(comm.all_reduce(np.array([comm.rank, np.nan]), "max"))
    return [*results, comm.broadcast(ones * comm.rank, 1)]


EXACT = {"integers": integers, "messages": messages, "together": started_together, "mixed": mixed}
CLOSE = {"doubles": doubles, "gradients": gradients, "pairs": pairs}


def everything(comm):
    return {name: program(comm) for name, program in {**EXACT, **CLOSE}.items()}


@pytest.fixture(scope="module", params=WORLDS)
def both(request):
    """The results of all programs on both machines, and their meters."""
    return [run_ranks(everything, request.param, machine=m) for m in ("simulated", "processes")]


def leaves(value):
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


@pytest.mark.parametrize("name", EXACT)
def test_integers_and_messages_are_the_same_to_the_last_bit(both, name):
    for ranks in zip(*(run.results for run in both), strict=True):
        one, other = (leaves(result[name]) for result in ranks)
        assert len(one) == len(other) > 5 - 3 * (name == "together")
        for a, b in zip(one, other, strict=True):
            assert type(a) is type(b)
            if a is None:
                continue
            assert a.dtype == b.dtype and a.shape == b.shape
            assert bytes(np.asarray(a)) == bytes(np.asarray(b))


@pytest.mark.parametrize("name", CLOSE)
def test_reductions_of_doubles_differ_in_the_last_bits_at_most(both, name):
    for ranks in zip(*(run.results for run in both), strict=True):
        one, other = (leaves(result[name]) for result in ranks)
        assert len(one) == len(other) > 5
        for a, b in zip(one, other, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                scale = a.abs().max() if a.numel() else torch.tensor(0.0)
                assert is_close(a, b, scale)


def test_both_are_right(both):
    size = len(both[0].results)
    for case, values in zip(
        collectives(size),
        zip(*(r["doubles"] for run in both for r in run.results), strict=True),
        strict=True,
    ):
        right = serial(case, [case.x(rank) for rank in range(size)])
        for value, expected in zip(values, [*right, *right], strict=True):
            assert is_close(value, expected, 1 + expected.abs())


def test_both_count_the_same_calls_and_messages(both):
    calls = [
        {key: count.calls for key, count in run.meter.counts.items() if count.calls} for run in both
    ]
    assert calls[0] == calls[1]
    for rank in range(len(both[0].results)):
        assert both[0].meter.total(rank, "send") == both[1].meter.total(rank, "send")


def by_rank(*parts):
    """A program of which each rank runs its own part, and which gives nothing."""
    return lambda comm: nothing(parts[comm.rank](comm))


def nothing(comm):
    return None


# Key words that both machines must say.
FAULTS = {
    "an error": (
        lambda c: c.all_reduce(np.ones(1) if c.rank else 1 // c.rank),
        ["rank 0 failed: ZeroDivisionError"],
    ),
    "both receive first": (
        lambda c: c.recv(1 - c.rank, np.zeros(1), tag=3, what="the token"),
        [
            "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0",
            r"rank 0 waits in recv from rank 1 \(the token, tag 3\)",
        ],
    ),
    "a receive from one that has finished": (
        by_rank(nothing, lambda c: c.recv(0)),
        ["deadlock: rank 1 waits for rank 0, which has finished", "rank 0 has finished"],
    ),
    "two collectives": (
        lambda c: c.barrier() if c.rank else c.all_reduce(np.ones(1)),
        ["rank 1 calls barrier where rank 0 calls all_reduce; all ranks must call the same"],
    ),
    "two shapes": (
        lambda c: c.all_reduce(np.ones(3 + c.rank)),
        [r"all_reduce: rank 0 gives float64 \[3\], rank 1 float64 \[4\]; all must give the same"],
    ),
    "other rows than expected": (
        lambda c: c.all_to_all(np.zeros(3), [1, 2], [1, 1]),
        ["all_to_all: rank 0 sends 2 rows to rank 1, which expects 1;"],
    ),
    "another shape than expected": (
        lambda c: c.recv(0, np.zeros(3)) if c.rank else c.send(np.zeros(2), 1),
        [r"recv on rank 1: rank 0 sends float64 \[2\], and the array to receive into is float64"],
    ),
    "a message that nobody takes": (
        by_rank(lambda c: c.isend(np.zeros(2), 1, tag=7), nothing),
        [r"rank 1 never received what rank 0 sent it: float64 \[2\] \(tag 7\)"],
    ),
    "a receive that nobody serves": (
        by_rank(nothing, lambda c: c.irecv(0, np.zeros(2))),
        ["rank 0 never sent what rank 1 started to receive from it"],
    ),
    "a receive that is never waited for": (
        by_rank(lambda c: c.send(np.zeros(2), 1, tag=7), lambda c: c.irecv(0, tag=7)),
        [r"rank 1 never waited for what it started to receive from rank 0 \(tag 7\)"],
    ),
    "a collective that is never waited for": (
        lambda c: nothing(c.all_reduce(np.ones(2), async_op=True)),
        ["rank 0 never waited for the all_reduce it started"],
    ),
    "bad input": (
        lambda c: c.send(np.zeros(2), 5) if c.rank else c.barrier(),
        ["rank 1 failed: ValueError: send on rank 1: no rank 5; there are 0..1"],
    ),
    "max of what needs a gradient": (
        lambda c: c.all_reduce(torch.ones(2, requires_grad=c.rank == 1), "max"),
        [r"rank 1 failed: ValueError: all_reduce on rank 1: .*gradient; give x.detach\(\)"],
    ),
}


@pytest.mark.parametrize("machine", ["simulated", "processes"])
@pytest.mark.parametrize("program, words", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_in_the_same_words(program, words, machine):
    with pytest.raises(RankError) as caught:
        run_ranks(program, 2, machine=machine, timeout_s=30.0)
    for pattern in words:
        assert re.search(pattern, str(caught.value)), f"{pattern!r} is not in {caught.value}"


def test_results_of_classes_of_a_notebook_are_of_that_class_on_both():
    cell = {"__name__": "__main__"}
    exec("class Point(tuple): pass\ndef program(comm): return Point([comm.rank])", cell)
    runs = [run_ranks(cell["program"], 2, machine=m).results for m in ("simulated", "processes")]
    assert runs == [[(0,), (1,)]] * 2


def test_programs_may_be_partial_functions_and_methods():
    program = partial(lambda factor, comm, n: factor * n * comm.rank, 2)
    for machine in ("simulated", "processes"):
        assert run_ranks(program, 2, 5, machine=machine).results == [0, 10]
