"""Right answers to all of unit 05, each in a manner of its own."""

from autograder.bank import Answer

_FULL = {
    "in_flight": 3,
    "one_f_one_b": 3,
    "one_f_one_b_lean": 5,
    "one_f_one_b_peak": 3,
    "ready": 3,
    "can_finish": 3,
    "extra_time_of_latency_s": 0,
}


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in _FULL.items()})


_WARM_UP = """
from mpedu.schedule import Action


def in_flight(actions):
    held, numbers = 0, []
    for action in actions:
        held += 1 if action.kind == "F" else -1
        numbers.append(held)
    return numbers


def one_f_one_b(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}: give 1 or more")
    schedule = []
    for stage in range(n_stages):
        warm_up = min(n_microbatches, n_stages - 1 - stage)
        actions = [Action("F", stage, m) for m in range(warm_up)]
        for m in range(warm_up, n_microbatches):
            actions += [Action("F", stage, m), Action("B", stage, m - warm_up)]
        left = range(n_microbatches - warm_up, n_microbatches)
        schedule.append(actions + [Action("B", stage, m) for m in left])
    return schedule


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if not 0 <= stage < n_stages:
        raise ValueError(f"stage={stage} is not in 0..{n_stages - 1}")
    return min(n_microbatches, n_stages - stage)


def ready(action, done, n_stages):
    kind, stage, m = action
    if kind == "F":
        return stage == 0 or Action("F", stage - 1, m) in done
    if Action("F", stage, m) not in done:
        return False
    return stage == n_stages - 1 or Action("B", stage + 1, m) in done


def can_finish(schedule, n_stages, n_microbatches):
    done, at = set(), [0] * len(schedule)
    moved = True
    while moved:
        moved = False
        for stage, actions in enumerate(schedule):
            while at[stage] < len(actions) and ready(actions[at[stage]], done, n_stages):
                done.add(actions[at[stage]])
                at[stage] += 1
                moved = True
    pieces = range(n_microbatches)
    required = {Action(kind, s, m) for kind in "FB" for s in range(n_stages) for m in pieces}
    return done == required and sum(at) == sum(map(len, schedule)) == len(required)


def extra_time_of_latency_s(n_stages, n_microbatches, latency_s):
    round_trips = 2 * (n_stages - 1) * n_microbatches / n_stages
    return latency_s * (round_trips + 2 * (n_stages - 2))
"""
# Forwards up to the peak, then a backward first in each turn; everything from what is held.
_ROOM = """
import itertools

from mpedu.schedule import Action


def in_flight(actions):
    changes = [{"F": 1, "B": -1}[kind] for kind, _, _ in actions]
    return list(itertools.accumulate(changes))


def one_f_one_b(n_stages, n_microbatches):
    for name, count in (("stages", n_stages), ("micro-batches", n_microbatches)):
        if count <= 0:
            raise ValueError(f"{count} {name}")
    schedule = [[] for _ in range(n_stages)]
    for stage, actions in enumerate(schedule):
        room = one_f_one_b_peak(n_stages, n_microbatches, stage)
        to_do = iter(range(n_microbatches))
        actions.extend(Action("F", stage, m) for m in itertools.islice(to_do, room))
        for m in range(n_microbatches):
            actions.append(Action("B", stage, m))
            actions.extend(Action("F", stage, after) for after in itertools.islice(to_do, 1))
    return schedule


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if stage < 0 or stage >= n_stages:
        raise ValueError(stage)
    still_before_it = n_stages - stage
    return n_microbatches if still_before_it > n_microbatches else still_before_it


def ready(action, done, n_stages):
    needed = []
    if action.kind == "B":
        needed.append(action._replace(kind="F"))
        if action.stage + 1 < n_stages:
            needed.append(action._replace(stage=action.stage + 1))
    elif action.stage:
        needed.append(action._replace(stage=action.stage - 1))
    return all(one in done for one in needed)


def can_finish(schedule, n_stages, n_microbatches):
    given = [action for actions in schedule for action in actions]
    if len(given) != len(set(given)) or len(given) != 2 * n_stages * n_microbatches:
        return False
    if any(stage >= n_stages or m >= n_microbatches for _, stage, m in given):
        return False
    done, left = set(), [list(actions) for actions in schedule]
    for _ in given:
        for actions in left:
            if actions and ready(actions[0], done, n_stages):
                done.add(actions.pop(0))
                break
        else:
            return False
    return True


def extra_time_of_latency_s(n_stages, n_microbatches, latency_s):
    per_round = 2 * (n_stages - 1)
    n_rounds = n_microbatches // n_stages
    return latency_s * per_round * n_rounds + latency_s * 2 * n_stages - 4 * latency_s
"""
# The list comes out of a run: every stage goes back as soon as it can, within its peak.
_GREEDY = """
from fractions import Fraction

import numpy as np

from mpedu.schedule import Action
from mpedu.simulate import Costs, simulate


def in_flight(actions):
    return np.cumsum([1 if action.kind == "F" else -1 for action in actions], dtype=int)


def one_f_one_b(n_stages, n_microbatches):
    if n_stages < 1:
        raise ValueError(f"n_stages={n_stages}")
    if n_microbatches < 1:
        raise ValueError(f"n_microbatches={n_microbatches}")
    lists = [[] for _ in range(n_stages)]
    n_forward, n_back = [0] * n_stages, [0] * n_stages
    done = set()
    while min(n_back) < n_microbatches:
        for stage in reversed(range(n_stages)):
            back = Action("B", stage, n_back[stage])
            ahead = Action("F", stage, n_forward[stage])
            room = n_forward[stage] - n_back[stage] < n_stages - stage
            if ready(back, done, n_stages):
                n_back[stage] += 1
            elif room and ahead.microbatch < n_microbatches and ready(ahead, done, n_stages):
                n_forward[stage] += 1
                back = ahead
            else:
                continue
            lists[stage].append(back)
            done.add(back)
    return lists


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if stage not in range(n_stages):
        raise ValueError(f"there is no stage {stage}")
    return max(in_flight(one_f_one_b(n_stages, n_microbatches)[stage]))


def ready(action, done, n_stages):
    if action.kind == "F" and action.stage == 0:
        return True
    if action.kind == "F":
        return Action("F", action.stage - 1, action.microbatch) in done
    if action.stage == n_stages - 1:
        return Action("F", action.stage, action.microbatch) in done
    return Action("B", action.stage + 1, action.microbatch) in done


def can_finish(schedule, n_stages, n_microbatches):
    required = [
        Action(kind, stage, m)
        for kind in "FB"
        for stage in range(n_stages)
        for m in range(n_microbatches)
    ]
    if sorted(sum(schedule, [])) != sorted(required):
        return False
    done = set()
    for _ in required:
        for actions in schedule:
            nexts = [action for action in actions if action not in done][:1]
            done |= {action for action in nexts if ready(action, done, n_stages)}
    return len(done) == len(required)


def extra_time_of_latency_s(n_stages, n_microbatches, latency_s):
    costs = [Costs(1, 2, latency_s=Fraction(late)) for late in (latency_s, 0)]
    schedule = one_f_one_b(n_stages, n_microbatches)
    late, early = (simulate(schedule, cost).makespan_s for cost in costs)
    return late - early
"""
# Micro-batches in another order, and recursion.
_ODD = """
from mpedu.schedule import Action


def in_flight(actions):
    if not actions:
        return []
    before = in_flight(actions[:-1])
    return before + [(before[-1] if before else 0) + (1 if actions[-1].kind == "F" else -1)]


def one_f_one_b(n_stages, n_microbatches):
    if min(n_stages, n_microbatches) < 1:
        raise ValueError(f"{n_stages} stages and {n_microbatches} micro-batches")
    order = list(range(n_microbatches))[::-1]

    def turns(stage, ahead, back):
        if not back:
            return []
        if ahead and len(back) - len(ahead) < n_stages - stage:
            return [Action("F", stage, ahead[0])] + turns(stage, ahead[1:], back)
        return [Action("B", stage, back[0])] + turns(stage, ahead, back[1:])

    return [turns(stage, order, order) for stage in range(n_stages)]


def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if stage >= n_stages or stage < 0:
        raise ValueError(f"stage {stage} of {n_stages}")
    if n_microbatches == 1 or stage == n_stages - 1:
        return 1
    return 1 + one_f_one_b_peak(n_stages - 1, n_microbatches - 1, stage)


def ready(action, done, n_stages):
    match action:
        case Action("F", 0, _):
            return True
        case Action("F", stage, m):
            return any(a == ("F", stage - 1, m) for a in done)
        case Action("B", stage, m):
            before = ("F", stage, m) if stage == n_stages - 1 else ("B", stage + 1, m)
            return any(a == before for a in done)


def can_finish(schedule, n_stages, n_microbatches):
    counted = {}
    for stage, actions in enumerate(schedule):
        for action in actions:
            counted[action] = counted.get(action, 0) + 1
    for stage in range(n_stages):
        for m in range(n_microbatches):
            for kind in "FB":
                if counted.pop(Action(kind, stage, m), 0) != 1:
                    return False
    if counted:
        return False

    def run(left, done):
        able = [a[0] for a in left if a and ready(a[0], done, n_stages)]
        if not able:
            return not any(left)
        return run([a[1:] if a and a[0] in able else a for a in left], done | set(able))

    return run(schedule, set())


def extra_time_of_latency_s(n_stages, n_microbatches, latency_s):
    if n_microbatches == n_stages:
        return latency_s * (4 * n_stages - 6)
    earlier = extra_time_of_latency_s(n_stages, n_microbatches - n_stages, latency_s)
    return earlier + 2 * latency_s * (n_stages - 1)
"""
RIGHT = (
    _right("warm_up_and_turns", _WARM_UP),
    _right("room_and_needs", _ROOM),
    _right("greedy_run", _GREEDY),
    _right("descending_and_recursive", _ODD),
)
