"""A beam search over schedules that grow action by action, as time goes on."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from mpedu.schedule import Action, Schedule
from mpedu.search.problem import Problem
from mpedu.simulate import Seconds

BUDGET = 150_000  # partial schedules looked at; each takes longer the more stages there are
LEAST_WIDE, MOST_WIDE = 8, 1_500  # kept at once
Links = tuple[tuple[tuple[int, Seconds], ...], ...]  # (stage, arrival) under way, by link


class State(NamedTuple):
    """A schedule up to some action, seen from its end."""

    done: tuple[tuple[int, ...], ...]  # of each kind, micro-batches by stage
    free_s: tuple[Seconds, ...]  # by rank
    held: tuple[int, ...]  # by rank
    links: Links
    link_s: tuple[Seconds, ...]  # when each rank's outgoing link is free
    path: tuple[Any, ...]  # (path before, rank, action)


class Choice(NamedTuple):
    """What could come next."""

    rank: int
    kind: int  # index in the kinds
    stage: int
    start_s: Seconds
    end_s: Seconds


Scored = tuple[tuple[Seconds, ...], State]


class Beam:
    """The search. Every stage takes the micro-batches in order, every link delivers in order.

    No better schedule is lost by the first: what takes micro-batches in another order can be
    renumbered.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        placement = problem.placement
        pairs = [(kind, *ends) for kind in (0, 1) for ends in self._ends(placement, kind)]
        self.link = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        self.n_stages = len(placement)
        self.may_wait = any(  # ranks of several stages, with less room than these could fill
            len(own) > 1 and cap < len(own) * problem.n_microbatches
            for own, cap in zip(problem.stages, problem.caps, strict=True)
        )

    @staticmethod
    def _ends(placement: tuple[int, ...], kind: int) -> Iterator[tuple[int, int]]:
        """(from, to) rank of everything that a kind sends to another rank."""
        order = placement if kind == 0 else placement[::-1]
        return ((a, b) for a, b in pairwise(order) if a != b)

    def start(self) -> State:
        """Nothing done."""
        nothing = ((0,) * self.n_stages,) * len(self.problem.kinds)
        zeros = (0,) * self.problem.n_ranks
        return State(nothing, self.problem.head_s, zeros, ((),) * len(self.link), zeros, ())

    def run(self, limit_s: Seconds) -> Schedule | None:
        """The best schedule found that takes less than `limit_s`; None where none was."""
        problem = self.problem
        n_actions = self.n_stages * problem.n_microbatches * len(problem.kinds)
        states, left = [self.start()], BUDGET
        for n_done in range(n_actions):
            reached: dict[object, Scored] = {}
            n_looked = 0
            for state in states:
                for choice in self.choices(state):
                    n_looked += 1
                    after = self.after(state, choice)
                    score = self.score(after)
                    if score[0] < limit_s:
                        reached.setdefault((after.done, after.free_s, after.links), (score, after))
            left -= n_looked
            width = left * len(states) // (max(1, n_looked) * (n_actions - n_done))
            width = max(LEAST_WIDE, min(MOST_WIDE, width))
            if len(reached) > width:  # then rather different ones than all that are as far
                reached = self._thinned(reached.values())
            best = heapq.nsmallest(width, reached.values(), key=_score)
            states = [state for _, state in best]
        return self._lists(states[0]) if states else None

    @staticmethod
    def _thinned(found: Iterable[Scored]) -> dict[object, Scored]:
        """The best of those that have done the same."""
        thin: dict[object, Scored] = {}
        for scored in found:
            done = scored[1].done
            if done not in thin or scored[0] < thin[done][0]:
                thin[done] = scored
        return thin

    def choices(self, state: State) -> list[Choice]:
        """On the rank that could end an action first, all that starts before that end.

        Giffler and Thompson's rule (1960, "Algorithms for solving production-scheduling problems"),
        by which no better schedule is lost, but for one case: under a cap a forward may have to
        wait, for the room that another stage of its rank, or of the next one, will need.
        """
        found = [c for rank in range(self.problem.n_ranks) for c in self._ready(state, rank)]
        chosen: list[Choice] = []
        while found:
            first = min(found, key=lambda choice: (choice.end_s, choice.rank))
            chosen += [c for c in found if c.rank == first.rank and c.start_s < first.end_s]
            if first.kind != 0 or not self.may_wait:
                break
            found = [c for c in found if c not in chosen]
        return chosen

    def _ready(self, state: State, rank: int) -> Iterator[Choice]:
        """The actions of a rank whose input is there or on its way, and for which it has room."""
        problem = self.problem
        free_s, last = state.free_s[rank], self.n_stages - 1
        forward, backward = state.done[0], state.done[1]
        for stage in problem.stages[rank]:
            if forward[stage] < problem.n_microbatches and self._fits(state, rank, stage):
                came_s = free_s if stage == 0 else self._came_s(state, 0, stage, stage - 1)
                if came_s is not None:
                    yield self._choice(rank, 0, stage, max(free_s, came_s))
            if backward[stage] < forward[stage]:
                came_s = free_s if stage == last else self._came_s(state, 1, stage, stage + 1)
                if came_s is not None:
                    yield self._choice(rank, 1, stage, max(free_s, came_s))
            if len(state.done) > 2 and state.done[2][stage] < backward[stage]:
                yield self._choice(rank, 2, stage, free_s)

    def _choice(self, rank: int, kind: int, stage: int, start_s: Seconds) -> Choice:
        seconds = self.problem.seconds[self.problem.kinds[kind]][stage]
        return Choice(rank, kind, stage, start_s, start_s + seconds)

    def _came_s(self, state: State, kind: int, stage: int, source: int) -> Seconds | None:
        """When the next input of `stage` comes from stage `source`; None where it is not next."""
        ranks = self.problem.placement
        if ranks[source] == ranks[stage]:
            return 0 if state.done[kind][source] > state.done[kind][stage] else None
        under_way = state.links[self.link[kind, ranks[source], ranks[stage]]]
        return under_way[0][1] if under_way and under_way[0][0] == stage else None

    def _fits(self, state: State, rank: int, stage: int) -> bool:
        """Whether a forward leaves room for the oldest micro-batch to come through.

        That has still to pass some of the rank's stages, and until then only a W can make room.
        """
        cap = self.problem.caps[rank]
        if state.held[rank] + 1 > cap:
            return False
        oldest = min(state.done[1])
        forward, own = state.done[0], self.problem.stages[rank]
        if forward[stage] == oldest:
            return True
        to_come = sum(forward[stage] <= oldest for stage in own)
        to_free = 0
        if self.problem.freed_by == "W":
            to_free = sum(state.done[1][stage] - state.done[2][stage] for stage in own)
        return state.held[rank] - to_free + 1 + to_come <= cap

    def after(self, state: State, choice: Choice) -> State:
        """The state with one more action."""
        problem, ranks = self.problem, self.problem.placement
        rank, kind, stage, _, end_s = choice
        counts = state.done[kind]
        action = Action(problem.kinds[kind], stage, counts[stage])
        done = _with(state.done, kind, _with(counts, stage, counts[stage] + 1))
        change = 1 if kind == 0 else -1 if problem.kinds[kind] in ("B", problem.freed_by) else 0
        held = _with(state.held, rank, state.held[rank] + change) if change else state.held
        links, link_s = state.links, state.link_s
        if kind < 2:
            before, behind = (stage - 1, stage + 1) if kind == 0 else (stage + 1, stage - 1)
            if 0 <= before < self.n_stages and ranks[before] != rank:
                number = self.link[kind, ranks[before], rank]
                links = _with(links, number, links[number][1:])
            if 0 <= behind < self.n_stages and ranks[behind] != rank:
                number = self.link[kind, rank, ranks[behind]]
                end_s, left_s, arrival_s = problem.costs.sent(end_s, link_s[rank], stage)
                link_s = _with(link_s, rank, left_s)
                links = _with(links, number, (*links[number], (behind, arrival_s)))
        free_s = _with(state.free_s, rank, end_s)
        return State(done, free_s, held, links, link_s, (state.path, rank, action))

    def score(self, state: State) -> tuple[Seconds, ...]:
        """What no schedule that goes on from here is shorter than; then idle time, then arrivals.

        The least of all is the best to go on from.
        """
        problem, m = self.problem, self.problem.n_microbatches
        longest: Seconds = 0
        total: Seconds = 0
        for rank, free_s in enumerate(state.free_s):
            left_s: Seconds = 0
            tail_s: Seconds = 0
            for stage in reversed(problem.stages[rank]):
                for kind, counts in zip(problem.kinds, state.done, strict=True):
                    left_s += (m - counts[stage]) * problem.seconds[kind][stage]
                if n_forward := m - state.done[0][stage]:
                    forward_s = n_forward * problem.seconds["F"][stage]
                    longest = max(longest, free_s + forward_s + problem.to_the_end_s[stage])
                if n_backward := m - state.done[1][stage]:
                    tail_s = problem.to_the_start_s[stage]
                    backward_s = n_backward * problem.seconds[problem.kinds[1]][stage]
                    longest = max(longest, free_s + backward_s + tail_s)
            # whole backwards: the last one of the rank has still to reach stage 0
            longest = max(longest, free_s + left_s + (tail_s if problem.kinds == "FB" else 0))
            total += free_s + left_s
        return longest, total, sum(when_s for link in state.links for _, when_s in link)

    def _lists(self, state: State) -> Schedule:
        schedule: Schedule = [[] for _ in range(self.problem.n_ranks)]
        path = state.path
        while path:
            path, rank, action = path
            schedule[rank].append(action)
        return [actions[::-1] for actions in schedule]


def _score(scored: Scored) -> tuple[Seconds, ...]:
    return scored[0]


def _with(values: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """The same but for one entry."""
    return (*values[:at], value, *values[at + 1 :])
