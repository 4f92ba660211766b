"""Right answers to all of unit 06, each in a manner of its own."""

from autograder.bank import Answer
from autograder.bank.unit_06.right_numpy import NUMPY
from autograder.bank.unit_06.right_replayed import REPLAYED

_FULL = {
    "chunk_layers": 3,
    "interleaved_1f1b": 4,
    "interleaved_1f1b_fast": 3,
    "bubble_interleaved": 2,
    "delay_weight_gradients": 3,
    "delay_weight_gradients_fast": 2,
    "zero_bubble_h1": 0,
    "timeline_cause": 3,
}


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in _FULL.items()})


# Each W as many backwards later as the rank's number says.
_LAGGING = """
from mpedu.families import one_f_one_b
from mpedu.schedule import Action


def chunk_layers(n_layers, n_ranks, n_chunks):
    if n_ranks < 1 or n_chunks < 1 or n_layers < n_ranks * n_chunks:
        raise ValueError(f"n_layers={n_layers}, n_ranks={n_ranks}, n_chunks={n_chunks}")
    size, n_larger = divmod(n_layers, n_ranks * n_chunks)
    stages, last = [], 0
    for stage in range(n_ranks * n_chunks):
        first, last = last + 1, last + size + (stage < n_larger)
        stages.append((first, last))
    return [stages[rank::n_ranks] for rank in range(n_ranks)]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    if min(n_ranks, n_microbatches, n_chunks) < 1:
        raise ValueError(f"{n_ranks} ranks, {n_microbatches} micro-batches, {n_chunks} chunks")
    n_groups = max(1, n_microbatches // n_ranks)
    cuts = [-(-group * n_microbatches // n_groups) for group in range(n_groups + 1)]
    groups = [range(a, b) for a, b in zip(cuts, cuts[1:])]
    chunks = range(n_chunks)
    forwards = [(c, m) for group in groups for c in chunks for m in group]
    backwards = [(c, m) for group in groups for c in reversed(chunks) for m in group]
    schedule = []
    for rank in range(n_ranks):
        warm_up = 2 * (n_ranks - 1 - rank) + (n_chunks - 1) * len(groups[0])
        warm_up = min(warm_up, len(forwards))
        f = [Action("F", c * n_ranks + rank, m) for c, m in forwards]
        b = [Action("B", c * n_ranks + rank, m) for c, m in backwards]
        steady = [a for pair in zip(f[warm_up:], b) for a in pair]
        schedule.append(f[:warm_up] + steady + b[len(f) - warm_up:])
    return schedule


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    return (n_ranks - 1) / (n_chunks * n_microbatches + n_ranks - 1)


def delay_weight_gradients(schedule):
    made = []
    for rank, actions in enumerate(schedule):
        halves, waiting = [], []
        for action in actions:
            if action.kind == "F":
                halves.append(action)
                continue
            halves.append(action._replace(kind="I"))
            waiting.append(action._replace(kind="W"))
            if len(waiting) > rank:
                halves.append(waiting.pop(0))
        made.append(halves + waiting)
    return made


def zero_bubble_h1(n_stages, n_microbatches):
    return delay_weight_gradients(one_f_one_b(n_stages, n_microbatches))


def timeline_cause(timeline):
    n, spans = timeline.n_ranks, timeline.spans
    if any(s.stage % n != s.rank for s in spans):
        return "contiguous_chunks"
    count = {kind: sum(s.kind == kind for s in spans) for kind in "FIW"}
    if count["W"] < count["I"]:
        return "weights_lost"
    if len({(s.kind, s.end_s - s.start_s) for s in spans}) > 3:
        return "slow_rank"
    ends = {(s.stage, s.microbatch): s.end_s for s in spans if s.kind == "F"}
    if min(s.start_s - ends[s.stage - 1, s.microbatch] for s in spans
           if s.kind == "F" and s.stage) > 0:
        return "slow_link"
    for rank in range(n):
        weights = [s.start_s for s in spans if (s.rank, s.kind) == (rank, "W")]
        inputs = [s.start_s for s in spans if (s.rank, s.kind) == (rank, "I")]
        if min(weights) < max(inputs):
            return "none"
    return "weights_last"
"""

