"""Calls of collectives, and the checks of what a program hands to its `Comm`."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np

from mpedu.arrays import Array, Unfit, kind_of

TAGS = 2**31  # gloo carries no larger tag
USER_TAGS = 2**29  # tags of programs are below; up to twice as many say what a message is
ANNOUNCED = USER_TAGS - 16  # from here on the tags are ours, and no report tells them
ENGINE_TAGS = 2**30  # from here on are the engine's
OPERATIONS = ("sum", "max")


class Call(NamedTuple):
    """One rank's call of a collective; what does not belong to the operation is None."""

    operation: str
    x: Array = None
    op: str | None = None
    root: int | None = None
    sizes: tuple[int, ...] | None = None  # rows by rank; of all_to_all those this rank sends
    recv_sizes: tuple[int, ...] | None = None  # of all_to_all
    needs_gradient: bool = False  # a gradient is to flow through `x`


def even_sizes(n_rows: int, n_ranks: int) -> tuple[int, ...]:
    """Rows of each rank where `n_rows` are split as evenly as can be, larger parts first."""
    size, more = divmod(n_rows, n_ranks)
    return tuple(size + (rank < more) for rank in range(n_ranks))


def words(what: str, tag: int) -> str:
    """What a report says of a message, in brackets: the program's words and its tag."""
    if not tag and not what:  # as nearly always
        return ""
    said = [what] if what else []
    if 0 < tag < ANNOUNCED:
        said.append(f"tag {tag}")
    return f" ({', '.join(said)})" if said else ""


class Checks:
    """ValueErrors in a sentence that names rank and operation, for all that cannot be meant."""

    rank: int
    size: int
    device: str

    def _number(self, rank: int) -> int:
        """The number among all ranks of the run, which is what a report tells."""
        return rank

    def _wrong(self, name: str, why: str) -> ValueError:
        return ValueError(f"{name} on rank {self._number(self.rank)}: {why}")

    def _check_rank(self, name: str, rank: int) -> None:
        if not _is_int(rank, self.size):
            known = f"there are 0..{self.size - 1}" if self.size > 1 else "rank 0 is alone"
            raise self._wrong(name, f"no rank {rank!r}; {known}")

    def _check_peer(self, name: str, rank: int) -> None:
        if type(rank) is not int or not 0 <= rank < self.size:
            self._check_rank(name, rank)
        if rank == self.rank:
            raise self._wrong(name, "it named itself; messages go between ranks")

    def _check_tag(self, name: str, tag: int) -> None:
        if not _is_int(tag, USER_TAGS):
            raise self._wrong(name, f"tag={tag!r} is no tag; give an int from 0 to {USER_TAGS - 1}")

    def _check_op(self, name: str, op: str) -> None:
        if op not in OPERATIONS:
            raise self._wrong(name, f"op={op!r} is unknown; choose {' or '.join(OPERATIONS)}")

    def _check_array(
        self, name: str, x: Array, written: bool = False, may_need_gradient: bool = False
    ) -> None:
        """ValueError in a sentence where an array cannot travel."""
        try:
            kind = kind_of(x)
            kind.check(x, self.device, written)
        except Unfit as error:
            raise self._wrong(name, str(error)) from None
        if not may_need_gradient and kind.needs_gradient(x):
            raise self._wrong(
                name,
                "the tensor needs a gradient, and messages carry none; give x.detach() and send "
                "the gradient back as a message of its own",
            )

    def _rows(self, name: str, x: Array, least_axes: int = 0) -> int:
        self._check_array(name, x, may_need_gradient=True)
        shape = tuple(x.shape)
        if len(shape) < least_axes:
            raise self._wrong(name, "the array has no axis; give at least one row")
        return shape[0] if shape else 1

    def _sizes(self, name: str, sizes: Sequence[int], n_rows: int | None = None) -> tuple[int, ...]:
        wanted = f"give {self.size} ints of 0 or more, one per rank"
        listed = list(sizes) if isinstance(sizes, Iterable) else sizes
        if not isinstance(listed, list) or len(listed) != self.size:
            raise self._wrong(name, f"sizes={listed!r:.80}; {wanted}")
        if not all(_is_int(size, TAGS) for size in listed):
            raise self._wrong(name, f"sizes={listed!r:.80}; {wanted}")
        if n_rows is not None and sum(listed) != n_rows:
            raise self._wrong(
                name, f"sizes={listed!r:.80} are {sum(listed)} rows; the array has {n_rows}"
            )
        return tuple(int(size) for size in listed)

    def _color(self, color: int) -> np.ndarray:
        if not _is_int(color, 2**62):
            raise self._wrong("split", f"color={color!r}; give an int >= 0")
        return np.array([color], dtype=np.int64)


def _is_int(number: object, end: int) -> bool:
    """Whether it is a whole number from 0 to below `end`, of whatever integer type."""
    if type(number) is int:  # asked for every message
        return 0 <= number < end
    return isinstance(number, Integral) and not isinstance(number, bool) and 0 <= int(number) < end
