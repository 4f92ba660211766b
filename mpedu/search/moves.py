"""A schedule made shorter by moving one action at a time within its rank's list.

Only what lies on the longest chain of actions can help: the moves of Nowicki and Smutnicki (1996,
"A fast taboo search algorithm for the job shop problem"). A run on the model clock judges each.
"""

import random
from collections.abc import Iterator, Sequence

from mpedu.schedule import Schedule, in_flight
from mpedu.search.problem import Problem
from mpedu.simulate import Seconds, Span
from mpedu.simulate.replay import replay

REACH = 7  # places that an action is moved by at most: what moves further is hardly ever legal


def improved(
    problem: Problem, schedule: Schedule, least_s: Seconds, n_actions: int
) -> tuple[Schedule, int]:
    """A legal schedule after all moves that make it better, and what is left of `n_actions`.

    Ends where no move helps, the makespan is `least_s`, or so many actions have been run through.
    """
    drawn = random.Random(0)
    spans = replay(schedule, problem.costs) or []
    value, improving = _value(spans), True
    while improving and value[0] > least_s:
        improving = False
        moves = list(dict.fromkeys(_moves(spans, len(schedule))))
        drawn.shuffle(moves)
        for rank, source, target in moves:
            actions = [*schedule[rank]]
            actions.insert(target, actions.pop(source))
            if max(in_flight(actions, problem.freed_by)) > problem.caps[rank]:
                continue
            if n_actions <= 0:
                return schedule, 0
            trial = [*schedule[:rank], actions, *schedule[rank + 1 :]]
            found = replay(trial, problem.costs)
            n_actions -= len(spans if found else actions)  # an illegal one is not run to its end
            if found is not None and _value(found) < value:
                schedule, spans, value, improving = trial, found, _value(found), True
                break
    return schedule, n_actions


def _value(spans: Sequence[Span]) -> tuple[Seconds, Seconds, Seconds]:
    """The makespan; of equal ones, the earlier the ranks end, and their actions start, the better.

    Without the second and third no move would help where several chains are the longest.
    """
    ends_s = {span.rank: span.end_s for span in spans}.values()  # of each the last
    return max(ends_s), sum(ends_s), sum(span.start_s for span in spans)


def _moves(spans: Sequence[Span], n_ranks: int) -> Iterator[tuple[int, int, int]]:
    """(rank, from, to) of what may shorten the longest chain, from its end to its start.

    Where it passes a rank without a gap, its last action is done before some of the others, or the
    first one after them; and what comes later is done in the gap before.
    """
    lanes: list[list[Span]] = [[] for _ in range(n_ranks)]
    place = {}
    for span in spans:
        if span.kind != "W":
            place[span.kind == "F", span.stage, span.microbatch] = span.rank, len(lanes[span.rank])
        lanes[span.rank].append(span)
    rank = max(range(n_ranks), key=lambda rank: lanes[rank][-1].end_s)
    last: int | None = len(lanes[rank]) - 1
    while last is not None:
        lane, first = lanes[rank], last
        while first and lane[first - 1].end_s >= lane[first].start_s:
            first -= 1
        yield from ((rank, last, to) for to in range(max(first, last - REACH), last))
        yield from ((rank, first, to) for to in range(first + 1, min(first + REACH, last) + 1))
        if first:
            yield from ((rank, at, first) for at in range(first + 1, min(first + REACH, len(lane))))
        kind, stage, microbatch = lane[first][1:4]
        source = (kind == "F", stage - 1 if kind == "F" else stage + 1, microbatch)
        rank, last = place.get(source, (rank, None))
