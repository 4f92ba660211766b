import threading
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from collective_cases import DRAWN, called, cases, is_close, serial
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

from mpedu.alone import Alone
from mpedu.launch import run_ranks
from mpedu.ranks.outcome import RankError

simulated = partial(run_ranks, machine="simulated")
FLOWING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def weights(shape, rank, dtype=torch.float64):
    """What a rank's loss multiplies its result with, which so becomes the gradient of it."""
    made = torch.Generator().manual_seed(rank)
    return torch.randn(shape, generator=made, dtype=torch.float64).to(dtype)


def serial_gradients(case, xs, which=None):
    """Of the sum of all ranks' losses, for the arrays of the ranks `which` (None: of all)."""
    xs = [x.clone().requires_grad_(which is None or r in which) for r, x in enumerate(xs)]
    losses = [(y * weights(y.shape, rank)).sum() for rank, y in enumerate(serial(case, xs))]
    torch.stack(losses).sum().backward()
    return [x.grad for x in xs]


def _gradient(comm, case, dtype, which):
    x = case.x(comm.rank, dtype).requires_grad_(comm.rank in which)
    y = called(comm, case, x)
    assert y.requires_grad and y.dtype == dtype
    (y * weights(y.shape, comm.rank, dtype)).sum().backward()
    return x.grad


@given(case=cases(FLOWING), data=st.data())
@DRAWN
def test_gradients_are_those_of_the_sum_of_all_losses(case, data):
    p = case.n_ranks
    which = data.draw(st.sets(st.integers(0, p - 1), min_size=1))
    xs = [case.x(rank) for rank in range(p)]
    scale = sum(weights((1,), rank).abs().max() for rank in range(p)) + 10 * p
    got = simulated(_gradient, p, case, torch.float64, which).results
    for rank, expected in enumerate(serial_gradients(case, xs, which)):
        if rank not in which:
            assert got[rank] is None
        else:
            assert is_close(got[rank], expected, scale, 1e-13)


@given(case=cases(FLOWING, most=1000))
@DRAWN
def test_bfloat16_gradients_are_as_near_as_their_roundings_allow(case):
    p = case.n_ranks
    got = simulated(_gradient, p, case, torch.bfloat16, set(range(p))).results
    expected = serial_gradients(case, [case.x(rank) for rank in range(p)])
    # a weight is rounded once, and each of p - 1 additions again; |weight| is below 6
    error = p * 2**-8
    for one, right in zip(got, expected, strict=True):
        assert is_close(one.double(), right, torch.tensor(6.0 * p), error / (1 - error))


def test_an_array_without_axes_has_a_gradient_too():
    def program(comm):
        x = torch.tensor(2.0, requires_grad=True)
        (comm.all_reduce(x * x) + comm.all_gather(3 * x).sum() * (comm.rank + 1)).backward()
        return x.grad.shape, x.grad.item()

    for n_ranks in (1, 3):
        ways = n_ranks * (n_ranks + 1) / 2
        expected = (torch.Size(), 4.0 * n_ranks + 3 * ways)
        assert simulated(program, n_ranks).results == [expected] * n_ranks
    assert program(Alone()) == (torch.Size(), 7.0)


def test_where_no_rank_needs_a_gradient_no_result_does():
    def program(comm):
        x = torch.ones(comm.size)
        results = [comm.all_reduce(x), comm.all_gather(x), comm.reduce_scatter(x)]
        results += [comm.all_to_all(x), comm.all_reduce(torch.ones(1, dtype=torch.int64))]
        with torch.no_grad():
            results.append(comm.all_reduce(x.requires_grad_()))
        return [r.requires_grad for r in results]

    assert simulated(program, 2).results == [[False] * 6] * 2


def test_backward_goes_through_several_collectives_and_work_between_them():
    def program(comm):
        x = torch.full((4,), comm.rank + 1.0, dtype=torch.float64, requires_grad=True)
        y = comm.all_reduce(x**2)
        z = comm.all_to_all((y * (comm.rank + 1)).sin())
        comm.all_gather(z.exp()).sum().backward()
        return x.grad

    xs = [torch.full((4,), rank + 1.0, dtype=torch.float64, requires_grad=True) for rank in (0, 1)]
    y = sum(x**2 for x in xs)
    both = [(y * (rank + 1)).sin() for rank in (0, 1)]
    zs = [torch.cat([one[2 * rank : 2 * rank + 2] for one in both]) for rank in (0, 1)]
    (2 * torch.cat([z.exp() for z in zs]).sum()).backward()
    for got, x in zip(simulated(program, 2).results, xs, strict=True):
        assert is_close(got, x.grad, x.grad.abs())


