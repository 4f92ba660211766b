"""The truths of unit 06, as `autograder.oracle`: exact, and without anything that is withheld."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise

from autograder import oracle
from mpedu.families import gpipe, one_f_one_b
from mpedu.schedule import Action, Schedule, stage_to_rank
from mpedu.simulate import Costs, Span, Timeline, simulate

Chunks = list[list[tuple[int, int]]]  # of each rank the first and the last layer of its chunks
EQUAL = Costs(1, 2, 1, 1)  # forward and both halves of a backward take equally long


def chunk_layers(n_layers: int, n_ranks: int, n_chunks: int) -> Chunks:
    """First and last layer of each chunk, counted from 1; chunk c of rank r is stage c K + r."""
    sizes = oracle.split_sizes(n_layers, n_ranks * n_chunks)
    stages = [(start + 1, end) for start, end in pairwise([0, *accumulate(sizes)])]
    return [stages[rank::n_ranks] for rank in range(n_ranks)]


def group_sizes(n_ranks: int, n_microbatches: int) -> list[int]:
    """Groups of micro-batches as equal as can be, none below n_ranks unless it is alone."""
    return oracle.split_sizes(n_microbatches, max(1, n_microbatches // n_ranks))


def interleaved(
    n_ranks: int,
    n_microbatches: int,
    n_chunks: int,
    warm_up: Callable[[int, int], int] | None = None,
    sizes: list[int] | None = None,
) -> Schedule:
    """Interleaved 1F1B: a group of micro-batches through one chunk before the next takes it.

    warm_up: of a rank and the first group's size, its forwards before the first pair of one forward
    and one backward. sizes: those of the groups.
    """
    sizes = sizes or group_sizes(n_ranks, n_microbatches)
    groups = [range(*ends) for ends in pairwise([0, *accumulate(sizes)])]
    forwards = [(c, m) for group in groups for c in range(n_chunks) for m in group]
    backwards = [(c, m) for group in groups for c in reversed(range(n_chunks)) for m in group]
    schedule = []
    for rank in range(n_ranks):
        ahead = 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * sizes[0]
        ahead = min(len(forwards), warm_up(rank, sizes[0]) if warm_up else ahead)
        actions = [Action("F", rank + c * n_ranks, m) for c, m in forwards]
        list_of_rank = actions[:ahead]
        for done, (c, m) in enumerate(backwards, start=ahead):
            list_of_rank += [*actions[done : done + 1], Action("B", rank + c * n_ranks, m)]
        schedule.append(list_of_rank)
    return schedule


def most_held(n_ranks: int, n_microbatches: int, n_chunks: int) -> list[int]:
    """What each rank holds at most in interleaved 1F1B, in chunks; n_ranks divides the pieces."""
    return [
        min(n_microbatches * n_chunks, 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * n_ranks + 1)
        for rank in range(n_ranks)
    ]


def least_interleaved_s(sizes: tuple[int, int, int], costs: tuple[int, int] = (1, 2)) -> int:
    """The least makespan of looped stages at `costs` of a chunk's forward and backward.

    sizes: ranks, micro-batches and chunks. The last rank cannot start before n_ranks - 1 forwards,
    and as many backwards follow its work. Interleaved 1F1B reaches it where n_ranks divides
    n_microbatches.
    """
    n_ranks, n_microbatches, n_chunks = sizes
    return (n_chunks * n_microbatches + n_ranks - 1) * sum(costs)


def bubble_interleaved(n_ranks: int, n_microbatches: int, n_chunks: int) -> Fraction:
    """Idle share of total time of interleaved 1F1B."""
    return Fraction(n_ranks - 1, n_chunks * n_microbatches + n_ranks - 1)


def halved(schedule: Schedule, lag: Callable[[int], int | None]) -> Schedule:
    """Whole backwards as I, and W `lag(rank)` of them later; None: after all other work."""
    made = []
    for rank, actions in enumerate(schedule):
        after, halves, due = lag(rank), list[Action](), list[Action]()
        for action in actions:
            if action.kind != "B":
                halves.append(action)
                continue
            halves.append(action._replace(kind="I"))
            due.append(action._replace(kind="W"))
            if after is not None and len(due) > after:
                halves.append(due.pop(0))
        made.append(halves + due)
    return made


def filled(schedule: Schedule) -> Schedule:
    """Whole backwards as I, and W wherever a rank would wait, at equal costs of F, I and W.

    No order of F and I other than the given one, and no W anywhere else, is sooner done: no W makes
    F or I wait, and no rank waits while it has one.
    """
    n_stages = len(stage_to_rank(schedule))
    end_s: dict[Action, int] = {}
    made: Schedule = [[] for _ in schedule]
    due: Schedule = [[] for _ in schedule]
    position = [0] * len(schedule)
    left = sum(1 + (action.kind == "B") for actions in schedule for action in actions)
    now_s = 0
    while left:  # each second every rank runs its next F or I if it can, else a W if it has one
        for rank, actions in enumerate(schedule):
            ahead = actions[position[rank]] if position[rank] < len(actions) else None
            if ahead and all(end_s.get(n, now_s + 1) <= now_s for n in _needed(ahead, n_stages)):
                action = ahead._replace(kind="F" if ahead.kind == "F" else "I")
                due[rank] += [action._replace(kind="W")] * (ahead.kind == "B")
                position[rank] += 1
            elif due[rank]:
                action = due[rank].pop(0)
            else:
                continue
            made[rank].append(action)
            end_s[action] = now_s + 1
            left -= 1
        now_s += 1
    return made


def _needed(action: Action, n_stages: int) -> list[Action]:
    """What an F or a B waits for, where every backward is split."""
    kind, stage, m = action
    if kind == "F":
        return [Action("F", stage - 1, m)] if stage else []
    gradient = [Action("I", stage + 1, m)] if stage < n_stages - 1 else []
    return [Action("F", stage, m), *gradient]


def name_of(schedule: Schedule) -> str:
    """A given schedule as code that makes it."""
    n_ranks, n_stages = len(schedule), len(stage_to_rank(schedule))
    n_microbatches = 1 + max(action.microbatch for action in schedule[0])
    if n_stages > n_ranks:
        return f"interleaved_1f1b({n_ranks}, {n_microbatches}, {n_stages // n_ranks})"
    family = "gpipe" if schedule == gpipe(n_ranks, n_microbatches) else "one_f_one_b"
    return f"{family}({n_ranks}, {n_microbatches})"


def zero_bubble_h1(n_stages: int, n_microbatches: int) -> Schedule:
    """1F1B's order with split backwards; rank r runs each W r backwards later."""
    return halved(one_f_one_b(n_stages, n_microbatches), lambda rank: rank)


