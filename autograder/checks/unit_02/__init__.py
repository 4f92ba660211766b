"""Unit 02, naive model parallelism: its exercises and what their answers must do."""

from autograder import oracle_02
from autograder.checks.subjects import Answered, Bounded, outcomes, same_miss
from autograder.checks.unit_02 import bill_answers as answered
from autograder.checks.unit_02 import bill_mistakes as bills
from autograder.checks.unit_02 import bytes_mistakes as sent
from autograder.checks.unit_02 import cause_mistakes as causes
from autograder.checks.unit_02 import held_mistakes as held
from autograder.checks.unit_02 import naive_mistakes as schedules
from autograder.checks.unit_02 import share_mistakes as shares
from autograder.checks.unit_02.cases import (
    each,
    even_bills,
    messages,
    model,
    odd_timelines,
    pipelines,
    schedule_cases,
    tied_bills,
    uneven_bills,
)
from autograder.checks.unit_02.texts import GUESSES as GUESSES
from autograder.checks.unit_02.texts import HINTS
from autograder.checks.unit_02.texts import WORKED_HINTS as WORKED_HINTS
from autograder.checks.values import differs_from
from autograder.diagnosis import Case, Miss, Subject, examine, expect_error
from autograder.exercise import Draw, exercise
from mpedu.simulate import Timeline

SLUG = "naive"
# Whatever computes an answer of this unit. GPipe and 1F1B of one piece are the naive order.
WITHHELD = (
    "mpedu.families.gpipe",
    "mpedu.families.naive",
    "mpedu.families.one_f_one_b",
    "mpedu.simulate.Timeline.busy_s",
    "mpedu.simulate.Timeline.idle_share",
)
# Parts an answer may have: a schedule of 12 stages and 40 micro-batches has 7,728, keys' letters
# count too.
MOST_OF_SCHEDULE, MOST_OF_NUMBER, MOST_OF_BILL = 20_000, 100, 10_000


@exercise(
    "naive",
    title="E1 Naive: one piece at a time",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["naive"],
)
def naive(subject: Subject, draw: Draw) -> None:
    """Complete, in an order that can run; counts below 1 refused."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    with draw.group("legal schedules", points=2):
        answers = examine(subject, schedule_cases(draw, 9), schedules.cannot_run, schedules.LEGAL)
    with draw.group("counts below 1 refused", points=1):
        same_miss(draw)
        n, a, b = draw.int(2, 9), -draw.int(100, 10_000), -draw.int(100, 10_000)
        try:
            for bad, pair in ((0, (0, n)), (0, (n, 0)), (a, (a, n)), (b, (n, b))):
                expect_error(subject, Case("naive", pair), bad)
            expect_error(subject, Case("naive", (-n, -1)))  # whichever of the two it names
        except Miss as miss:
            more = next(filter(None, (schedules.not_naive(*one) for one in answers)), "")
            raise Miss(miss.diagnosis._replace(text=miss.diagnosis.text + more)) from None


@exercise(
    "naive_busy",
    title="E1 Naive: busy 1/K, one piece held",
    points=2,
    names=["naive"],
    withholds=WITHHELD,
    hints=HINTS["naive_busy"],
)
def naive_busy(subject: Subject, draw: Draw) -> None:
    """Devices busy exactly one K-th of the time, at any costs, and one micro-batch held."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    # Whole numbers of a common tick stand for fractions of a second: exact, and fast to add.
    costs = [(1, 2), (1, 1), (5, 3)]
    if draw.secret:
        costs = [(draw.int(1, 99), draw.int(1, 99)) for _ in costs]
    cases = schedule_cases(draw, 5)
    answers = outcomes(subject, cases)
    with draw.group("busy exactly 1/K of the time", points=1):
        examine(
            Answered(answers),
            cases,
            lambda case, got: schedules.too_busy(case, got, costs),
            schedules.BUSY,
        )
    with draw.group("one micro-batch held at a time", points=1):
        examine(Answered(answers), cases, schedules.holds_more, schedules.BUSY)


