"""Random legal schedules: what a scheduler that knows no pattern might run."""

from collections import defaultdict, deque

from mpedu.schedule import Action


def drawn_schedule(placement, n_microbatches, rng, in_order=False):
    """A legal schedule of F and B whose stages stand on the ranks of `placement`.

    Random ranks run random work that is ready, some ranks far more often than others and some
    fond of forwards; messages are taken in the order they were sent. in_order: what needs no
    message too is taken as it came, so that every stage meets the micro-batches in order.
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
        key = rng.choice([key for key in keys if key[2] == kind] or keys)
        any_order = key[1] is None and not in_order
        action = _any_of(queues[key], rng) if any_order else queues[key].popleft()
        schedule[rank].append(action)
        kind, stage, microbatch = action
        if kind == "F" and stage == last:
            queues[rank, None, "B"].append(Action("B", stage, microbatch))
        elif kind == "F":
            _give(queues, placement, rank, Action("F", stage + 1, microbatch))
        elif stage > 0:
            _give(queues, placement, rank, Action("B", stage - 1, microbatch))
    return schedule


def _give(queues, placement, source, action):
    rank = placement[action.stage]
    queues[rank, None if rank == source else source, action.kind].append(action)


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
