"""Unit 05, 1F1B: its exercises and what their answers must do."""

from contextlib import AbstractContextManager
from typing import Any

from autograder.checks.subjects import (
    Answered,
    Bounded,
    misses,
    outcomes,
    resting_on,
    same_miss,
)
from autograder.checks.unit_05 import finish_mistakes as finishing
from autograder.checks.unit_05 import held_mistakes as held
from autograder.checks.unit_05 import latency_mistakes as latency
from autograder.checks.unit_05 import order_mistakes as orders
from autograder.checks.unit_05 import ready_mistakes as needs
from autograder.checks.unit_05.cases import (
    counted_lists,
    crossed_lists,
    cut_lists,
    few,
    latencies,
    many,
    moments,
    schedule_cases,
    whole_lists,
)
from autograder.checks.unit_05.texts import GUESSES as GUESSES
from autograder.checks.unit_05.texts import HINTS
from autograder.diagnosis import Case, Diagnosis, Miss, Subject, examine, expect_error
from autograder.exercise import Draw, exercise

SLUG = "1f1b"
# Whatever computes an answer of this unit, withheld while any of its exercises is checked: other
# schedules that are 1F1B with one stage per rank, or with halves put together again, among them.
WITHHELD = (
    "mpedu.families.interleaved.alternated",
    "mpedu.families.interleaved_1f1b",
    "mpedu.families.interleaved_zero_bubble",
    "mpedu.families.one_f_one_b",
    "mpedu.families.zero_bubble_h1",
    "mpedu.schedule.in_flight",
    "mpedu.schedule.peak_in_flight",
    "mpedu.search.search_schedule",
)
# These too while the verifier is checked. Checks of schedules need them.
OF_THE_VERIFIER = (
    "mpedu.schedule.all_needs",
    "mpedu.schedule.missing_work",
    "mpedu.schedule.needs",
    "mpedu.schedule.run_order",
)
# Parts an answer may have: a schedule of 12 stages and 40 micro-batches has 7,728.
MOST_OF_SCHEDULE, MOST_OF_LIST, MOST_OF_NUMBER = 20_000, 1_000, 100


@exercise(
    "in_flight",
    title="E1 In flight: what a stage holds",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["in_flight"],
)
def in_flight(subject: Subject, draw: Draw) -> None:
    """Forwards less backwards, after every action."""
    subject = Bounded(subject, MOST_OF_LIST)
    with draw.group("lists of whole steps", points=2):
        examine(subject, whole_lists(draw), held.differs_held, held.HELD)
    with draw.group("lists that stop early, and an empty one", points=1):
        same_miss(draw)
        examine(subject, cut_lists(draw), held.differs_held, held.HELD)


@exercise(
    "one_f_one_b",
    title="E2 1F1B: a legal schedule",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["one_f_one_b"],
)
def one_f_one_b(subject: Subject, draw: Draw) -> None:
    """Complete, in an order that can run, in turns after a warm-up; counts below 1 refused.

    Neither GPipe's order nor one micro-batch at a time: earlier units built these.
    """
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    plenty, scarce = schedule_cases(draw, 9)
    answers, others = outcomes(subject, plenty), outcomes(subject, scarce)
    differs = orders.illegal_or_earlier([*answers, *others])
    known = needs.explained(orders.LEGAL, [*answers, *others], differs)
    with draw.group("legal schedules", points=1):
        examine(Answered(answers), plenty, differs, known)
    with draw.group("legal schedules of fewer micro-batches than stages", points=1):
        examine(Answered(others), scarce, differs, known)
    with draw.group("in turns after a warm-up, and counts below 1 refused", points=1):
        if told := draw.groups[0].diagnosis:
            raise Miss(told)
        examine(Answered(answers), plenty, orders.not_in_turns)
        n, a, b = draw.int(2, 9), -draw.int(100, 10_000), -draw.int(100, 10_000)
        for bad, pair in ((0, (0, n)), (0, (n, 0)), (a, (a, n)), (b, (n, b))):
            expect_error(subject, Case("one_f_one_b", pair), bad)
        expect_error(subject, Case("one_f_one_b", (-n, -1)))  # whichever of the two it names