@exercise(
    "utilisation",
    title="E2 Utilisation, counted",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["utilisation"],
)
def utilisation(subject: Subject, draw: Draw) -> None:
    """Work over area, for any timeline."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    look = "Add up the boxes and divide by devices times makespan."
    general = "the share is not busy time over devices times makespan."
    differs = differs_from(oracle_02.utilisation, look, general, text=shares.wrong_share)
    with draw.group("pipelines", points=2):
        examine(subject, each("utilisation", pipelines(draw)), differs, shares.SHARES)
    with draw.group("late clocks, devices without work, any order, no spans", points=1):
        same_miss(draw)
        examine(subject, each("utilisation", odd_timelines(draw)), differs, shares.EDGES)
        expect_error(subject, Case("utilisation", (Timeline([], draw.int(1, 4)),)))


@exercise(
    "boundary_bytes",
    title="E3 Bytes over the boundaries",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["boundary_bytes"],
)
def boundary_bytes(subject: Subject, draw: Draw) -> None:
    """Activations forward and gradients back, over every boundary."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    with draw.group("bytes of one step", points=2):
        examine(subject, messages(draw), sent.differs_bytes, sent.BYTES)
    with draw.group("counts of stages below 1 refused", points=1):
        same_miss(draw)
        for bad in (0, -draw.int(100, 10_000)):
            expect_error(subject, Case("boundary_bytes", (2, 3, 4, 2, bad)), bad)


@exercise(
    "memory_bill",
    title="E4 The memory bill of every rank",
    points=6,
    withholds=WITHHELD,
    hints=HINTS["memory_bill"],
)
def memory_bill(subject: Subject, draw: Draw) -> None:
    """Parts of every rank; each mistake costs the point of what it concerns."""
    subject = Bounded(subject, MOST_OF_BILL)
    even, uneven, tied = (drawn(draw) for drawn in (even_bills, uneven_bills, tied_bills))
    answers, others, of_tied = (outcomes(subject, c, answered.named) for c in (even, uneven, tied))
    parameters = answered.differs_in("parameters")
    with draw.group("parameters, layers in equal counts", points=1):
        examine(Answered(answers), even, parameters, bills.EVEN)
    missed = draw.groups[0].diagnosis
    with draw.group("parameters, layers left over", points=1):
        if missed and bills.explained(answers, others, bills.EVEN):
            if not bills.explained(answers, others, (*bills.ENDS, *bills.SIZES)):
                same_miss(draw)
        else:
            examine(Answered(others), uneven, parameters, bills.UNEVEN)
    of_layers = draw.groups[1].diagnosis
    with draw.group("parameters, tied matrices", points=1):
        if not (missed and bills.explained(answers, of_tied, bills.APART_FROM_TIED)):
            if missed:
                raise Miss(missed)
            examine(Answered(of_tied), tied, parameters, bills.TIED)
    with draw.group("gradients and optimiser", points=1):
        # A constant that hangs together is no answer.
        known = bills.explained(answers, [], bills.EVEN) or answered.some_right(answers)
        if missed and not known:
            raise Miss(missed)
        examine(Answered(answers), even, answered.states_differ, held.STATES)
        examine(Answered(others), uneven, answered.states_differ, held.STATES)
    with draw.group("activations", points=1):
        activations = answered.differs_in("activations")
        examine(Answered(answers), even, activations, held.ACTIVATIONS)
        if not of_layers:  # else those of the layers that lie elsewhere, told above
            examine(Answered(others), uneven, activations, held.ACTIVATIONS)
        nothing_held = Case("memory_bill", (model(draw, tied=False), 1, 0))
        examine(subject, [nothing_held], activations)
    with draw.group("too many or too few ranks refused", points=1):
        if missed and not answered.some_form(answers):  # refusing everything is no answer
            raise Miss(missed)
        config = model(draw, tied=False)
        for bad in (0, -draw.int(100, 10_000), config.n_layers + 1, config.n_layers + 100):
            expect_error(subject, Case("memory_bill", (config, bad, 1)), bad)


@exercise(
    "bill_cause",
    title="E5 Cause of a sealed bill",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["bill_cause"],
)
def bill_cause(subject: Subject, draw: Draw) -> None:
    """Which of six causes a measured bill speaks for, beside the planned one."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    causes.ASKED.examine(subject, draw, causes.KNOWN)
