from functools import partial

import numpy as np
import pytest
import torch
from collective_cases import DRAWN, NAMES, Case, called, cases, is_close, serial
from hypothesis import given
from hypothesis import strategies as st

from mpedu.comm import even_sizes
from mpedu.launch import run_ranks

simulated = partial(run_ranks, machine="simulated")
MOVING = ("all_gather", "all_to_all", "broadcast")


def test_every_collective_is_drawn():
    assert set(NAMES) == {"max", "all_reduce", "all_gather", "reduce_scatter", *MOVING[1:]}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@given(case=cases(), asked=st.booleans())
@DRAWN
def test_integers_come_out_exactly(kind, case, asked):
    def program(comm):
        x = case.x(comm.rank, torch.int64)
        if kind == "numpy":
            return torch.from_numpy(called(comm, case, x.numpy(), asked=asked))
        return called(comm, case, x, asked=asked)

    xs = [case.x(rank, torch.int64) for rank in range(case.n_ranks)]
    results = simulated(program, case.n_ranks).results
    for got, expected in zip(results, serial(case, xs), strict=True):
        assert got.dtype == torch.int64 and torch.equal(got, expected)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@given(case=cases(), asked=st.booleans())
@DRAWN
def test_doubles_come_out_as_by_the_formula(kind, case, asked):
    def program(comm):
        x = case.x(comm.rank)
        if kind == "numpy":
            return torch.from_numpy(called(comm, case, x.numpy(), asked=asked))
        return called(comm, case, x, asked=asked)

    xs = [case.x(rank) for rank in range(case.n_ranks)]
    scales = serial(case, [x.abs() for x in xs])
    results = simulated(program, case.n_ranks).results
    for got, expected, scale in zip(results, serial(case, xs), scales, strict=True):
        if case.name in MOVING or case.name == "max":
            assert torch.equal(got, expected)
        else:
            assert is_close(got, expected, scale)


@given(case=cases())
@DRAWN
def test_bfloat16_is_as_near_to_the_sum_in_float32_as_its_roundings_allow(case):
    program = partial(_run_bfloat16, case=case)
    xs = [case.x(rank, torch.bfloat16) for rank in range(case.n_ranks)]
    expected = serial(case, [x.float() for x in xs])
    scales = serial(case, [x.float().abs() for x in xs])
    # p - 1 additions, each rounded to 8 bits: Higham 2002, section 4.2
    error = (case.n_ranks - 1) * 2**-8
    tolerance = error / (1 - error) if case.name in ("all_reduce", "reduce_scatter") else 0
    for got, right, scale in zip(
        simulated(program, case.n_ranks).results, expected, scales, strict=True
    ):
        assert got.dtype == torch.bfloat16
        assert is_close(got.float(), right, scale, tolerance)


def _run_bfloat16(comm, case):
    return called(comm, case, case.x(comm.rank, torch.bfloat16))


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("n_ranks", [1, 3])
def test_an_array_without_axes_is_reduced_broadcast_and_gathered_as_a_row(make, n_ranks):
    def program(comm):
        x = make(comm.rank + 1.0)
        total, most = comm.all_reduce(x), comm.all_reduce(x, "max")
        rows = [comm.all_gather(x), comm.all_gather(x, sizes=[1] * comm.size)]
        assert comm.broadcast(x, n_ranks - 1) is x
        return [total.shape, most.shape, x.shape], [total, most, x], [r.tolist() for r in rows]

    for shapes, numbers, rows in simulated(program, n_ranks).results:
        assert [tuple(shape) for shape in shapes] == [()] * 3
        assert [float(n) for n in numbers] == [sum(range(n_ranks + 1)), n_ranks, n_ranks]
        assert rows == [[rank + 1.0 for rank in range(n_ranks)]] * 2


def test_results_are_new_arrays_and_what_was_given_stays_as_it_was():
    def program(comm):
        x = np.arange(4.0) + comm.rank
        before = x.copy()
        results = [comm.all_reduce(x), comm.all_gather(x), comm.reduce_scatter(x)]
        results.append(comm.all_to_all(x[: comm.size]))
        for result in results:
            assert not np.shares_memory(result, x)
            result[...] = -1
        assert np.array_equal(x, before)
        return [id(result) for result in results]

    for n_ranks in (1, 2, 4):
        ids = [i for result in simulated(program, n_ranks).results for i in result]
        assert len(set(ids)) == len(ids)


