"""What went wrong, said once: the fault of a schedule, and errors every module shares."""

from numbers import Integral
from typing import NamedTuple


class Fault(NamedTuple):
    """One fault of a schedule; `text` is one sentence, an index is None where it means nothing."""

    kind: str
    rank: int | None
    stage: int | None
    microbatch: int | None
    text: str

    def __str__(self) -> str:
        return self.text


class Failure(RuntimeError):
    """A command cannot go on: what happened and the way out, in one sentence; exit status 1.

    (A wrong argument is a ValueError and exit status 2.)
    """


class Withheld(RuntimeError):
    """Raised by a function of the package whose answer is the exercise being checked."""


def require_at_least(minimum: int, **values: int) -> None:
    """Nothing; ValueError naming the first value that is not an int of at least `minimum`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError(f"{name}={value!r} is not a whole number; give an int >= {minimum}")
        if value < minimum:
            raise ValueError(f"{name}={value} is too small; give {name} >= {minimum}")
