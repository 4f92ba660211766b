"""Starting ranks: `run_ranks` runs a rank program on fresh processes and brings back its results.

The processes are forked from a server that has torch loaded already, so that a call takes about a
tenth of a second, also from a notebook and with functions defined there. Whatever happens, no
process is left: not after an error, an interrupt, or the death of the caller.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from mpedu.board import Board
from mpedu.faults import require_at_least
from mpedu.rank_errors import (
    Interrupted,
    RankError,
    busy_lines,
    death,
    failure_text,
    waiting_lines,
)
from mpedu.ranks import Failed, Pipe, Setup, run
from mpedu.simulate import Span, Timeline

LOOK_S = 0.1  # how often the board is read while nothing happens
GRACE_S = 0.4  # how long after a first failure others may still say theirs
MARGIN_S = 30.0  # torch's own limit is longer than ours, so that ours tells what happened
MUCH_BYTES = 50_000_000


class Run(NamedTuple):
    """What came back: the results in order of rank, and what the ranks recorded, if they did."""

    results: list[Any]
    timeline: Timeline | None


def run_ranks(
    program: Callable[..., Any],
    n_ranks: int,
    *arguments: Any,
    timeout_s: float | None = 60.0,
    wait_s: float | None = None,
    on_report: Callable[[int, Any], None] | None = None,
    use_gpus: bool = True,
) -> Run:
    """Runs `program(comm, *arguments)` on `n_ranks` fresh processes of this machine.

    Program and arguments travel by value: cell functions, closures and modules will do. With a GPU
    for every rank each gets its own (`comm.device`); otherwise ranks compute on the CPU, with one
    thread each. What a rank prints appears here behind "[rank i] ".

    timeout_s: limit for all of it. wait_s: limit for each single wait of a rank (default: the
    same). on_report(rank, value): is called with what ranks hand to `comm.report`.
    RankError: a rank failed, died or waited too long; it names the first cause first.
    ValueError for a program that cannot travel, or a number that is no number of ranks.
    """
    require_at_least(1, n_ranks=n_ranks)
    payload = _pickled(program, arguments)
    limits = [limit for limit in (wait_s, timeout_s) if limit is not None]
    for limit in limits:
        if not limit > 0:
            raise ValueError(f"a limit of {limit!r} s is none; give seconds above 0, or None")
    launch = _Launch(n_ranks, timeout_s, min(limits, default=60.0), on_report)
    try:
        launch.start(payload, use_gpus)
        return launch.collect()
    except KeyboardInterrupt:
        raise Interrupted(launch.stopped_text()) from None
    finally:
        launch.end()


def warm_up() -> None:
    """Starts the fork server in the background, so that the first `run_ranks` need not wait."""
    if _method() != "forkserver":
        return
    from multiprocessing import forkserver

    _context()
    # An interrupt while the server still imports torch would kill it.
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


class _Launch:
    """One call of `run_ranks`: its processes, their pipes, and what came out of them."""

    def __init__(
        self,
        n_ranks: int,
        timeout_s: float | None,
        wait_s: float,
        on_report: Callable[[int, Any], None] | None,
    ) -> None:
        self.n_ranks, self.timeout_s, self.wait_s = n_ranks, timeout_s, wait_s
        self.on_report = on_report or (lambda rank, value: None)
        self.started_s = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="mpedu-ranks-")
        self.board = Board(Path(self.folder) / "board", n_ranks, create=True)
        self.processes: list[Any] = []
        self.pipes: list[Pipe] = []
        self.outputs: dict[Pipe, int] = {}  # until their end has been read
        self.lines = [b""] * n_ranks
        self.done: dict[int, tuple[Any, list[Span]]] = {}
        self.failures: list[Failed] = []

    def start(self, payload: bytes, use_gpus: bool) -> None:
        warm_up()
        context = _context()
        environment = dict(os.environ)
        # gloo would look up the host's name, which takes seconds on some machines.
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        with _no_main():
            for rank in range(self.n_ranks):
                limit_s = self.wait_s + MARGIN_S
                setup = Setup(rank, self.n_ranks, self.folder, environment, limit_s, use_gpus)
                ours, theirs = context.Pipe()
                read, write = context.Pipe(duplex=False)
                process = context.Process(
                    target=run, args=(setup, payload, theirs, write), daemon=True
                )
                self.pipes.append(ours)
                self.outputs[read] = rank
                process.start()
                self.processes.append(process)
                theirs.close()
                write.close()

    def collect(self) -> Run:
        first_failure_s = None
        open_pipes = {pipe: rank for rank, pipe in enumerate(self.pipes)}
        while open_pipes:
            now_s = time.monotonic()
            if first_failure_s is not None and now_s > first_failure_s + GRACE_S:
                break
            self._check_limits(now_s)
            for ready in connection.wait([*open_pipes, *self.outputs], timeout=LOOK_S):
                if ready in self.outputs:
                    self._print(ready)
                elif self._take(open_pipes[ready]):
                    del open_pipes[ready]
            if self.failures and first_failure_s is None:
                first_failure_s = time.monotonic()
        if self.failures:
            busy = {w.rank for w in self.board.waiting()}
            silent = busy & set(open_pipes.values())
            waiting = [w for w in self.board.waiting() if w.rank in silent]
            raise RankError(failure_text(self.failures, waiting), self.failures, waiting)
        spans = [span for rank in range(self.n_ranks) for span in self.done[rank][1]]
        timeline = Timeline(spans, self.n_ranks) if spans else None
        return Run([self.done[rank][0] for rank in range(self.n_ranks)], timeline)

    def _take(self, rank: int) -> bool:
        """Takes a rank's next message; whether it was the last."""
        try:
            kind, *values = cloudpickle.loads(self.pipes[rank].recv_bytes())
        except (EOFError, OSError):
            self.processes[rank].join(1.0)
            self.failures.append(death(rank, self.processes[rank].exitcode))
            return True
        if kind == "report":
            self.on_report(rank, values[0])
            return False
        if kind == "done":
            self.done[rank] = values[0], values[1]
        else:
            self.failures.append(values[0])
        return True

    def _check_limits(self, now_s: float) -> None:
        waiting = self.board.waiting()
        longest_s = max((w.for_s for w in waiting if w.rank not in self.done), default=0.0)
        if longest_s > self.wait_s:
            self._give_up(f"a rank has waited for more than {self.wait_s:g} s")
        if self.timeout_s is not None and now_s > self.started_s + self.timeout_s:
            self._give_up(f"not done after {self.timeout_s:g} s (timeout_s)")

    def _give_up(self, why: str) -> None:
        text = "\n".join([f"{why}:", *self._states()])
        raise RankError(text, self.failures, self.board.waiting())

    def _states(self) -> list[str]:
        """What every rank is doing, a line each."""
        waiting = [w for w in self.board.waiting() if w.rank not in self.done]
        over = {*self.done, *(failed.rank for failed in self.failures)}
        busy = sorted({*range(len(self.processes))} - over - {w.rank for w in waiting})
        if busy and hasattr(signal, "SIGUSR1"):
            for rank in busy:
                with contextlib.suppress(OSError):
                    os.kill(self.processes[rank].pid, signal.SIGUSR1)
            time.sleep(0.05)  # for the ranks to write their stacks
        lines = waiting_lines(waiting) + busy_lines(self.folder, busy)
        return lines + [f"  rank {rank} has finished" for rank in sorted(self.done)]

    def stopped_text(self) -> str:
        return "\n".join([f"{self.n_ranks} ranks, none left running", *self._states()])

    def end(self) -> None:
        """No process, pipe or file of this call is left."""
        for process in self.processes:
            _kill(process)
        for process in self.processes:
            process.join(5.0)
        for output in list(self.outputs):
            while output in self.outputs and output.poll():
                self._print(output)
            output.close()
        for rank, line in enumerate(self.lines):
            if line:
                self._print_line(rank, line)
        for pipe in self.pipes:
            pipe.close()
        self.board.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _print(self, output: Pipe) -> None:
        """Prints the whole lines that a rank has written."""
        rank = self.outputs[output]
        written = os.read(output.fileno(), 65536)
        *lines, self.lines[rank] = (self.lines[rank] + written).split(b"\n")
        for line in lines:
            self._print_line(rank, line)
        if not written:
            del self.outputs[output]

    def _print_line(self, rank: int, line: bytes) -> None:
        print(f"[rank {rank}] {line.decode(errors='replace')}")


