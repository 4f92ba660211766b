"""Timelines of rank programs on the model clock, made by hand: 5 us latency, 10 bytes per ns."""

from mpedu.ranks.board import Waiting
from mpedu.simulate import Sent, Span, Timeline

LATENCY_S = 5e-6
BYTES_PER_S = 1e10


def sent(source, destination, start_s, n_bytes=8, kind="send", tag=0, taken_s=0.0):
    end_s = start_s + n_bytes / BYTES_PER_S
    arrival_s = end_s + LATENCY_S
    taken_s = max(arrival_s, taken_s)
    return Sent(source, destination, kind, n_bytes, start_s, end_s, arrival_s, taken_s, tag)


def span(rank, kind, start_s, end_s):
    return Span(rank, kind, -1, -1, start_s, end_s)


def ping_pong(n_rounds=2, n_bytes=8000, tag=0):
    messages, at_s = [], 0.0
    for i in range(2 * n_rounds):
        messages.append(sent(i % 2, 1 - i % 2, at_s, n_bytes, tag=tag))
        at_s = messages[-1].taken_s
    return Timeline([], 2, tuple(messages))


def ring(n_ranks=4):
    """A token once around: each rank passes it on when it has it."""
    messages, at_s = [], 0.0
    for rank in range(n_ranks):
        messages.append(sent(rank, (rank + 1) % n_ranks, at_s))
        at_s = messages[-1].taken_s
    return Timeline([], n_ranks, tuple(messages))


def all_reduce(n_ranks=8, n_times=1, n_bytes=8000):
    """Compute, then a ring all-reduce of parts of `n_bytes`, all ranks in step."""
    spans, messages, at_s = [], [], 0.0
    for _ in range(n_times):
        spans += [span(rank, "compute", at_s, at_s + 2e-5) for rank in range(n_ranks)]
        start_s = at_s = at_s + 2e-5
        for _ in range(2 * (n_ranks - 1)):
            step = [
                sent(rank, (rank + 1) % n_ranks, at_s, n_bytes, "all_reduce")
                for rank in range(n_ranks)
            ]
            messages += step
            at_s = step[0].taken_s
        spans += [span(rank, "all_reduce", start_s, at_s) for rank in range(n_ranks)]
    return Timeline(spans, n_ranks, tuple(messages))


def overlap():
    """Rank 0 computes while its message is on the link; rank 1 takes the message late."""
    spans = [span(0, "compute", 0.0, 4e-5), span(0, "compute", 4e-5, 7e-5)]
    spans += [span(1, "compute", 0.0, 1.2e-4)]
    return Timeline(spans, 2, (sent(0, 1, 4e-5, 400_000, tag=3, taken_s=1.2e-4),))


def waits_around(n_ranks, n_more=0):
    """Ranks that wait for each other in a circle, and others that wait for rank 0."""
    circle = [
        Waiting(rank, f"recv from rank {(rank + 1) % n_ranks}", 1.0, ((rank + 1) % n_ranks,))
        for rank in range(n_ranks)
    ]
    more = range(n_ranks, n_ranks + n_more)
    return circle + [Waiting(rank, "recv from rank 0", 1.0, (0,)) for rank in more]
