"""Collectives that gradients flow through, in two conventions that are never mixed.

*Collectives of a `Comm`* (`comm.all_reduce(x)`, ...) give the gradient of the sum of all ranks'
losses: what came from all goes back to all. So the backward of all_reduce is all_reduce, of
all_gather reduce_scatter and the other way round, of all_to_all all_to_all with the sizes
exchanged. Every rank must run the backward, also one whose own array needs no gradient: where some
rank's does, every rank's result does.

*Megatron's pairs* (`copy_to`, `reduce_from`, `scatter_to`, `gather_from`, and for the tokens
`gather_tokens`, `reduce_scatter_tokens`) are for layers whose loss is the same on every rank and
counts once (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpedu.comm import Call, Comm, even_sizes
from mpedu.simulated import rank_state
from mpedu.tensors import set_differentiation


class _Collective(torch.autograd.Function):
    """One collective; `witness` needs a gradient, so that the backward runs on every rank."""

    @staticmethod
    def forward(ctx: Any, comm: Comm, call: Call, x: Tensor, witness: Tensor) -> Tensor:
        """The result; it needs a gradient where some rank's array does."""
        ctx.comm, ctx.call, ctx.shape = comm, call, x.shape
        call = call._replace(x=x.detach(), needs_gradient=x.requires_grad)
        request: Any = comm._start(call)
        result: Tensor = request.wait()
        if not request.any_gradient:
            ctx.mark_non_differentiable(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The conjugate collective of the gradients."""
        back = _conjugate(ctx.call, gradient.contiguous(), ctx.comm.size)
        found = ctx.comm._start(back).wait()
        return None, None, found.reshape(ctx.shape) if ctx.needs_input_grad[2] else None, None


def _conjugate(call: Call, gradient: Tensor, size: int) -> Call:
    if call.operation == "all_reduce":
        return Call("all_reduce", gradient, op="sum")
    if call.operation == "all_gather":
        sizes = call.sizes or even_sizes(len(gradient), size)
        return Call("reduce_scatter", gradient, op="sum", sizes=sizes)
    if call.operation == "reduce_scatter":
        return Call("all_gather", gradient, sizes=call.sizes)
    return Call("all_to_all", gradient, sizes=call.recv_sizes, recv_sizes=call.sizes)


def differentiated(comm: Comm, call: Call, async_op: bool) -> Tensor | None:
    """The result of a collective that gradients can flow through; None where none could.

    ValueError for an async one, and for "max", of a tensor that needs a gradient.
    """
    x = call.x
    if not torch.is_grad_enabled() or not (x.is_floating_point() or x.is_complex()):
        return None
    if async_op or call.op == "max":
        if x.requires_grad:
            what = "an async collective" if async_op else 'the "max" of all ranks'
            raise comm._wrong(call.operation, f"{what} has no gradient; give x.detach()")
        return None
    witness = torch.empty(0, requires_grad=True)
    result: Tensor = _Collective.apply(comm, call, x, witness)  # type: ignore[no-untyped-call]
    return result


set_differentiation(differentiated)


def _set_state(state: Tensor) -> None:
    torch.default_generator.set_state(state)


rank_state.GENERATORS.append(rank_state.Generator(torch.default_generator.get_state, _set_state))


@contextmanager
def _rank_thread() -> Iterator[None]:
    """One thread of work, as a rank has; and a backward calls `Comm` from its rank's own thread."""
    torch.set_num_threads(1)
    with torch.autograd.set_multithreading_enabled(False):
        yield


@contextmanager
def _same_threads() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(n_threads)


rank_state.CONTEXTS.append(_rank_thread)
rank_state.AROUND.append(_same_threads)


Function = Callable[[Tensor], Tensor]


class _Pair(torch.autograd.Function):
    """One function forward, its conjugate backward; each takes and gives a tensor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Function, back: Function) -> Tensor:
        """`there(x)`."""
        ctx.back = back
        result: Tensor = there(x.detach())
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """`back(gradient)`."""
        return ctx.back(gradient), None, None


def _pair(x: Tensor, there: Function, back: Function) -> Tensor:
    result: Tensor = _Pair.apply(x, there, back)  # type: ignore[no-untyped-call]
    return result


def copy_to(x: Tensor, comm: Comm) -> Tensor:
    """`x`, the same on every rank; its gradient is the sum of what the ranks found (Megatron's f).

    Goes before work that every rank does a part of.
    """
    return _pair(x, _same, lambda gradient: _sum(gradient, comm))


def reduce_from(x: Tensor, comm: Comm) -> Tensor:
    """The sum of all ranks' parts; the gradient passes as it is (Megatron's g)."""
    return _pair(x, lambda part: _sum(part, comm), _same)


def scatter_to(x: Tensor, comm: Comm, dim: int = -1) -> Tensor:
    """This rank's part of `x`, cut as evenly as can be along `dim`; its gradient is gathered."""
    sizes = even_sizes(x.shape[dim], comm.size)
    return _pair(
        x,
        lambda whole: _cut(whole, comm, dim, sizes),
        lambda gradient: _gathered(gradient, comm, dim, sizes),
    )


def gather_from(x: Tensor, comm: Comm, dim: int = -1, sizes: Sequence[int] | None = None) -> Tensor:
    """All ranks' parts along `dim`; the gradient is cut again. sizes: None where all are equal."""
    sizes = (x.shape[dim],) * comm.size if sizes is None else tuple(sizes)
    return _pair(
        x,
        lambda part: _gathered(part, comm, dim, sizes),
        lambda gradient: _cut(gradient, comm, dim, sizes),
    )


def gather_tokens(x: Tensor, comm: Comm, sizes: Sequence[int] | None = None) -> Tensor:
    """All ranks' tokens [tokens, ...], before work every rank does a part of.

    Each rank's gradient is summed over ranks and cut to its tokens (sequence parallelism's g).
    """
    sizes = (x.shape[0],) * comm.size if sizes is None else tuple(sizes)
    return _pair(
        x,
        lambda part: _gathered(part, comm, 0, sizes),
        lambda gradient: comm.reduce_scatter(gradient.contiguous(), sizes=sizes),
    )


def reduce_scatter_tokens(x: Tensor, comm: Comm, sizes: Sequence[int] | None = None) -> Tensor:
    """This rank's tokens of the sum of all ranks' parts [tokens, ...]; the gradient is gathered.

    Sequence parallelism's conjugate of `gather_tokens`.
    """
    sizes = even_sizes(x.shape[0], comm.size) if sizes is None else tuple(sizes)
    return _pair(
        x,
        lambda whole: comm.reduce_scatter(whole.contiguous(), sizes=sizes),
        lambda gradient: _gathered(gradient, comm, 0, sizes),
    )


def _same(x: Tensor) -> Tensor:
    return x.view_as(x)


def _sum(x: Tensor, comm: Comm) -> Tensor:
    total: Tensor = comm.all_reduce(x.contiguous())
    return total


def _cut(x: Tensor, comm: Comm, dim: int, sizes: Sequence[int]) -> Tensor:
    return torch.split(x, list(sizes), dim)[comm.rank].contiguous()


def _gathered(x: Tensor, comm: Comm, dim: int, sizes: Sequence[int]) -> Tensor:
    rows = x.movedim(dim, 0).contiguous()
    gathered: Tensor = comm.all_gather(rows, sizes=sizes)
    return gathered.movedim(0, dim).contiguous()
