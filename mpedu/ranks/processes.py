"""The processes of one call of `run_ranks`: their start, their pipes, and their certain end."""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpedu.ranks.board import Board
from mpedu.ranks.outcome import stacks_file
from mpedu.ranks.output import RankOutput
from mpedu.ranks.rank import Pipe, Setup, run
from mpedu.ranks.starting import context, start_process

START_S = 120.0  # limit for the start of all processes
END_S = 5.0  # for a killed process to be gone
STACKS_S = 0.2  # how long ranks may take to write where they are
MARGIN_S = 30.0  # torch's own limit is longer than ours, so that ours tells what happened


class RankProcesses:
    """The processes of `n_ranks` ranks; lists are in order of rank.

    folder: theirs alone. board: where they say what they wait for. output: what they print.
    """

    def __init__(self, n_ranks: int) -> None:
        self.n_ranks = n_ranks
        self.folder = tempfile.mkdtemp(prefix="mpedu-ranks-")
        self.board = Board(Path(self.folder) / "board", n_ranks, create=True)
        self.output = RankOutput()
        self.processes: list[Any] = []
        self.pipes: list[Pipe] = []
        self._error: Exception | None = None
        self._is_over = False
        # (An interrupted Thread.join may take the thread for ended: an event tells the truth.)
        self._starter_is_done = threading.Event()
        self._starter_is_done.set()

    def start(
        self, payload: bytes, wait_s: float, use_gpus: bool, check_messages: bool = True
    ) -> None:
        """Starts them, in a thread: the caller stays free to be interrupted meanwhile."""
        environment = dict(os.environ)
        if sys.platform != "win32":
            # gloo would look up the host's name, which takes seconds on some machines.
            loopback = "lo0" if sys.platform == "darwin" else "lo"
            environment.setdefault("GLOO_SOCKET_IFNAME", loopback)
        limit_s = wait_s + MARGIN_S
        how = (self.folder, environment, [*sys.path], limit_s, use_gpus, check_messages)
        setups = [Setup(rank, self.n_ranks, *how) for rank in range(self.n_ranks)]
        arguments = (setups, payload)
        self._starter_is_done.clear()
        threading.Thread(target=self._start_all, args=arguments, daemon=True).start()

    def await_start(self) -> None:
        """Returns when all processes are there; OSError where they cannot be started."""
        if not self._starter_is_done.wait(START_S):
            raise OSError(f"no process after {START_S:g} s")
        if self._error is not None:
            raise OSError(f"{type(self._error).__name__}: {self._error}") from self._error

    def _start_all(self, setups: Iterable[Setup], payload: bytes) -> None:
        try:
            for setup in setups:
                if not self._is_over:
                    self._start(setup, payload)
        except Exception as error:
            self._error = error
        finally:
            self._starter_is_done.set()

    def _start(self, setup: Setup, payload: bytes) -> None:
        ours, theirs = context().Pipe()
        read, write = context().Pipe(duplex=False)
        try:
            process = start_process(run, setup.rank, (setup, payload, theirs, write))
        except BaseException:
            ours.close()
            read.close()
            raise
        finally:
            theirs.close()
            write.close()
        self.pipes.append(ours)
        self.output.add(setup.rank, read)
        self.processes.append(process)

    def ask_for_stacks(self, ranks: Iterable[int]) -> None:
        """Lets ranks that have started write where they are, as far as they do it soon."""
        if not hasattr(signal, "SIGUSR1"):
            return
        asked = list(ranks)
        for rank in asked:
            with contextlib.suppress(OSError):
                os.kill(self.processes[rank].pid, signal.SIGUSR1)
        files = [stacks_file(self.folder, rank) for rank in asked]
        end_s = time.monotonic() + STACKS_S
        while time.monotonic() < end_s and not all(file.stat().st_size for file in files):
            time.sleep(0.01)

    def end(self) -> None:
        """No process, pipe or file is left."""
        self._is_over = True
        if (
            not self._starter_is_done.is_set()
        ):  # it may wait for the server, which an interrupt need not
            threading.Thread(target=self._end).start()
        else:
            self._end()

    def _end(self) -> None:
        self._starter_is_done.wait(START_S)
        for process in self.processes:
            _kill(process)
        for process in self.processes:
            process.join(END_S)
        try:
            self.output.close()
        finally:
            for end in [*self.pipes, *self.processes, self.board]:
                with contextlib.suppress(ValueError):  # a process that even SIGKILL did not end
                    end.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def _kill(process: Any) -> None:
    """Ends a rank and what it started; its group may not exist yet, so both are asked."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
