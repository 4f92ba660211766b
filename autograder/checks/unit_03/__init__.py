"""Unit 03, GPipe and the bubble: its exercises and what their answers must do."""

from fractions import Fraction
from typing import Any

from autograder import oracle
from autograder.checks.schedules import illegal
from autograder.checks.subjects import (
    Answered,
    Bounded,
    missed,
    misses,
    resting_on,
    same_miss,
)
from autograder.checks.unit_03 import bubble_mistakes as bubbles
from autograder.checks.unit_03 import cause_mistakes as causes
from autograder.checks.unit_03 import pieces_mistakes as pieces
from autograder.checks.unit_03 import schedule_mistakes as schedules
from autograder.checks.unit_03 import time_mistakes as times
from autograder.checks.unit_03 import timeline_mistakes as timelines
from autograder.checks.unit_03.cases import (
    CROSSED,
    bounds,
    eighths_s,
    machines,
    machines_with_ties,
    moved,
    pipeline,
    scattered,
    schedule_cases,
    steps,
    timed,
)
from autograder.checks.unit_03.texts import GUESSES as GUESSES
from autograder.checks.unit_03.texts import HINTS
from autograder.checks.values import differs_from
from autograder.diagnosis import (
    Answers,
    Case,
    Diagnosis,
    Subject,
    ask,
    examine,
    expect_error,
)
from autograder.exercise import Draw, exercise
from mpedu.families import naive
from mpedu.simulate import Timeline

SLUG = "gpipe"
# Whatever computes an answer of this unit, withheld while any of its exercises is checked.
WITHHELD = (
    "mpedu.cost.bubble_fraction",
    "mpedu.cost.bubble_over_ideal",
    "mpedu.families.gpipe",
    "mpedu.families.one_f_one_b",
    "mpedu.simulate.Timeline.busy_s",
    "mpedu.simulate.Timeline.idle_share",
)
# Parts an answer may have: a schedule of 12 stages and 40 micro-batches has 7,728.
MOST_OF_SCHEDULE, MOST_OF_NUMBER, MOST_OF_PIECES = 20_000, 100, 5_000
FAST_TIME = 1 + Fraction(1, 100)


@exercise(
    "gpipe",
    title="E1 GPipe: a legal schedule",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["gpipe"],
)
def gpipe(subject: Subject, draw: Draw) -> None:
    """Complete, in an order that can run, all forwards first; counts below 1 refused."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    answers: Answers = []
    with draw.group("legal schedules", points=2):
        answers = examine(subject, schedule_cases(draw, 9), illegal, schedules.LEGAL)
    with draw.group("all forwards first, and counts below 1 refused", points=1):
        same_miss(draw)
        cases = [case for case, _ in answers]
        examine(Answered(answers), cases, _late, schedules.FORWARDS_FIRST)
        n, a, b = draw.int(2, 9), -draw.int(100, 10_000), -draw.int(100, 10_000)
        for bad, pair in ((0, (0, n)), (0, (n, 0)), (a, (a, n)), (b, (n, b))):
            expect_error(subject, Case("gpipe", pair), bad)
        expect_error(subject, Case("gpipe", (-n, -1)))  # whichever of the two it names


def _late(case: Case, got: Any) -> Diagnosis | None:
    late = schedules.late_forward(case, got)
    if not late:
        return None
    return Diagnosis(
        "late_forward",
        f"{late}. GPipe finishes all forwards first.",
        "a forward comes after a backward of its stage; GPipe finishes all forwards first.",
    )


@exercise(
    "gpipe_fast",
    title="E1 GPipe: its speed",
    points=2,
    names=["gpipe"],
    withholds=WITHHELD,
    hints=HINTS["gpipe_fast"],
)
def gpipe_fast(subject: Subject, draw: Draw) -> None:
    """The least makespan there is, whatever forward and backward cost."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    # Whole numbers of a common tick stand for fractions of a second: exact, and fast to add.
    costs = [(1, 2), (1, 1), (5, 3)]
    if draw.secret:
        costs = [(draw.int(1, 99), draw.int(1, 99)) for _ in costs]
    examine(subject, schedule_cases(draw, 5), lambda case, got: schedules.slow(case, got, costs))


