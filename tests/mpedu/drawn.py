"""Random legal schedules, as of a scheduler that knows no pattern, and illegal ones."""

from collections import defaultdict, deque

from mpedu.schedule import Action


def drawn_schedule(placement, n_microbatches, rng, in_order=False, split=0.0):
    """A legal schedule whose stages stand on the ranks of `placement`.

    Random ranks run random work that is ready, some ranks far more often than others and some
    fond of forwards; messages are taken in the order they were sent. in_order: what needs no
    message too is taken as it came, so that every stage meets the micro-batches in order. split:
    the share of backwards in halves, whose W comes any time after its I.
    """
    last = len(placement) - 1
    n_ranks = 1 + max(placement)
    speed = [rng.random() ** 6 + 1e-9 for _ in range(n_ranks)]
    fond = [rng.random() for _ in range(n_ranks)]
    queues = defaultdict(deque)  # of work that is ready once taken, by (rank, source, kind)
    for microbatch in range(n_microbatches):
        queues[placement[0], None, "F"].append(Action("F", 0, microbatch))
    schedule = [[] for _ in range(n_ranks)]
    while ready := [key for key, queue in queues.items() if queue]:
        able = [key[0] for key in ready]
        (rank,) = rng.choices(able, [speed[rank] for rank in able])
        kind = "F" if rng.random() < fond[rank] else "B"
        keys = [key for key in ready if key[0] == rank]
        key = rng.choice([key for key in keys if (key[2] == "F") == (kind == "F")] or keys)
        any_order = key[1] is None and not in_order
        action = _any_of(queues[key], rng) if any_order else queues[key].popleft()
        schedule[rank].append(action)
        kind, stage, microbatch = action
        backward = "I" if split and rng.random() < split else "B"
        if kind == "F" and stage == last:
            queues[rank, None, "B"].append(Action(backward, stage, microbatch))
        elif kind == "F":
            _give(queues, placement, rank, "F", Action("F", stage + 1, microbatch))
        elif kind != "W" and stage > 0:
            _give(queues, placement, rank, "B", Action(backward, stage - 1, microbatch))
        if kind == "I":
            queues[rank, None, "W"].append(Action("W", stage, microbatch))
    return schedule


def _give(queues, placement, source, direction, action):
    rank = placement[action.stage]
    queues[rank, None if rank == source else source, direction].append(action)


def _any_of(queue, rng):
    """Work whose input was never a message may be done in any order."""
    at = rng.randrange(len(queue))
    action = queue[at]
    del queue[at]
    return action


def drawn_placement(n_ranks, rng):
    """Ranks of one to three times as many stages; every rank has at least one."""
    extra = rng.randrange(2 * n_ranks + 1) if n_ranks > 1 else rng.randrange(4)
    placement = [*range(n_ranks), *(rng.randrange(n_ranks) for _ in range(min(extra, 4)))]
    rng.shuffle(placement)
    return placement


def broken(schedule, rng):
    """(what was done, the legal schedule with a fault that no order of the ranks can mend)."""
    faults = [fault for fault in FAULTS if fault is not on_two_ranks or len(schedule) > 1]
    fault = rng.choice(faults)
    lists = [list(actions) for actions in schedule]
    rank = rng.randrange(len(lists))
    fault(lists, rank, rng)
    return fault.__name__, lists


def left_out(lists, rank, rng):
    del lists[rank][rng.randrange(len(lists[rank]))]


def done_twice(lists, rank, rng):
    lists[rank].insert(rng.randrange(len(lists[rank]) + 1), rng.choice(lists[rank]))


def backward_first(lists, rank, rng):
    backward = rng.choice([a for a in lists[rank] if a.kind in "BI"])
    _swap(lists[rank], backward, backward._replace(kind="F"))


def weights_first(lists, rank, rng):
    """W before I; or where nothing is in halves, a W without an I."""
    weights = [a for a in lists[rank] if a.kind == "W"]
    if weights:
        late = rng.choice(weights)
        _swap(lists[rank], late, late._replace(kind="I"))
    else:
        at = rng.choice([i for i, a in enumerate(lists[rank]) if a.kind == "B"])
        lists[rank][at] = lists[rank][at]._replace(kind="W")


def whole_and_split(lists, rank, rng):
    backward = rng.choice([a for a in lists[rank] if a.kind in "BI"])
    other = backward._replace(kind="I" if backward.kind == "B" else "B")
    lists[rank].insert(lists[rank].index(backward) + 1, other)


def on_two_ranks(lists, rank, rng):
    """One action of a stage, of which there are at least two, goes to another rank."""
    moved = lists[rank].pop(rng.randrange(len(lists[rank])))
    lists[(rank + 1) % len(lists)].append(moved)


def no_such_microbatch(lists, rank, rng):
    at = rng.randrange(len(lists[rank]))
    lists[rank][at] = lists[rank][at]._replace(microbatch=10**6)


def taken_in_another_order(lists, rank, rng):
    """The first two messages of a link change places where they are taken; else one is left out."""
    owner = {a.stage: r for r, actions in enumerate(lists) for a in actions}
    links = defaultdict(list)
    for receiver, actions in enumerate(lists):
        for a in actions:
            source = owner.get(a.stage - 1 if a.kind == "F" else a.stage + 1, receiver)
            if a.kind != "W" and source != receiver:
                links[source, receiver, a.kind == "F"].append(a)
    for (_, receiver, _), (first, second, *_) in ((k, v) for k, v in links.items() if len(v) > 1):
        _swap(lists[receiver], first, second)
        return
    left_out(lists, rank, rng)


def _swap(actions, one, other):
    i, k = actions.index(one), actions.index(other)
    actions[i], actions[k] = actions[k], actions[i]


FAULTS = [
    left_out,
    done_twice,
    backward_first,
    weights_first,
    whole_and_split,
    on_two_ranks,
    no_such_microbatch,
    taken_in_another_order,
]