# Second by second: a rank that would wait runs a W. A shorter warm-up, a larger last group.
_SECOND_BY_SECOND = """
from mpedu.families import one_f_one_b
from mpedu.schedule import Action


def chunk_layers(n_layers, n_ranks, n_chunks):
    for count in (n_ranks, n_chunks):
        if count < 1:
            raise ValueError(f"{count} is too small")
    n_stages = n_ranks * n_chunks
    if n_layers < n_stages:
        raise ValueError(f"{n_layers} layers do not fill {n_stages} chunks")
    owner = []
    for stage in range(n_stages):
        owner += [stage] * (n_layers // n_stages + (stage < n_layers % n_stages))
    held = [[[] for _ in range(n_chunks)] for _ in range(n_ranks)]
    for layer, stage in enumerate(owner, start=1):
        held[stage % n_ranks][stage // n_ranks].append(layer)
    return [[(layers[0], layers[-1]) for layers in own] for own in held]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    for count in (n_ranks, n_microbatches, n_chunks):
        if count <= 0:
            raise ValueError(f"{count} is not a count")
    starts = list(range(0, n_microbatches, n_ranks))
    if len(starts) > 1 and n_microbatches % n_ranks:
        starts.pop()  # the last group takes what is left
    ends = starts[1:] + [n_microbatches]
    lists = []
    for rank in range(n_ranks):
        forwards, backwards = [], []
        for start, end in zip(starts, ends):
            for c in range(n_chunks):
                forwards += [Action("F", rank + c * n_ranks, m) for m in range(start, end)]
                stage = rank + (n_chunks - 1 - c) * n_ranks
                backwards += [Action("B", stage, m) for m in range(start, end)]
        done, actions = set(), []
        ahead = n_ranks - 1 - rank + (n_chunks - 1) * max(b - a for a, b in zip(starts, ends))
        while backwards:
            if forwards and len(done) < ahead + 1:
                actions.append(forwards.pop(0))
                done.add(actions[-1])
            else:
                actions.append(backwards.pop(0))
                done.discard(actions[-1]._replace(kind="F"))
        lists.append(actions)
    return lists


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    work = n_chunks * n_microbatches
    return 1 - work / (work + n_ranks - 1)


def delay_weight_gradients(schedule):
    last = max(action.stage for actions in schedule for action in actions)
    left = [list(actions) for actions in schedule]
    waiting = [[] for _ in schedule]
    made = [[] for _ in schedule]
    ended = {}
    now = 0
    while any(left) or any(waiting):
        for rank in range(len(schedule)):
            action = left[rank][0] if left[rank] else None
            needs = []
            if action and action.kind == "F" and action.stage > 0:
                needs = [action._replace(stage=action.stage - 1)]
            elif action and action.kind == "B":
                needs = [action._replace(kind="F")]
                if action.stage < last:
                    needs.append(Action("I", action.stage + 1, action.microbatch))
            if action and all(ended.get(need, now + 1) <= now for need in needs):
                left[rank].pop(0)
                if action.kind == "B":
                    waiting[rank].append(action._replace(kind="W"))
                    action = action._replace(kind="I")
            elif waiting[rank]:
                action = waiting[rank].pop(0)
            else:
                continue
            made[rank].append(action)
            ended[action] = now + 1
        now += 1
    return made


def zero_bubble_h1(n_stages, n_microbatches):
    schedule = []
    for stage in range(n_stages):
        actions = []
        for action in one_f_one_b(n_stages, n_microbatches)[stage]:
            if action.kind == "F":
                actions.append(action)
            else:
                m = action.microbatch
                actions.append(Action("I", stage, m))
                if m >= stage:
                    actions.append(Action("W", stage, m - stage))
        first_left = max(0, n_microbatches - stage)
        actions += [Action("W", stage, m) for m in range(first_left, n_microbatches)]
        schedule.append(actions)
    return schedule


def timeline_cause(timeline):
    starts, ends, kinds, lengths = {}, {}, {}, {}
    for rank, kind, stage, m, start, end in timeline.spans:
        if (stage - rank) % timeline.n_ranks:
            return "contiguous_chunks"
        starts[kind, stage, m], ends[kind, stage, m] = start, end
        kinds.setdefault((rank, kind), []).append(start)
        lengths.setdefault(kind, set()).add(end - start)
    if any(("W", stage, m) not in starts for kind, stage, m in starts if kind == "I"):
        return "weights_lost"
    if max(map(len, lengths.values())) > 1:
        return "slow_rank"
    waits = [starts[key] - ends["I", key[1] + 1, key[2]]
             for key in starts if key[0] == "I" and ("I", key[1] + 1, key[2]) in ends]
    if all(wait > 0 for wait in waits):
        return "slow_link"
    ranks = range(timeline.n_ranks)
    if all(min(kinds[rank, "W"]) > max(kinds[rank, "I"]) for rank in ranks):
        return "weights_last"
    return "none"
"""

RIGHT = (
    _right("lagging", _LAGGING),
    _right("second_by_second", _SECOND_BY_SECOND),
    _right("numpy", NUMPY),
    _right("replayed", REPLAYED),
)
