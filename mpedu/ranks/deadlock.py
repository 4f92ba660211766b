"""Who waits for whom: deadlocks, told from what stands on the board."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

import psutil  # type: ignore[import-untyped]

from mpedu.ranks.board import Waiting

SETTLED_S = 0.25  # whoever waits for less may have its message on the way
STILL_S = 1.0
BUSY_SHARE = 0.05  # of one core; a message on its way takes far more
STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
# Ready to go on, but without a core, or without its memory: what has come may lie there untaken.
READY = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)


def blockers(waiting: Sequence[Waiting]) -> dict[int, list[int]]:
    """For each rank that waits: a peer, or in a collective those that have not come to it."""
    at = {w.rank: w for w in waiting}

    def has_come(peer: int, w: Waiting) -> bool:
        return peer in at and at[peer].text == w.text and w.rank in at[peer].peers

    return {w.rank: [peer for peer in w.peers if not has_come(peer, w)] for w in waiting}


def deadlock(waiting: Sequence[Waiting], finished: Collection[int]) -> str:
    """Who waits for whom in a circle, or for a rank that has finished; "" where nobody does."""
    chain = circle([w for w in waiting if w.for_s >= SETTLED_S], finished)
    text = ", ".join(f"rank {one} waits for rank {other}" for one, other in pairwise(chain))
    return text + (", which has finished" if chain and chain[-1] in finished else "")


def circle(waiting: Sequence[Waiting], finished: Collection[int] = ()) -> list[int]:
    """Ranks of which each waits for the next; the last is the first again, or has finished.

    [] where there is no such chain.
    """
    waits_for = blockers(waiting)
    chains = (_endless([rank], set(), waits_for, finished) for rank in waits_for)
    return next(filter(None, chains), [])


def _endless(
    chain: list[int],
    seen: set[int],
    waits_for: Mapping[int, list[int]],
    finished: Collection[int],
) -> list[int]:
    """`chain` led on until it ends at a finished rank or where it began; [] where it never does.

    seen: ranks tried already.
    """
    for peer in waits_for.get(chain[-1], []):
        if peer in finished or peer == chain[0]:
            return [*chain, peer]
        if peer not in seen:
            seen.add(peer)
            found = _endless([*chain, peer], seen, waits_for, finished)
            if found:
                return found
    return []


class Stillness:
    """Tells when ranks that all wait have also stopped working: nothing is on its way any more."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._used_s = -1.0
        self._ready: set[int] = set()  # threads, at the last look

    def has_come(
        self, waiting: Sequence[Waiting], pids: Sequence[int], n_finished: int = 0
    ) -> bool:
        """Whether all these processes have waited, without work, for a while; asked repeatedly.

        pids: of all ranks, also the `n_finished` that may still send. None may be stopped, or ready
        to work but without a core: what has come for it would lie there untaken.
        """
        all_wait = waiting and len(waiting) + n_finished >= len(pids)
        if not all_wait or min(w.for_s for w in waiting) < STILL_S:
            self._used_s = -1.0
            return False
        states = {thread: state for pid in pids for thread, state in _states(pid).items()}
        ready = {thread for thread, state in states.items() if state in READY}
        # Every idle process wakes up now and then: one look that finds it awake says nothing.
        stays_ready, self._ready = ready & self._ready, ready
        if stays_ready or any(state in STOPPED for state in states.values()):
            self._used_s = -1.0
            return False
        now_s, used_s = time.monotonic(), _used_s(pids)
        if self._used_s < 0:
            self._since_s, self._used_s = now_s, used_s
            return False
        passed_s = now_s - self._since_s
        if used_s - self._used_s > BUSY_SHARE * max(passed_s, STILL_S):
            self._used_s = -1.0
            return False
        return passed_s > STILL_S and not ready


def is_stopped(pid: int) -> bool:
    """Whether this process is stopped, by a signal or a debugger."""
    return any(state in STOPPED for state in _states(pid).values())


def _states(pid: int) -> dict[int, str]:
    """What the system says of each thread of a process; of the first alone where it cannot."""
    states = {}
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        threads = [thread.id for thread in process.threads()] if psutil.LINUX else [pid]
        for thread in threads:
            with suppress(psutil.Error):  # it has ended meanwhile
                states[thread] = psutil.Process(thread).status()
    return states


def _used_s(pids: Sequence[int]) -> float:
    """Processor seconds these processes have used so far."""
    total_s = 0.0
    for pid in pids:
        with suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            total_s += times.user + times.system
    return total_s
