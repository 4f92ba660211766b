"""What plain data is: values a student's process and the judge may pass, as trees of simple parts.

A tree is None, a bool, int, float, str, bytes, or a sequence (tag, ...) whose tag says list, tuple,
dict, shared list, array, fraction or record; written as lists, read as tuples. Nothing in a tree
names a class or a function. The reader believes nothing: neither sizes nor depth nor the types of a
record's fields.

Runs on both sides of the wall, so it knows nothing of the autograder.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from types import GeneratorType
from typing import Any

import numpy as np

from autograder.worker.records import REAL_DTYPES, RECORDS, coerced

MAX_DEPTH = 64
# A value counts 1, its text and bytes 1 per 8; a list that appears twice counts twice.
MAX_SIZE = 2_000_000
MAX_DICT_ENTRIES = 10_000
# Keys can be chosen to have one hash, and each is then compared with all before it.
_MOST_ALIKE_HASHES = 100

_LIST, _TUPLE, _DICT, _SHARED, _ARRAY, _FRACTION = range(6)
_DTYPES = REAL_DTYPES | {"c8", "c16"}
_TAG_OF = {kind: tag for tag, kind in enumerate(RECORDS, start=16)}
_RECORD_OF = {tag: kind for kind, tag in _TAG_OF.items()}
_PLAIN = (bool, int, float, str, list, tuple, dict, Fraction, np.ndarray)


class NotPlain(Exception):
    """A value that is not plain data; the message is one sentence that says where and why."""


def to_plain(value: object, envelope: int = 0) -> Any:
    """The tree of a value; NotPlain where a part of it is no plain data.

    `envelope` outer levels are the message around an answer; sentences leave them out.
    """
    return _Writer(envelope).tree(value)


def from_plain(tree: Any) -> Any:
    """The value of a tree of unknown origin; an exception of any type where it is none."""
    return _Reader().value(tree)


class _Writer:
    def __init__(self, envelope: int) -> None:
        self.envelope = envelope
        self.lists: dict[int, int] = {}  # id of a list -> its number, in order of appearance
        self.open: set[int] = set()  # ids of the lists and dicts around the part at hand
        self.path: list[int | str] = []  # leads to the part at hand

    def tree(self, value: Any) -> Any:
        value = coerced(value)
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            return self._whole(value)
        if kind is str:
            return self._text(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind is Fraction:
            return [_FRACTION, self._whole(value.numerator), self._whole(value.denominator)]
        if len(self.path) >= MAX_DEPTH:
            raise NotPlain(f"the answer is nested more than {MAX_DEPTH} deep")
        if kind is tuple:
            return [_TUPLE, *self._entries(value)]
        if kind in _TAG_OF:
            return self._record(value, kind)
        if kind is not list and kind is not dict:
            raise self._refused(_why_not(kind))
        return self._mutable(value)

    def _mutable(self, value: Any) -> list[Any]:
        if id(value) in self.open:
            raise self._refused(f" is a {type(value).__name__} that contains itself")
        if id(value) in self.lists:
            return [_SHARED, self.lists[id(value)]]
        self.open.add(id(value))
        if type(value) is list:
            self.lists[id(value)] = len(self.lists)
            tree = [_LIST, *self._entries(value)]
        else:
            tree = self._dict(value)
        self.open.remove(id(value))
        return tree

    def _entries(self, values: Sequence[Any]) -> list[Any]:
        return [self._step(index, value) for index, value in enumerate(values)]

    def _step(self, part: int | str, value: Any) -> Any:
        self.path.append(part)
        tree = self.tree(value)
        self.path.pop()
        return tree

    def _dict(self, value: dict[Any, Any]) -> list[Any]:
        if len(value) > MAX_DICT_ENTRIES:
            raise self._refused(f" has {len(value)} entries; at most {MAX_DICT_ENTRIES} can pass")
        flat: list[Any] = [_DICT]
        for number, (key, entry) in enumerate(value.items(), start=1):
            flat.append(self._step(f"[key {number}]", key))
            flat.append(self._step(f"[{key!r}]"[:40], entry))
        return flat

    def _record(self, value: Any, kind: Any) -> list[Any]:
        flat: list[Any] = [_TAG_OF[kind]]
        for name, field in zip(kind.__match_args__, RECORDS[kind], strict=True):
            part = getattr(value, name)
            if not field.holds(part):
                self.path.append(f".{name}")
                raise self._refused(f" is {_a(type(part))}; give {field.allowed}")
            flat.append(self._step(f".{name}", part))
        return flat

    def _whole(self, value: int) -> int:
        if not -(2**63) <= value < 2**63:
            n_bits = value.bit_length()
            raise self._refused(f" is a whole number of {n_bits} bits; 63 and a sign can pass")
        return value

    def _text(self, value: str) -> str:
        if not value.isascii() and value != value.encode(errors="replace").decode():
            raise self._refused(" is a str with a lone surrogate, which is half a character")
        return value

    def _array(self, value: np.ndarray[Any, Any]) -> list[Any]:
        if value.dtype.str[1:] not in _DTYPES:
            raise self._refused(
                f" is an array of dtype {value.dtype}; give a list, or an array of numbers"
            )
        if value.nbytes > 8 * MAX_SIZE:  # first: a broadcast array is larger than its memory
            raise self._refused(f" is an array of {value.nbytes} bytes; {8 * MAX_SIZE} can pass")
        little = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
        return [_ARRAY, little.dtype.str, list(little.shape), little.tobytes()]

    def _refused(self, why: str) -> NotPlain:
        path = self.path[self.envelope :]
        steps = (step if type(step) is str else f"[{step}]" for step in path)
        return NotPlain(f"answer{''.join(steps)}{why}" if path else f"the answer{why}")


def _why_not(kind: type) -> str:
    if kind in (GeneratorType, zip, map, range):
        return f" is {_a(kind)}, not yet its values; make a list of it: list(..)"
    if name_of(kind) == "Tensor":
        return " is a Tensor; give plain numbers: .item() for one, .tolist() for many"
    for plain in (*_TAG_OF, *_PLAIN):
        if plain in kind.__mro__:
            return f" is {_a(kind)}, a subclass of {plain.__name__}; return {plain.__name__} itself"
    names = ", ".join(plain.__name__ for plain in (*_PLAIN, *_TAG_OF))
    return f" is {_a(kind)}; what can pass is None, {names}"


def name_of(kind: type) -> str:
    """The name of any class, whatever its author makes of `__name__`, at most 60 characters."""
    name = type.__dict__["__name__"].__get__(kind)
    return str.encode(name, errors="replace").decode()[:60]


def _a(kind: type) -> str:
    name = name_of(kind)
    article = "an" if name[:1] in "AEIOUaeiou" else "a"
    return "None" if kind is type(None) else f"{article} {name}"


class _Reader:
    def __init__(self) -> None:
        self.size = 0  # of all read so far
        self.depth = 0  # of the part at hand
        self.deepest = 0  # reached since the innermost open list began
        self.lists: list[list[Any]] = []
        self.extents: list[tuple[int, int] | None] = []  # size and height; None while it is open

    def value(self, tree: Any) -> Any:
        kind = type(tree)
        self._grow(1 + len(tree) // 8 if kind is str else 1)
        if kind is tuple:
            self._descend(self.depth + 1)
            self.depth += 1
            value = self._tagged(tree[0], tree[1:])
            self.depth -= 1
            return value
        if tree is not None and kind not in (bool, int, float, str):
            raise ValueError("a part of unknown kind")
        return _whole(tree) if kind is int else tree

    def _grow(self, size: int) -> None:
        self.size += size
        if self.size > MAX_SIZE:
            raise ValueError(f"more than {MAX_SIZE} entries, shared lists counted each time")

    def _descend(self, depth: int) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > MAX_DEPTH + 1:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")

    def _tagged(self, tag: Any, parts: tuple[Any, ...]) -> Any:
        if type(tag) is not int:
            raise ValueError("a sequence without a tag")
        if tag == _LIST:
            return self._list(parts)
        if tag == _SHARED:
            return self._shared(*parts)
        if tag == _FRACTION:
            return Fraction(*map(_whole, parts))
        if tag == _ARRAY:
            return self._array(*parts)
        values = [self.value(part) for part in parts]
        if tag == _TUPLE:
            return tuple(values)
        return _dict(values) if tag == _DICT else _record(_RECORD_OF[tag], values)

    def _list(self, parts: tuple[Any, ...]) -> list[Any]:
        made: list[Any] = []
        number, size, deepest = len(self.lists), self.size, self.deepest
        self.lists.append(made)
        self.extents.append(None)
        self.deepest = self.depth
        made.extend([self.value(part) for part in parts])
        self.extents[number] = (self.size - size, self.deepest - self.depth)
        self.deepest = max(self.deepest, deepest)
        return made

    def _shared(self, number: Any) -> list[Any]:
        extent = self.extents[number] if 0 <= _whole(number) < len(self.lists) else None
        if extent is None:
            raise ValueError("a list within itself")
        self._grow(extent[0])
        self._descend(self.depth + extent[1])
        return self.lists[number]

    def _array(self, dtype: Any, shape: Any, data: Any) -> np.ndarray[Any, Any]:
        if type(dtype) is not str or dtype[1:] not in _DTYPES or type(data) is not bytes:
            raise ValueError("an array of unknown kind")
        self._grow(len(data) // 8)
        flat = np.frombuffer(data, np.dtype(dtype))
        if flat.dtype == bool and flat.view(np.uint8).max(initial=0) > 1:
            raise ValueError("a bool other than 0 and 1")  # NumPy would compare it wrongly
        if math.prod(map(_whole, shape)) != flat.size or min(shape, default=0) < 0:
            raise ValueError("a shape that does not fit its array")
        return flat.reshape(shape).copy()


def _whole(tree: Any) -> int:
    if type(tree) is not int or not -(2**63) <= tree < 2**63:
        raise ValueError("no whole number of 64 bits")
    return tree


def _dict(values: list[Any]) -> dict[Any, Any]:
    if len(values) > 2 * MAX_DICT_ENTRIES:
        raise ValueError("a dict with too many entries")
    if len(values) // 2 - len(set(map(hash, values[::2]))) > _MOST_ALIKE_HASHES:
        raise ValueError("a dict whose keys have the same hash")
    made = dict(zip(values[::2], values[1::2], strict=True))
    if 2 * len(made) != len(values):
        raise ValueError("a dict with a key twice")
    return made


def _record(kind: Any, values: list[Any]) -> Any:
    for field, value in zip(RECORDS[kind], values, strict=True):
        if not field.holds(value):
            raise ValueError(f"a {kind.__name__} with a field that is not {field.allowed}")
    return kind(*values)