@pytest.mark.parametrize(
    "call",
    [
        lambda comm, x: comm.all_reduce(x, "max"),
        lambda comm, x: comm.reduce_scatter(x, "max"),
        lambda comm, x: comm.all_reduce(x, async_op=True),
        lambda comm, x: comm.broadcast(x),
        lambda comm, x: comm.send(x, 1 - comm.rank),
    ],
    ids=["max", "reduce_scatter-max", "async", "broadcast", "send"],
)
def test_what_has_no_gradient_refuses_a_tensor_that_needs_one(call):
    def program(comm):
        call(comm, torch.ones(2, requires_grad=comm.rank == 1))

    with pytest.raises(RankError, match=r"rank 1.* on rank 1: .*gradient.*; give x.detach\(\)"):
        simulated(program, 2)


def test_a_second_backward_through_a_collective_is_refused():
    def program(comm):
        x = torch.ones(2, requires_grad=True)
        (slope,) = torch.autograd.grad(comm.all_reduce(x).pow(2).sum(), x, create_graph=True)
        slope.sum().backward()

    with pytest.raises(RankError, match="once_differentiable"):
        simulated(program, 2)


def test_a_rank_that_leaves_out_the_backward_is_named():
    def program(comm):
        x = torch.ones(2, requires_grad=comm.rank == 0)
        loss = comm.all_reduce(x).sum()
        if comm.rank == 0:
            loss.backward()

    with pytest.raises(
        RankError, match=r"rank 0 waits for rank 1, which has finished[^\0]*waits in all_reduce"
    ):
        simulated(program, 2)


# Dropout and what a checkpoint computes again.


def dropped(x, weight, seed, meet, is_reentrant):
    """A checkpointed layer with dropout, and more around it; `meet` is between all of it."""
    torch.manual_seed(seed)

    def layer(hidden):
        meet()
        hidden = F.dropout(torch.tanh(hidden @ weight), 0.5)
        meet()
        return F.dropout(hidden, 0.2)

    y = F.dropout(x, 0.1)
    meet()
    y = checkpoint(layer, y, use_reentrant=is_reentrant)
    y = F.dropout(checkpoint(layer, y, use_reentrant=is_reentrant), 0.3)
    meet()
    y.square().sum().backward()
    return y.detach(), x.grad, weight.grad, torch.rand(3)


def _leaves(seed):
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=made, requires_grad=True) for shape in ((6, 8), (8, 8))]


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_dropout_and_recomputation_are_as_if_each_rank_were_alone(is_reentrant):
    def program(comm):
        def meet():
            comm.barrier()
            if comm.rank % 2:
                comm.recv(comm.rank - 1)
            elif comm.rank + 1 < comm.size:
                comm.send(np.zeros(1), comm.rank + 1)

        return dropped(*_leaves(comm.rank), 7 * comm.rank, meet, is_reentrant)

    before = torch.get_rng_state()
    results = simulated(program, 4).results
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        for rank, got in enumerate(results):
            alone = dropped(*_leaves(rank), 7 * rank, lambda: None, is_reentrant)
            assert all(torch.equal(a, b) for a, b in zip(got, alone, strict=True))


def test_a_checkpointed_collective_is_entered_again_by_all():
    def program(comm):
        x = torch.full((3,), comm.rank + 1.0, requires_grad=True)
        y = checkpoint(lambda v: comm.all_reduce(v * v).square(), x, use_reentrant=False)
        y.sum().backward()
        return x.grad.tolist()

    run = simulated(program, 3)
    assert run.results == [[3 * 2 * 14 * 2.0 * (rank + 1)] * 3 for rank in range(3)]
    assert run.meter.total(kind="all_reduce").calls == 3 * 3  # forward, again, backward


def test_a_backward_runs_in_the_thread_of_its_rank_with_one_thread_of_work():
    def program(comm):
        seen = [not torch._C._is_multithreading_enabled()]  # it matters on GPUs alone

        class Watched(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                seen.append(threading.get_ident() == own)
                return gradient

        own = threading.get_ident()
        Watched.apply(torch.ones(2, requires_grad=True)).sum().backward()
        return seen, torch.get_num_threads()

    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert simulated(program, 2).results == [([True, True], 1)] * 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
    assert torch._C._is_multithreading_enabled()
