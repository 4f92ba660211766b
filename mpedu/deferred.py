"""Split backward: weight products that wait, so that the gradient of the input goes out first.

Zero bubble (Qi et al. 2024, section 2). A `Linear` that runs forward inside `deferring(queue)` puts
its weight product into the queue while that is `open`, and computes it at once otherwise.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_current = threading.local()


class WeightQueue:
    """The weight products that one micro-batch owes on one stage."""

    def __init__(self) -> None:
        self.open = False
        self._owed: list[tuple[Tensor, Callable[[], Tensor]]] = []

    def owe(self, weight: Tensor, product: Callable[[], Tensor]) -> None:
        """Leaves the gradient of `weight` for later; product: computes it."""
        self._owed.append((weight, product))

    def drain(self) -> None:
        """Adds every gradient owed to its weight's .grad, and fires its hooks, as backward does."""
        owed, self._owed = self._owed, []
        for weight, product in owed:
            with torch.no_grad():
                gradient = product()
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

    A forward that runs again, for a checkpoint, finds it too.
    """
    if queue is None:
        yield
        return
    queue.open = True
    try:
        with deferring(queue):
            yield
    finally:
        queue.open = False


def current_queue() -> WeightQueue | None:
    """The queue that layers of this thread may defer to."""
    return getattr(_current, "queue", None)


class Linear(nn.Linear):
    """torch's linear layer, whose weight product can wait; [..., d_in] to [..., d_out]."""

    def forward(self, x: Tensor) -> Tensor:
        """x W^T + b."""
        queue = current_queue()
        if queue is None:
            return F.linear(x, self.weight, self.bias)
        y: Tensor = _Deferred.apply(x, self.weight, self.bias, queue)  # type: ignore[no-untyped-call]
        return y


class _Deferred(torch.autograd.Function):
    """F.linear whose backward leaves weight and bias to an open queue."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, queue: WeightQueue
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.parameters, ctx.queue = (weight, bias), queue
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y_gradient,) = gradients
        x, weight = ctx.saved_tensors  # after hooks, such as a checkpoint's, not the parameter
        x = x.detach()  # or what is owed would keep the graph before it
        parameter, bias = ctx.parameters
        need_x, *need_products, _ = ctx.needs_input_grad
        products: list[tuple[Tensor, Callable[[], Tensor]]] = [
            (parameter, lambda: _rows(y_gradient).t() @ _rows(x)),
            (bias, lambda: _rows(y_gradient).sum(0)),
        ]
        made: list[Tensor | None] = [None, None]
        for place, (owed, product) in enumerate(products):
            if need_products[place] and ctx.queue.open:
                ctx.queue.owe(owed, product)
            elif need_products[place]:
                made[place] = product()
        return y_gradient.matmul(weight) if need_x else None, *made, None


def _rows(x: Tensor) -> Tensor:
    """[..., d] as [rows, d]."""
    return x.reshape(-1, x.shape[-1])
