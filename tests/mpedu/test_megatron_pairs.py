"""Megatron's pairs, against the product of the whole matrices."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from collective_cases import DRAWN, is_close
from hypothesis import given
from hypothesis import strategies as st

from mpedu.comm import even_sizes
from mpedu.differentiable import (
    copy_to,
    gather_from,
    gather_tokens,
    reduce_from,
    reduce_scatter_tokens,
    scatter_to,
)
from mpedu.launch import run_ranks

simulated = partial(run_ranks, machine="simulated")


def drawn_layer(seed, n_tokens, d_model, d_ff):
    made = torch.Generator().manual_seed(seed)
    shapes = ((n_tokens, d_model), (d_model, d_ff), (d_ff, d_model), (n_tokens, d_model))
    return [torch.randn(shape, generator=made, dtype=torch.float64) for shape in shapes]


def serial_layer(seed, *sizes):
    x, up, down, weight = drawn_layer(seed, *sizes)
    for leaf in (x, up, down):
        leaf.requires_grad_()
    y = F.gelu(x @ up) @ down
    (y * weight).sum().backward()
    return y.detach(), x.grad, up.grad, down.grad


def own_part(x, comm, dim):
    part = x.split(list(even_sizes(x.shape[dim], comm.size)), dim)[comm.rank]
    return part.clone().requires_grad_()


def tensor_parallel(comm, *drawn):
    x, up, down, weight = drawn_layer(*drawn)
    x, up, down = x.requires_grad_(), own_part(up, comm, 1), own_part(down, comm, 0)
    y = reduce_from(F.gelu(copy_to(x, comm) @ up) @ down, comm)
    (y * weight).sum().backward()
    return y.detach(), x.grad, up.grad, down.grad


def gathered_between(comm, *drawn):
    x, up, down, weight = drawn_layer(*drawn)
    x, up, down = x.requires_grad_(), own_part(up, comm, 1), own_part(down, comm, 0)
    sizes = even_sizes(drawn[-1], comm.size)
    hidden = gather_from(copy_to(x, comm) @ up, comm, sizes=sizes)
    y = reduce_from(scatter_to(F.gelu(hidden), comm) @ down, comm)
    (y * weight).sum().backward()
    return y.detach(), x.grad, up.grad, down.grad


def sequence_parallel(comm, *drawn):
    x, up, down, weight = drawn_layer(*drawn)
    sizes = even_sizes(len(x), comm.size)
    x, up, down = own_part(x, comm, 0), own_part(up, comm, 1), own_part(down, comm, 0)
    hidden = F.gelu(gather_tokens(x, comm, sizes) @ up)
    y = reduce_scatter_tokens(hidden @ down, comm, sizes)
    (y * own_part(weight, comm, 0)).sum().backward()
    return y.detach(), x.grad, up.grad, down.grad


@pytest.mark.parametrize("layer", [tensor_parallel, gathered_between, sequence_parallel])
@given(
    p=st.integers(1, 8),
    n_tokens=st.integers(1, 20),
    d_model=st.integers(1, 9),
    d_ff=st.integers(1, 20),
    seed=st.integers(0, 99),
)
@DRAWN
def test_split_layers_have_the_products_and_gradients_of_the_whole(
    layer, p, n_tokens, d_model, d_ff, seed
):
    y, x_grad, up_grad, down_grad = serial_layer(seed, n_tokens, d_model, d_ff)
    results = simulated(layer, p, seed, n_tokens, d_model, d_ff).results
    scale = 10.0 * (1 + d_ff) * (1 + d_model)
    token_sizes, ff_sizes = even_sizes(n_tokens, p), even_sizes(d_ff, p)
    are_tokens_split = layer is sequence_parallel
    for rank, (own_y, own_x, own_up, own_down) in enumerate(results):
        for own, whole in ((own_y, y), (own_x, x_grad)):
            part = whole.split(list(token_sizes))[rank] if are_tokens_split else whole
            assert is_close(own, part, scale, 1e-13)
        assert is_close(own_up, up_grad.split(list(ff_sizes), 1)[rank], scale, 1e-13)
        assert is_close(own_down, down_grad.split(list(ff_sizes))[rank], scale, 1e-13)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_scatter_and_gather_undo_each_other_along_any_axis(dim):
    def program(comm):
        x = torch.arange(2 * 3 * 5, dtype=torch.float64).reshape(2, 3, 5).requires_grad_()
        sizes = even_sizes(x.shape[dim], comm.size)
        part = scatter_to(x, comm, dim)
        whole = gather_from(part, comm, dim, sizes)
        (whole * x.detach()).sum().backward()
        assert torch.equal(whole, x) and torch.equal(x.grad, x.detach())
        return part.shape[dim]

    shape = (2, 3, 5)
    for n_ranks in (1, 2, 4):
        assert simulated(program, n_ranks).results == list(even_sizes(shape[dim], n_ranks))


def test_gathered_parts_are_equal_where_no_sizes_are_given():
    def program(comm):
        x = torch.full((2, 3), float(comm.rank))
        return gather_from(x, comm, 0)[:, 0].tolist(), gather_tokens(x, comm)[:, 0].tolist()

    assert simulated(program, 2).results == [([0, 0, 1, 1], [0, 0, 1, 1])] * 2


def test_the_loss_of_a_megatron_layer_counts_once_and_that_of_a_comm_on_every_rank():
    def program(comm):
        x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
        reduce_from(copy_to(x, comm), comm).sum().backward()
        comm.all_reduce(y).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    assert simulated(program, 4).results == [([4.0] * 3, [4.0] * 3)] * 4

    def part(comm):
        x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
        reduce_from(x, comm).sum().backward()
        comm.all_reduce(y).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    assert simulated(part, 4).results == [([1.0] * 3, [4.0] * 3)] * 4
