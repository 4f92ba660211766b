"""What a backward pass holds: layers that a function written by hand calls, and who counts.

Such a function calls `layer.forward(x) -> y` and `layer.backward(x, y, gradient) -> x_gradient`,
the first of them, the last layer's, with the gradient 1.0 of a sum. A layer adds its weights'
gradient up by itself. The same function runs on NumPy layers (`tanh_chain`) and on counted ones,
whose activations are names: the values lie with a `Ledger`, here or where nobody can reach it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpedu.arrays import Array
from mpedu.faults import require_at_least

Backward = Callable[[Sequence[Any], Any, int], Any]  # (layers, x, n_segments) -> x_gradient


class TanhLayer:
    """y = tanh(x @ weight): x and y [tokens, d_model], weight [d_model, d_model]."""

    def __init__(self, weight: Array) -> None:
        self.weight = weight
        self.weight_gradient = np.zeros_like(weight)

    def forward(self, x: Array) -> Array:
        """The output [tokens, d_model]."""
        return np.tanh(x @ self.weight)

    def backward(self, x: Array, y: Array, gradient: Array | float) -> Array:
        """The gradient for x [tokens, d_model]; the weight's is added to `weight_gradient`."""
        before_tanh = gradient * (1 - y * y)
        self.weight_gradient += x.T @ before_tanh
        return before_tanh @ self.weight.T


def tanh_chain(n_layers: int, d_model: int = 8, seed: int = 0) -> list[TanhLayer]:
    """Layers one after the other, with the same weights for the same seed."""
    require_at_least(1, n_layers=n_layers, d_model=d_model)
    rng = np.random.default_rng(seed)
    scale = d_model**-0.5
    return [TanhLayer(scale * rng.normal(size=(d_model, d_model))) for _ in range(n_layers)]


class Misuse(NamedTuple):
    """A call with something else than it needs, as what: "x", "y", "gradient" or "again".

    given: in words; layer: whose forward or backward (`kind`) was called.
    """

    kind: str
    layer: int
    what: str
    given: str


@dataclass
class Pass:
    """What one run of a function did with a chain of `n_layers` layers.

    forwards: how often each layer's was run; held: activations held after each call, without x,
    which is the caller's; backwards: the layers in the order of their backward; misuses: calls
    that no gradient can come right from; n_restarts: how often a forward went on elsewhere than
    after the layer before.
    """

    n_layers: int
    forwards: list[int]
    held: list[int] = field(default_factory=list)
    backwards: list[int] = field(default_factory=list)
    misuses: list[Misuse] = field(default_factory=list)
    n_restarts: int = 0

    @property
    def peak(self) -> int:
        """The most activations held at once, without x."""
        return max(self.held, default=0)


_NOTHING_RIGHT = -1  # the depth of what was computed from something wrong


class Ledger:
    """The values behind the names: how deep in the chain each activation and gradient lies.

    An activation of depth d is the input of layer d; the gradient of depth d is that for it. The
    numbers of `numbers` are used one after the other as names.
    """

    def __init__(self, n_layers: int, numbers: Iterator[int] | None = None) -> None:
        self.n_layers, self._numbers = n_layers, numbers or count(1)
        self._passes: dict[int, Pass] = {}  # by the number of a gradient of depth 0
        self.begin()

    def begin(self) -> int:
        """Forgets every name, and gives that of x."""
        self.run = Pass(self.n_layers, [0] * self.n_layers)
        self._next = 0  # the layer after the one that ran forward last
        self._x = next(self._numbers)
        self._depth = {self._x: 0}
        self._gradients: dict[int, int] = {}
        return self._x

    def pass_of(self, gradient: object) -> Pass | None:
        """The run that gave that gradient for x, None where none did."""
        return self._passes.get(gradient) if type(gradient) is int else None

    def forward(self, layer: int, x: int, dropped: Sequence[int] = ()) -> int:
        """The name of a layer's output; `dropped` are names that nobody has any more.

        IndexError for a layer that is not there, KeyError for a name that nothing has.
        """
        self._require(layer)
        self._drop(dropped)
        depth = self._depth[x]
        self.run.forwards[layer] += 1
        self.run.n_restarts += layer != self._next
        self._next = layer + 1
        if depth not in (layer, _NOTHING_RIGHT):
            self._note("forward", layer, "x", self._activation(depth))
        made = next(self._numbers)
        self._depth[made] = layer + 1 if depth == layer else _NOTHING_RIGHT
        self.run.held.append(len(self._depth) - 1)
        return made

    def backward(
        self, layer: int, x: int, y: int, gradient: int | None, dropped: Sequence[int] = ()
    ) -> int:
        """The name of the gradient for a layer's input; gradient: None for 1.0, the loss's own.

        Errors as of `forward`.
        """
        self._require(layer)
        self._drop(dropped)
        depth = self.n_layers if gradient is None else self._gradients[gradient]
        given = self._depth[x], self._depth[y], depth
        wrong = [
            (what, of)
            for what, of, due in zip(("x", "y", "gradient"), given, _due(layer), strict=True)
            if of != due
        ]
        for what, of in wrong[:1]:
            told = self._gradient(of) if what == "gradient" else self._activation(of)
            self._note("backward", layer, what, told)
        if not wrong and layer in self.run.backwards:
            self._note("backward", layer, "again", "")
        self.run.backwards.append(layer)
        self.run.held.append(len(self._depth) - 1)
        made = next(self._numbers)
        self._gradients[made] = _NOTHING_RIGHT if wrong else layer
        if self._gradients[made] == 0:
            self._passes[made] = self.run
        return made

    def _require(self, layer: int) -> None:
        if not 0 <= layer < self.n_layers:
            raise IndexError(f"there is no layer {layer}; there are {self.n_layers}")

    def _drop(self, names: Sequence[int]) -> None:
        for name in names:
            if name != self._x:
                self._depth.pop(name, None)

    def _note(self, kind: str, layer: int, what: str, given: str) -> None:
        self.run.misuses.append(Misuse(kind, layer, what, given))

    def _activation(self, depth: int) -> str:
        if depth == _NOTHING_RIGHT:
            return "what came out of a wrong call"
        return f"the input of layer {depth}" if depth < self.n_layers else "the last output"

    def _gradient(self, depth: int) -> str:
        if depth == self.n_layers:
            return "1.0"
        if depth == _NOTHING_RIGHT:
            return "what came out of a wrong call"
        return f"the gradient for the input of layer {depth}"


