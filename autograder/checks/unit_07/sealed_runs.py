"""The sealed runs of unit 07: one step of a pipeline with a planted fault, really computed."""

import random
from typing import Any

import numpy as np

from autograder.checks.causes import SealedRuns
from autograder.checks.unit_07.cases import gpipe, one_f_one_b
from autograder.checks.unit_07.predicted import added, by_samples
from autograder.checks.unit_07.work import Array, Problem
from mpedu.runs import EngineRun
from mpedu.schedule import Schedule, peak_in_flight
from mpedu.simulated import Wire

N_OF_EACH = {
    "none": 4,
    "not_divided": 3,
    "overwritten": 3,
    "reduced_each_time": 3,
    "own_gradient": 3,
    "one_buffer": 3,
    "never_freed": 3,
    "other_order": 4,
}
_SHOWN = ("overwritten", "reduced_each_time", "one_buffer", "other_order")
D = 3  # features


def _drawn(rng: random.Random) -> list[tuple[str, EngineRun]]:
    """Each planted cause with its run; each with both kinds of lists where it can be."""
    wanted = [(cause, at) for cause, n in N_OF_EACH.items() for at in range(n)]
    return [(cause, _drawn_run(cause, at, rng)) for cause, at in wanted]


def _shown(rng: random.Random) -> list[EngineRun]:
    """Four runs of the same list and the same data."""
    seed, lists = rng.getrandbits(32), one_f_one_b(3, 4)
    causes = rng.sample(_SHOWN, len(_SHOWN))
    return [planted_run(cause, lists, (2,) * 4, 2, seed) for cause in causes]


RUNS = SealedRuns("07", "engine_cause", _shown, _drawn)


def right_gradients() -> int:
    """In how many of the notebook's runs every gradient is right."""
    return sum(has_right_gradients(run) for run in RUNS.shown.values())


def has_right_gradients(run: EngineRun) -> bool:
    """Whether all ratios are the shares of the samples, and nothing else is in the gradients."""
    due = np.array(run.sizes) / sum(run.sizes)
    return bool(np.allclose(run.ratios, due) and max(run.across) < 1e-6)


def _drawn_run(cause: str, at: int, rng: random.Random) -> EngineRun:
    """On lists where the fault shows; by turns with pieces of one size, and of two."""
    n_ranks, n_microbatches = rng.randint(2, 4), rng.randint(3, 6)
    size = rng.randint(2, 4)
    n_larger = rng.randint(1, n_microbatches - 1) if at % 2 and cause != "one_buffer" else 0
    sizes = tuple([size + 1] * n_larger + [size] * (n_microbatches - n_larger))
    # With GPipe's list every rank keeps all pieces anyway.
    one_end = cause == "other_order" and at >= 2
    is_1f1b = cause == "never_freed" or at % 2 == (0 if one_end else rng.randint(0, 1))
    lists = (one_f_one_b if is_1f1b else gpipe)(n_ranks, n_microbatches)
    return planted_run(cause, lists, sizes, rng.randint(2, 3), rng.getrandbits(32), one_end)


def planted_run(
    cause: str,
    schedule: Schedule,
    sizes: tuple[int, ...],
    n_replicas: int,
    seed: int,
    one_end: bool = False,
) -> EngineRun:
    """One step of that list with that fault, on replicas with data of their own.

    one_end: of the wrong order; whether ranks at one end alone have it.
    """
    rng = np.random.default_rng(seed)
    is_other, other = cause == "other_order", _at_one_end if one_end else _other_order
    record = other(schedule, len(sizes)) if is_other else schedule
    layers = [rng.normal(size=(D, D)) * 0.8 for _ in schedule]
    replicas = [_problem(record, layers, sizes, rng) for _ in range(n_replicas)]
    found = [_in_gradient(cause, problem, n_replicas) for problem in replicas]
    means = [added(problem, lambda size, _: 1 / size) for problem in replicas]
    ratios, across = [], []
    for stage in range(len(schedule)):
        got, due = _summed(found, stage), _summed(means, stage, 1 / n_replicas)
        along = {m: float((got[m] * due[m]).sum() / (due[m] ** 2).sum()) for m in due}
        rest = sum(float(((got[m] - along[m] * due[m]) ** 2).sum()) for m in due)
        across.append((rest / sum(float((one**2).sum()) for one in got.values())) ** 0.5)
        ratios.append([along[m] for m in range(len(sizes))])
    held = _held(cause, record, len(sizes))
    return EngineRun(schedule, record, sizes, n_replicas, ratios, tuple(across), tuple(held))


def _problem(
    record: Schedule, layers: list[Array], sizes: tuple[int, ...], rng: np.random.Generator
) -> Problem:
    inputs, targets = ([rng.normal(size=(n, D)) for n in sizes] for _ in range(2))
    left = [np.zeros((D, D))] * len(layers)
    return Problem("", record, layers, inputs, targets, left, Wire(1.0))


def _other_order(schedule: Schedule, n_microbatches: int) -> Schedule:
    """GPipe's list for one of another kind, GPipe's with the backwards reversed for GPipe's."""
    plain = gpipe(len(schedule), n_microbatches)
    return gpipe(len(schedule), n_microbatches, True) if schedule == plain else plain


def _at_one_end(schedule: Schedule, n_microbatches: int) -> Schedule:
    """GPipe's list with 1F1B's on the last rank; any other with GPipe's on the first that differ.

    Neighbours still send and receive in one order.
    """
    plain, last = gpipe(len(schedule), n_microbatches), len(schedule) - 1
    if schedule == plain:
        return [*plain[:-1], one_f_one_b(len(schedule), n_microbatches)[last]]
    first = next(rank for rank in range(len(schedule)) if schedule[rank] != plain[rank])
    return [*plain[: first + 1], *schedule[first + 1 :]]


def _in_gradient(cause: str, problem: Problem, n_replicas: int) -> list[dict[int, Array]]:
    """By stage, what of each micro-batch's is in the sum over replicas, one replica's part."""
    options: dict[str, Any] = {}
    if cause == "own_gradient":
        options["gradient"] = "ones"
    elif cause == "one_buffer":
        options["keeps"] = "latest"
    weight = (lambda size, _: 1 / size) if cause == "not_divided" else by_samples
    found = added(problem, weight, **options)
    return [_kept_of(cause, of_stage, n_replicas) for of_stage in found]


def _kept_of(cause: str, of_stage: dict[int, Array], n_replicas: int) -> dict[int, Array]:
    """What the order of the backwards makes of each one's gradient; the mean over replicas."""
    order = [*of_stage]
    factors = dict.fromkeys(order, 1.0)
    if cause == "overwritten":
        factors = {m: float(m == order[-1]) for m in order}
    elif cause == "reduced_each_time":
        factors = {m: float(n_replicas ** (len(order) - 1 - at)) for at, m in enumerate(order)}
    return {m: factors[m] / n_replicas * x for m, x in of_stage.items()}


def _summed(found: list[Any], stage: int, factor: float = 1.0) -> dict[int, Array]:
    return {m: factor * sum(one[stage][m] for one in found) for m in found[0][stage]}


def _held(cause: str, record: Schedule, n_microbatches: int) -> list[int]:
    if cause == "one_buffer":
        return [1] * len(record)
    return [n_microbatches] * len(record) if cause == "never_freed" else peak_in_flight(record)
