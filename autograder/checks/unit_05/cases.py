"""The cases of unit 05, drawn: schedules, lists of one stage, moments of a run, places to ask of.

What no drawing may leave out is fixed, and asked with every secret.
"""

import random
from typing import NamedTuple

from autograder import oracle, oracle_02, oracle_05
from autograder.checks.unit_03 import cases as gpipe_cases
from autograder.diagnosis import Case
from autograder.exercise import Draw
from mpedu.schedule import Action, Schedule


def schedule_cases(draw: Draw, n_drawn: int) -> tuple[list[Case], list[Case]]:
    """Those of unit 03 and more, of as many micro-batches as stages or more, and of fewer."""
    pairs = [case.args for case in gpipe_cases.schedule_cases(draw, n_drawn)]
    for _ in range(2):
        n_stages = draw.int(6, 9) if draw.secret else draw.int(3, 5)
        pairs.append((n_stages, 2 * n_stages + draw.int(1, 5)))
    pairs.append((draw.int(9, 12), draw.int(3, 7)) if draw.secret else (6, 4))
    cases = [Case("one_f_one_b", pair) for pair in pairs]
    few = [case for case in cases if case.args[1] < case.args[0]]
    return [case for case in cases if case not in few], few


def _sizes(draw: Draw) -> tuple[int, int]:
    return (draw.int(3, 9), draw.int(3, 20)) if draw.secret else (draw.int(2, 5), draw.int(2, 8))


def whole_lists(draw: Draw) -> list[Case]:
    """Complete lists of one stage: of the known schedules, and in any order that can run."""
    known = [oracle.gpipe(4, 8)[0], oracle_05.one_f_one_b(4, 8)[0], oracle_02.naive(2, 3)[1]]
    for make in (oracle_05.one_f_one_b, oracle.gpipe, oracle_05.one_f_one_b):
        sizes = _sizes(draw)
        known.append(draw.rng.choice(make(*sizes)))
    drawn = [draw.rng.choice(some_schedule(*_sizes(draw), draw.rng)) for _ in range(6)]
    return [Case("in_flight", (actions,)) for actions in [*known, *drawn]]


def cut_lists(draw: Draw) -> list[Case]:
    """Lists that end early, with work still held, and one without work."""
    cut = []
    for _ in range(5):
        actions = draw.rng.choice(some_schedule(*_sizes(draw), draw.rng))
        cut.append(actions[: draw.int(1, len(actions) - 1)])
    first = oracle_05.one_f_one_b(3, 5)[0][:3]  # nothing is freed yet
    return [Case("in_flight", (actions,)) for actions in [first, *cut, []]]


def some_schedule(n_stages: int, n_microbatches: int, rng: random.Random) -> Schedule:
    """A schedule that can run if messages may be taken in any order, drawn."""
    order = oracle_05.some_order(n_stages, n_microbatches, rng)
    return [[action for action in order if action.stage == stage] for stage in range(n_stages)]


def many(draw: Draw) -> list[Case]:
    """Places in pipelines with as many micro-batches as stages, or more."""
    known = [(4, 8, 0), (4, 8, 3), (1, 5, 0), (4, 4, 1)]
    top = 64 if draw.secret else 12
    for _ in range(8):
        n_stages = draw.int(2, top)
        more = draw.int(0, 2 * top)
        known.append((n_stages, n_stages + more, draw.int(0, n_stages - 1)))
    return [Case("one_f_one_b_peak", place) for place in known]


def few(draw: Draw) -> list[Case]:
    """Places in pipelines with fewer micro-batches than stages; at some all are held."""
    known = [(4, 2, 0), (5, 3, 3), (4, 1, 0), (6, 4, 2)]
    top = 64 if draw.secret else 12
    for _ in range(8):
        n_stages = draw.int(3, top)
        n_microbatches = draw.int(1, n_stages - 1)
        known.append((n_stages, n_microbatches, draw.int(0, n_stages - 1)))
    return [Case("one_f_one_b_peak", place) for place in known]


