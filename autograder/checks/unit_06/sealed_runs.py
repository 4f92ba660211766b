"""The sealed runs of unit 06, drawn: timelines of interleaved steps with split backwards.

All times are whole numbers of eighths of a second, so equal times are equal. What may be on one
rank or on one stage is on the first rank in one run, on the last in another.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from autograder import oracle_06
from autograder.checks.causes import LETTERS, SealedRuns
from mpedu.families import one_f_one_b
from mpedu.schedule import Schedule
from mpedu.simulate import Costs, Timeline, simulate

CAUSES = (
    "none",
    "contiguous_chunks",
    "weights_lost",
    "weights_last",
    "slow_link",
    "slow_rank",
)
_OF_EACH = 3
SHOWN = 4, 4, 2  # ranks, micro-batches and chunks of the runs in the notebook


class _Step(NamedTuple):
    """A step before anything goes wrong with it: its sizes and its costs in eighths."""

    n_ranks: int
    n_microbatches: int
    n_chunks: int
    eighths: tuple[int, int, int]  # of F, I and W

    @property
    def schedule(self) -> Schedule:
        """Interleaved 1F1B; rank r runs each W r backwards later."""
        return oracle_06.halved(oracle_06.interleaved(*self[:3]), lambda rank: rank)

    def run(
        self, schedule: Schedule, slow_rank: int | None = None, latency_eighths: int = 0
    ) -> Timeline:
        """The timeline; a slow rank takes three halves of the time for everything."""
        n_stages = self.n_ranks * self.n_chunks
        times = [2 + (stage % self.n_ranks == slow_rank) for stage in range(n_stages)]
        f, i, w = ([eighths * n / 16 for n in times] for eighths in self.eighths)
        return simulate(schedule, Costs(f, 2.0, i, w, latency_eighths / 8))


def _drawn(rng: random.Random) -> list[tuple[str, Timeline]]:
    """Each cause with its runs."""
    return [(cause, _run(cause, rng, n)) for cause in CAUSES for n in range(_OF_EACH)]


def _run(cause: str, rng: random.Random, number: int) -> Timeline:
    n_ranks = rng.randint(2, 4)
    step = _Step(
        n_ranks,
        n_ranks * rng.randint(1, 2),
        rng.randint(2, 3),
        (2 * rng.randint(2, 8), 2 * rng.randint(2, 8), 2 * rng.randint(2, 8)),
    )
    if cause == "none" and number == 0:
        # With so little work all W come last on every rank but the first, in a healthy run too.
        step = step._replace(n_ranks=rng.randint(3, 4), n_microbatches=1, n_chunks=2)
        n_ranks = step.n_ranks
    places = [0, n_ranks - 1, rng.randrange(n_ranks)]
    run = _PLANTED[cause](step, places[number % len(places)], rng)
    later_s = rng.randint(0, 80) / 8  # the clock starts anywhere, the boxes come in any order
    spans = [s._replace(start_s=s.start_s + later_s, end_s=s.end_s + later_s) for s in run.spans]
    return Timeline(rng.sample(spans, len(spans)), n_ranks)


def _contiguous(step: _Step, rank: int, rng: random.Random) -> Timeline:
    """Neighbouring stages on each rank, in the order of 1F1B."""
    v = step.n_chunks
    plain = one_f_one_b(step.n_ranks, step.n_microbatches)
    whole = [
        [
            action._replace(stage=action.stage * v + (c if action.kind == "F" else v - 1 - c))
            for action in actions
            for c in range(v)
        ]
        for actions in plain
    ]
    return step.run(oracle_06.halved(whole, lambda rank: rank))


def _weights_lost(step: _Step, rank: int, rng: random.Random) -> Timeline:
    """On one rank a W or two never run; nothing waits for them."""
    run = step.run(step.schedule)
    halves = [span for span in run.spans if (span.kind, span.rank) == ("W", rank)]
    lost = rng.sample(halves, rng.randint(1, 2))
    return Timeline([span for span in run.spans if span not in lost], run.n_ranks)


def _weights_last(step: _Step, rank: int, rng: random.Random) -> Timeline:
    return step.run(oracle_06.halved(oracle_06.interleaved(*step[:3]), lambda rank: None))


def _slow_link(step: _Step, rank: int, rng: random.Random) -> Timeline:
    return step.run(step.schedule, latency_eighths=rng.randint(2, 2 * step.eighths[0]))


def _slow_rank(step: _Step, rank: int, rng: random.Random) -> Timeline:
    return step.run(step.schedule, slow_rank=rank)


_PLANTED: dict[str, Callable[[_Step, int, random.Random], Timeline]] = {
    "none": lambda step, rank, rng: step.run(step.schedule),
    "contiguous_chunks": _contiguous,
    "weights_lost": _weights_lost,
    "weights_last": _weights_last,
    "slow_link": _slow_link,
    "slow_rank": _slow_rank,
}


def _shown_runs(rng: random.Random) -> Sequence[Timeline]:
    """One step, a fault in each run."""
    step = _Step(*SHOWN, (8, 8, 8))
    causes = rng.sample(["slow_link", "weights_last", "contiguous_chunks", "weights_lost"], 4)
    return [_PLANTED[cause](step, rng.randrange(step.n_ranks), rng) for cause in causes]


RUNS = SealedRuns("06", "timeline_cause", _shown_runs, _drawn)


def healthy_s() -> float:
    """The makespan of the notebook's step without a fault."""
    step = _Step(*SHOWN, (8, 8, 8))
    return float(step.run(step.schedule).makespan_s)


def longer() -> int:
    """In how many of the notebook's runs the step takes longer than without a fault."""
    assert len(RUNS.shown) == len(LETTERS)
    return sum(float(run.makespan_s) > healthy_s() for run in RUNS.shown.values())
