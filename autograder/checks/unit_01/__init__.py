"""Unit 01, collectives and what they cost: its exercises and what their answers must do."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from autograder.checks.programs import OnRanks
from autograder.checks.subjects import Answered, Bounded, misses, outcomes, resting_on, same_miss
from autograder.checks.unit_01 import cause_mistakes as causes
from autograder.checks.unit_01 import cost_mistakes as costs
from autograder.checks.unit_01 import ring_mistakes as rings
from autograder.checks.unit_01 import traffic, trees
from autograder.checks.unit_01.reduce_mistakes import MEAN, REDUCE
from autograder.checks.unit_01.rings import (
    EXPECTED,
    Programs,
    drawn,
    link_of,
    numbered,
    wrong_result,
)
from autograder.checks.unit_01.texts import GUESSES as GUESSES
from autograder.checks.unit_01.texts import HINTS
from autograder.diagnosis import Answers, Case, Miss, Subject, examine, expect_error
from autograder.exercise import Draw, exercise

SLUG = "collectives"
# Whatever computes an answer of this unit, withheld while any of its exercises is checked.
WITHHELD = (
    "mpedu.collectives._pass_round",
    "mpedu.collectives._sum_round",
    "mpedu.collectives.pairwise_all_to_all",
    "mpedu.collectives.ring_all_gather",
    "mpedu.collectives.ring_all_reduce",
    "mpedu.collectives.ring_reduce_scatter",
    "mpedu.collectives.tree_broadcast",
    "mpedu.cost._tree_s",
    "mpedu.cost.collective_bytes",
    "mpedu.cost.collective_s",
)
MOST_OF_NUMBER = 100  # parts an answer may have
MOST_RANKS = 8


def _sizes(draw: Draw, n_ranks: int, most: int) -> list[int]:
    """Elements of each rank, not all alike, one of them none."""
    sizes = [draw.int(0, most) for _ in range(n_ranks - 2)]
    return draw.rng.sample([*sizes, 0, most + 1], n_ranks)


def _even(draw: Draw, name: str, sizes: list[int]) -> list[OnRanks]:
    """The program on each number of ranks, with arrays that divide by it."""
    most = 20 if draw.secret else 3
    return [drawn(draw, name, [p * draw.int(1, most)] * p) for p in sizes]


def _ragged(draw: Draw, name: str, sizes: list[int]) -> list[OnRanks]:
    """With arrays that do not divide by the ranks; the last one is shorter than there are ranks."""
    most = 20 if draw.secret else 3
    counts = [p * draw.int(1, most) + draw.int(1, p - 1) for p in sizes[:-1]]
    counts.append(draw.int(1, sizes[-1] - 1))
    return [drawn(draw, name, [n] * p) for p, n in zip(sizes, counts, strict=True)]


def _floats(draw: Draw, name: str, n_ranks: int) -> list[OnRanks]:
    """With floats, and once without any element."""
    n = draw.int(1, 40)
    return [drawn(draw, name, [n] * n_ranks, floats=True), drawn(draw, name, [0] * 2)]


def _not_after_a_miss(draw: Draw, n_groups: int) -> None:
    """Miss as in the first of so many groups that was missed: bytes of wrong sums mean nothing."""
    for group in draw.groups[:n_groups]:
        if group.diagnosis:
            general = f'not tried, because "{group.label}" was missed.'
            raise Miss(group.diagnosis._replace(general=general))


@contextmanager
def _told_once(draw: Draw) -> Iterator[None]:
    """A miss inside like one of a group before is told in the same words."""
    try:
        yield
    except Miss as miss:
        before = [group.diagnosis for group in draw.groups if group.diagnosis]
        alike = next((one for one in before if one.id == miss.diagnosis.id), None)
        raise Miss(alike or miss.diagnosis) from None


@exercise(
    "ring_all_gather",
    title="E1 All-gather on a ring",
    points=3,
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["ring_all_gather"],
)
def ring_all_gather(subject: Subject, draw: Draw) -> None:
    """All parts on every rank in order of rank, each sent as often as must be."""
    programs, name = Programs(subject), "ring_all_gather"
    differs, link = wrong_result(EXPECTED[name]), link_of(draw)
    even, ragged = [3, draw.int(4, MOST_RANKS), 2, 1], [5, draw.int(6, MOST_RANKS)]
    cases = [numbered(name, [draw.int(1, 4) if draw.secret else 2] * p, link) for p in even]
    uneven = [drawn(draw, name, _sizes(draw, p, 4 if not draw.secret else 30)) for p in ragged]
    uneven += [drawn(draw, name, [3] * 4, floats=True), drawn(draw, name, [0] * 3)]
    answers: Answers = []
    with draw.group("parts of one length", points=1):
        answers = outcomes(programs, cases)
        examine(Answered(answers), cases, differs, rings.GATHER)
    with draw.group("parts of any length, also none", points=1):
        same_miss(draw)
        answers += outcomes(programs, uneven)
        examine(Answered(answers), [*cases, *uneven], differs, rings.GATHER)
    with draw.group("bytes sent", points=1):
        same_miss(draw)
        every = [case for case, _ in answers]
        examine(Answered(answers), every, traffic.wrong_bytes, traffic.GATHER_BYTES)


@exercise(
    "ring_reduce_scatter",
    title="E2 Reduce-scatter on a ring",
    points=4,
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["ring_reduce_scatter"],
)
def ring_reduce_scatter(subject: Subject, draw: Draw) -> None:
    """Each rank's part of the sum, parts as even as can be, whole arrays never on the way."""
    programs, name = Programs(subject), "ring_reduce_scatter"
    differs, link = wrong_result(EXPECTED[name]), link_of(draw)
    p = draw.int(4, MOST_RANKS)
    even = [numbered(name, [3] * 3, link), *_even(draw, name, [p, 2, 1])]
    ragged = _ragged(draw, name, [3, draw.int(4, 6), 7])
    floats = _floats(draw, name, 5)
    answers: Answers = []
    with draw.group("arrays that divide by the ranks", points=1):
        answers = outcomes(programs, even)
        examine(Answered(answers), even, differs, rings.SCATTER)
    with draw.group("arrays that do not", points=1):
        same_miss(draw)
        answers += outcomes(programs, ragged)
        examine(Answered(answers), [*even, *ragged], differs, rings.SCATTER)
    with draw.group("floats, and no elements at all", points=1):
        same_miss(draw)
        examine(programs, floats, differs, rings.SCATTER)
    with draw.group("bytes sent", points=1):
        _not_after_a_miss(draw, 2)
        every = [case for case, _ in answers]
        examine(Answered(answers), every, traffic.wrong_bytes, traffic.SCATTER_BYTES)


