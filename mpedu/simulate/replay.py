"""A legal schedule run through once, in time and memory that grow with its actions alone.

`validate_schedule` says what is wrong with a schedule; this runs a right one, and only finds out
that one is wrong. The two share no code, and tests hold them to each other.
"""

from collections import deque
from typing import Any, NamedTuple

from mpedu.schedule import Action, Schedule
from mpedu.simulate.costs import Costs, Seconds
from mpedu.simulate.timeline import Span

# What must have been done of a (stage, micro-batch) before each kind, and what it makes of it.
_CHANGE = {"F": (0, 1), "B": (1, 2), "I": (1, 3), "W": (3, 4)}
_FORWARD, _GRADIENT = 1, 2  # from these on there is a result for the next stage, the stage before
_COMPLETE = {2, 4}  # the whole backward, or both halves


class _Link:
    """What is under way from one rank to another, first in first out: whose result, its arrival."""

    __slots__ = ("queue", "waiter")

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.waiter = -1  # the rank that found it empty


_HERE = _Link()  # no link: both stages are on one rank


class _Layout(NamedTuple):
    """Where the stages stand, and by kind and stage where inputs come from and results go."""

    n_stages: int
    n_microbatches: int
    sources: dict[str, list[_Link | None]]  # _HERE for a stage of the same rank
    targets: dict[str, list[_Link | None]]

    def rows(self, costs: Costs, kinds: set[str]) -> dict[str, list[tuple[Any, ...]]]:
        """All that an action needs, by kind and stage, so that it is looked up once.

        Its seconds, its two states, its source and how far from its own number that is, its target.
        """
        seconds = costs.table(kinds, self.n_stages)
        apart = {"F": -self.n_microbatches, "W": 0}
        return {
            kind: [
                (cost_s, *_CHANGE[kind], source, apart.get(kind, self.n_microbatches), target)
                for cost_s, source, target in zip(
                    seconds[kind], self.sources[kind], self.targets[kind], strict=True
                )
            ]
            for kind in kinds
        }


def replay(schedule: Schedule, costs: Costs) -> list[Span] | None:
    """Every action as it ran; None where the schedule is not legal, or an index is no plain int."""
    layout = _layout(schedule)
    return None if layout is None else _run(schedule, costs, layout)


def _layout(schedule: Schedule) -> _Layout | None:
    """None for lists of no legal form, or a stage on two ranks."""
    owner: dict[int, int] = {}
    n_microbatches = 0
    if type(schedule) is not list or not schedule:
        return None
    for rank, actions in enumerate(schedule):
        if type(actions) is not list or set(map(type, actions)) != {Action}:
            return None
        kinds, stages, microbatches = zip(*actions, strict=True)
        numbers = {*stages, *microbatches}
        if not {*kinds} <= _CHANGE.keys() or {*map(type, numbers)} != {int} or min(numbers) < 0:
            return None
        if any(owner.setdefault(stage, rank) != rank for stage in set(stages)):
            return None
        n_microbatches = max(n_microbatches, 1 + max(microbatches))
    n_stages = len(owner)
    complete = n_stages * n_microbatches * 2 <= sum(map(len, schedule))
    if not complete or owner.keys() != set(range(n_stages)):
        return None
    ranks = [owner[stage] for stage in range(n_stages)]
    up = _links(ranks, ranks[1:])
    down = _links(ranks[1:], ranks)
    forward, backward = [None, *up], [*down, None]
    forward_to, backward_to = [*up, None], [None, *down]
    nothing: list[Any] = [None] * n_stages
    sources = {"F": forward, "B": backward, "I": backward, "W": nothing}
    targets = {
        kind: [None if link is _HERE else link for link in links]
        for kind, links in (("F", forward_to), ("B", backward_to), ("I", backward_to))
    }
    return _Layout(n_stages, n_microbatches, sources, {**targets, "W": nothing})


def _links(sources: list[int], targets: list[int]) -> list[_Link]:
    """A link for each pair of neighbouring stages; _HERE where both are on one rank."""
    pairs = list(zip(sources, targets, strict=False))
    links = {pair: _HERE if pair[0] == pair[1] else _Link() for pair in pairs}
    return [links[pair] for pair in pairs]


def _run(schedule: Schedule, costs: Costs, layout: _Layout) -> list[Span] | None:
    n_microbatches = layout.n_microbatches
    state = bytearray(layout.n_stages * n_microbatches)
    rows = layout.rows(costs, {action.kind for actions in schedule for action in actions})
    free_s: list[Seconds] = [0] * len(schedule)
    position = [0] * len(schedule)
    link_s = list(free_s)  # when each rank's outgoing link is free
    at_once = costs.message_s == 0
    latency_s = costs.latency_s
    spans: list[Span] = []
    note, make = spans.append, tuple.__new__  # half the time of Span(...)
    ready = list(range(len(schedule)))
    while ready:  # long, for its speed: millions of actions come through here
        rank = ready.pop()
        actions, now_s = schedule[rank], free_s[rank]
        for at in range(position[rank], len(actions)):
            kind, stage, microbatch = actions[at]
            number = stage * n_microbatches + microbatch
            cost_s, before, after, source, apart, target = rows[kind][stage]
            if state[number] != before:
                return None
            if source is not None:
                sender = number + apart
                if source is _HERE:
                    if state[sender] < (_FORWARD if kind == "F" else _GRADIENT):
                        return None
                else:
                    queue = source.queue
                    if not queue:
                        source.waiter = rank
                        position[rank] = at
                        break
                    if queue.popleft() != sender:
                        return None
                    arrival_s = queue.popleft()
                    if arrival_s > now_s:
                        now_s = arrival_s
            start_s = now_s
            now_s = start_s + cost_s
            note(make(Span, (rank, kind, stage, microbatch, start_s, now_s)))
            state[number] = after
            if target is not None:
                if at_once:
                    target.queue += (number, now_s + latency_s)
                else:
                    now_s, link_s[rank], arrival_s = costs.sent(now_s, link_s[rank], stage)
                    target.queue += (number, arrival_s)
                if target.waiter >= 0:
                    ready.append(target.waiter)
                    target.waiter = -1
        else:
            position[rank] = len(actions)
        free_s[rank] = now_s
    ended = all(at == len(actions) for at, actions in zip(position, schedule, strict=True))
    return spans if ended and {*state} <= _COMPLETE else None
