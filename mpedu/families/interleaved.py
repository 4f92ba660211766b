"""Schedules of looped placement: rank r holds the stages r, r + n_ranks, r + 2 * n_ranks, ..."""

from itertools import accumulate, pairwise

from mpedu.families.one_stage import one_f_one_b
from mpedu.faults import require_at_least
from mpedu.schedule import Action, Schedule


def looped_bfs(n_ranks: int, n_microbatches: int, n_chunks: int) -> Schedule:
    """Each chunk's forwards of all micro-batches before the next chunk; then all of it backwards.

    Breadth-first pipeline (Lamy-Poirier 2023, section 4): GPipe on n_chunks stages per rank, with
    its memory, n_microbatches * n_chunks activations of a stage, and the backwards in reverse.
    """
    _require(n_ranks, n_microbatches, n_chunks)
    schedule = []
    for rank in range(n_ranks):
        stages = range(rank, n_ranks * n_chunks, n_ranks)
        work = [(stage, m) for stage in stages for m in range(n_microbatches)]
        backwards = [Action("B", *place) for place in reversed(work)]
        schedule.append([Action("F", *place) for place in work] + backwards)
    return schedule


def interleaved_1f1b(n_ranks: int, n_microbatches: int, n_chunks: int) -> Schedule:
    """1F1B on n_chunks stages per rank: the bubble shrinks n_chunks times, messages grow as much.

    Megatron-LM (Narayanan et al. 2021, section 2.2.2): micro-batches go in groups of n_ranks, a
    group through one chunk before the next chunk takes it. Where n_ranks does not divide
    n_microbatches, groups are as equal as can be and none is smaller unless there is one alone.
    In flight on rank r, in stages: at most 2 * (n_ranks - 1 - r) + (n_chunks - 1) * group + 1.
    One chunk is plain 1F1B, whose warm-up is half as long.
    """
    if n_chunks == 1:
        return one_f_one_b(n_ranks, n_microbatches)
    forwards, backwards, group = _order(n_ranks, n_microbatches, n_chunks)
    schedule = []
    for rank in range(n_ranks):
        warm_up = min(len(forwards), 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * group)
        ahead = [Action("F", rank + chunk * n_ranks, m) for chunk, m in forwards]
        after = [[Action("B", rank + chunk * n_ranks, m)] for chunk, m in backwards]
        schedule.append(alternated(ahead, after, warm_up))
    return schedule


def interleaved_zero_bubble(n_ranks: int, n_microbatches: int, n_chunks: int) -> Schedule:
    """Interleaved 1F1B with split backwards; rank r runs its weights' halves r backwards later.

    Zero bubble (Qi et al. 2024, section 2) on looped stages. The warm-up is shorter than that of
    interleaved 1F1B, since the next rank's gradient comes after half a backward.
    """
    forwards, backwards, group = _order(n_ranks, n_microbatches, n_chunks)
    schedule = []
    for rank in range(n_ranks):
        warm_up = min(len(forwards), n_ranks - 1 - rank + (n_chunks - 1) * group)
        ahead = [Action("F", rank + chunk * n_ranks, m) for chunk, m in forwards]
        after = [(rank + chunk * n_ranks, m) for chunk, m in backwards]
        schedule.append(alternated(ahead, split(after, rank), warm_up))
    return schedule


def alternated(forwards: list[Action], backwards: list[list[Action]], warm_up: int) -> list[Action]:
    """`warm_up` forwards, then a backward after each further forward, then the other backwards.

    A backward may be several actions, its halves for instance.
    """
    actions = forwards[:warm_up]
    for done, backward in enumerate(backwards, start=warm_up):
        actions += forwards[done : done + 1] + backward
    return actions


def split(backwards: list[tuple[int, int]], lag: int) -> list[list[Action]]:
    """Each (stage, micro-batch) as its inputs' half, and the weights' half of `lag` before.

    The last one brings the weights' halves that are left.
    """
    inputs = [[Action("I", *place)] for place in backwards]
    for number, place in enumerate(backwards):
        inputs[min(number + lag, len(backwards) - 1)].append(Action("W", *place))
    return inputs


def _order(
    n_ranks: int, n_microbatches: int, n_chunks: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """(chunk, micro-batch) of all forwards and of all backwards, and the size of a group."""
    _require(n_ranks, n_microbatches, n_chunks)
    n_groups = max(1, n_microbatches // n_ranks)
    size, n_larger = divmod(n_microbatches, n_groups)
    sizes = [size + (group < n_larger) for group in range(n_groups)]
    groups = [range(*ends) for ends in pairwise([0, *accumulate(sizes)])]
    chunks = range(n_chunks)
    forwards = [(chunk, m) for group in groups for chunk in chunks for m in group]
    backwards = [(chunk, m) for group in groups for chunk in reversed(chunks) for m in group]
    return forwards, backwards, sizes[0]


def _require(n_ranks: int, n_microbatches: int, n_chunks: int) -> None:
    require_at_least(1, n_ranks=n_ranks, n_microbatches=n_microbatches, n_chunks=n_chunks)
