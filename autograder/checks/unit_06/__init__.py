"""Unit 06, interleaved stages and zero bubble: its exercises and what their answers must do."""

from autograder import oracle_06
from autograder.checks.subjects import Answered, Bounded, outcomes, same_miss
from autograder.checks.unit_06 import bubble_mistakes as bubbles
from autograder.checks.unit_06 import cause_mistakes as causes
from autograder.checks.unit_06 import chunk_mistakes as chunks
from autograder.checks.unit_06 import delay_mistakes as delays
from autograder.checks.unit_06 import interleaved_mistakes as schedules
from autograder.checks.unit_06.cases import (
    any_groups,
    layers_left_over,
    other_lists,
    plain_lists,
    shares,
    stages_and_pieces,
    whole_groups,
    whole_layers,
)
from autograder.checks.unit_06.texts import GUESSES as GUESSES
from autograder.checks.unit_06.texts import HINTS
from autograder.checks.values import differs_from
from autograder.diagnosis import Answers, Case, Subject, examine, expect_error
from autograder.exercise import Draw, exercise

SLUG = "interleaved"
# Whatever computes an answer of this unit. The share of v M micro-batches is that of v chunks.
WITHHELD = (
    "mpedu.cost.bubble_fraction",
    "mpedu.cost.bubble_interleaved",
    "mpedu.cost.bubble_over_ideal",
    "mpedu.families.interleaved._order",
    "mpedu.families.interleaved.alternated",
    "mpedu.families.interleaved_1f1b",
    "mpedu.families.interleaved_zero_bubble",
    "mpedu.families.looped_bfs",
    "mpedu.families.interleaved.split",
    "mpedu.families.dualpipe_v",
    "mpedu.families.zbv",
    "mpedu.families.zero_bubble_h1",
    "mpedu.search.search_schedule",
)
# Parts an answer may have: a schedule of 24 stages and 24 micro-batches, in thirds, has 6,930.
MOST_OF_SCHEDULE, MOST_OF_NUMBER, MOST_OF_LAYERS = 20_000, 100, 1_000


@exercise(
    "chunk_layers",
    title="E1 Layers of every chunk",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["chunk_layers"],
)
def chunk_layers(subject: Subject, draw: Draw) -> None:
    """Chunks go round the ranks; sizes as equal as can be; too few layers refused."""
    subject = Bounded(subject, MOST_OF_LAYERS)
    with draw.group("layers that chunks divide", points=1):
        examine(subject, whole_layers(draw), chunks.differs_layers, chunks.CHUNKS)
    with draw.group("layers left over", points=1):
        same_miss(draw)
        examine(subject, layers_left_over(draw), chunks.differs_layers, chunks.LEFT_OVER)
    with draw.group("too few layers and counts below 1 refused", points=1):
        if draw.groups[0].diagnosis:
            same_miss(draw)
        n, few, bad = draw.int(2, 5), draw.int(30, 39), -draw.int(100, 10_000)
        for n_layers, n_ranks, n_chunks in ((few, 10, 4), (0, n, 1)):
            expect_error(subject, Case("chunk_layers", (n_layers, n_ranks, n_chunks)), n_layers)
        for wrong, n_ranks, n_chunks in ((0, 0, n), (0, n, 0), (bad, bad, n), (bad, n, bad)):
            expect_error(subject, Case("chunk_layers", (40, n_ranks, n_chunks)), wrong)


