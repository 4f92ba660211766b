"""A student's rank program at home: on simulated ranks in the notebook's process."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from autograder.diagnosis import StudentError
from autograder.programs import Books, Defect, RanksRun, Served, of_rank, parted, require_arguments
from autograder.worker.protocol import decode, encode
from autograder.worker.ranks import GradedComm, given, own_copy
from autograder.worker.trouble import Trouble, Troubles
from mpedu.comm import Comm
from mpedu.simulated import Simulated, SimulatedComm
from mpedu.simulated.baton import Baton


def run_here(
    name: str,
    program: Callable[..., Any],
    n_ranks: int,
    arguments: Sequence[tuple[Any, ...]],
    machine: Simulated,
    troubles: Troubles,
    limit_s: float,
    longer: str,
) -> RanksRun:
    """What `program` gives, under the rules of grading; StudentError where it gives nothing.

    `longer` is told, with the place, when it takes longer than `limit_s`.
    """
    require_arguments(n_ranks, arguments)
    books = Books(n_ranks, machine)
    baton = Baton(books.exchange)
    lives = [
        partial(_live, books, baton, machine, rank, program, arguments[rank])
        for rank in range(n_ranks)
    ]
    if not baton.run(lives, limit_s):
        why = f"{longer}{_place(baton, troubles)}."
        raise of_rank(baton.running, Trouble("timeout", why))
    if baton.failed is not None:
        raise _failure(name, troubles, *baton.failed) from None
    if baton.stuck:
        raise books.stuck()
    return books.run_of([decode(packed) for packed in baton.results])


def _live(
    books: Books,
    baton: Baton,
    machine: Simulated,
    rank: int,
    program: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> bytes:
    plain, served = parted(arguments)
    comm = _Comm(baton, rank, books.exchange.world, machine, lambda _: None)
    names = [(at, one.name, list(one.methods)) for at, one in served.items()]
    buy = partial(_buy, books, rank, served)
    return encode(own_copy(program)(comm, *given(decode(encode(plain)), names, buy)))


def _buy(
    books: Books, rank: int, served: dict[int, Served], at: int, method: str, *args: Any
) -> Any:
    return decode(books.buy(rank, served[at], method, decode(encode(args))))


def _failure(name: str, troubles: Troubles, rank: int, error: BaseException) -> StudentError:
    try:
        raise error
    except Defect:
        raise
    except BaseException as raised:
        return of_rank(rank, troubles.explain(name, raised))


def _place(baton: Baton, troubles: Troubles) -> str:
    """The student's line that was running when the time was over, in brackets."""
    lines = [line for file, line, _ in baton.frames() if file in troubles.cells]
    return f" (your cell, line {lines[-1]})" if lines else ""


class _Comm(GradedComm, SimulatedComm):
    """A simulated rank under the rules of grading."""

    def split(self, color: int) -> Comm:
        """A `Comm` of the ranks that gave the same `color`."""
        made = super().split(color)
        made.__class__ = type(self)
        return made