def _resting_on_e2(programs: Subject, draw: Draw) -> AbstractContextManager[None]:
    """A miss inside says that the reduce-scatter, if it is wrong, may be the cause."""
    name = "ring_reduce_scatter"
    cases = [drawn(draw, name, [n] * 3) for n in (3, 5)]
    return resting_on(name, lambda: misses(programs, cases, wrong_result(EXPECTED[name])))


@exercise(
    "ring_all_reduce",
    title="E3 All-reduce: the sum on every rank",
    points=2,
    names=["ring_all_reduce", "ring_reduce_scatter"],  # the second only to say what to mend first
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["ring_all_reduce"],
)
def ring_all_reduce(subject: Subject, draw: Draw) -> None:
    """The same sum everywhere, for any size and any number of ranks."""
    programs, name = Programs(subject), "ring_all_reduce"
    differs, link = wrong_result(EXPECTED[name]), link_of(draw)
    even = [numbered(name, [6] * 3, link), *_even(draw, name, [draw.int(4, MOST_RANKS), 2, 1])]
    ragged = [*_ragged(draw, name, [4, 5]), *_floats(draw, name, 6)]
    answers: Answers = []
    with draw.group("arrays that divide by the ranks", points=1), _resting_on_e2(programs, draw):
        answers = outcomes(programs, even)
        examine(Answered(answers), even, differs, REDUCE)
    with draw.group("arrays that do not, and floats", points=1):
        same_miss(draw)
        with _resting_on_e2(programs, draw):
            answers += outcomes(programs, ragged)
            examine(Answered(answers), [*even, *ragged], differs, REDUCE)


