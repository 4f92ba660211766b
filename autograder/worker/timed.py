"""A student's function called in turns with a reference, on arrays in memory shared with the judge.

The judge alone has a clock. It writes the arrays, says go, and stops its clock when it has copied
the answer out of this memory: whatever is put off until somebody looks lies inside the interval.
"""

import gc
import math
import mmap
import os
import socket
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from autograder.worker.plain import NotPlain, name_of
from autograder.worker.records import REAL_DTYPES, coerced

Array = np.ndarray[Any, Any]
Form = tuple[str, tuple[int, ...]]  # dtype and shape of an array
MOST_ANSWER_BYTES = 2**25
NUMBERS = REAL_DTYPES | {"c8", "c16"}
_LINE_BYTES = 64  # arrays begin where a line of the cache does
_LISTED = (list, tuple, bool, int, float)


def places(forms: Sequence[Form]) -> list[int]:
    """Where each array begins in the memory, then the answer, then where it all ends."""
    sizes = [np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in forms]
    lines = (-(-size // _LINE_BYTES) * _LINE_BYTES for size in (*sizes, MOST_ANSWER_BYTES))
    return list(accumulate(lines, initial=0))


def array_at(memory: mmap.mmap, start: int, form: Form) -> Array:
    """The array of that form at that place of the memory, not a copy."""
    dtype, shape = form
    return np.frombuffer(memory, dtype, math.prod(shape), start).reshape(shape)


class Timed:
    """The arguments of one function and the place for its answer.

    arguments: plain values, and None where an array of `forms` stands, whose places are `at`. The
    memory's descriptor is the next thing to come on `link`.
    """

    def __init__(
        self,
        link: socket.socket,
        arguments: Sequence[Any],
        at: Sequence[int],
        forms: Sequence[Form],
    ) -> None:
        descriptor = socket.recv_fds(link, 1, 1)[1][0]
        starts = places(forms)
        self._memory = mmap.mmap(descriptor, starts[-1])
        os.close(descriptor)
        self._answer_at = starts[-2]
        self._arguments = list(arguments)
        for position, start, form in zip(at, starts, forms, strict=False):
            self._arguments[position] = array_at(self._memory, start, form)
        gc.collect()
        gc.disable()  # a collection would fall into some turn, the student's or the reference's

    def run(self, function: Callable[..., Any]) -> Form:
        """Puts the function's answer into the memory; NotPlain where it is no array of numbers."""
        answer = plain_array(function(*self._arguments))
        answer = answer.astype(answer.dtype.newbyteorder("<"), copy=False)
        form = answer.dtype.str, answer.shape
        np.copyto(array_at(self._memory, self._answer_at, form), answer)
        return form


def plain_array(value: Any) -> Array:
    """An answer as an array of numbers; NotPlain where it is none, or a kind of array of its own.

    The latter could put its work off.
    """
    value = coerced(value)
    kind = type(value)
    if kind is not np.ndarray and kind in _LISTED:
        value = np.asarray(value)
    if type(value) is not np.ndarray:
        raise NotPlain(f"the answer is of type {name_of(kind)}; an array of NumPy itself is asked")
    if value.dtype.str[1:] not in NUMBERS:
        raise NotPlain(f"the answer has dtype {value.dtype}; an array of numbers is asked")
    if value.nbytes > MOST_ANSWER_BYTES:
        raise NotPlain(f"the answer takes {value.nbytes} bytes; {MOST_ANSWER_BYTES} can pass")
    return value


def start_nothing_more() -> None:
    """From now on this process can start no other and no thread: stopped, all of it stands still.

    Without effect for root, and where there are no such limits.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
