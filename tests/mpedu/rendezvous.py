"""Ranks as threads whose sends wait until the receive is posted; no message is ever buffered."""

import threading
import time
from collections import defaultdict

import torch

from mpedu.alone import Done
from mpedu.comm import Channel, Comm, Request

LIMIT_S = 10.0


class Stuck(RuntimeError):
    """A rank waited in vain."""


class Meeting:
    """Where the threads meet: the posted halves of messages, and reductions under way."""

    def __init__(self, n_ranks):
        self.n_ranks = n_ranks
        self.changed = threading.Condition()
        self.halves = defaultdict(list)  # by (source, destination, tag)
        self.barrier = threading.Barrier(n_ranks)
        self.parts = [None] * n_ranks


class Half(Request):
    """One end of a message; the second to come moves the data."""

    def __init__(self, meeting, key, x, is_send):
        self.meeting, self.x, self.is_send, self.done = meeting, x, is_send, False
        with meeting.changed:
            others = [half for half in meeting.halves[key] if half.is_send != is_send]
            if not others:
                meeting.halves[key].append(self)
                return
            other = others[0]
            meeting.halves[key].remove(other)
            source, target = (self.x, other.x) if is_send else (other.x, self.x)
            assert source.shape == target.shape and source.dtype == target.dtype
            with torch.no_grad():
                target.copy_(source)
            self.done = other.done = True
            meeting.changed.notify_all()

    def wait(self):
        with self.meeting.changed:
            if not self.meeting.changed.wait_for(lambda: self.done, LIMIT_S):
                raise Stuck("a rank waits in vain")
        return self.x


class End(Channel):
    def __init__(self, comm, link):
        self.comm, self.link = comm, link

    def isend(self, x, tag, what):
        return self.comm._isend(x, self.link.destination, tag, what)

    def irecv(self, out, tag, what):
        return self.comm._irecv(self.link.source, out, tag, what)


class Rendezvous(Comm):
    def __init__(self, meeting, rank):
        super().__init__()
        self.meeting, self.rank, self.size = meeting, rank, meeting.n_ranks

    def _isend(self, x, destination, tag, what):
        return Half(self.meeting, (self.rank, destination, tag), x, True)

    def _irecv(self, source, out, tag, what):
        return Half(self.meeting, (source, self.rank, tag), out, False)

    def _start(self, call):
        self.meeting.parts[self.rank] = call.x
        self.meeting.barrier.wait(LIMIT_S)
        parts = list(self.meeting.parts)
        self.meeting.barrier.wait(LIMIT_S)
        if call.operation == "barrier":
            return Done(None)
        assert call.operation == "all_reduce"
        return Done(torch.stack(parts).sum(0) if call.op == "sum" else torch.stack(parts).amax(0))

    def channels(self, links):
        return {link: End(self, link) for link in links if self.rank in link[:2]}

    def now_s(self):
        return time.perf_counter()

    def split(self, color):
        raise NotImplementedError


def run_threads(program, n_ranks):
    """What program(comm) returns on every rank; the first error of a rank."""
    meeting = Meeting(n_ranks)
    results, errors = [None] * n_ranks, []

    def run(rank):
        try:
            results[rank] = program(Rendezvous(meeting, rank))
        except BaseException as error:
            broken = isinstance(error, threading.BrokenBarrierError)
            errors.append(Stuck("a rank waits in vain") if broken else error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(n_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * LIMIT_S)
    if errors:
        raise errors[0]
    return results
