"""Split backward: weight products that wait, so that the gradient of the input goes out first.

Zero bubble (Qi et al. 2024, section 2). A `linear` that runs forward inside `deferring(queue)`
leaves its weight product to the queue when its backward runs, which must be inside `opened(queue)`.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_current = threading.local()


# A part of a weight's gradient: added to what is given, in place, or by itself where that is None.
Product = Callable[[Tensor | None], Tensor]


class WeightQueue:
    """The weight products that one micro-batch owes on one stage."""

    def __init__(self) -> None:
        self.open = False
        self._owed: dict[Tensor, list[Product]] = defaultdict(list)

    def owe(self, weight: Tensor, product: Product) -> None:
        """Leaves a part of the gradient of `weight` for later."""
        if not self.open:
            raise RuntimeError(
                "a layer of a stage whose backward is split ran backward outside its I; "
                "give the stage torch's own layers, or a schedule of whole backwards"
            )
        self._owed[weight].append(product)

    def drain(self) -> None:
        """Adds what is owed to each weight's .grad, and fires its hooks once, as backward does.

        Those of the weight itself; what is hooked to its node in the graph, as torch's own data
        parallelism does, is told of the first gradient alone.
        """
        while self._owed:
            weight, products = self._owed.popitem()
            with torch.no_grad():
                if weight.grad is not None and not _is_watched(weight):
                    while products:  # a tenth of I and W together less than by way of autograd
                        products.pop()(weight.grad)
                    continue
                gradient = products.pop()(None)
                while products:
                    gradient = products.pop()(gradient)
            torch.autograd.backward(weight, gradient)


@contextmanager
def deferring(queue: WeightQueue | None) -> Iterator[None]:
    """Inside, layers of this thread that can defer their weight products do so to `queue`."""
    before = getattr(_current, "queue", None)
    _current.queue = queue
    try:
        yield
    finally:
        _current.queue = before


@contextmanager
def opened(queue: WeightQueue | None) -> Iterator[None]:
    """Inside, layers that ran forward with this queue leave their weight products to it.

    A forward that runs again, for a checkpoint, finds it too: backward stays in this thread.
    """
    if queue is None:
        yield
        return
    queue.open = True
    try:
        # for a GPU autograd takes a thread of its own, which would not find the queue
        with deferring(queue), torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        queue.open = False


def current_queue() -> WeightQueue | None:
    """The queue that layers of this thread may defer to."""
    return getattr(_current, "queue", None)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, whose weight product can wait; [..., d_in] to [..., d_out].

    It waits where weight and bias are parameters, not frozen and not computed from others. A weight
    that the stage uses elsewhere too has two gradients then, one in I and one in W, and its hooks
    fire for each: give torch's `F.linear` such a one.
    """
    queue = current_queue()
    if queue is None or not torch.is_grad_enabled() or not _can_wait(weight, bias):
        return F.linear(x, weight, bias)
    # what is deferred must have a node in the graph also where its input needs no gradient
    anchor = None if x.requires_grad else torch.empty(0, requires_grad=True)
    owing = _Owing(weight, bias, queue)
    y: Tensor = _Deferred.apply(x, anchor, owing)  # type: ignore[no-untyped-call]
    return y


class Linear(nn.Linear):
    """torch's linear layer, whose weight product can wait; [..., d_in] to [..., d_out]."""

    def forward(self, x: Tensor) -> Tensor:
        """x W^T + b."""
        return linear(x, self.weight, self.bias)


class _Owing(NamedTuple):
    """A layer's parameters, hidden from autograd.

    As inputs of the Function they would be told in I, before their gradient is there: autograd
    fires the hooks of a leaf whose gradient is None.
    """

    weight: Tensor
    bias: Tensor | None
    queue: WeightQueue


def _can_wait(weight: Tensor, bias: Tensor | None) -> bool:
    return weight.requires_grad and weight.is_leaf and (bias is None or bias.is_leaf)


class _Deferred(torch.autograd.Function):
    """F.linear whose backward leaves weight and bias to the queue."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor | None, owing: _Owing) -> Tensor:
        y = F.linear(x, owing.weight, owing.bias)
        ctx.owing = owing
        # autocast has computed in a shorter type, in which torch saves the input too
        ctx.save_for_backward(x.to(y.dtype), owing.weight)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, y_gradient: Tensor) -> tuple[Tensor | None, None, None]:
        x, weight = ctx.saved_tensors  # after hooks, such as a checkpoint's, not the parameter
        parameter, bias, queue = ctx.owing
        x = x.detach()  # or W would hold the graph before it, and with that the stage's input
        queue.owe(parameter, partial(_weight_product, y_gradient, x, parameter.dtype))
        if bias is not None and bias.requires_grad:
            queue.owe(bias, partial(_bias_product, y_gradient, bias.dtype))
        needs_x = ctx.needs_input_grad[0]
        return y_gradient.matmul(weight.to(y_gradient.dtype)) if needs_x else None, None, None


def _is_watched(weight: Tensor) -> bool:
    """Whether autograd must be told of a gradient, for the sake of hooks."""
    return bool(weight._backward_hooks) or bool(weight._post_accumulate_grad_hooks)


def _weight_product(
    y_gradient: Tensor, x: Tensor, dtype: torch.dtype, into: Tensor | None
) -> Tensor:
    """[d_out, d_in]; one pass that multiplies and adds where the types allow it."""
    left, right = _rows(y_gradient).t(), _rows(x)
    if into is not None and into.dtype == left.dtype == right.dtype:
        return into.addmm_(left, right)
    product = (left @ right).to(dtype)
    return product if into is None else into.add_(product)


def _bias_product(y_gradient: Tensor, dtype: torch.dtype, into: Tensor | None) -> Tensor:
    """[d_out]."""
    product = _rows(y_gradient).sum(0).to(dtype)
    return product if into is None else into.add_(product)


def _rows(x: Tensor) -> Tensor:
    """[..., d] as [rows, d]."""
    return x.reshape(-1, x.shape[-1])