def _due(layer: int) -> tuple[int, int, int]:
    """How deep x, y and the gradient must lie."""
    return layer, layer + 1, layer + 1


class Books(Protocol):
    """Where the values of counted layers lie: a `Ledger`, or what stands for one."""

    def begin(self) -> int:
        """As of `Ledger`."""

    def forward(self, layer: int, x: int, dropped: Sequence[int]) -> int:
        """As of `Ledger`."""

    def backward(
        self, layer: int, x: int, y: int, gradient: int | None, dropped: Sequence[int]
    ) -> int:
        """As of `Ledger`."""


class Activation:
    """The name of an activation. Its value is held until nobody has the name any more."""

    __slots__ = ("_dropped", "_number")

    def __init__(self, number: int, dropped: list[int]) -> None:
        self._number, self._dropped = number, dropped

    def __del__(self) -> None:
        self._dropped.append(self._number)  # told with the next call: this may run inside of one

    def __repr__(self) -> str:
        return "<an activation; its value lies with who counts>"


class Gradient:
    """The name of a gradient, which is not counted: there is one at a time."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def __repr__(self) -> str:
        return "<a gradient; its value lies with who counts>"


class CountedLayer:
    """A layer whose activations are names."""

    def __init__(self, index: int, books: Books, dropped: list[int]) -> None:
        self.index, self._books, self._dropped = index, books, dropped

    def forward(self, x: Activation) -> Activation:
        """The output; TypeError where x is no activation."""
        self._require("forward", "x", x, Activation)
        number = self._books.forward(self.index, x._number, self._told())
        return Activation(number, self._dropped)

    def backward(self, x: Activation, y: Activation, gradient: Gradient | float) -> Gradient:
        """The gradient for x; TypeError where an argument is of another kind."""
        self._require("backward", "x", x, Activation)
        self._require("backward", "y", y, Activation)
        is_one = type(gradient) in (int, float) and gradient == 1
        if not is_one:
            self._require("backward", "gradient", gradient, Gradient)
        number = None if is_one else gradient._number  # type: ignore[union-attr]
        told = self._told()
        return Gradient(self._books.backward(self.index, x._number, y._number, number, told))

    def _told(self) -> list[int]:
        told = [*self._dropped]
        del self._dropped[: len(told)]
        return told

    def _require(self, call: str, name: str, value: object, kind: type) -> None:
        if type(value) is not kind:
            needed = "an activation"
            if kind is Gradient:
                needed = "a gradient, or the plain number 1.0 to begin with"
            given = repr(value) if type(value) in (int, float) else f"a {type(value).__name__}"
            raise TypeError(f"layer {self.index}.{call} needs {needed} as {name}; it got {given}")

    def __repr__(self) -> str:
        return f"<layer {self.index}>"


def run_counted(backward: Backward, books: Books, n_layers: int, n_segments: int) -> Any:
    """The number of the gradient that `backward` gives on counted layers; anything else as it is.

    The activations it holds are those of which anybody has the name, x left out: it is held here.
    """
    dropped: list[int] = []
    x = Activation(books.begin(), dropped)
    layers = [CountedLayer(index, books, dropped) for index in range(n_layers)]
    result = backward(layers, x, n_segments)
    return result._number if type(result) is Gradient else result


def counted_pass(backward: Backward, n_layers: int, n_segments: int) -> Pass:
    """What `backward(layers, x, n_segments)` does with a chain of counted layers."""
    require_at_least(1, n_layers=n_layers)
    ledger = Ledger(n_layers)
    run_counted(backward, ledger, n_layers, n_segments)
    return ledger.run


def units_held(backward: Backward, n_layers: int, n_segments: int) -> list[int]:
    """Activations that `backward` holds after each forward and backward of a layer, without x."""
    return counted_pass(backward, n_layers, n_segments).held
