"""The problems that unit 07's checks draw: lists, layers and batches."""

from collections.abc import Sequence

import numpy as np

from autograder.checks.unit_07.work import Array, Problem
from autograder.diagnosis import Case
from autograder.exercise import Draw
from mpedu.schedule import Action, Schedule
from mpedu.simulated import Wire

PUBLIC_LINK = Wire(latency_s=0.5)


class OnStages(Case):
    """A program of this unit with its problem; prints as "run_actions, 1F1B on 4 ranks, ..."."""

    __slots__ = ()

    def __str__(self) -> str:
        problem: Problem = self.args[0]
        on = f"{problem.n_ranks} rank{'s' * (problem.n_ranks > 1)}"
        if not problem.schedule:
            return f"{self.name} on {on}"
        sizes = problem.sizes
        pieces = f"{len(sizes)} micro-batch{'es' * (len(sizes) > 1)}"
        of = f" of {sizes[0]}" if len(set(sizes)) == 1 else f" of {', '.join(map(str, sizes))}"
        return f"{self.name}, {problem.name} on {on}, {pieces}{of} samples"


def gpipe(n_ranks: int, n_microbatches: int, is_reversed: bool = False) -> Schedule:
    """All forwards, then all backwards, in the same order or the other way round."""
    pieces = range(n_microbatches)
    back = [*reversed(pieces)] if is_reversed else [*pieces]
    return [
        [Action("F", r, m) for m in pieces] + [Action("B", r, m) for m in back]
        for r in range(n_ranks)
    ]


def one_f_one_b(n_ranks: int, n_microbatches: int) -> Schedule:
    """Forwards to fill the pipeline, then a backward as soon as there is one."""
    lists = []
    for r in range(n_ranks):
        warm_up = min(n_ranks - 1 - r, n_microbatches)
        actions = [Action("F", r, m) for m in range(warm_up)]
        for m in range(n_microbatches):
            if m + warm_up < n_microbatches:
                actions.append(Action("F", r, m + warm_up))
            actions.append(Action("B", r, m))
        lists.append(actions)
    return lists


def one_by_one(n_ranks: int, n_microbatches: int) -> Schedule:
    """Forward and backward of one micro-batch, then of the next: nothing may be awaited ahead."""
    return [
        [Action(kind, r, m) for m in range(n_microbatches) for kind in "FB"] for r in range(n_ranks)
    ]


def drawn_list(draw: Draw, n_ranks: int, n_microbatches: int) -> Schedule:
    """A legal list like no other: each rank takes, by chance, any work that is ready.

    Forwards in one order on all ranks, backwards in another.
    """
    orders = {"F": draw.rng.sample(range(n_microbatches), n_microbatches)}
    orders["B"] = orders["F"]
    while orders["B"] == orders["F"]:
        orders["B"] = draw.rng.sample(range(n_microbatches), n_microbatches)
    lists: Schedule = [[] for _ in range(n_ranks)]
    at = {(kind, r): 0 for kind in "FB" for r in range(n_ranks)}
    done: set[Action] = set()
    while len(done) < 2 * n_ranks * n_microbatches:
        ready = []
        for (kind, r), place in at.items():
            if place == n_microbatches:
                continue
            m = orders[kind][place]
            before = [Action("F", r - 1, m)] if kind == "F" and r else []
            if kind == "B":
                after = [Action("B", r + 1, m)] if r < n_ranks - 1 else []
                before = [Action("F", r, m), *after]
            if done.issuperset(before):
                ready.append(Action(kind, r, m))
        action = draw.rng.choice(ready)
        at[action.kind, action.stage] += 1
        lists[action.stage].append(action)
        done.add(action)
    return lists


def problem(
    draw: Draw, name: str, schedule: Schedule, n_ranks: int, sizes: Sequence[int]
) -> Problem:
    """That list with layers and samples of its own, and something left of the step before."""
    rng = np.random.default_rng(draw.rng.getrandbits(64))
    d = draw.int(3, 5) if draw.secret else 3

    def drawn(*shape: int) -> Array:
        return rng.normal(size=shape)

    return Problem(
        name,
        schedule,
        [drawn(d, d) * 1.2 / d**0.5 for _ in range(n_ranks)],
        [drawn(n, d) for n in sizes],
        [drawn(n, d) for n in sizes],
        [drawn(d, d) for _ in range(n_ranks)],
        Wire(draw.int(1, 4) / 4, 8.0 * draw.int(20, 40)) if draw.secret else PUBLIC_LINK,
    )


def chains(draw: Draw, name: str) -> list[OnStages]:
    """One micro-batch through one to five ranks."""
    sizes = [3, draw.int(4, 5), 2, 1]
    most = 5 if draw.secret else 3
    return [OnStages(name, (problem(draw, "", [], k, [draw.int(1, most)]),)) for k in sizes]


def asked(
    draw: Draw, name: str, schedule: Schedule, size: int = 0, sizes: Sequence[int] = ()
) -> OnStages:
    """`run_actions` on that list, with pieces of `size` samples, or of `sizes`."""
    n_microbatches = len({action.microbatch for action in schedule[0]})
    pieces = sizes or [size] * n_microbatches
    return OnStages("run_actions", (problem(draw, name, schedule, len(schedule), pieces),))


def known_lists(draw: Draw) -> list[OnStages]:
    """GPipe and 1F1B with pieces of one size: each kind twice or more, one rank, few pieces."""
    size = draw.int(2, 4) if draw.secret else 2
    more, fewer = draw.int(4, 6), draw.int(3, 4)
    return [
        asked(draw, "GPipe", gpipe(2, 3), size),
        asked(draw, "1F1B", one_f_one_b(fewer, more), size),
        asked(draw, "GPipe, backwards reversed,", gpipe(draw.int(2, 3), fewer, True), size),
        asked(draw, "1F1B", one_f_one_b(3, 2), size),
        asked(draw, "GPipe, backwards reversed,", gpipe(1, more, True), size),
        asked(draw, "GPipe", gpipe(draw.int(3, 4), more), size),
    ]


def ragged_lists(draw: Draw) -> list[OnStages]:
    """Pieces of different size."""
    first = draw.int(2, 4) if draw.secret else 3
    return [
        asked(draw, "1F1B", one_f_one_b(3, 4), sizes=[first, first, first - 1, first - 1]),
        asked(draw, "GPipe", gpipe(2, 3), sizes=[first + 1, first + 1, first]),
        asked(draw, "GPipe", gpipe(1, 3), sizes=[first + 2, first, 1]),
    ]


def drawn_lists(draw: Draw) -> list[OnStages]:
    """1F1B, lists that no one knows by name, and one without any overlap.

    The first two ranks are enough to tell them from GPipe. In the last one a rank that receives
    before its turn waits for ever.
    """
    cases = [asked(draw, "a drawn list", drawn_list(draw, k, m), 2) for k, m in _sizes(draw)]
    known = asked(draw, "1F1B", one_f_one_b(3, draw.int(4, 5)), 2)
    last = one_by_one(draw.int(2, 4), draw.int(3, 4))
    return [known, *cases, asked(draw, "one micro-batch after the other", last, 2)]


def _sizes(draw: Draw) -> list[tuple[int, int]]:
    return [(2, draw.int(3, 4)), (draw.int(3, 4), draw.int(4, 6))]
