"""What the numbers and formulas of unit 03 are compared with.

Boxes counted on the model clock, or one value tried after the other: the notebook's own solutions
and the package's closed forms are used nowhere.
"""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from mpedu.families import gpipe, naive
from mpedu.simulate import Costs, Timeline, simulate

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "03-gpipe" / "03-gpipe.ipynb"
MINUTES = {"A": 6, "B": 17, "C": 16, "D": 14, "E": 7, "F": 6, "G": 25, "H": 3}

K, M = 4, 8  # the running example: stages and micro-batches
F_S, B_S = Fraction(1), Fraction(2)  # seconds of its forward and backward
N, S, OVERHEAD = 64, Fraction(1), Fraction(1)  # samples, seconds per sample and per start
LIMIT = Fraction(5, 100)  # the idle share E3 asks for
TIE, TIE_RELATIVE, MARGIN = 1e-12, 1e-9, Fraction(1, 100)  # what the checks of E3 and E4 allow
RAGGED, LUMPED = [3, 3, 2, 2], [2, 2, 2, 4]  # sizes of the pieces in section E
LOSSES = [1] * 8 + [5] * 2


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells."""
    marks = {
        cell["id"]: cell["metadata"].get("nbgrader", {})
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    }
    wanted = cells or [id for id in marks if id.startswith("check-")]
    return sum(marks[id]["points"] for id in wanted)


def clock(n_stages: int, n_microbatches: int, f: Any = F_S, b: Any = B_S) -> Timeline:
    """GPipe on the model clock, in exact fractions."""
    return simulate(gpipe(n_stages, n_microbatches), Costs(Fraction(f), Fraction(b)))


def one_by_one(n_stages: int, n_microbatches: int, whole_batch_s: int = M) -> Timeline:
    """One piece at a time, of a batch whose forward takes `whole_batch_s` on a stage."""
    forward_s = Fraction(whole_batch_s, n_microbatches)
    return simulate(naive(n_stages, n_microbatches), Costs(forward_s, 2 * forward_s))


def share(n_stages: int, n_microbatches: int) -> Fraction:
    """Idle share of total time, counted from boxes."""
    return Fraction(clock(n_stages, n_microbatches).idle_share)


def over_ideal(n_stages: int, n_microbatches: int) -> Fraction:
    """Idle time over ideal time, counted from boxes."""
    ideal_s = Fraction(clock(n_stages, n_microbatches).busy_s) / n_stages
    return Fraction(clock(n_stages, n_microbatches).makespan_s) / ideal_s - 1


def slots(n_stages: int, n_microbatches: int) -> Fraction:
    """The makespan in slots of one forward plus one backward."""
    return Fraction(clock(n_stages, n_microbatches).makespan_s) / (F_S + B_S)


def idle_slots(n_stages: int, n_microbatches: int) -> Fraction:
    """Slots that a device waits, on average."""
    return slots(n_stages, n_microbatches) * share(n_stages, n_microbatches)


def fewest(allowed: Callable[[Fraction], bool], n_stages: int = K) -> int:
    """The fewest micro-batches whose share of total time is allowed."""
    return next(m for m in range(1, 100) if allowed(share(n_stages, m)))


def waits(n_stages: int, n_microbatches: int, stage: int, f: int, b: int) -> list[Fraction]:
    """Idle seconds of one stage: before its first box, between its boxes, after its last."""
    timeline = clock(n_stages, n_microbatches, f, b)
    mine = sorted((s.start_s, s.end_s) for s in timeline.spans if s.rank == stage)
    between = sum(mine[i + 1][0] - mine[i][1] for i in range(len(mine) - 1))
    return [Fraction(s) for s in (mine[0][0], between, timeline.makespan_s - mine[-1][1])]


@cache
def step_s(n_microbatches: int, n_stages: int = K, n: int = N, o: Fraction = OVERHEAD) -> Fraction:
    """Seconds of one step with overhead, on the model clock."""
    forward_s = o + Fraction(n, n_microbatches) * S
    return Fraction(clock(n_stages, n_microbatches, forward_s, 2 * forward_s).makespan_s)


def best(n_stages: int = K, n: int = N, o: Fraction = OVERHEAD) -> int:
    """The number of micro-batches of least step time, all tried."""
    return min(range(1, n + 1), key=lambda m: step_s(m, n_stages, n, o))


def hardly_longer() -> list[int]:
    """The numbers of micro-batches whose step is at most 1 % longer than the shortest."""
    return [m for m in range(1, N + 1) if step_s(m) <= step_s(best()) * (1 + MARGIN)]


def efficiency(samples: int) -> Fraction:
    """Useful part of the forward of one piece."""
    return 1 - OVERHEAD / (OVERHEAD + samples * S)


def ragged_s(sizes: list[int]) -> Fraction:
    """Makespan of pieces of these sizes on K stages, at F_S and B_S seconds per sample."""
    free_s = [Fraction(0)] * K
    for stages, per_sample_s in ((range(K), F_S), (range(K)[::-1], B_S)):
        for size in sizes:
            arrived_s = Fraction(0)
            for stage in stages:
                arrived_s = max(free_s[stage], arrived_s) + size * per_sample_s
                free_s[stage] = arrived_s
    return max(free_s)


def deal(n_samples: int, n_microbatches: int) -> list[int]:
    """Sizes of the pieces when samples are dealt out one after the other."""
    return [len(range(piece, n_samples, n_microbatches)) for piece in range(n_microbatches)]


def mean(values: list[Any]) -> Fraction:
    """The mean, exactly."""
    return Fraction(sum(values)) / len(values)


def piece_means() -> list[Fraction]:
    """The mean loss of each ragged piece."""
    ends = [sum(RAGGED[: i + 1]) for i in range(len(RAGGED))]
    return [mean(LOSSES[end - n : end]) for end, n in zip(ends, RAGGED, strict=True)]


def everywhere(holds: Callable[[int, int, int, int], bool]) -> Callable[[], bool]:
    """True where `holds(stages, micro-batches, forward, backward)` does, over a grid of cases."""
    grid = [(k, m, *cost) for k in (1, 2, 4, 7) for m in (1, 2, 5, 8) for cost in ((1, 2), (3, 1))]
    return lambda: all(holds(*case) for case in grid)


def every_wait(which: int, expected: Callable[[int, int, int, int], int]) -> Callable[[], bool]:
    """Whether wait `which` of every stage is `expected(stages, stage, forward, backward)`."""
    return everywhere(
        lambda k, m, f, b: all(
            waits(k, m, stage, f, b)[which] == expected(k, stage, f, b) for stage in range(k)
        )
    )


def two_terms_change() -> bool:
    """Whether M o and (K-1)Ns/M are all of the step time, up to a factor 3, that M changes."""
    changing = {m: m * OVERHEAD + (K - 1) * N * S / m for m in range(1, 9)}
    return len({step_s(m) / 3 - changed for m, changed in changing.items()}) == 1


def root_is_beside_best() -> bool:
    """Whether the best number of micro-batches is the root of (K-1)Ns/o, rounded up or down."""
    cases = [(4, 64, OVERHEAD), (8, 32, Fraction(2)), (2, 48, Fraction(1, 2))]
    roots = [(math.sqrt((k - 1) * n * S / o), best(k, n, o)) for k, n, o in cases]
    return all(abs(root - m) < 1 for root, m in roots)