@exercise(
    "ring_all_reduce_fast",
    title="E3 All-reduce: its bytes and its time",
    points=4,
    names=["ring_all_reduce"],
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["ring_all_reduce_fast"],
)
def ring_all_reduce_fast(subject: Subject, draw: Draw) -> None:
    """A ring of as few bytes as can be, alike on all ranks, and no longer than one takes."""
    programs, name = Programs(subject), "ring_all_reduce"
    sizes = [4, draw.int(5, MOST_RANKS)]
    # Large enough for a ring to win: there each step costs more bytes' time than latency.
    even = [drawn(draw, name, [p * draw.int(8, 20)] * p) for p in sizes]
    ragged = _ragged(draw, name, [3, draw.int(4, 6)])
    answers: Answers = []
    uneven: Answers = []
    mistakes = (*rings.STUCK, MEAN, *traffic.REDUCE_BYTES)
    with draw.group("bytes of each rank, where the array divides", points=1):
        answers = outcomes(programs, even)
        examine(Answered(answers), even, traffic.wrong_bytes, mistakes)
    with draw.group("bytes of all ranks, where it does not", points=1), _told_once(draw):
        uneven = outcomes(programs, ragged)
        # With those that divide: what is no ring on some numbers of ranks is none.
        every = [*answers, *uneven]
        examine(Answered(every), [*even, *ragged], traffic.wrong_bytes, mistakes)
    slower = traffic.slower(has_right_bytes=not any(group.diagnosis for group in draw.groups))
    with draw.group("model clock", points=2), _told_once(draw):
        examine(Answered(answers), even, slower, (*rings.STUCK, *traffic.REDUCE_CLOCK))
        examine(Answered(uneven), ragged, slower)


@exercise(
    "cost_s",
    title="E4 What a collective costs",
    points=4,
    withholds=WITHHELD,
    hints=HINTS["cost_s"],
)
def cost_s(subject: Subject, draw: Draw) -> None:
    """Seconds of each pattern from its rounds; one rank pays nothing; unknown names refused."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    with draw.group("rings: all_gather, reduce_scatter, all_reduce", points=2):
        examine(subject, costs.ring_cases(draw), costs.differs, costs.RINGS)
    with draw.group("all_to_all, broadcast, naive_all_reduce", points=1):
        examine(subject, costs.other_cases(draw), costs.differs, costs.OTHERS)
    with draw.group("one rank, no bytes, an unknown operation", points=1):
        examine(subject, costs.edge_cases(draw), costs.differs, costs.EDGES)
        word = "".join(draw.rng.choices("abcdefgh", k=8)) if draw.secret else "gather_all"
        # One rank pays nothing, yet an unknown name is one; and what only begins like a name.
        for bad, n_ranks in ((word, 2), (word, 1), ("all", 2), ("reduce", 4), ("ALL_GATHER", 2)):
            expect_error(subject, Case("cost_s", (bad, 8, n_ranks, 1.0, 8.0)), bad)


@exercise(
    "tree_broadcast",
    title="E5 Extra: broadcast along a tree",
    points=0,
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["tree_broadcast"],
)
def tree_broadcast(subject: Subject, draw: Draw) -> None:
    """The array of rank 0 on every rank, after as many rounds as doubling takes."""
    programs, name = Programs(subject), "tree_broadcast"
    sizes = [4, draw.int(5, 7), MOST_RANKS, 3, 2, 1]
    cases = trees.cases(draw, name, sizes)
    answers: Answers = []
    with draw.group("the array on every rank", points=0):
        answers = outcomes(programs, cases)
        examine(Answered(answers), cases, trees.differs, trees.ARRAYS)
    with draw.group("model clock", points=0):
        same_miss(draw)
        examine(Answered(answers), cases, trees.slower, trees.CLOCK)


@exercise(
    "sum_cause",
    title="E6 What is wrong with this all-reduce",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["sum_cause"],
)
def sum_cause(subject: Subject, draw: Draw) -> None:
    """Which of seven causes a run's results, bytes and time speak for."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    causes.ASKED.examine(subject, draw, causes.KNOWN)
