"""Unit 00, ranks and messages: its exercises and what their answers must do."""

from autograder.checks.programs import (
    OnRanks,
    Ran,
    arrays,
    drawn_link,
    on_ranks,
)
from autograder.checks.subjects import Answered, Bounded, outcomes, same_miss
from autograder.checks.unit_00 import blame_mistakes as blames
from autograder.checks.unit_00 import deadlock_mistakes as deadlocks
from autograder.checks.unit_00 import hello_mistakes as hellos
from autograder.checks.unit_00 import ring_mistakes as rings
from autograder.checks.unit_00.stops import drawn_stops
from autograder.checks.unit_00.texts import GUESSES as GUESSES
from autograder.checks.unit_00.texts import HINTS
from autograder.diagnosis import Answers, Case, Subject, ask, examine
from autograder.exercise import Draw, exercise

SLUG = "start-here"
MOST_OF_BLAME = 1_000  # parts an answer may have


def _odd_and_even(draw: Draw) -> list[int]:
    """An odd and an even number of ranks above two: some programs run on one kind only."""
    return [draw.rng.choice((3, 5, 7)), draw.rng.choice((4, 6, 8))]


@exercise(
    "hello",
    title="E1 Hello: every rank's number",
    points=4,
    evidence="served",
    hints=HINTS["hello"],
)
def hello(subject: Subject, draw: Draw) -> None:
    """A message from each rank, and on rank 0 all numbers in order."""
    sizes = [2, *_odd_and_even(draw), 1] if draw.secret else [4, 2, 1, 7]
    cases = [on_ranks("hello", [()] * n_ranks) for n_ranks in sizes]
    answers: Answers = []
    with draw.group("a message from every rank", points=2):
        answers = [(case, ask(Ran(subject), case)) for case in cases]
        examine(Answered(answers), cases, hellos.unasked, hellos.ASKED)
    with draw.group("the numbers in order of rank", points=2):
        same_miss(draw)  # a list without messages is a guess
        examine(Answered(answers), cases, hellos.differs, hellos.NUMBERS)


def _with_arrays(draw: Draw, name: str, sizes: list[int]) -> list[OnRanks]:
    """The program on each number of ranks, every rank with an array of its own.

    Whole numbers in a row first, then broken ones, then a column.
    """
    return [
        on_ranks(name, arrays(draw, n_ranks, form % 3), drawn_link(draw))
        for form, n_ranks in enumerate(sizes)
    ]


@exercise(
    "ring_pass",
    title="E2 Round the ring",
    points=3,
    evidence="served",
    hints=HINTS["ring_pass"],
)
def ring_pass(subject: Subject, draw: Draw) -> None:
    """The token of rank 0 on every rank, by one message on each link of the ring."""
    sizes = [2, *_odd_and_even(draw)] if draw.secret else [4, 2, 7]
    cases = _with_arrays(draw, "ring_pass", sizes)
    answers: Answers = []
    differs = rings.wrong_array(rings.token_of_zero, lambda *_: "the token of rank 0")
    with draw.group("the token on every rank", points=1):
        answers = [(case, ask(Ran(subject), case)) for case in cases]
        examine(Answered(answers), cases, differs, rings.TOKENS)
    with draw.group("once round, a message on each link", points=1):
        same_miss(draw)
        examine(Answered(answers), cases, rings.goes_astray, rings.WAY)
    with draw.group("one rank alone", points=1):
        same_miss(draw)
        examine(Ran(subject), _with_arrays(draw, "ring_pass", [1]), differs)


@exercise(
    "ring_pass_fast",
    title="E2 Round the ring: its time",
    points=2,
    names=["ring_pass"],
    evidence="served",
    hints=HINTS["ring_pass_fast"],
)
def ring_pass_fast(subject: Subject, draw: Draw) -> None:
    """Home after exactly as many message times as there are ranks."""
    sizes = _odd_and_even(draw) if draw.secret else [4, 7]
    examine(Ran(subject), _with_arrays(draw, "ring_pass", sizes), rings.not_a_round, rings.TOKENS)


@exercise(
    "fix_deadlock",
    title="E3 Mend the deadlock",
    points=4,
    evidence="served",
    hints=HINTS["fix_deadlock"],
)
def fix_deadlock(subject: Subject, draw: Draw) -> None:
    """Every rank has the array of the rank before it; a rank alone its own."""
    sizes = [2, *_odd_and_even(draw)] if draw.secret else [4, 3, 2, 8]
    cases = _with_arrays(draw, "fix_deadlock", sizes)
    answers: Answers = []
    with draw.group("two to eight ranks", points=2):
        answers = [(case, ask(Ran(subject), case)) for case in cases]
        examine(Answered(answers), cases, deadlocks.differs, deadlocks.EXCHANGED)
    with draw.group("every request waited for", points=1):
        same_miss(draw)
        examine(Answered(answers), cases, deadlocks.unwaited)
    with draw.group("one rank alone", points=1):
        if draw.groups[0].diagnosis:
            same_miss(draw)
        examine(Ran(subject), _with_arrays(draw, "fix_deadlock", [1]), deadlocks.differs)


@exercise(
    "fix_deadlock_fast",
    title="E3 Mend the deadlock: its time",
    points=2,
    names=["fix_deadlock"],
    evidence="served",
    hints=HINTS["fix_deadlock_fast"],
)
def fix_deadlock_fast(subject: Subject, draw: Draw) -> None:
    """Done after one message time, however many ranks there are."""
    sizes = _odd_and_even(draw) if draw.secret else [7, 4]
    cases = _with_arrays(draw, "fix_deadlock", sizes)
    examine(Ran(subject), cases, deadlocks.slower, deadlocks.IN_TIME)


@exercise(
    "blame",
    title="E4 Who is to blame",
    points=5,
    hints=HINTS["blame"],
)
def blame(subject: Subject, draw: Draw) -> None:
    """Why no rank goes on, and because of which ranks."""
    cases = [Case("blame", (waits,)) for waits in drawn_stops(draw)]
    answers = outcomes(Bounded(subject, MOST_OF_BLAME), cases, blames.named)
    with draw.group("the cause", points=3):
        examine(Answered(answers), cases, blames.differs_cause, blames.CAUSE)
    with draw.group("the ranks", points=2):
        examine(Answered(answers), cases, blames.differs_ranks, blames.RANKS)
