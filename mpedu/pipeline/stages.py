"""What a pipeline stage is: how it is called, what it must return, the shapes that come out."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mpedu.keyed import Key

Stage = Callable[..., Any]


class Spec(NamedTuple):
    """Shape and dtype of one tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, x: Tensor) -> "Spec":
        """That of `x`."""
        return cls(tuple(x.shape), x.dtype)

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {list(self.shape)}"

    @property
    def n_numbers(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    def empty(self, device: str) -> Tensor:
        """A tensor of this shape and dtype, not initialised."""
        return torch.empty(self.shape, dtype=self.dtype, device=device)


def takes_key(stage: Stage) -> bool:
    """Whether a stage is called stage(x, key) rather than stage(x).

    It is where its second argument must be given, or is named `key`; a layer of torch with further
    arguments of its own is not.
    """
    call = stage.forward if isinstance(stage, nn.Module) else stage
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in inspect.signature(call).parameters.values() if p.kind in kinds]
    return len(taken) > 1 and (taken[1].name == "key" or taken[1].default is taken[1].empty)


def unpacked(made: object, number: int) -> tuple[Tensor, Tensor | None]:
    """(y, aux) of what stage `number` returned, aux None where it is y alone.

    ValueError for anything else.
    """
    y, aux = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(y, Tensor):
        kind = type(y).__name__
        raise ValueError(f"stage {number} returned {kind}; a stage returns y or (y, aux), tensors")
    if aux is not None and not (isinstance(aux, Tensor) and aux.numel() == 1):
        shape = f"a tensor {list(aux.shape)}" if isinstance(aux, Tensor) else type(aux).__name__
        raise ValueError(f"stage {number} returned {shape} as aux; give a tensor of one number")
    return y, aux


def require_spec(y: Tensor, spec: Spec, number: int, microbatch: int) -> None:
    """Nothing; ValueError where a stage's output is not as the next one's rank was told."""
    found = Spec.of(y)
    if found != spec:
        raise ValueError(
            f"stage {number} gave {found} for micro-batch {microbatch}, and {spec} in its run on "
            "zeros; for inputs of one shape a stage gives outputs of one shape and dtype"
        )


def with_buffers(stage: Stage) -> list[nn.Module]:
    """The modules of a stage that hold buffers."""
    modules = stage.modules() if isinstance(stage, nn.Module) else ()
    return [module for module in modules if module._buffers]


@contextmanager
def same_buffers(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Undoes what is done to these modules' buffers inside.

    A forward that a backward runs again, for a checkpoint, would count its micro-batch twice.
    """
    places = [(m, name, b) for m in modules for name, b in m._buffers.items() if b is not None]
    values = [b.clone() for _, _, b in places]
    yield
    for (module, name, buffer), value in zip(places, values, strict=True):
        buffer.data.copy_(value)  # .data: no other micro-batch's graph shall take it for a change
        module._buffers[name] = buffer


def output_specs(
    stage: Stage, number: int, inputs: Sequence[Spec], device: str, known: dict[Spec, Spec]
) -> list[Spec]:
    """The outputs of a stage for these inputs, from one run on zeros for each that is not `known`.

    The run leaves nothing behind: no gradient, the buffers and torch's random state as they were.
    (A run on the meta device would need no arithmetic, but a stage that communicates could not
    make it, and it loads modules of torch for seconds.)
    """
    for spec in inputs:
        if spec not in known:
            known[spec] = _output_spec(stage, number, spec, device)
    return [known[spec] for spec in inputs]


def _output_spec(stage: Stage, number: int, spec: Spec, device: str) -> Spec:
    x = torch.zeros(spec.shape, dtype=spec.dtype, device=device)
    arguments = (x, Key(0, 0, 0)) if takes_key(stage) else (x,)
    with torch.random.fork_rng([] if device == "cpu" else [device]), torch.no_grad():
        if isinstance(stage, nn.Module):
            copies = {name: buffer.clone() for name, buffer in stage.named_buffers()}
            made = functional_call(stage, copies, arguments)
        else:
            made = stage(*arguments)
    return Spec.of(unpacked(made, number)[0])
