"""Which records may pass a wire, and what each of their fields may hold.

Runs on both sides of the wall, so it knows nothing of the autograder.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mpedu.published import ModelConfig
from mpedu.runs import EngineRun, RunReport, SumRun
from mpedu.schedule import Action
from mpedu.simulate import Costs, Span, Timeline

REAL_DTYPES = frozenset("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split())
_NUMPY_SCALARS = {np.dtype(code).type for code in REAL_DTYPES} | {np.longlong, np.ulonglong}


class Field(NamedTuple):
    """What a field may hold: in words, and as a test of a value."""

    allowed: str
    holds: Callable[[Any], bool]


def coerced(value: Any) -> Any:
    """A NumPy number as the Python number it stands for, anything else as it is."""
    return value.item() if type(value) in _NUMPY_SCALARS else value


def _is_number(value: Any) -> bool:
    return type(coerced(value)) in (int, float, Fraction)


def _is_per_stage(value: Any) -> bool:
    return all(map(_is_number, value)) if type(value) in (list, tuple) else _is_number(value)


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and set(map(type, value)) <= {kind}


def _is_schedule(value: Any) -> bool:
    return type(value) is list and all(map(_is_list_of(Action), value))


def _is_by_rank(value: Any) -> bool:
    return type(value) is list and all(type(x) is list and all(map(_is_number, x)) for x in value)


def _is_tuple(value: Any) -> bool:
    return type(value) is tuple and all(map(_is_number, value))


_TEXT = Field("a str", lambda value: type(value) is str)
_WHOLE = Field("an int", lambda value: type(coerced(value)) is int)
_FLAG = Field("a bool", lambda value: type(value) is bool)
_NUMBER = Field("a number", _is_number)
_NUMBERS = Field("a tuple of numbers", _is_tuple)
_PER_STAGE = Field("a number or a list of them", _is_per_stage)
_SPANS = Field("a list of Span", _is_list_of(Span))
# Messages are records of a run; no answer has any.
_NO_MESSAGES = Field("(), or leave it out", lambda value: type(value) is tuple and not value)
_BY_RANK = Field("a list of lists of numbers", _is_by_rank)
_SCHEDULE = Field("a list of lists of Action", _is_schedule)
_HALF = Field(f"None, {_PER_STAGE.allowed}", lambda value: value is None or _is_per_stage(value))
RECORDS: dict[type, tuple[Field, ...]] = {
    Action: (_TEXT, _WHOLE, _WHOLE),
    Span: (_WHOLE, _TEXT, _WHOLE, _WHOLE, _NUMBER, _NUMBER),
    Timeline: (_SPANS, _WHOLE, _NO_MESSAGES),
    Costs: (_PER_STAGE, _PER_STAGE, _HALF, _HALF, _NUMBER, _PER_STAGE, _FLAG),
    RunReport: (_SCHEDULE, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
    SumRun: (_BY_RANK, _BY_RANK, _NUMBERS, _NUMBER, _NUMBER, _NUMBER),
    EngineRun: (_SCHEDULE, _SCHEDULE, _NUMBERS, _WHOLE, _BY_RANK, _NUMBERS, _NUMBERS),
    ModelConfig: (_TEXT, *[_WHOLE] * 7, *[_FLAG] * 4),
}
