"""A student's backward over a chain of layers whose activations lie with the judge.

The function gets names only, so that it cannot hold an activation that the judge does not see: its
values, the forwards it costs to have one again, and the gradient are the judge's own.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from autograder.checks.ranks import Served, ranks
from autograder.diagnosis import Case, StudentError, Subject
from autograder.exercise import Draw
from mpedu.held import Ledger, Pass

FUNCTION, PROGRAM = "backward_with_checkpoints", "on_device"  # what is asked, what runs it


class Tried(NamedTuple):
    """What a run came to: the pass, and whether its result is the gradient for x."""

    result: Any
    is_gradient: bool
    made: Pass

    def __repr__(self) -> str:
        """For a message of a run that should have been refused."""
        return "a gradient" if self.is_gradient else "something"


class ChainCase(Case):
    """A number of layers and of segments; prints as "16 layers in 4 segments"."""

    __slots__ = ()

    def __str__(self) -> str:
        n_layers, n_segments = self.args
        layers = f"{n_layers} layer{'s' * (n_layers != 1)}"
        return f"{layers} in {n_segments} segment{'s' * (n_segments != 1)}"


class Chains:
    """A subject whose function is given layers that the judge serves; an answer is a `Tried`."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Runs the function, whatever it is called."""
        return self._run

    def _run(self, n_layers: int, n_segments: int) -> Tried:
        ledger = Ledger(n_layers)
        arguments = (_device(ledger), n_layers, n_segments)
        try:
            run = ranks(self._subject, PROGRAM, 1, [arguments])
        except StudentError as error:
            # The program around the function and its only rank are none of the student's affair.
            words = error.message.removeprefix("rank 0: ").replace(f"`{PROGRAM}`", f"`{FUNCTION}`")
            raise StudentError(error.kind, words, error.type_name, error.line) from None
        made = ledger.pass_of(run.results[0])
        return Tried(run.results[0], made is not None, made or ledger.run)


def _device(ledger: Ledger) -> Served:
    """The ledger as what a program may buy from, for nothing."""

    def free(method: Callable[..., int]) -> Callable[..., tuple[int, float]]:
        return lambda rank, *args: (method(*args), 0.0)

    methods = {name: free(getattr(ledger, name)) for name in ("begin", "forward", "backward")}
    return Served("the chain", methods)


def chains(draw: Draw, even: bool, n_drawn: int = 2) -> Sequence[ChainCase]:
    """Numbers of layers and segments, these equal (`even`) or not; each with one segment or more.

    Not even: also a prime number of layers, and some that leave a remainder over several segments.
    """
    most = 8 if draw.secret else 5
    if even:
        known = [(16, 4), (1, 1), (9, 1), (5, 5)] if not draw.secret else [(1, 1)]
        lengths = [(draw.int(2, most), draw.int(2, most)) for _ in range(n_drawn)]
        sizes = known + [(n_segments * length, n_segments) for n_segments, length in lengths]
    else:
        known = [(13, 4), (11, 3)] if not draw.secret else [(draw.rng.choice((17, 19, 23)), 5)]
        sizes = known + [_uneven(draw, most) for _ in range(n_drawn)]
    return [ChainCase(FUNCTION, pair) for pair in sizes]


def _uneven(draw: Draw, most: int) -> tuple[int, int]:
    """A remainder of two layers at least, so that it matters who takes it."""
    n_segments = draw.int(4, most)
    return n_segments * draw.int(2, 4) + draw.int(2, n_segments - 2), n_segments
