"""Threads of simulated ranks, of which exactly one runs at a time: it has the baton.

The baton is handed over only where a rank must wait, to the next rank that can go on, counted
upwards: so every run of the same programs takes the same course.
"""

import ctypes
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mpedu.arrays import Array
from mpedu.ranks.interrupts import Interrupts
from mpedu.simulated.exchange import Exchange, Pending
from mpedu.simulated.rank_lines import RankLines, rank_lines
from mpedu.simulated.rank_state import RankStates, rank_context

END_S = 5.0  # for a rank that is told to end
LOOK_S = 0.1  # an interrupt that comes just before a wait is seen after it
Program = Callable[[], Any]


class _Over(BaseException):
    """Raised in a rank's thread to end it: another one has failed, or somebody stopped them."""


class Baton:
    """The threads of one run, and whose turn it is.

    results: by rank. failed: the first rank that raised, and what. stuck: no rank could go on.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        n_ranks = len(exchange.clock_s)
        self.results: list[Any] = [None] * n_ranks
        self.failed: tuple[int, BaseException] | None = None
        self.stuck = False
        self.running = 0
        self._is_over = False
        self._over = threading.Event()
        self._can_go = set(range(n_ranks))
        self._at_work: set[int] = set()  # ranks that are in their programs
        self._turns = [threading.Lock() for _ in range(n_ranks)]
        self._states: RankStates
        self._threads: list[threading.Thread] = []
        self._at: list[tuple[str, int, str]] = []
        for turn in self._turns:
            turn.acquire()

    def run(self, programs: Sequence[Program], timeout_s: float | None) -> bool:
        """Runs one program per rank; whether they came to an end in time, whichever that was.

        Whatever interrupts this one, no thread is left but of `unended` ranks.
        """
        with (
            Interrupts() as interrupts,
            RankStates(len(programs)) as self._states,
            rank_lines() as lines,
        ):
            self._threads = threads = [
                threading.Thread(target=self._live, args=(rank, program, lines), daemon=True)
                for rank, program in enumerate(programs)
            ]
            try:
                for thread in threads:
                    thread.start()
                self._turns[0].release()
                with interrupts.allowed():
                    return self._has_ended(math.inf if timeout_s is None else timeout_s)
            finally:
                self._at = _frames_of(threads[self.running])
                self._end_all(threads)

    def _has_ended(self, timeout_s: float) -> bool:
        end_s = time.monotonic() + timeout_s
        while not self._over.wait(max(0.0, min(LOOK_S, end_s - time.monotonic()))):
            if time.monotonic() >= end_s:
                return False
        return True

    def frames(self) -> list[tuple[str, int, str]]:
        """Where the running rank was when the run ended: (file, line, function)s."""
        return self._at

    def unended(self) -> list[int]:
        """Ranks that nothing ends: they catch every exception, or are outside Python for long."""
        return [rank for rank, thread in enumerate(self._threads) if thread.is_alive()]

    def entered(self) -> Exchange:
        """The exchange, for a call; a rank that still calls when all is over is ended.

        RuntimeError outside of ranks.
        """
        if self._is_over and threading.current_thread() not in self._threads:
            raise RuntimeError("this run is over; a Comm and its requests work while it runs")
        if self._is_over:
            raise _Over
        return self.exchange

    def wait(self, rank: int, pending: Pending) -> Array:
        """What the call gives, when it is done; meanwhile others run."""
        self.entered()
        if not self.exchange.wait(rank, pending):
            self._can_go.discard(rank)
            self._pass_on(rank)
            self._turns[rank].acquire()
            if self._is_over:
                raise _Over
        return self.exchange.take(rank, pending)

    def _live(self, rank: int, program: Program, lines: RankLines) -> None:
        """The life of a rank's thread."""
        self._turns[rank].acquire()
        lines.begin(rank)
        _stay_on_one_core()
        with suppress(_Over):  # told to end as the program came to its end
            self._work(rank, program)
        self._at_work.discard(rank)

    def _work(self, rank: int, program: Program) -> None:
        try:
            if not self._is_over:
                self._at_work.add(rank)
                with rank_context():
                    self.results[rank] = program()
        except BaseException as error:  # also what a student raises to end the process
            if not self._is_over:
                self.failed = rank, error
                self._end()
        self._at_work.discard(rank)
        if not self._is_over:
            self.exchange.finish(rank)
            self._can_go.discard(rank)
            self._pass_on(rank)

    def _pass_on(self, rank: int) -> None:
        freed = self.exchange.freed
        while freed:
            self._can_go.add(freed.popleft())
        n_ranks = len(self._turns)
        for step in range(1, n_ranks + 1):
            following = (rank + step) % n_ranks
            if following in self._can_go:
                if following != self.running:
                    self._states.swap(self.running, following)
                    self.running = following
                self._turns[following].release()
                return
        self.stuck = bool(self.exchange.waits)
        self._end()

    def _end(self) -> None:
        """Nobody gets the baton any more; whoever waits for the run goes on."""
        self._is_over = True
        self._over.set()

    def _end_all(self, threads: list[threading.Thread]) -> None:
        """Ends the threads that are left, one after the other, where they wait or run."""
        self._is_over = True
        end_s = time.monotonic() + END_S
        for rank, thread in enumerate(threads):
            while thread.is_alive():
                if self._turns[rank].locked():
                    self._turns[rank].release()
                thread.join(0.005)
                if rank in self._at_work:
                    _raise_in(thread, _Over)
                if time.monotonic() > end_s:
                    break


def _stay_on_one_core() -> None:
    """Keeps this thread where the other ranks' are: to wake one elsewhere takes four times longer.

    Nothing is lost, since only one of them runs.
    """
    if hasattr(os, "sched_setaffinity"):  # of this thread alone
        cores = sorted(os.sched_getaffinity(os.getpid()))
        with suppress(OSError):
            os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def _frames_of(thread: threading.Thread) -> list[tuple[str, int, str]]:
    frame = sys._current_frames().get(thread.ident or 0)
    stack = traceback.extract_stack(frame) if frame is not None else []
    return [(entry.filename, entry.lineno or 0, entry.name) for entry in stack]


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    """Raises `kind` in a thread, at its next line of Python."""
    if thread.ident is not None:
        number, raised = ctypes.c_ulong(thread.ident), ctypes.py_object(kind)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, raised)
