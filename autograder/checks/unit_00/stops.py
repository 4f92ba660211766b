"""Where the ranks of a program stand when none can go on, drawn, and who is to blame for it.

`waits` has an entry for each rank: ("send", peer) or ("recv", peer), the call in which it stands,
None where it has finished. A send ends only when its receiver is there.
"""

import random
from itertools import pairwise

from autograder.exercise import Draw

Waits = list[tuple[str, int] | None]
Blame = tuple[str, list[int]]

CAUSES = ("none", "cycle", "never_sent", "never_taken")


def truth(waits: Waits) -> Blame:
    """The cause, and the ranks to blame, as `blame` must name them."""
    rank = next((rank for rank, wait in enumerate(waits) if wait), None)
    if rank is None:
        return "none", []
    seen: list[int] = []
    while rank not in seen:
        seen.append(rank)
        call, peer = waits[rank] or ("", rank)
        if waits[peer] is None:
            return ("never_sent" if call == "recv" else "never_taken"), [rank, peer]
        rank = peer
    circle = seen[seen.index(rank) :]
    least = circle.index(min(circle))
    return "cycle", circle[least:] + circle[:least]


def drawn_stop(cause: str, n_ranks: int, rng: random.Random, n_circle: int = 0) -> Waits:
    """A stop of that cause: others wait for the ranks to blame, or have finished.

    n_circle: how many ranks a circle has, 2 or more; 0 draws it.
    """
    order = rng.sample(range(n_ranks), n_ranks)
    waits: Waits = [None] * n_ranks
    if cause == "none":
        return waits
    if cause == "cycle":
        n_circle = n_circle or rng.randint(2, n_ranks)
        circle, others = order[:n_circle], order[n_circle:]
        calls = [rng.choice(("send", "recv")) for _ in circle]
        if n_circle == 2:  # one's send would meet the other's receive
            calls = calls[:1] * 2
        for place, rank in enumerate(circle):
            waits[rank] = (calls[place], circle[(place + 1) % n_circle])
        waiting = list(circle)
    else:
        waiter, finished, *others = order
        waits[waiter] = ("recv" if cause == "never_sent" else "send", finished)
        waiting = [waiter]
    for rank in others[: rng.randint(0, len(others))]:
        waits[rank] = (rng.choice(("send", "recv")), rng.choice(waiting))
        waiting.append(rank)
    return waits


def drawn_stops(draw: Draw) -> list[Waits]:
    """Stops of every cause, small and large, with long chains of waiting ranks; shuffled."""
    most = 40 if draw.secret else 9
    stops = [drawn_stop("none", draw.int(2, most), draw.rng)]
    for cause in CAUSES[1:]:
        stops += [drawn_stop(cause, draw.int(4, most), draw.rng) for _ in range(4)]
        stops += [_chain(cause, draw.int(5, most), draw.rng) for _ in range(2)]
    stops.append(drawn_stop("cycle", draw.int(4, most), draw.rng, n_circle=2))
    draw.rng.shuffle(stops)
    return stops


def _chain(cause: str, n_ranks: int, rng: random.Random) -> Waits:
    """All ranks wait one behind the other, and rank 0 is the last of them.

    So that every mistake shows: a circle is entered at its largest rank, and is not in the order of
    numbers; rank 0 stands in the other call than the rank to blame.
    """
    order = rng.sample(range(1, n_ranks), n_ranks - 1)
    if cause == "cycle":
        order[:3] = sorted(order[:3])
    waits: Waits = [None] * n_ranks
    for before, rank in pairwise([*order, 0]):
        waits[rank] = (rng.choice(("send", "recv")), before)
    head, second, third = order[:3]
    if cause == "cycle":
        waits[head] = (rng.choice(("send", "recv")), third)
        return waits
    calls = ("recv", "send") if cause == "never_sent" else ("send", "recv")
    waits[second], waits[0] = (calls[0], head), (calls[1], order[-1])
    return waits
