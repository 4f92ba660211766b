"""Arrays as `Comm` sees them: NumPy arrays here, torch tensors once `register` was called for them.

A kind of array is described by an `ArrayKind`; whatever moves arrays asks `kind_of` for it, so that
this layer needs no torch.
"""

import importlib
import sys
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor: this layer knows only the first


class Spec(NamedTuple):
    """What two ends of a message must agree on; prints as "float32 [3, 4]"."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


class Unfit(ValueError):
    """An array that cannot be sent or received, and why, as the end of a sentence."""


class ArrayKind(ABC):
    """What the machines must know of one kind of array."""

    @abstractmethod
    def check(self, x: Array, device: str, written: bool) -> None:
        """Unfit where `x` cannot travel, or cannot be written to when it is to be received into."""

    @abstractmethod
    def spec(self, x: Array) -> Spec:
        """Its dtype and shape."""

    @abstractmethod
    def n_bytes(self, x: Array) -> int:
        """Bytes of its elements."""

    @abstractmethod
    def copy(self, x: Array) -> Array:
        """A contiguous copy without a gradient, on the same device."""

    @abstractmethod
    def fill(self, out: Array, x: Array) -> None:
        """Overwrites `out` with `x`, of the same shape and dtype but perhaps of another kind."""

    @abstractmethod
    def empty(self, x: Array, shape: tuple[int, ...]) -> Array:
        """A new array of that shape, otherwise like `x`; its elements are to be overwritten."""

    @abstractmethod
    def combine(self, op: str, a: Array, b: Array) -> Array:
        """A new array, the elementwise "sum" or "max" of two."""

    @abstractmethod
    def join(self, parts: list[Array]) -> Array:
        """A new array of the parts one after the other along the first axis."""

    def needs_gradient(self, x: Array) -> bool:
        """Whether a gradient is to flow through `x`."""
        return False

    def differentiated(self, comm: Any, call: Any, async_op: bool) -> Array | None:
        """The result of a collective that gradients can flow through; None where none could."""
        return None


_names: dict[np.dtype[Any], str] = {}  # to ask NumPy takes as long as a lock


class NumpyKind(ArrayKind):
    """NumPy arrays of numbers and bools, in the byte order of this machine."""

    def check(self, x: np.ndarray, device: str, written: bool) -> None:
        """Unfit where `x` cannot travel."""
        flags, dtype = x.flags, x.dtype
        if dtype.kind not in "biufc" or dtype.itemsize > 16:
            why = "is no array of numbers; send numbers"
        elif not dtype.isnative:
            why = "has the byte order of another machine; give x.astype(x.dtype.newbyteorder('='))"
        elif not flags.c_contiguous:
            why = "is not contiguous; give x.copy()"
        elif written and not flags.writeable:
            why = "cannot be written to; give an array of your own"
        else:
            return
        raise Unfit(f"an array {self.spec(x)} {why}")

    def spec(self, x: np.ndarray) -> Spec:
        """Its dtype and shape."""
        name = _names.get(x.dtype)
        if name is None:
            name = _names[x.dtype] = x.dtype.name
        return Spec(name, x.shape)

    def n_bytes(self, x: np.ndarray) -> int:
        """Bytes of its elements."""
        return x.nbytes

    def copy(self, x: np.ndarray) -> np.ndarray:
        """A contiguous copy."""
        return x.copy()

    def fill(self, out: np.ndarray, x: Array) -> None:
        """Overwrites `out`."""
        out[...] = np.asarray(x)

    def empty(self, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A new array of that shape and the dtype of `x`."""
        return np.empty(shape, x.dtype)

    def combine(self, op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The elementwise "sum" or "max"."""
        combined: np.ndarray = np.add(a, b) if op == "sum" else np.maximum(a, b)
        return combined

    def join(self, parts: list[Array]) -> np.ndarray:
        """All parts, one after the other."""
        return np.concatenate(parts)


NUMPY = NumpyKind()
_kinds: dict[type, ArrayKind] = {np.ndarray: NUMPY}


def register(array_type: type, kind: ArrayKind) -> None:
    """Makes `kind` the one of `array_type` and its subclasses."""
    _kinds[array_type] = kind


def kind_of(x: object) -> ArrayKind:
    """The kind of an array; Unfit for whatever is none."""
    found = _kinds.get(type(x))
    if found is not None:
        return found
    if "torch" in sys.modules:
        importlib.import_module("mpedu.differentiable")  # registers tensors
    for array_type, kind in _kinds.items():
        if isinstance(x, array_type):
            return kind
    if isinstance(x, int | float | complex | np.generic):
        raise Unfit(f"{type(x).__name__} is no array; give np.array({x!r:.40})")
    raise Unfit(f"{type(x).__name__} is no array; give a NumPy array or a tensor")
