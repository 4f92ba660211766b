"""Ranks on fresh processes: how a call of `run_ranks` goes once its arguments are known to be good.

The processes are forked from a server that has torch loaded already, so that a call takes about a
tenth of a second, also from a notebook and with functions defined there. Whatever happens, no rank
is left: not after an error, an interrupt, or the death of the caller. What a rank has started
itself ends with it, unless that is in a session or process group of its own (`setsid`,
`start_new_session`): such a process survives, and is for the program to end.
"""

import multiprocessing
import time
from collections.abc import Callable, Collection
from multiprocessing import connection
from typing import Any, NamedTuple

import cloudpickle

from mpedu.meter import Count, Meter
from mpedu.ranks.board import MOST_RANKS, Waiting
from mpedu.ranks.deadlock import Stillness, deadlock, is_stopped
from mpedu.ranks.errors import (
    busy_lines,
    death,
    failure_text,
    in_causal_order,
    stopped_lines,
    waiting_lines,
)
from mpedu.ranks.interrupts import Interrupts
from mpedu.ranks.outcome import Failed, Interrupted, RankError, Run
from mpedu.ranks.processes import START_S, RankProcesses
from mpedu.ranks.starting import server_has_died
from mpedu.ranks.travel import pickled_program
from mpedu.ranks.unfinished import Ledger, left_over
from mpedu.simulate import Span, Timeline

LOOK_S = 0.1  # how often the board is read while nothing happens
GRACE_S = 0.4  # how long after a first cause others may still say theirs
LONG_GRACE_S = 2.0  # how long a cause may come after its consequence
MOST_LEFT = 8  # lines on what was left over


class Limits(NamedTuple):
    """Seconds for all of it, and for each wait of a rank."""

    timeout_s: float
    wait_s: float


class End(NamedTuple):
    """What a rank sends at its end."""

    result: Any
    spans: list[Span]
    counts: dict[tuple[int, str], Count]
    ledger: Ledger


def run_processes(
    program: Callable[..., Any],
    n_ranks: int,
    arguments: tuple[Any, ...],
    limits: Limits,
    on_report: Callable[[int, Any], None] | None,
    use_gpus: bool,
    check_messages: bool,
) -> Run:
    """What `program(comm, *arguments)` gives on processes; `launch.run_ranks` says the rest."""
    _check(n_ranks)
    payload = pickled_program(program, arguments)
    with Interrupts() as interrupts:
        ranks = RankProcesses(n_ranks)
        launch = _Launch(ranks, limits, on_report)
        try:
            ranks.start(payload, limits.wait_s, use_gpus, check_messages)
            with interrupts.allowed():
                return launch.collect()
        except KeyboardInterrupt:
            raise Interrupted(launch.stopped_text()) from None
        finally:
            ranks.end()