def timeline_cause(timeline: Timeline) -> str:
    """Which of the named causes the boxes of a run speak for."""
    spans, n_ranks = timeline.spans, timeline.n_ranks
    n_of = Counter(span.kind for span in spans)
    if any(span.stage % n_ranks != span.rank for span in spans):
        return "contiguous_chunks"
    if n_of["W"] < n_of["I"]:
        return "weights_lost"
    if any(len({s.end_s - s.start_s for s in spans if s.kind == kind}) > 1 for kind in "FIW"):
        return "slow_rank"
    if min(message_gaps_s(timeline)) > 0:
        return "slow_link"
    ranks = range(n_ranks)
    if all(_first_s(spans, rank, "W") > _last_s(spans, rank, "I") for rank in ranks):
        return "weights_last"
    return "none"


def message_gaps_s(timeline: Timeline) -> list[float]:
    """From the end of every action to the start of the one on another rank that needs it."""
    starts_s = {span[1:4]: span.start_s for span in timeline.spans}
    gaps_s = []
    for span in timeline.spans:
        step = {"F": 1, "I": -1, "W": 0}[span.kind]
        after_s = starts_s.get((span.kind, span.stage + step, span.microbatch))
        if step and after_s is not None:
            gaps_s.append(float(after_s - span.end_s))
    return gaps_s


def _first_s(spans: list[Span], rank: int, kind: str) -> float:
    return float(min(s.start_s for s in spans if s.rank == rank and s.kind == kind))


def _last_s(spans: list[Span], rank: int, kind: str) -> float:
    return float(max(s.start_s for s in spans if s.rank == rank and s.kind == kind))


def makespan_s(schedule: Schedule, costs: Costs = EQUAL) -> int:
    """Seconds of a legal schedule at whole costs."""
    return int(simulate(schedule, costs).makespan_s)
