"""Processes that serve tasks one at a time: a process that dies costs only the task it was on.

Our own, since the promise is the point: pools of the standard library and of pebble 5.2 share one
pipe and lock among all processes, so that one killed at the wrong moment ends or blocks the run.
"""

import faulthandler
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from mpedu.faults import Failure

_START_S = 120.0  # a loaded machine needs seconds to import what a process needs
_STOP_S = 5.0
_MOST_STARTS = 3


class PoolError(Failure):
    """No process could be made ready, with the reason of the last."""


class Lost(NamedTuple):
    """What is left of a task whose process died or ran over the limit."""

    reason: str


Handle = Callable[[Any], Any]
Maker = Callable[..., AbstractContextManager[Handle]]


def run_tasks(
    make: Maker,
    args: tuple[Any, ...],
    tasks: Sequence[Any],
    n_jobs: int,
    limit_s: float,
    most_tries: int = 1,
) -> Generator[tuple[Any, Any], None, None]:
    """Each task with what `handle(task)` returned, or `Lost`, in order of completion.

    Every process enters `make(*args)` (importable by name) once and gets `handle` from it. A task
    gets at most `limit_s` seconds; one whose process is lost is given to another process until it
    was lost `most_tries` times. Closing the iterator, or an exception, kills all processes.
    """
    waiting = deque(tasks)
    n_lost: Counter[Any] = Counter()
    n_unborn = 0  # processes, one after the other, that ended before they were ready
    processes: list[_Process] = []
    try:
        while waiting or any(process.busy for process in processes):
            processes = [process for process in processes if not process.ended]
            for process in processes:
                if process.idle and waiting:
                    process.give(waiting.popleft(), limit_s)
            n_starting = sum(not process.ready for process in processes)
            if len(processes) < n_jobs and len(waiting) > n_starting:
                processes.append(_Process(make, args))
                continue
            for process in _ready(processes):
                done, n_unborn = _collected(process, n_unborn)
                for task, answer in done:
                    n_lost[task] += isinstance(answer, Lost)
                    if isinstance(answer, Lost) and n_lost[task] < most_tries:
                        waiting.appendleft(task)
                    else:
                        yield task, answer
    finally:
        _stop(processes)


def _collected(process: "_Process", n_unborn: int) -> tuple[list[tuple[Any, Any]], int]:
    """What a process has to say, and how many have died at birth one after the other."""
    try:
        return list(process.collect()), 0
    except PoolError:
        if n_unborn + 1 == _MOST_STARTS:
            raise
        return [], n_unborn + 1


def _ready(processes: list["_Process"]) -> list["_Process"]:
    """The processes that have said something, died or run out of time; waits for one at most."""
    soonest = min(process.deadline for process in processes)
    limit_s = max(0.0, soonest - time.monotonic())
    ready = wait([process.connection for process in processes], limit_s)
    now = time.monotonic()
    return [p for p in processes if p.connection in ready or p.deadline <= now]


class _Process:
    """The near end of one process."""

    def __init__(self, make: Maker, args: tuple[Any, ...]) -> None:
        # A fresh interpreter: a fork of this one would bring its threads' locks along.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, make, args), daemon=True)
        # Ctrl-C reaches every process of the terminal; only this one is to answer it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()
        self.ready = self.busy = self.ended = False
        self.task: Any = None
        self.deadline = time.monotonic() + _START_S

    @property
    def idle(self) -> bool:
        """Whether it can take a task now."""
        return self.ready and not self.busy and not self.ended

    def give(self, task: Any, limit_s: float) -> None:
        """Sends a task; `collect` tells when it is done or lost."""
        self.task, self.busy = task, True
        self.deadline = time.monotonic() + limit_s
        with suppress(OSError):  # it has just died: collect reports the task as lost
            self.connection.send(task)

    def collect(self) -> Iterator[tuple[Any, Any]]:
        """The task with its outcome, if one is there; PoolError if the process never got ready."""
        try:
            said = self.connection.recv() if self.connection.poll() else None
            reason = "took longer than a submission may"
        except (EOFError, OSError):
            self.process.join(_STOP_S)
            said, reason = None, f"ended with exit code {self.process.exitcode}"
        kind, answer = said or ("failed", reason)
        if kind == "failed":
            self.kill()
            if not self.ready:
                raise PoolError(f"A grading process could not start: it {answer}.")
            answer = Lost(f"the grading process {answer}")
        was_busy = self.busy
        self.ready, self.busy, self.deadline = True, False, float("inf")
        if was_busy:
            yield self.task, answer

    def kill(self) -> None:
        """Ends it at once; what it had started dies with it."""
        self.ended = True
        self.process.kill()
        self.process.join(_STOP_S)
        self.connection.close()


def _stop(processes: list[_Process]) -> None:
    """Ends all processes: idle ones close what they hold, others get no time."""
    for process in processes:
        if process.idle:
            with suppress(OSError):
                process.connection.send(None)
    for process in processes:
        if process.idle:
            process.process.join(_STOP_S)
        if not process.ended:
            process.kill()


def _serve(connection: Connection, make: Maker, args: tuple[Any, ...]) -> None:
    """The far end: says "ready", then answers tasks until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with make(*args) as handle:
            connection.send(("ready", ""))
            while (task := connection.recv()) is not None:
                connection.send(("done", handle(task)))
    except EOFError:
        return
    except Exception as error:
        with suppress(OSError):
            connection.send(("failed", f"raised {type(error).__name__}: {error} ({_place(error)})"))
        raise SystemExit(1) from None


@contextmanager
def process_ends_after(limit_s: float | None) -> Iterator[None]:
    """Ends this process, whatever it does, if what is inside takes longer; None for no limit.

    So what hangs is lost like what dies. Where it hung is told on stderr.
    """
    if limit_s is not None:
        faulthandler.dump_traceback_later(limit_s, exit=True)
    try:
        yield
    finally:
        if limit_s is not None:
            faulthandler.cancel_dump_traceback_later()


def _place(error: Exception) -> str:
    """Where an exception was raised, like "judge.py:57"."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno}"


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