def test_arrays_and_tensors_may_be_mixed_and_each_rank_gets_its_own_kind():
    def program(comm):
        ones = np.ones(4, np.float32) if comm.rank % 2 else torch.ones(4)
        shared = ones * comm.rank
        comm.broadcast(shared, 1)
        results = [comm.all_reduce(ones), comm.all_gather(ones), comm.reduce_scatter(ones), shared]
        results.append(comm.all_to_all(ones))
        return [type(r) is type(ones) for r in results], [r.tolist() for r in results]

    for kinds, numbers in simulated(program, 4).results:
        assert all(kinds)
        assert numbers == [[4] * 4, [1] * 16, [4], [1] * 4, [1] * 4]


def test_a_nan_anywhere_is_the_largest_of_all():
    def program(comm):
        x = [float("nan") if comm.rank == 1 else 1.0, 2.0]
        return comm.all_reduce(np.array(x), "max").tolist(), comm.all_reduce(
            torch.tensor(x), "max"
        ).tolist()

    for results in simulated(program, 3).results:
        assert all(np.isnan(first) and second == 2 for first, second in results)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "bool", "complex64"])
def test_sums_keep_their_dtype(dtype):
    def program(comm):
        totals = [comm.all_reduce(np.ones(3, dtype))]
        totals.append(comm.all_reduce(torch.from_numpy(np.ones(3, dtype))).numpy())
        return [(t.dtype.name, t.tolist()) for t in totals]

    total = True if dtype == "bool" else 3
    assert simulated(program, 3).results == [[(dtype, [total] * 3)] * 2] * 3


@given(data=st.data())
@DRAWN
def test_collectives_waited_for_in_any_order_give_the_same(data):
    drawn = [data.draw(cases(worlds=st.just(4), most=50)) for _ in range(4)]
    orders = [data.draw(st.permutations(range(6))) for _ in range(4)]

    def program(comm):
        after, before = (comm.rank + 1) % 4, (comm.rank - 1) % 4
        requests = [called(comm, case, case.x(comm.rank), async_op=True) for case in drawn]
        sending = comm.isend(torch.tensor([comm.rank]), after)
        requests += [comm.irecv(before), sending]
        results = [None] * len(requests)
        for place in orders[comm.rank]:
            results[place] = requests[place].wait()
        assert all(r.wait() is value for r, value in zip(requests, results, strict=True))
        return results[:-1]

    expected = [serial(case, [case.x(rank) for rank in range(4)]) for case in drawn]
    for rank, (*got, ring) in enumerate(simulated(program, 4).results):
        assert ring.tolist() == [(rank - 1) % 4]
        for value, ranks in zip(got, expected, strict=True):
            assert is_close(value, ranks[rank], 1 + ranks[rank].abs(), 1e-13 * 4)


@given(p=st.integers(1, 8), data=st.data())
@DRAWN
def test_groups_of_groups_work_like_worlds(p, data):
    colors = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=p, max_size=p))

    def program(comm):
        outer = comm.split(colors[comm.rank][0])
        inner = outer.split(colors[comm.rank][1])
        own = np.array([comm.rank])
        gathered = inner.all_gather(own).tolist()
        passed = own
        if inner.size > 1:
            sending = inner.isend(own, (inner.rank + 1) % inner.size)
            passed = inner.recv((inner.rank - 1) % inner.size)
            sending.wait()
        outer.barrier()
        return inner.rank, gathered, int(passed[0]), comm.all_reduce(own).item()

    for rank, (place, gathered, passed, total) in enumerate(simulated(program, p).results):
        members = [r for r in range(p) if colors[r] == colors[rank]]
        assert gathered == members and members[place] == rank
        assert passed == members[place - 1]
        assert total == sum(range(p))


@given(n=st.integers(0, 10_000), p=st.integers(1, 8))
@DRAWN
def test_even_sizes_differ_by_one_at_most_the_larger_first(n, p):
    sizes = even_sizes(n, p)
    assert sum(sizes) == n and len(sizes) == p
    assert list(sizes) == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def test_a_large_world_is_simulated_too():
    run = simulated(lambda comm: comm.all_reduce(np.array([comm.rank])).item(), 64)
    assert run.results == [sum(range(64))] * 64
    assert run.meter.total(kind="all_reduce").messages == 64 * 2 * 63


def test_a_case_draws_the_same_numbers_again():
    case = Case("all_reduce", 2, (5, 5), (), (), None, 0, 3)
    assert torch.equal(case.x(1), case.x(1)) and not torch.equal(case.x(0), case.x(1))
