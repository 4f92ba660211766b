"""Collectives of real ranks against what NumPy says of all ranks' arrays."""

import sys

import cloudpickle
import numpy as np
import pytest
import torch

from mpedu.comm import even_sizes
from mpedu.launch import run_ranks

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
WORLDS = pytest.mark.parametrize("n_ranks", [1, 2, 3, 4])
CHECKED = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
DTYPES = [
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("uint16", "uint32", "uint64", "bool", "complex64", "complex128"),
]


def drawn(rank, shape, dtype, seed=0):
    """Whole numbers, as NumPy has them: sums of them are exact in every dtype, but may wrap."""
    numbers = np.random.default_rng([rank, seed]).integers(0, 12, shape)
    if dtype == "bfloat16":
        return numbers.astype(np.float32)
    return (numbers % 2 if dtype == "bool" else numbers).astype(dtype)


def of_kind(x, dtype, kind):
    """The same numbers as an array of that kind and dtype."""
    return torch.from_numpy(np.asarray(x)).to(getattr(torch, dtype)) if kind == "torch" else x


def same(got, wanted, kind, dtype):
    """Whether kind, dtype, shape and every number are the same."""
    assert isinstance(got, np.ndarray if kind == "numpy" else torch.Tensor), type(got)
    assert str(got.dtype).removeprefix("torch.") == dtype and tuple(got.shape) == wanted.shape
    plain = got if kind == "numpy" else got.to(torch.float32 if dtype == "bfloat16" else got.dtype)
    return np.asarray(plain).tolist() == wanted.tolist()


def every_collective(comm, dtype, kind, shape):
    """Names of those that give something else than NumPy."""
    n, here = comm.size, comm.rank
    xs = [drawn(rank, shape, dtype) for rank in range(n)]
    x = of_kind(xs[here], dtype, kind)
    before = of_kind(xs[here].copy(), dtype, kind)
    total = np.add.reduce(xs, axis=0, dtype=xs[0].dtype)
    highest = np.maximum.reduce(xs, axis=0)
    cuts = np.cumsum(even_sizes(len(x), n))[:-1] if shape else None
    wrong = []

    def expect(name, got, wanted):
        if not same(got, np.asarray(wanted), kind, dtype):
            wrong.append(name)

    expect("sum", comm.all_reduce(x), total)
    expect("gather", comm.all_gather(x), np.concatenate([np.atleast_1d(x) for x in xs]))
    if not dtype.startswith("complex"):
        expect("max", comm.all_reduce(x, "max"), highest)
    if shape:
        expect("scatter", comm.reduce_scatter(x), np.split(total, cuts)[here])
        if not dtype.startswith("complex"):
            expect("max scatter", comm.reduce_scatter(x, "max"), np.split(highest, cuts)[here])
        sizes = [(here + other) % 3 for other in range(n)]
        rows = of_kind(drawn(here, (sum(sizes), *shape[1:]), dtype, 1), dtype, kind)
        got = comm.all_to_all(rows, sizes)
        expect("all to all", got, exchanged(n, here, shape[1:], dtype))
    expect("unchanged", x, xs[here])
    root = n - 1
    expect("broadcast", comm.broadcast(before, root), xs[root])
    return wrong


def exchanged(n, here, rest, dtype):
    parts = []
    for source in range(n):
        sizes = [(source + other) % 3 for other in range(n)]
        rows = drawn(source, (sum(sizes), *rest), dtype, 1)
        parts.append(np.split(rows, np.cumsum(sizes)[:-1])[here])
    return np.concatenate(parts)


@WORLDS
@CHECKED
def test_every_collective_gives_what_numpy_says_of_every_dtype(n_ranks, checked):
    def program(comm):
        torch.set_grad_enabled(checked)  # unchecked, nobody knows whether another rank needs one
        found = {}
        for dtype in DTYPES:
            for kind in ("torch",) if dtype == "bfloat16" else ("torch", "numpy"):
                wrong = every_collective(comm, dtype, kind, (5, 2))
                if wrong:
                    found[dtype, kind] = wrong
        return found

    assert run_ranks(program, n_ranks, check_messages=checked).results == [{}] * n_ranks


@WORLDS
def test_arrays_of_every_size_are_reduced_gathered_and_scattered(n_ranks):
    def program(comm):
        shapes = [(), (0,), (1,), (7, 0), (3, 1, 2), (10_000,)]
        return [
            (shape, wrong)
            for shape in shapes
            for kind in ("torch", "numpy")
            if (wrong := every_collective(comm, "float64", kind, shape))
        ]

    assert run_ranks(program, n_ranks).results == [[]] * n_ranks