@exercise(
    "idle_share",
    title="E2 Idle share, counted",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["idle_share"],
)
def idle_share(subject: Subject, draw: Draw) -> None:
    """Work over area, for any timeline."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    most = (8, 12) if draw.secret else (5, 5)
    drawn = [pipeline(draw, *most) for _ in range(5)]
    first = timed(oracle.gpipe(4, 8))
    look = "Add up the boxes and compare with devices times makespan."
    general = "the share is not idle time over devices times makespan."
    differs = differs_from(oracle.idle_share, look, general, text=timelines.wrong_share)
    with draw.group("pipelines", points=2):
        plain = [first, timed(naive(3, 2)), timed(naive(1, 3)), *drawn]
        examine(subject, _each("idle_share", plain), differs, timelines.SHARES)
    with draw.group("late clocks, devices without work, any order, no spans", points=1):
        same_miss(draw)
        late = moved(timed(oracle.gpipe(2, 2)), 5 if not draw.secret else draw.int(6, 99))
        short = timed(oracle.gpipe(2, 3))._replace(n_ranks=3)
        early = moved(timed(oracle.gpipe(3, 2)), -draw.int(30, 60))
        edges = [late, early, short, CROSSED, *(scattered(draw, *most) for _ in range(5))]
        examine(subject, _each("idle_share", edges), differs, timelines.EDGES)
        expect_error(subject, Case("idle_share", (Timeline([], draw.int(1, 4)),)))


def _each(name: str, arguments: list[Any]) -> list[Case]:
    return [Case(name, (argument,)) for argument in arguments]


@exercise(
    "bubble",
    title="E3 The bubble, predicted",
    points=3,
    names=["bubble_fraction", "bubble_over_ideal", "min_microbatches"],
    withholds=WITHHELD,
    hints=HINTS["bubble"],
)
def bubble(subject: Subject, draw: Draw) -> None:
    """Two closed forms and the inverse of the first."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    pairs = draw.pairs(25, most=(32, 32), always=[(4, 16), (1, 1), (1, 7), (2, 1), (8, 32)])
    if draw.secret:
        pairs = [(draw.int(1, 64), draw.int(1, 256)) for _ in pairs]
    look = "Count slots: each device works M and waits K-1."
    general = "the value differs from the count of boxes."
    with draw.group("share of total time", points=1):
        differs = differs_from(oracle.bubble_fraction, look, general, 1e-12)
        cases = [Case("bubble_fraction", pair) for pair in pairs]
        examine(subject, cases, differs, bubbles.FRACTION)
    with draw.group("ratio to ideal time", points=1):
        differs = differs_from(oracle.bubble_over_ideal, look, general, 1e-12)
        cases = [Case("bubble_over_ideal", pair) for pair in pairs]
        examine(subject, cases, differs, bubbles.OVER_IDEAL)
    with (
        draw.group("fewest micro-batches", points=1),
        resting_on("bubble_fraction", lambda: missed(draw)),
    ):
        cases = [Case("min_microbatches", bound) for bound in bounds(draw)]
        examine(subject, cases, bubbles.differs_count, bubbles.COUNT)
        # Those above first: a search that ends there has not begun one without end below.
        for share in (1.0, 1 + eighths_s(draw, 9), 0.0, -eighths_s(draw, 9)):
            for n_stages in (draw.int(2, 9), 1):
                expect_error(subject, Case("min_microbatches", (n_stages, share)))


@exercise(
    "step_time",
    title="E4 Step time and best number of micro-batches",
    points=2,
    names=["step_time_s", "best_microbatches"],
    withholds=WITHHELD,
    hints=HINTS["step_time"],
)
def step_time(subject: Subject, draw: Draw) -> None:
    """The step's time exactly, and a number of micro-batches that reaches the least."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    with draw.group("step time", points=1):
        examine(subject, steps(draw), times.differs_time, times.TIME)
    with (
        draw.group("best number of micro-batches", points=1),
        resting_on("step_time_s", lambda: missed(draw)),
    ):
        asked = [*machines(draw, 6), *machines_with_ties(draw)]
        cases = [Case("best_microbatches", machine) for machine in asked]
        examine(subject, cases, times.not_smallest_best, times.BEST)


@exercise(
    "best_microbatches",
    title="E4 Best number of micro-batches: speed",
    points=2,
    names=["best_microbatches", "step_time_s"],  # the second only to say what to mend first
    withholds=WITHHELD,
    hints=HINTS["best_microbatches"],
)
def best_microbatches(subject: Subject, draw: Draw) -> None:
    """On each machine a step at most 1 % longer than the shortest."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    asked = machines(draw, 26 if draw.secret else 16)
    cases = [Case("best_microbatches", machine) for machine in asked]
    with resting_on("step_time_s", lambda: misses(subject, steps(draw), times.differs_time)):
        examine(subject, cases, lambda case, got: times.slower(case, got, FAST_TIME), times.BEST)


@exercise(
    "split_batch",
    title="E5 Ragged batches: sizes and weights",
    points=2,
    withholds=WITHHELD,
    hints=HINTS["split_batch"],
)
def split_batch(subject: Subject, draw: Draw) -> None:
    """Even sizes, larger first; weights that make the batch mean; too few samples refused."""
    subject = Bounded(subject, MOST_OF_PIECES)
    pairs = [(10, 4), (12, 4), (7, 7), (5, 1), (1, 1), (9, 2)]
    for _ in range(10):
        n_samples = draw.int(41, 300) if draw.secret else draw.int(2, 40)
        pairs.append((n_samples, draw.int(1, n_samples)))
    cases = [Case("split_batch", pair) for pair in pairs]
    answers: Answers = []
    with draw.group("sizes, and too few samples refused", points=1):
        answers = [(case, ask(subject, case)) for case in cases]
        examine(Answered(answers), cases, pieces.differs_size, pieces.SIZE)
        n_samples = draw.int(2, 40) if draw.secret else 3
        for too_many in (n_samples + 1, n_samples + 2):
            more = Case("split_batch", (n_samples, too_many))
            pieces.expect_refusal(subject, more, *more.args)
        for too_few in (0, -draw.int(1, 9)):
            pieces.expect_refusal(subject, Case("split_batch", (n_samples, too_few)))
    with draw.group("weights", points=1):
        if not answers:
            same_miss(draw)
        examine(Answered(answers), cases, pieces.differs_weight, pieces.WEIGHT)


@exercise(
    "cause",
    title="E6 Cause of a sealed run",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["cause"],
)
def cause(subject: Subject, draw: Draw) -> None:
    """Which of seven causes a run's ratios, schedule and losses speak for."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    causes.ASKED.examine(subject, draw, causes.KNOWN)
