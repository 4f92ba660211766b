"""Rank programs as checks ask them, and what the judge saw of a run."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.checks.ranks import ranks
from autograder.diagnosis import Answers, Case, Diagnosis, StudentError, Subject
from autograder.exercise import Draw
from mpedu.simulated import Simulated, Wire

# What a program does wrong among ranks is an answer like another: others may explain it.
_ANSWERS = ("deadlock", "unreceived", "mismatch", "raised")
_COLLECTIVES = ("broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_REQUEST = re.compile(r"\b_?(?:Waited|Request)\b")
_WAIT = re.compile(r"rank (\d+) in (send to|recv from) rank (\d+)")


class OnRanks(Case):
    """A rank program with the number of ranks, the arguments of each, and the link between them.

    Prints as "hello on 4 ranks".
    """

    __slots__ = ()

    def __str__(self) -> str:
        n_ranks = self.args[0]
        return f"{self.name} on {n_ranks} rank{'s' * (n_ranks > 1)}"


def on_ranks(name: str, arguments: Sequence[tuple[Any, ...]], link: Wire | None = None) -> OnRanks:
    """The case of a program on as many ranks as there are `arguments`."""
    return OnRanks(name, (len(arguments), list(arguments), link or Wire(1.0)))


class Ran:
    """A subject whose functions are rank programs: a case's answer is its run.

    Or the StudentError of a program that got stuck or raised, so that all cases can be looked at.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Runs the program of that name."""
        return lambda *args: self._run(name, *args)

    def _run(
        self, name: str, n_ranks: int, arguments: Sequence[tuple[Any, ...]], link: Wire
    ) -> Any:
        try:
            return ranks(self._subject, name, n_ranks, arguments, machine=Simulated(link=link))
        except StudentError as error:
            if error.kind in _ANSWERS:
                return error
            if error.kind == "not_plain" and _REQUEST.search(error.message):
                who = error.message.partition(":")[0]  # "rank 0"
                why = f"{who} returns a request; call `wait()` on it, which gives the array."
                raise StudentError(error.kind, why) from None
            raise


def failed(case: Case, got: Any) -> Diagnosis | None:
    """What a program says that gave no results; None for a run."""
    return got.diagnosis(str(case)) if isinstance(got, StudentError) else None


def called_collective(case: Case, got: Any) -> Diagnosis | None:
    """For a run in which a collective did the work; None where messages did."""
    called = [kind for _, kind in got.meter.counts if kind in _COLLECTIVES]
    if not called:
        return None
    text = f"{case}: it calls {called[0]}, which does the exercise for you; use send and recv."
    return Diagnosis("collective", text, "a collective does the work; use send and recv.")


def links(run: Any) -> list[tuple[int, int]]:
    """Source and destination of every message that a run has sent, sorted."""
    sent = (one for one in run.timeline.messages if one.kind == "send")
    return sorted((one.source, one.destination) for one in sent)


def waits(got: Any) -> dict[int, tuple[str, int]]:
    """Where a stuck program stands: rank -> ("send" or "recv", peer); {} for a run."""
    if not isinstance(got, StudentError):
        return {}
    return {
        int(rank): (words.split()[0], int(peer)) for rank, words, peer in _WAIT.findall(got.message)
    }


def next_rank(rank: int, n_ranks: int) -> int:
    """The next rank of the ring."""
    return (rank + 1) % n_ranks


def once_round(n_ranks: int) -> list[tuple[int, int]]:
    """One message on each link of the ring; none for a rank alone."""
    return [(r, next_rank(r, n_ranks)) for r in range(n_ranks)] if n_ranks > 1 else []


def among_several(matches: Callable[[Case, Any], bool]) -> Callable[[Answers], bool]:
    """`matches` for a mistake seen in every case of two ranks or more."""
    return lambda answers: all(matches(case, got) for case, got in answers if case.args[0] > 1)


def stands_in(call: str) -> Callable[[Case, Any], bool]:
    """Does every rank stand in that call, with its neighbour of the ring?"""

    def matches(case: Case, got: Any) -> bool:
        n_ranks = case.args[0]
        step = 1 if call == "send" else -1
        everyone = {rank: (call, (rank + step) % n_ranks) for rank in range(n_ranks)}
        return waits(got) == everyone

    return matches


def message_s(case: Case) -> float:
    """Seconds of one message of this case: the bytes on the link, and its latency."""
    _, arguments, link = case.args
    return float(arguments[0][0].nbytes / link.bytes_per_s + link.latency_s)


def arrays(draw: Draw, n_ranks: int, form: int = 0) -> list[tuple[Any, ...]]:
    """An array for each rank, all of one shape, no number of one in another.

    form: 0 for whole numbers in a row, 1 for broken numbers, 2 for a column of whole numbers.
    """
    length, most = draw.int(1, 3), 10**6 if draw.secret else 99
    values = draw.rng.sample(range(10, most + 1), n_ranks * length)
    rows = np.array(values, dtype=np.int64).reshape(n_ranks, length)
    made = [row + 0.5 if form == 1 else row.copy() for row in rows]
    return [(row.reshape(-1, 1) if form == 2 else row,) for row in made]


def drawn_link(draw: Draw) -> Wire:
    """A link whose times are whole numbers of seconds for arrays of int64."""
    return Wire(latency_s=float(draw.int(2, 9)), bytes_per_s=8.0)


def array_problem(got: Any) -> str:
    """What keeps a result from being an array, "" where nothing does."""
    if got is None:
        return "returns None; is a return missing?"
    if not isinstance(got, np.ndarray):
        return f"returns a value of type {type(got).__name__}; the array itself is asked."
    return ""


def is_same(got: Any, expected: Any) -> bool:
    """Whether a result is that array."""
    return isinstance(got, np.ndarray) and np.array_equal(got, expected)


def shown_array(x: Any) -> str:
    """An array for a message: its first numbers."""
    if not isinstance(x, np.ndarray):
        return f"a value of type {type(x).__name__}"
    some = (
        ", ".join(f"{value:g}" for value in x.ravel()[:4].tolist())
        if x.dtype.kind in "iuf"
        else ".."
    )
    return f"[{some}{', ..' if x.size > 4 else ''}]"
