"""How programs, arguments and results travel between processes: by value, whatever they are.

Functions, closures and classes need no file that the other side could import.
"""

import io
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

MUCH_BYTES = 50_000_000


def pickled(value: object, problem: str) -> bytes:
    """`value` as bytes; ValueError in a sentence that begins with `problem` where it cannot be."""
    packed = io.BytesIO()
    try:
        _Pickler(packed).dump(value)
    except Exception as error:  # each type that cannot be pickled has an error of its own
        raise ValueError(
            f"{problem} ({type(error).__name__}: {error}); "
            "open files, locks and generators stay where they were made: give plain data"
        ) from error
    return packed.getvalue()


def pickled_program(program: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """(program, arguments) as bytes; ValueError in a sentence where they cannot travel."""
    if not callable(program):
        raise ValueError(f"{program!r} cannot be called; give a function program(comm, ...)")
    name = getattr(program, "__name__", repr(program))
    payload = pickled((program, arguments), f"{name} and its arguments cannot be sent to the ranks")
    if len(payload) > MUCH_BYTES:
        warnings.warn(
            f"{name} and its arguments are {len(payload) / 1e6:.0f} MB, sent to every rank: "
            "make large arrays inside the program",
            stacklevel=3,
        )
    return payload


def unpickled_program(payload: bytes) -> Any:
    """(program, arguments) made anew: also their classes, which cloudpickle would share."""
    with _fresh_classes():
        return cloudpickle.loads(payload)


@contextmanager
def _fresh_classes() -> Iterator[None]:
    known = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
    kept = dict(known)
    known.clear()
    try:
        yield
    finally:
        known.clear()
        known.update(kept)


def _code(code: CodeType) -> tuple[Any, ...]:
    make, parts = cloudpickle.Pickler.dispatch_table[CodeType](code)[:2]
    return _code_of_file, (make, parts, code.co_filename)


def _code_of_file(make: Callable[..., CodeType], parts: tuple[Any, ...], file: str) -> CodeType:
    return make(*parts).replace(co_filename=file)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps the file a function was written in, which its tracebacks name; cloudpickle drops it."""

    dispatch_table: ClassVar = ChainMap({CodeType: _code}, cloudpickle.Pickler.dispatch_table)