@CHECKED
def test_uneven_rows_are_gathered_and_scattered_as_sizes_say(checked):
    sizes = (0, 3, 1)

    def program(comm):
        rows = [drawn(rank, (size, 2), "float32") for rank, size in enumerate(sizes)]
        gathered = comm.all_gather(torch.from_numpy(rows[comm.rank]), sizes)
        assert gathered.tolist() == np.concatenate(rows).tolist()
        whole = [drawn(rank, (4, 2), "int64", 2) for rank in range(3)]
        for op, wanted in (("sum", sum(whole)), ("max", np.maximum.reduce(whole))):
            part = comm.reduce_scatter(whole[comm.rank], op, sizes)
            assert part.tolist() == np.split(wanted, np.cumsum(sizes)[:-1])[comm.rank].tolist()

    run_ranks(program, 3, check_messages=checked)


def test_a_sum_of_bfloat16_is_rounded_once_where_it_is_scattered():
    def program(comm):
        parts = [torch.randn(40, generator=torch.Generator().manual_seed(r)) for r in range(4)]
        parts = [part.bfloat16() for part in parts]
        exact = sum(part.float() for part in parts)
        scattered = comm.all_gather(comm.reduce_scatter(parts[comm.rank]))
        assert torch.equal(scattered, exact.bfloat16())
        reduced = comm.all_reduce(parts[comm.rank])
        assert (reduced.float() - exact).abs().max() <= 4 * 2**-8 * exact.abs().max()

    run_ranks(program, 4)


def test_the_highest_of_numbers_and_a_nan_is_a_nan_as_in_numpy():
    def program(comm):
        x = np.array([1.0, np.nan if comm.rank else 0.0, 0.0 if comm.rank else np.nan])
        return np.isnan(comm.all_reduce(x, "max")).tolist()

    assert run_ranks(program, 2).results == [[False, True, True]] * 2


@WORLDS
@CHECKED
def test_async_collectives_may_be_waited_for_in_any_order(n_ranks, checked):
    def program(comm):
        x = torch.full((3,), float(comm.rank))
        before = [comm.all_reduce(x + n, async_op=True) for n in range(6)]
        gathering = comm.all_gather(x, async_op=True)
        barrier = comm.barrier(async_op=True)
        scattering = comm.reduce_scatter(x.repeat(comm.size), async_op=True)
        exchange = comm.all_to_all(x[:1].repeat(comm.size), async_op=True)
        shared = x.clone()
        sharing = comm.broadcast(shared, async_op=True)
        blocking = comm.all_reduce(x)
        requests = [*before, gathering, scattering, exchange, sharing, barrier]
        order = np.random.default_rng(comm.rank).permutation(len(requests))
        for place in order:  # another one on each rank
            requests[place].wait()
        results = [request.wait() for request in requests]  # again: the same
        total = sum(range(comm.size))
        assert blocking.tolist() == [total] * 3
        for n, got in enumerate(results[:6]):
            assert got.tolist() == [total + n * comm.size] * 3
        assert results[6].tolist() == [rank for rank in range(comm.size) for _ in range(3)]
        assert results[7].tolist() == [total] * 3
        assert results[8].tolist() == list(range(comm.size))
        assert results[9] is shared and shared.tolist() == [0, 0, 0]

    run_ranks(program, n_ranks, check_messages=checked)


@CHECKED
def test_a_started_collective_goes_on_while_its_rank_waits_for_a_message(checked):
    """Rank 0 waits for what rank 1 sends only when its own collective is done."""

    def program(comm):
        summing = comm.all_reduce(np.ones(2), async_op=True)
        if comm.rank == 0:
            comm.recv(1, np.zeros(1))
            return summing.wait().tolist()
        total = summing.wait()
        comm.send(np.zeros(1), 0)
        return total.tolist()

    assert run_ranks(program, 2, check_messages=checked).results == [[2, 2]] * 2


def test_gradients_flow_through_collectives_as_of_the_sum_of_all_losses():
    def program(comm):
        x = torch.arange(4.0, dtype=torch.float64) + comm.rank
        x.requires_grad_(comm.rank != 1)  # one that needs none takes part all the same
        weight = torch.arange(4.0, dtype=torch.float64) * (comm.rank + 1)
        (comm.all_reduce(x * x) * weight).sum().backward()
        return None if x.grad is None else (x.grad / (2 * x.detach())).nan_to_num().tolist()

    results = run_ranks(program, 3).results
    assert results[1] is None
    for rank in (0, 2):
        wanted = [0.0 if not n + rank else 6.0 * n for n in range(4)]
        assert results[rank] == pytest.approx(wanted)
