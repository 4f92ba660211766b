"""A right answer to all of unit 06 that sorts, and counts with NumPy."""

NUMPY = """
from fractions import Fraction

import numpy as np

from mpedu.schedule import Action


def chunk_layers(n_layers, n_ranks, n_chunks):
    if n_ranks < 1:
        raise ValueError(f"n_ranks={n_ranks}")
    if n_chunks < 1:
        raise ValueError(f"n_chunks={n_chunks}")
    if n_layers // (n_ranks * n_chunks) < 1:
        raise ValueError(f"n_layers={n_layers}")
    parts = np.array_split(np.arange(1, n_layers + 1), n_ranks * n_chunks)
    return [[[part[0], part[-1]] for part in parts[rank::n_ranks]] for rank in range(n_ranks)]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    if np.min([n_ranks, n_microbatches, n_chunks]) < 1:
        raise ValueError(f"{[n_ranks, n_microbatches, n_chunks]}")
    groups = np.array_split(np.arange(n_microbatches), max(1, n_microbatches // n_ranks))
    schedule = []
    for rank in range(n_ranks):
        ahead = 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * len(groups[0])
        keyed = []
        number = 0
        for group in groups:
            for c in range(n_chunks):
                for m in group:
                    keyed.append((number, 0, Action("F", rank + c * n_ranks, m)))
                    number += 1
        n_work, number = number, 0
        for group in groups:
            for c in range(n_chunks)[::-1]:
                for m in group:
                    place = number + min(ahead, n_work)
                    keyed.append((place, 1, Action("B", rank + c * n_ranks, m)))
                    number += 1
        schedule.append([action for _, _, action in sorted(keyed, key=lambda one: one[:2])])
    return schedule


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    return Fraction(n_ranks - 1, n_chunks * n_microbatches + n_ranks - 1)


def delay_weight_gradients(schedule):
    made = []
    for rank in range(len(schedule)):
        order = [a._replace(kind="I" if a.kind == "B" else "F") for a in schedule[rank]]
        inputs = [place for place, a in enumerate(order) if a.kind == "I"]
        keyed = [(place, a) for place, a in enumerate(order)]
        for number, place in enumerate(inputs):
            after = inputs[min(number + rank, len(inputs) - 1)]
            after += 0.5 + number / (4 * len(inputs))
            keyed.append((after, order[place]._replace(kind="W")))
        made.append([a for _, a in sorted(keyed, key=lambda one: one[0])])
    return made


def zero_bubble_h1(n_stages, n_microbatches):
    lists = []
    for stage in range(n_stages):
        warm_up = min(n_microbatches, n_stages - stage - 1)
        actions = [Action("F", stage, m) for m in range(warm_up)]
        for m in range(n_microbatches + stage):
            if m + warm_up < n_microbatches:
                actions.append(Action("F", stage, m + warm_up))
            if m < n_microbatches:
                actions.append(Action("I", stage, m))
            if m >= stage:
                actions.append(Action("W", stage, m - stage))
        lists.append(actions)
    return lists


def timeline_cause(timeline):
    kind = np.array([s.kind for s in timeline.spans])
    rank, stage, m, start, end = (
        np.array([getattr(s, name) for s in timeline.spans])
        for name in ("rank", "stage", "microbatch", "start_s", "end_s")
    )
    if (stage % timeline.n_ranks != rank).any():
        return "contiguous_chunks"
    if (kind == "W").sum() != (kind == "F").sum():
        return "weights_lost"
    if any(np.ptp((end - start)[kind == letter]) > 1e-9 for letter in "FIW"):
        return "slow_rank"
    first = (kind == "F") & (m == 0)
    if start[first & (stage == 1)] - end[first & (stage == 0)] > 1e-9:
        return "slow_link"
    if start[(kind == "W") & (rank == 0)].min() > start[(kind == "I") & (rank == 0)].max():
        return "weights_last"
    return "none"
"""
