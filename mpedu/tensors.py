"""Torch tensors as `Comm` sees them, and the memory of any array as a tensor that can travel."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mpedu.arrays import Array, ArrayKind, Spec, Unfit, register

# (comm, call, async_op) -> what `ArrayKind.differentiated` gives
Differentiation = Callable[[Any, Any, bool], Array | None]
_NUMPY_ADDS = (torch.uint16, torch.uint32, torch.uint64)  # torch stores them, and adds none
_differentiation: list[Differentiation] = []


def set_differentiation(made: Differentiation) -> None:
    """Lets `made` run the collectives of tensors that gradients can flow through."""
    _differentiation[:] = [made]


class TorchKind(ArrayKind):
    """Dense tensors, on the CPU or on the device of their rank."""

    def check(self, x: Tensor, device: str, written: bool) -> None:
        """Unfit where `x` cannot travel."""
        named = f"a tensor {self.spec(x)}"
        if x.layout != torch.strided or x.is_quantized:
            raise Unfit(f"{named} is sparse or quantized; give a dense one")
        if x.device.type != "cpu" and x.device != _indexed(device):
            raise Unfit(
                f"the tensor lies on {x.device}, this rank's are on {device}; move it there"
            )
        if not x.is_contiguous():
            raise Unfit(f"{named} is not contiguous; give x.contiguous()")
        if x.is_conj() or x.is_neg():
            raise Unfit(f"{named} is a view yet to be conjugated; give x.resolve_conj().clone()")

    def spec(self, x: Tensor) -> Spec:
        """Its dtype and shape."""
        return Spec(str(x.dtype).removeprefix("torch."), tuple(x.shape))

    def n_bytes(self, x: Tensor) -> int:
        """Bytes of its elements."""
        return x.numel() * x.element_size()

    def copy(self, x: Tensor) -> Tensor:
        """A contiguous copy without a gradient, on the same device."""
        return x.detach().clone(memory_format=torch.contiguous_format)

    def fill(self, out: Tensor, x: Array) -> None:
        """Overwrites `out`; it stays where it is."""
        with torch.no_grad():
            out.copy_(torch.from_numpy(_own(x)) if isinstance(x, np.ndarray) else x)

    def empty(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A new tensor of that shape, of the dtype of `x` and where it is."""
        return torch.empty(shape, dtype=x.dtype, device=x.device)

    def combine(self, op: str, a: Tensor, b: Tensor) -> Tensor:
        """The elementwise "sum" or "max"."""
        if a.dtype in _NUMPY_ADDS:
            combine = np.add if op == "sum" else np.maximum
            return torch.from_numpy(np.asarray(combine(a.cpu().numpy(), b.cpu().numpy()))).to(
                a.device
            )
        return a + b if op == "sum" else torch.maximum(a, b)

    def join(self, parts: list[Array]) -> Tensor:
        """All parts, one after the other."""
        return torch.cat(parts)

    def needs_gradient(self, x: Tensor) -> bool:
        """Whether it is part of a graph, or begins one."""
        return x.requires_grad and torch.is_grad_enabled()

    def differentiated(self, comm: Any, call: Any, async_op: bool) -> Array | None:
        """The result of a collective that gradients can flow through; None where none could."""
        if not _differentiation:
            importlib.import_module("mpedu.differentiable")  # sets it
        return _differentiation[0](comm, call, async_op)


def bytes_of(x: Array) -> Tensor:
    """The elements of a contiguous array as one row of bytes on the same memory.

    Of an array that must not be written to it is a copy.
    """
    if isinstance(x, np.ndarray):
        return torch.from_numpy(_own(x).reshape(-1).view(np.uint8))
    # not reshape: where there is one element, any stride counts as contiguous
    flat: Tensor = x.detach().as_strided((x.numel(),), (1,)).view(torch.uint8)
    return flat


def made(spec: Spec, is_tensor: bool) -> Array:
    """A new array on the CPU; its elements are to be overwritten."""
    if is_tensor:
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype))
    return np.empty(spec.shape, np.dtype(spec.dtype))


def _own(x: np.ndarray) -> np.ndarray:
    """`x`, or a copy where torch would warn that it must not be written to; what is sent is not."""
    return x if x.flags.writeable else x.copy()


def _indexed(device: str) -> torch.device:
    named = torch.device(device)
    if named.type == "cuda" and named.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return named


register(torch.Tensor, TorchKind())
