"""A search for schedules: the fastest that a beam finds under a memory cap.

The named schedules of the same placement that keep the cap are where it starts from, so that none
of them is better than what it gives.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from mpedu.families import named_schedules
from mpedu.faults import require_at_least
from mpedu.schedule import Action, Schedule, actions_of, peak_in_flight
from mpedu.simulate import Costs, Seconds, simulate

BUDGET = 150_000  # partial schedules looked at: some seconds, for any size
MOST_WIDE = 1_500  # kept at once


def search_schedule(
    placement: Sequence[int],
    n_microbatches: int,
    costs: Costs | None = None,
    memory_cap: int | Sequence[int] | None = None,
    freed_by: str = "I",
    split: bool = True,
) -> Schedule:
    """The schedule of least makespan that was found, of which no rank holds more than its cap.

    placement: the rank of each stage, in order. memory_cap: activations of a stage that a rank may
    hold, one number or one per rank; None is no cap. freed_by: whether the I or the W of a split
    backward frees them, as in `peak_in_flight`. split: backwards as I and W, else whole as B.
    A beam search over schedules in which every stage takes the micro-batches in order, and every
    link delivers in order. It knows the makespan it is at, and a bound for what is to come.
    ValueError: ranks without a stage, or a cap below the number of a rank's stages, with which no
    micro-batch can go through.
    """
    problem = _Problem.of(placement, n_microbatches, costs or Costs(), memory_cap, freed_by, split)
    found = [_beam(problem), *_named(problem)]
    return min(
        (schedule for schedule in found if schedule),
        key=lambda schedule: simulate(schedule, problem.costs).makespan_s,
    )


class _Problem(NamedTuple):
    """What is asked, and the sums that bounds are made of."""

    placement: tuple[int, ...]
    n_ranks: int
    n_microbatches: int
    costs: Costs
    caps: tuple[float, ...]
    freed_by: str
    split: bool
    kinds: str  # "FIW", or "FB"
    seconds: dict[str, tuple[Seconds, ...]]  # of each kind, by stage
    stages: tuple[tuple[int, ...], ...]  # of each rank
    to_the_end: tuple[Seconds, ...]  # after a forward: forwards above, all backwards, the last W
    to_the_start: tuple[Seconds, ...]  # after a backward: backwards below, the last W

    @classmethod
    def of(
        cls,
        placement: Sequence[int],
        n_microbatches: int,
        costs: Costs,
        memory_cap: int | Sequence[int] | None,
        freed_by: str,
        split: bool,
    ) -> "_Problem":
        require_at_least(1, n_stages=len(placement), n_microbatches=n_microbatches)
        n_ranks = 1 + max(placement)
        if sorted(set(placement)) != list(range(n_ranks)):
            raise ValueError(
                f"placement={list(placement)} leaves ranks of 0..{n_ranks - 1} without a stage; "
                "give the rank of each stage, every rank at least one"
            )
        if freed_by not in ("I", "W"):
            raise ValueError(f"freed_by={freed_by!r} is unknown; choose 'I' or 'W'")
        stages = tuple(
            tuple(s for s, rank in enumerate(placement) if rank == r) for r in range(n_ranks)
        )
        kinds = "FIW" if split else "FB"
        seconds = {
            kind: tuple(costs.of(Action(kind, stage, 0)) for stage in range(len(placement)))
            for kind in kinds
        }
        backward = seconds[kinds[1]]
        last_w = seconds["W"][0] if split else 0
        below = [0, *accumulate(backward)]
        above = [0, *accumulate(reversed(seconds["F"]))][::-1]
        return cls(
            tuple(placement),
            n_ranks,
            n_microbatches,
            costs,
            _caps(memory_cap, stages),
            freed_by if split else "I",
            split,
            kinds,
            seconds,
            stages,
            tuple(up + below[-1] + last_w for up in above[1:]),
            tuple(down + last_w for down in below[:-1]),
        )


def _caps(
    memory_cap: int | Sequence[int] | None, stages: Sequence[Sequence[int]]
) -> tuple[float, ...]:
    if memory_cap is None:
        return (float("inf"),) * len(stages)
    caps = memory_cap if isinstance(memory_cap, Sequence) else [memory_cap] * len(stages)
    if len(caps) != len(stages):
        raise ValueError(
            f"memory_cap has {len(caps)} entries for {len(stages)} ranks; give one number, "
            "or one per rank"
        )
    for rank, (cap, own) in enumerate(zip(caps, stages, strict=True)):
        if cap < len(own):
            raise ValueError(
                f"memory_cap={cap} on rank {rank}, which holds {len(own)} stages: a micro-batch "
                f"leaves an activation on each; give at least {len(own)}"
            )
    return tuple(map(float, caps))


def _named(problem: _Problem) -> Iterator[Schedule]:
    """The named schedules of this placement that keep the cap, in the kinds that are asked for."""
    for schedule in named_schedules(problem.placement, problem.n_microbatches):
        has_halves = any(action.kind == "I" for _, action in actions_of(schedule))
        if problem.split:
            schedule = [[half for a in actions for half in _halves(a)] for actions in schedule]
        elif has_halves:
            continue
        peaks = peak_in_flight(schedule, problem.freed_by)
        if all(peak <= cap for peak, cap in zip(peaks, problem.caps, strict=True)):
            yield schedule


def _halves(action: Action) -> list[Action]:
    """A whole backward as its two halves, anything else as it is."""
    if action.kind != "B":
        return [action]
    return [action._replace(kind="I"), action._replace(kind="W")]


Links = dict[tuple[int, int], tuple[tuple[int, Seconds], ...]]  # (stage, arrival) under way


class _State(NamedTuple):
    """A schedule up to some action, seen from its end."""

    done: tuple[tuple[int, ...], ...]  # of each kind, micro-batches by stage
    free_s: tuple[Seconds, ...]  # by rank
    held: tuple[int, ...]  # by rank
    links: Links
    path: tuple[Any, ...]  # (path before, rank, action)


class _Choice(NamedTuple):
    rank: int
    kind: int  # index in the kinds
    stage: int
    start_s: Seconds
    end_s: Seconds


def _beam(problem: _Problem) -> Schedule | None:
    """The best schedule of a beam search; None where every path got stuck under the cap."""
    n_stages, n_kinds = len(problem.placement), len(problem.kinds)
    n_actions = n_stages * problem.n_microbatches * n_kinds
    width = max(8, min(MOST_WIDE, BUDGET // n_actions))
    nothing = ((0,) * n_stages,) * n_kinds
    zeros = (0,) * problem.n_ranks
    states = [_State(nothing, zeros, zeros, {}, ())]
    for _ in range(n_actions):
        reached: dict[object, tuple[tuple[Seconds, Seconds], _State]] = {}
        for state in states:
            for choice in _choices(problem, state):
                after = _after(problem, state, choice)
                reached.setdefault((after.done, after.free_s), (_bound(problem, after), after))
        best = heapq.nsmallest(width, reached.values(), key=lambda scored: scored[0])
        states = [state for _, state in best]
    return _lists(problem, states[0]) if states else None


def _choices(problem: _Problem, state: _State) -> list[_Choice]:
    """What may come next: on the rank that could end an action first, all that starts before that.

    Giffler and Thompson's rule (1960): no better schedule is lost by it.
    """
    found = [c for rank in range(problem.n_ranks) for c in _ready(problem, state, rank)]
    if not found:
        return []
    first = min(found, key=lambda choice: (choice.end_s, choice.rank))
    return [c for c in found if c.rank == first.rank and c.start_s < first.end_s]


def _ready(problem: _Problem, state: _State, rank: int) -> Iterator[_Choice]:
    """The actions of a rank whose input is there or on its way, and which its memory allows."""
    free_s, last = state.free_s[rank], len(problem.placement) - 1
    forward, backward = state.done[0], state.done[1]
    for stage in problem.stages[rank]:
        if forward[stage] < problem.n_microbatches and _fits(problem, state, rank, stage):
            came_s = 0 if stage == 0 else _came_s(problem, state, 0, stage, stage - 1)
            if came_s is not None:
                yield _choice(problem, rank, 0, stage, max(free_s, came_s))
        if backward[stage] < forward[stage]:
            came_s = 0 if stage == last else _came_s(problem, state, 1, stage, stage + 1)
            if came_s is not None:
                yield _choice(problem, rank, 1, stage, max(free_s, came_s))
        if problem.split and state.done[2][stage] < backward[stage]:
            yield _choice(problem, rank, 2, stage, free_s)


def _choice(problem: _Problem, rank: int, kind: int, stage: int, start_s: Seconds) -> _Choice:
    return _Choice(
        rank, kind, stage, start_s, start_s + problem.seconds[problem.kinds[kind]][stage]
    )


def _came_s(problem: _Problem, state: _State, kind: int, stage: int, source: int) -> Seconds | None:
    """When the next input of `stage` arrives from stage `source`; None where it is not next."""
    if problem.placement[source] == problem.placement[stage]:
        return 0 if state.done[kind][source] > state.done[kind][stage] else None
    under_way = state.links.get(_link(problem, kind, source, stage))
    return under_way[0][1] if under_way and under_way[0][0] == stage else None


def _link(problem: _Problem, kind: int, source: int, stage: int) -> tuple[int, int]:
    ranks = problem.placement
    return (kind, ranks[source] * problem.n_ranks + ranks[stage])


def _fits(problem: _Problem, state: _State, rank: int, stage: int) -> bool:
    """Whether a forward leaves room for the oldest micro-batch to come through."""
    cap = problem.caps[rank]
    if state.held[rank] + 1 > cap:
        return False
    oldest = min(state.done[1])
    forward = state.done[0]
    if forward[stage] == oldest:
        return True
    to_come = sum(forward[own] <= oldest for own in problem.stages[rank])
    return state.held[rank] + 1 + to_come <= cap


def _after(problem: _Problem, state: _State, choice: _Choice) -> _State:
    """The state with one more action."""
    rank, kind, stage, _, end_s = choice
    counts = state.done[kind]
    action = Action(problem.kinds[kind], stage, counts[stage])
    more = (*counts[:stage], counts[stage] + 1, *counts[stage + 1 :])
    done = (*state.done[:kind], more, *state.done[kind + 1 :])
    free_s = (*state.free_s[:rank], end_s, *state.free_s[rank + 1 :])
    change = 1 if kind == 0 else -1 if kind == (2 if problem.freed_by == "W" else 1) else 0
    held = (*state.held[:rank], state.held[rank] + change, *state.held[rank + 1 :])
    links = state.links
    if kind < 2:
        before, behind = (stage - 1, stage + 1) if kind == 0 else (stage + 1, stage - 1)
        links = _delivered(problem, links, kind, before, stage, behind, end_s)
    return _State(done, free_s, held, links, (state.path, rank, action))


def _delivered(
    problem: _Problem, links: Links, kind: int, before: int, stage: int, behind: int, end_s: Seconds
) -> Links:
    """The links once `stage` has taken its input and sent its result."""
    links, ranks, n_stages = dict(links), problem.placement, len(problem.placement)
    if 0 <= before < n_stages and ranks[before] != ranks[stage]:
        link = _link(problem, kind, before, stage)
        links[link] = links[link][1:]
    if 0 <= behind < n_stages and ranks[behind] != ranks[stage]:
        link = _link(problem, kind, stage, behind)
        arrival_s = end_s + problem.costs.latency_s
        links[link] = (*links.get(link, ()), (behind, arrival_s))
    return links


def _bound(problem: _Problem, state: _State) -> tuple[Seconds, Seconds]:
    """No schedule that goes on from here is shorter; then the idle time so far, as its sum."""
    m = problem.n_microbatches
    longest: Seconds = 0
    total: Seconds = 0
    for rank, free_s in enumerate(state.free_s):
        left_s: Seconds = 0
        for stage in problem.stages[rank]:
            n_forward, n_backward = m - state.done[0][stage], m - state.done[1][stage]
            forward_s = n_forward * problem.seconds["F"][stage]
            backward_s = n_backward * problem.seconds[problem.kinds[1]][stage]
            left_s += forward_s + backward_s
            if problem.split:
                left_s += (m - state.done[2][stage]) * problem.seconds["W"][stage]
            if n_forward:
                longest = max(longest, free_s + forward_s + problem.to_the_end[stage])
            if n_backward:
                longest = max(longest, free_s + backward_s + problem.to_the_start[stage])
        longest = max(longest, free_s + left_s)
        total += free_s + left_s
    return longest, total


def _lists(problem: _Problem, state: _State) -> Schedule:
    schedule: Schedule = [[] for _ in range(problem.n_ranks)]
    path = state.path
    while path:
        path, rank, action = path
        schedule[rank].append(action)
    return [actions[::-1] for actions in schedule]
