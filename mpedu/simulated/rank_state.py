"""Random states that simulated ranks do not share, though they share a process.

A process-wide generator would make dropout, and what a checkpoint recomputes, depend on who ran in
between. So each rank has a state of its own of `random`, NumPy and torch, all beginning with that
of the caller, who gets the own state back at the end.
"""

import ctypes
import importlib
import random
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np


class Generator(NamedTuple):
    """A process-wide generator of a library: how to get its state, and how to set it."""

    get: Callable[[], Any]
    set: Callable[[Any], None]


GENERATORS: list[Generator] = []  # more than `random` and NumPy; torch's comes with its arrays
CONTEXTS: list[Callable[[], Any]] = []  # what each rank's thread runs in
AROUND: list[Callable[[], Any]] = []  # what the thread that starts them runs in


@contextmanager
def rank_context() -> Iterator[None]:
    """What libraries need in the thread of a simulated rank."""
    with ExitStack() as stack:
        _enter_all(stack, CONTEXTS)
        yield


def _enter_all(stack: ExitStack, contexts: list[Callable[[], Any]]) -> None:
    for context in contexts:
        stack.enter_context(context())


class RankStates:
    """The random states of all ranks but the one that runs; a context manager for one run."""

    def __init__(self, n_ranks: int) -> None:
        if "torch" in sys.modules:
            importlib.import_module("mpedu.differentiable")  # registers what torch needs
        self._generators = [Generator(random.getstate, random.setstate), *GENERATORS]
        self._look = _random_bytes()
        self._caller = np.random.get_bit_generator()  # type: ignore[attr-defined]
        self._bits = [_copied(self._caller) for _ in range(n_ranks)]
        self._gauss = _numpy_gauss()
        self._kept = [self._gauss.get()] * (n_ranks + 1)  # the last is the caller's
        states = [generator.get() for generator in self._generators]
        self._states = [list(states) for _ in range(n_ranks)]
        self._at_start = states
        self._seen = [self._look()] * n_ranks
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        _enter_all(self._stack, AROUND)
        self._set_bits(self._bits[0], self._kept[0])
        return self

    def __exit__(self, *raised: object) -> None:
        self._set_bits(self._caller, self._kept[-1])
        for generator, state in zip(self._generators, self._at_start, strict=True):
            generator.set(state)
        self._stack.close()

    def swap(self, old: int, new: int) -> None:
        """Puts the state of rank `old` away and brings that of rank `new`."""
        self._bits[old] = np.random.get_bit_generator()  # type: ignore[attr-defined]
        self._kept[old] = self._gauss.get()
        self._set_bits(self._bits[new], self._kept[new])
        mine, others = self._states[old], self._states[new]
        for place, generator in enumerate(self._generators):
            if place:
                mine[place] = generator.get()
                generator.set(others[place])
        # `random` makes a tuple of 625 numbers of its state, which takes longer than a message:
        # so its bytes are looked at first, for most ranks never draw from it.
        seen = self._look()
        if seen is None or seen != self._seen[old]:
            mine[0], self._seen[old] = random.getstate(), seen
        if seen is None or seen != self._seen[new]:
            random.setstate(others[0])

    def _set_bits(self, bits: Any, kept: Any) -> None:
        np.random.set_bit_generator(bits)  # type: ignore[attr-defined]
        self._gauss.set(kept)  # which NumPy has just forgotten


def _copied(bits: Any) -> Any:
    copy = type(bits)()
    copy.state = bits.state
    return copy


def _random_bytes() -> Callable[[], object]:
    """A look at the memory of the state of `random`; at nothing where it lies elsewhere."""
    inst: Any = random._inst
    where = id(inst)
    n_numbers = len(random.getstate()[1])
    start = object.__basicsize__
    size = 4 * n_numbers
    if sys.implementation.name == "cpython":
        index, *numbers = memoryview(ctypes.string_at(where + start, size)).cast("I")
        if (*numbers, index) == random.getstate()[1]:
            # `gauss` keeps every second number elsewhere
            return lambda: (ctypes.string_at(where + start, size), inst.gauss_next)
    return lambda: None


def _numpy_gauss() -> Generator:
    """What NumPy keeps of a pair of normal numbers: whether there is a second one, and which."""
    kept_by: Any = np.random.mtrand._rand
    place = _gauss_place() if sys.implementation.name == "cpython" else -1
    if place > 0:  # behind the flag; to ask in the usual way takes longer than four messages
        memory = (ctypes.c_char * 16).from_address(id(kept_by) + place - 8)
        return Generator(lambda: memory.raw, lambda kept: setattr(memory, "raw", kept))

    def set_kept(kept: tuple[int, float]) -> None:
        state = kept_by.get_state(legacy=False)
        kept_by.set_state({**state, "has_gauss": kept[0], "gauss": kept[1]})

    def get_kept() -> tuple[int, float]:
        state = kept_by.get_state(legacy=False)
        return state["has_gauss"], state["gauss"]

    return Generator(get_kept, set_kept)


@cache
def _gauss_place() -> int:
    """Where in the memory of a `RandomState` the second number of a pair lies; -1: who knows."""
    probe: Any = np.random.RandomState(0)
    probe.standard_normal()
    number = struct.pack("d", probe.get_state(legacy=False)["gauss"])
    return ctypes.string_at(id(probe), type(probe).__basicsize__).find(number)