@exercise(
    "one_f_one_b_lean",
    title="E2 1F1B: its memory and its speed",
    points=5,
    names=["one_f_one_b"],
    withholds=WITHHELD,
    hints=HINTS["one_f_one_b_lean"],
)
def one_f_one_b_lean(subject: Subject, draw: Draw) -> None:
    """No stage holds more than it must, and the makespan is GPipe's, whatever work costs."""
    subject = Bounded(subject, MOST_OF_SCHEDULE)
    # Whole numbers of a common tick stand for fractions of a second: exact, and fast to add.
    costs = [(1, 2), (1, 1), (5, 3)]
    if draw.secret:
        costs = [(draw.int(1, 99), draw.int(1, 99)) for _ in costs]
    plenty, scarce = schedule_cases(draw, 3)
    answers, others = outcomes(subject, plenty), outcomes(subject, scarce)
    known = needs.explained(orders.HELD, [*answers, *others], orders.holds_other)

    def slow(case: Case, got: Any) -> Diagnosis | None:
        return orders.slow_or_gpipe(case, got, costs)

    with draw.group("as few micro-batches held as it takes", points=2):
        examine(Answered(answers), plenty, orders.holds_other, known)
    with draw.group("as fast as GPipe, in turns", points=2):
        examine(Answered(answers), plenty, slow, known)
    with draw.group("both with fewer micro-batches than stages", points=1):
        examine(Answered(others), scarce, orders.holds_other, known)
        examine(Answered(others), scarce, slow, known)


@exercise(
    "one_f_one_b_peak",
    title="E3 The peak, predicted",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["one_f_one_b_peak"],
)
def one_f_one_b_peak(subject: Subject, draw: Draw) -> None:
    """The most that a stage holds, for many micro-batches and for few."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    plenty, scarce = many(draw), few(draw)
    answers, others = outcomes(subject, plenty), outcomes(subject, scarce)
    known = needs.explained(held.PEAKS, [*answers, *others], held.differs_peak)
    with draw.group("as many micro-batches as stages, or more", points=1):
        examine(Answered(answers), plenty, held.differs_peak, known)
    with draw.group("fewer micro-batches than stages", points=1):
        examine(Answered(others), scarce, held.differs_peak, known)
    with draw.group("stages that do not exist refused", points=1):
        if all(isinstance(got, Miss) for _, got in answers):  # refusing everything is no answer
            same_miss(draw)
        n, far = draw.int(2, 9), draw.int(100, 10_000)
        for bad in (n, n + far, -1, -far):
            expect_error(subject, Case("one_f_one_b_peak", (n, draw.int(2, 9), bad)), bad)


@exercise(
    "ready",
    title="E4 Ready: what an action waits for",
    points=3,
    withholds=WITHHELD + OF_THE_VERIFIER,
    hints=HINTS["ready"],
)
def ready(subject: Subject, draw: Draw) -> None:
    """Ready and not ready work of each kind, at moments of runs in any order."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    asked = moments(draw)
    # All at once, so that a mistake is told by what it gives of every kind of work.
    answers = outcomes(subject, asked.all, needs.moment)
    known = needs.explained(needs.READY, answers, needs.differs_ready)
    for label, cases in (
        ("forwards", asked.forwards),
        ("backwards of the last stage", asked.last_backwards),
        ("backwards of the other stages", asked.other_backwards),
    ):
        with draw.group(label, points=1):
            own = [answer for answer in answers if any(answer[0] is case for case in cases)]
            examine(Answered(own), cases, needs.differs_ready, known)


@exercise(
    "can_finish",
    title="E4 Ready: whether a schedule can finish",
    points=3,
    names=["can_finish", "ready"],  # the second only to say what to mend first
    withholds=WITHHELD + OF_THE_VERIFIER,
    hints=HINTS["can_finish"],
)
def can_finish(subject: Subject, draw: Draw) -> None:
    """All lists come to their ends, and hold all work, once."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    counted, crossed = counted_lists(draw), crossed_lists(draw)
    answers, others = outcomes(subject, counted), outcomes(subject, crossed)
    known = needs.explained(finishing.FINISH, [*answers, *others], finishing.differs_finish)

    def at_ready() -> AbstractContextManager[None]:
        wrong = needs.differs_ready
        return resting_on("ready", lambda: misses(subject, moments(draw).all, wrong))

    with draw.group("work that is missing, double or unknown", points=2), at_ready():
        examine(Answered(answers), counted, finishing.differs_finish, known)
    with draw.group("stages that wait for each other", points=1), at_ready():
        examine(Answered(others), crossed, finishing.differs_finish, known)


@exercise(
    "extra_time_of_latency_s",
    title="E5 Extra: what latency costs",
    points=0,
    withholds=WITHHELD,
    hints=HINTS["extra_time_of_latency_s"],
)
def extra_time_of_latency_s(subject: Subject, draw: Draw) -> None:
    """Seconds that late messages add to a step."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    with draw.group("stages that divide the micro-batches", points=0):
        examine(subject, latencies(draw), latency.differs_extra, latency.EXTRA)
