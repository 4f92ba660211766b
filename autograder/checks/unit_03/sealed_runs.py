"""The sealed runs of unit 03, drawn: of every cause, with equal and ragged sizes, in any order."""

import random
from collections.abc import Iterator

import numpy as np

from autograder import oracle
from autograder.checks.causes import SealedRuns
from mpedu.families import naive
from mpedu.runs import RunReport
from mpedu.schedule import Action, Schedule
from mpedu.sealed import sealed_run

# Per cause its runs: sizes, the order in which every stage runs its backwards, and which stage
# goes another way.
_PLAN = {
    "none": "even mixed, even descending, ragged ascending, ragged shuffled, ragged naive",
    "loss_not_divided": "even ascending, even descending, ragged ascending",
    "divided_twice": "even ascending, ragged ascending, ragged descending",
    "equal_weights": "ragged ascending, ragged shuffled, ragged mixed",
    "only_last_microbatch": "even ascending, ragged ascending, even descending, ragged shuffled",
    "order_differs": "even ascending first, even descending inner, ragged ascending last",
    "gradients_not_cleared": "even ascending, even naive, ragged shuffled",
}
_SHOWN = ("order_differs", "loss_not_divided", "only_last_microbatch", "equal_weights")
_SHOWN_SIZES = (3, 3, 2, 2)


def _drawn(rng: random.Random) -> list[tuple[str, RunReport]]:
    """Each planted cause with its run, 24 of them."""
    wanted = [(cause, *run.split()) for cause, runs in _PLAN.items() for run in runs.split(", ")]
    return [(cause, _run(cause, rng, *how)) for cause, *how in wanted]


def _shown_runs(rng: random.Random) -> list[RunReport]:
    """Four runs of the same data and weights."""
    seed = rng.getrandbits(64)
    schedule = oracle.gpipe(3, len(_SHOWN_SIZES))
    return [
        sealed_run(cause, schedule, _SHOWN_SIZES, np.random.default_rng(seed), stage=1)
        for cause in rng.sample(_SHOWN, len(_SHOWN))
    ]


RUNS = SealedRuns("03", "cause", _shown_runs, _drawn)


def same_first_losses() -> int:
    """How many of the notebook's runs begin with the loss of the serial run."""
    runs = RUNS.shown.values()
    return sum(oracle.near(run.losses[:1], run.serial_losses[:1]) for run in runs)


def _run(cause: str, rng: random.Random, sizes: str, order: str, turned: str = "last") -> RunReport:
    n_stages = rng.randint(3, 6) if turned == "inner" else rng.randint(2, 6)
    if cause == "order_differs" and turned == "last":
        n_stages = rng.choice((3, 5))  # neither the first two stages show it nor stages by twos
    # Of two ragged micro-batches no two are of one size, and no order of two is a shuffled one.
    n_microbatches = rng.randint(3 if cause == "order_differs" or order == "shuffled" else 2, 12)
    smallest = rng.randint(1 if sizes == "ragged" else 2, 4)
    n_larger = rng.randint(1, n_microbatches - 1) if sizes == "ragged" else 0
    pieces = oracle.split_sizes(smallest * n_microbatches + n_larger, n_microbatches)
    schedule = _schedule(n_stages, n_microbatches, order, rng)
    stage = {"first": 0, "inner": rng.randint(1, max(1, n_stages - 2)), "last": None}[turned]
    data = np.random.default_rng(rng.getrandbits(64))
    return sealed_run(cause, schedule, pieces, data, stage)


def _schedule(n_stages: int, n_microbatches: int, order: str, rng: random.Random) -> Schedule:
    """GPipe with its backwards in that order on every stage, or one micro-batch at a time.

    "mixed": the last stage alone runs one micro-batch at a time, the others as in GPipe.
    """
    if order == "naive":
        return naive(n_stages, n_microbatches)
    if order == "mixed":
        return oracle.gpipe(n_stages, n_microbatches)[:-1] + naive(n_stages, n_microbatches)[-1:]
    backwards = list(_backwards(n_microbatches, order, rng))
    return [
        [*actions[:n_microbatches], *(Action("B", stage, m) for m in backwards)]
        for stage, actions in enumerate(oracle.gpipe(n_stages, n_microbatches))
    ]


def _backwards(n_microbatches: int, order: str, rng: random.Random) -> Iterator[int]:
    """The micro-batches in that order; a shuffled one ends with neither the first nor the last."""
    numbers = range(n_microbatches)
    if order == "shuffled":
        last = rng.randint(1, n_microbatches - 2)
        yield from rng.sample([m for m in numbers if m != last], n_microbatches - 1)
        yield last
    else:
        yield from numbers if order == "ascending" else reversed(numbers)