class _Launch:
    """One call of `run_ranks`: what has come out of its processes so far."""

    def __init__(
        self,
        ranks: RankProcesses,
        limits: Limits,
        on_report: Callable[[int, Any], None] | None,
    ) -> None:
        self.ranks, self.limits = ranks, limits
        self.on_report = on_report or (lambda rank, value: None)
        self.started: set[int] = set()
        self.started_s = time.monotonic()  # of the last rank
        self.done: dict[int, End] = {}
        self.failures: list[Failed] = []
        self.stillness = Stillness()

    def collect(self) -> Run:
        """What the ranks return, as soon as all have; RankError where they cannot."""
        try:
            self.ranks.await_start()
        except OSError as error:
            raise RankError(f"the ranks could not be started ({error}); call again") from error
        self.started_s = time.monotonic()
        is_open = set(range(self.ranks.n_ranks))
        while is_open and not self._has_failed():
            self._check_limits(is_open)
            self._take_what_comes(is_open)
        if self.failures:
            failures = in_causal_order(self.failures)
            waiting = self._waiting(is_open)
            raise RankError(failure_text(failures, waiting), failures, waiting)
        return _run([self.done[rank] for rank in range(self.ranks.n_ranks)])

    def _has_failed(self) -> bool:
        """Whether a rank failed, and others had the time to say so too."""
        if not self.failures:
            return False
        first = in_causal_order(self.failures)[0]
        grace_s = LONG_GRACE_S if first.is_consequence else GRACE_S
        return time.monotonic() > first.at_s + grace_s

    def _take_what_comes(self, is_open: set[int]) -> None:
        ends: dict[Any, int] = {}
        for rank in is_open:
            ends[self.ranks.pipes[rank]] = ends[self.ranks.processes[rank].sentinel] = rank
        outputs = self.ranks.output.pipes
        for ready in connection.wait([*ends, *outputs], timeout=LOOK_S):
            if ready not in ends:
                self.ranks.output.print_from(ready)
            elif ends[ready] in is_open and self._take(ends[ready]):
                is_open.remove(ends[ready])

    def _take(self, rank: int) -> bool:
        """Takes a rank's next message, or its death; whether it was the last."""
        pipe, process = self.ranks.pipes[rank], self.ranks.processes[rank]
        try:
            packed = pipe.recv_bytes() if pipe.poll() else b""
        except (EOFError, OSError):
            packed = b""
        if not packed:
            process.join(1.0)
            code = process.exitcode
            # 255 is also what multiprocessing says where nobody can tell it the status.
            self.failures.append(
                death(rank, code, self.ranks.folder, code == 255 and server_has_died())
            )
            return True
        try:
            kind, *values = cloudpickle.loads(packed)
        except Exception as error:  # what a program returned may do anything when it is read
            text = f"what it returned cannot be read here ({type(error).__name__}: {error})"
            self.failures.append(Failed(rank, "ValueError", text, [], False, time.monotonic()))
            return True
        if kind == "report":
            self.on_report(rank, values[0])
        elif kind == "started":
            self.started.add(rank)
            self.started_s = time.monotonic()
        elif kind == "done":
            self.done[rank] = End(*values)
        else:
            self.failures.append(values[0])
        return kind in ("done", "failed")

    def _check_limits(self, is_open: set[int]) -> None:
        if self.failures:
            return
        passed_s = time.monotonic() - self.started_s
        if len(self.started) < self.ranks.n_ranks:
            if passed_s > START_S:
                self._give_up(f"not all ranks have started after {START_S:g} s")
            return
        waiting = self._waiting(is_open)
        timeout_s, wait_s = self.limits
        longest_s = max((w.for_s for w in waiting), default=0.0)
        if min(longest_s, passed_s) > wait_s:
            self._give_up(f"a rank has waited for more than {wait_s:g} s")
        if passed_s > timeout_s:
            self._give_up(f"not done after {timeout_s:g} s (timeout_s)")
        pids = [process.pid for process in self.ranks.processes]
        is_still = self.stillness.has_come(waiting, pids, len(self.done))
        if is_still and deadlock(waiting, self.done):
            self._give_up("no rank can go on")

    def _waiting(self, ranks: Collection[int]) -> list[Waiting]:
        return [w for w in self.ranks.board.waiting() if w.rank in ranks]

    def _give_up(self, why: str) -> None:
        waiting = self._waiting(self._running())
        is_one_stopped = any(is_stopped(process.pid) for process in self.ranks.processes)
        circle = "" if is_one_stopped else deadlock(waiting, self.done)
        heading = f"deadlock: {circle} ({why}):" if circle else f"{why}:"
        raise RankError("\n".join([heading, *self._states()]), self.failures, waiting)

    def _running(self) -> set[int]:
        over = {*self.done, *(failed.rank for failed in self.failures)}
        return {*range(len(self.ranks.processes))} - over

    def _states(self) -> list[str]:
        """What every rank is doing, a line each."""
        running = self._running()
        pids = {rank: self.ranks.processes[rank].pid for rank in sorted(running)}
        stopped = {rank: pid for rank, pid in pids.items() if is_stopped(pid)}
        waiting = self._waiting(running)
        self.ranks.ask_for_stacks(running & self.started)
        folder = self.ranks.folder
        lines = stopped_lines(stopped) + waiting_lines(waiting, folder)
        lines += busy_lines(folder, sorted(running - {*stopped, *(w.rank for w in waiting)}))
        return lines + [f"  rank {rank} has finished" for rank in sorted(self.done)]

    def stopped_text(self) -> str:
        """What an interrupt ended."""
        return "\n".join([f"{self.ranks.n_ranks} ranks, none left running", *self._states()])


def _run(ends: list[End]) -> Run:
    """What came back from all ranks; RankError where they left something over."""
    left = left_over([end.ledger for end in ends])
    if left:
        more = [f"and {len(left) - MOST_LEFT} more"] if len(left) > MOST_LEFT else []
        raise RankError("\n  ".join([*left[:MOST_LEFT], *more]))
    spans = [span for end in ends for span in end.spans]
    meter = Meter()
    for end in ends:
        meter.add(end.counts)
    timeline = Timeline(spans, len(ends)) if spans else None
    return Run([end.result for end in ends], timeline, meter)


def _check(n_ranks: int) -> None:
    if n_ranks > MOST_RANKS:
        raise ValueError(
            f"n_ranks={n_ranks} is too many for one machine; give at most {MOST_RANKS}"
        )
    if multiprocessing.current_process().daemon:
        raise RuntimeError(
            "a rank cannot start ranks of its own; call run_ranks where the program was started"
        )