class Moments(NamedTuple):
    """Calls of `ready`, by what they ask of."""

    forwards: list[Case]
    last_backwards: list[Case]
    other_backwards: list[Case]

    @property
    def all(self) -> list[Case]:
        """All of them."""
        return [*self.forwards, *self.last_backwards, *self.other_backwards]


def moments(draw: Draw) -> Moments:
    """Work that is ready, and work that is not, at moments of runs in any order."""
    found = Moments([], [], [])
    sizes = [(2, 2), (4, 3), (3, 4), (1, 3), *(_moment_sizes(draw) for _ in range(8))]
    for n_stages, n_microbatches in sizes:
        order = oracle_05.some_order(n_stages, n_microbatches, draw.rng)
        done = order[: draw.int(len(order) // 4, len(order) * 3 // 4)]
        _ask(found, draw.rng, done, order[len(done) :], n_stages)
    for group, action, done, n_stages in _plain_moments(draw):
        group_of = getattr(found, group)
        group_of.append(Case("ready", (action, draw.rng.sample(done, len(done)), n_stages)))
    return found


def _plain_moments(draw: Draw) -> list[tuple[str, Action, list[Action], int]]:
    """Of each kind of work some that is ready and some that is not, with the name of its field."""
    k = draw.int(2, 5)
    forwards = [Action("F", stage, m) for m in range(2) for stage in range(k)]
    last, middle = Action("B", k - 1, 1), Action("B", k - 2, 1)
    return [
        ("forwards", Action("F", 0, 0), [], k),
        ("forwards", Action("F", 0, 3), forwards, k),  # whatever has become of micro-batch 2
        ("forwards", Action("F", k - 1, 2), forwards, k),
        ("last_backwards", last, forwards, k),
        ("last_backwards", Action("B", k - 1, 2), forwards, k),
        # One more stage behind, and the same backward is not ready any more.
        ("other_backwards", last, forwards, k + 1),
        ("other_backwards", last._replace(microbatch=0), forwards, k + 2),
        ("other_backwards", middle, [*forwards, last], k),
        ("other_backwards", middle, [*forwards, last._replace(microbatch=0)], k),
    ]


def _moment_sizes(draw: Draw) -> tuple[int, int]:
    return (draw.int(4, 7), draw.int(3, 7)) if draw.secret else (draw.int(2, 5), draw.int(2, 4))


def _ask(
    found: Moments, rng: random.Random, done: list[Action], left: list[Action], n_stages: int
) -> None:
    """Adds for every kind of work one that is ready and one that is not but looks like it."""
    kinds = (
        (found.forwards, [a for a in left if a.kind == "F"]),
        (found.last_backwards, [a for a in left if a.kind == "B" and a.stage == n_stages - 1]),
        (found.other_backwards, [a for a in left if a.kind == "B" and a.stage < n_stages - 1]),
    )
    was_done = set(done)
    for cases, actions in kinds:
        for is_ready in (True, False):
            fit = [a for a in actions if oracle_05.ready(a, was_done, n_stages) == is_ready]
            near = [a for a in fit if is_ready or _looks_ready(a, was_done)]
            if near or fit:
                asked = rng.choice(near or fit)
                cases.append(Case("ready", (asked, rng.sample(done, len(done)), n_stages)))


def _looks_ready(action: Action, done: set[Action]) -> bool:
    """Whether something near to what the action needs is done."""
    kind, stage, m = action
    if kind == "B" and Action("F", stage, m) in done:
        return True
    return any(Action("F", max(0, stage - (kind == "F")), other) in done for other in range(m))


def counted_lists(draw: Draw) -> list[Case]:
    """Schedules that finish, and the same kinds with work that is missing, double or beyond."""
    cases = [_asked([[]], 1, 1), _asked([[], []], 2, 3), _asked(oracle_05.one_f_one_b(3, 4), 3, 4)]
    for spoil in (
        _without_last,
        _without_drain,
        *(_twice, _beyond, _stuck, None) * 2,
        _without_one,
        None,
    ):
        n_stages, n_microbatches = _list_sizes(draw)
        schedule = _some_known(n_stages, n_microbatches, draw.rng)
        if spoil:
            spoil(schedule, n_microbatches, draw.rng)
        cases.append(_asked(schedule, n_stages, n_microbatches))
    return cases


def crossed_lists(draw: Draw) -> list[Case]:
    """Complete schedules: those that finish, in any order, and those whose stages are stuck."""
    mixed = [oracle_02.naive(2, 2)[0], oracle.gpipe(2, 2)[1]]
    cases = [_asked(mixed, 2, 2), _asked(oracle.gpipe(1, 3), 1, 3)]
    for finishes in (True, False) * 5:
        while True:
            sizes = _list_sizes(draw)
            make = some_schedule if finishes else _each_alone
            schedule = make(*sizes, draw.rng)
            if oracle_05.can_finish(schedule, *sizes) == finishes:
                break
        cases.append(_asked(schedule, *sizes))
    return cases


def _asked(schedule: Schedule, n_stages: int, n_microbatches: int) -> Case:
    return Case("can_finish", (schedule, n_stages, n_microbatches))


def _list_sizes(draw: Draw) -> tuple[int, int]:
    return (draw.int(4, 7), draw.int(3, 8)) if draw.secret else (draw.int(2, 4), draw.int(2, 5))


def _some_known(n_stages: int, n_microbatches: int, rng: random.Random) -> Schedule:
    make = rng.choice([oracle.gpipe, oracle_02.naive, oracle_05.one_f_one_b])
    return make(n_stages, n_microbatches)


def _each_alone(n_stages: int, n_microbatches: int, rng: random.Random) -> Schedule:
    """Lists that are right each for itself: forwards before their own backwards, no more."""
    schedule = []
    for stage in range(n_stages):
        numbers = rng.sample([*range(n_microbatches)] * 2, 2 * n_microbatches)
        seen: set[int] = set()
        actions = []
        for m in numbers:
            actions.append(Action("B" if m in seen else "F", stage, m))
            seen.add(m)
        schedule.append(actions)
    return schedule


def _without_last(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    """The last micro-batch goes nowhere back."""
    last = n_microbatches - 1
    for stage, actions in enumerate(schedule):
        actions.remove(Action("B", stage, last))


def _without_drain(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    """Stage 0 never runs its last backward."""
    schedule[0].pop()


def _without_one(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    """One micro-batch less than asked for, everywhere."""
    for actions in schedule:
        actions[:] = [a for a in actions if a.microbatch < n_microbatches - 1]


def _twice(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    actions = rng.choice(schedule)
    actions.append(rng.choice(actions))


def _beyond(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    """Micro-batches numbered from 1: as much work as asked for, and not that work."""
    for actions in schedule:
        actions[:] = [action._replace(microbatch=action.microbatch + 1) for action in actions]


def _stuck(schedule: Schedule, n_microbatches: int, rng: random.Random) -> None:
    """All work, and then one that waits for ever: of a micro-batch that never comes."""
    stage = rng.randrange(1, len(schedule))
    schedule[stage].append(Action("F", stage, n_microbatches))


def latencies(draw: Draw) -> list[Case]:
    """Pipelines whose stages divide their micro-batches, with early and late messages."""
    known = [(4, 8, 0.5), (2, 2, 1.0), (4, 4, 2.0), (3, 9, 0.0)]
    top = 12 if draw.secret else 6
    for _ in range(8):
        n_stages = draw.int(2, top)
        known.append((n_stages, n_stages * draw.int(1, 6), draw.int(1, 40) / 8))
    return [Case("extra_time_of_latency_s", asked) for asked in known]