def _kill(process: Any) -> None:
    """Ends a rank and what it started; its group may not exist yet, so both are asked."""
    if process.pid is None:
        return
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _pickled(program: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    if not callable(program):
        raise ValueError(f"{program!r} cannot be called; give a function program(comm, ...)")
    try:
        payload: bytes = cloudpickle.dumps((program, arguments))
    except Exception as error:  # each type that cannot be pickled has an error of its own
        name = getattr(program, "__name__", repr(program))
        raise ValueError(
            f"{name} and its arguments cannot be sent to other processes ({error}); "
            "make what cannot travel (open files, locks, generators) inside the program"
        ) from error
    if len(payload) > MUCH_BYTES:
        warnings.warn(
            f"the program and its arguments are {len(payload) / 1e6:.0f} MB, sent to every rank: "
            "make large arrays inside the program",
            stacklevel=3,
        )
    return payload


def _method() -> str:
    known = multiprocessing.get_all_start_methods()
    return "forkserver" if "forkserver" in known else "spawn"


def _context() -> Any:
    method = _method()
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["mpedu.preload"])
    else:
        print("This system has no fork server: each rank loads PyTorch anew, which takes seconds.")
    return context


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hides `__main__` while processes start.

    Otherwise each of them would import the caller's script again and repeat what it does at top
    level. The program itself travels by value.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