@exercise(
    "interleaved_1f1b",
    title="E2 Interleaved: legal schedules",
    points=4,
    withholds=WITHHELD,
    hints=HINTS["interleaved_1f1b"],
)
def interleaved_1f1b(subject: Subject, draw: Draw) -> None:
    """On looped stages, complete, in an order that can run; counts below 1 refused."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    with draw.group("legal where ranks divide the micro-batches", points=2):
        examine(subject, whole_groups(draw, 4), schedules.cannot_run, schedules.LEGAL)
    with draw.group("legal for any number of micro-batches", points=1):
        same_miss(draw)
        examine(subject, any_groups(draw, 3), schedules.cannot_run, schedules.ANY)
    with draw.group("counts below 1 refused", points=1):
        if draw.groups[0].diagnosis:
            same_miss(draw)
        n, bad = draw.int(2, 9), -draw.int(100, 10_000)
        for wrong, sizes in (
            (0, (0, n, n)),
            (0, (n, 0, 2)),
            (bad, (n, n, bad)),
            (bad, (2, bad, n)),
        ):
            expect_error(subject, Case("interleaved_1f1b", sizes), wrong)


@exercise(
    "interleaved_1f1b_fast",
    title="E2 Interleaved: speed and memory",
    points=3,
    names=["interleaved_1f1b"],
    withholds=WITHHELD,
    hints=HINTS["interleaved_1f1b_fast"],
)
def interleaved_1f1b_fast(subject: Subject, draw: Draw) -> None:
    """The least makespan there is, and no more held than Megatron's order holds."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    # Whole numbers of a common tick stand for fractions of a second: exact, and fast to add.
    costs = [(1, 2), (1, 1), (5, 3)]
    if draw.secret:
        costs = [(draw.int(1, 99), draw.int(1, 99)) for _ in costs]
    cases = whole_groups(draw, 3)
    answers = outcomes(subject, cases)
    with draw.group("the least makespan", points=1):
        examine(
            Answered(answers),
            cases,
            lambda case, got: schedules.slow(case, got, costs),
            schedules.FAST,
        )
    with draw.group("the same, and no more held than needed", points=2):
        same_miss(draw)
        examine(Answered(answers), cases, schedules.holds_more, schedules.HELD)


@exercise(
    "bubble_interleaved",
    title="E3 The bubble with chunks",
    points=2,
    withholds=WITHHELD,
    hints=HINTS["bubble_interleaved"],
)
def bubble_interleaved(subject: Subject, draw: Draw) -> None:
    """The closed form, wherever it holds."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    look = "Count slots of a chunk: each rank works v M of them and waits K-1."
    general = "the value differs from the count of boxes."
    differs = differs_from(oracle_06.bubble_interleaved, look, general, 1e-12)
    examine(subject, shares(draw), differs, bubbles.BUBBLE)


@exercise(
    "delay_weight_gradients",
    title="E4 Weight gradients later: legal schedules",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["delay_weight_gradients"],
)
def delay_weight_gradients(subject: Subject, draw: Draw) -> None:
    """All work in halves, each W after its I, and nothing else moved."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    cases = [*plain_lists(draw, 3), *other_lists(draw, 1)]
    answers: Answers = []
    with draw.group("legal, in halves, on the same ranks", points=2):
        answers = examine(subject, cases, delays.cannot_run)
    with draw.group("F and I in the given order", points=1):
        same_miss(draw)
        examine(Answered(answers), cases, delays.other_order)


@exercise(
    "delay_weight_gradients_fast",
    title="E4 Weight gradients later: speed",
    points=2,
    names=["delay_weight_gradients"],
    withholds=WITHHELD,
    hints=HINTS["delay_weight_gradients_fast"],
)
def delay_weight_gradients_fast(subject: Subject, draw: Draw) -> None:
    """The least makespan that the given order allows, at equal costs of F, I and W."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    with draw.group("schedules of 1F1B", points=1):
        examine(subject, plain_lists(draw, 4), delays.slow, delays.DELAY)
    with draw.group("interleaved schedules, and those of GPipe", points=1):
        missed = draw.groups[0].diagnosis
        if missed and missed.id in ("illegal", "timeout", "crashed"):
            same_miss(draw)
        examine(subject, other_lists(draw, 2), delays.slow, delays.DELAY)


@exercise(
    "zero_bubble_h1",
    title="E5 Extra: zero bubble H1",
    points=0,
    withholds=WITHHELD,
    hints=HINTS["zero_bubble_h1"],
)
def zero_bubble_h1(subject: Subject, draw: Draw) -> None:
    """An extra: as fast as H1, with no more held, whichever half frees it."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    cases = stages_and_pieces(draw, 5)
    answers: Answers = []
    with draw.group("legal, in halves", points=0):
        answers = examine(subject, cases, delays.cannot_run_h1)
    with draw.group("speed and memory", points=0):
        same_miss(draw)
        examine(Answered(answers), cases, delays.slow_h1)


@exercise(
    "timeline_cause",
    title="E6 Cause of a sealed run",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["timeline_cause"],
)
def timeline_cause(subject: Subject, draw: Draw) -> None:
    """Which of six causes the boxes of a run speak for."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    causes.ASKED.examine(subject, draw, causes.KNOWN)
