"""The sealed runs of unit 03, drawn: of every cause, with equal and ragged sizes, in any order."""

import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from autograder import oracle
from autograder.exercise import Draw
from autograder.seeds import PUBLIC_SECRET, case_seed
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
LETTERS = "ABCD"
_SHOWN = ("order_differs", "loss_not_divided", "only_last_microbatch", "equal_weights")
_SHOWN_SIZES = (3, 3, 2, 2)


@lru_cache(maxsize=8)  # of a whole class: with one secret all students get the same runs
def drawn_runs(seed: int) -> tuple[tuple[str, RunReport], ...]:
    """Each planted cause with its run, 24 of them, shuffled."""
    rng = random.Random(seed)
    wanted = [(cause, *run.split()) for cause, runs in _PLAN.items() for run in runs.split(", ")]
    runs = [(cause, _run(cause, rng, *how)) for cause, *how in wanted]
    rng.shuffle(runs)
    return tuple(runs)


@lru_cache(maxsize=1)
def public_runs() -> dict[int, RunReport]:
    """The runs that the check asks in a notebook, by number from 1."""
    draw = Draw(case_seed(PUBLIC_SECRET, "03", "cause"))
    return dict(enumerate((run for _, run in drawn_runs(runs_seed(draw))), start=1))


def runs_seed(draw: Draw) -> int:
    """What the check's runs are drawn from."""
    return draw.rng.getrandbits(64)


@lru_cache(maxsize=1)
def shown_runs() -> dict[str, RunReport]:
    """The four runs of the notebook by letter, of the same data and weights."""
    rng = random.Random(case_seed(PUBLIC_SECRET, "03", "sealed runs"))
    seed = rng.getrandbits(64)
    schedule = oracle.gpipe(3, len(_SHOWN_SIZES))
    causes = zip(LETTERS, rng.sample(_SHOWN, len(_SHOWN)), strict=True)
    return {
        letter: sealed_run(cause, schedule, _SHOWN_SIZES, np.random.default_rng(seed), stage=1)
        for letter, cause in causes
    }


def known_run(which: str | int) -> RunReport:
    """A run that a notebook may look at, by letter or number; ValueError for others."""
    known = [*shown_runs().items(), *public_runs().items()]
    run = next((run for name, run in known if name == which), None)
    if run is None:
        raise ValueError(
            f"there is no sealed run {which!r}; give a letter A to {LETTERS[-1]} or a number "
            f"1 to {len(public_runs())}"
        )
    return run


def same_first_losses() -> int:
    """How many of the notebook's runs begin with the loss of the serial run."""
    runs = shown_runs().values()
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
