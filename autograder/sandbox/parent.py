"""The near ends of the processes that run students' code: a warm parent, and one per exercise."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import NamedTuple

from autograder.sandbox.bubblewrap import RUNTIME_INSIDE, bubblewrap_command
from autograder.worker.protocol import Channel
from autograder.worker.walls import Limits

_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of a set must not differ from run to run
    "PYTHONDONTWRITEBYTECODE": "1",
    # One thread: a fork of a process with several can hang, and cannot enter namespaces.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_START_S = 120.0  # a loaded machine needs long to import torch
_STOP_S = 5.0
_END_S = 10.0


class SandboxError(RuntimeError):
    """The machine failed, not the student: no verdict may rest on it."""


class WarmParent:
    """The process that students' processes are forked from; SandboxError where it cannot start."""

    def __init__(
        self, runtime: Path, limits: Limits, preload: Sequence[str], *, walled: bool
    ) -> None:
        self.walled = walled
        settings = json.dumps([walled, list(preload), list(limits)])
        python, variables = _python(runtime, walled)
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far, tempfile.TemporaryFile() as said:
            self._process = subprocess.Popen(
                [*python, "-P", "-s", "-m", "autograder.worker", str(far.fileno()), settings],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=variables,
                cwd="/",
                start_new_session=True,
            )
            far.close()
            failed = self._failed()
            if failed is not None:
                self.kill()
                said.seek(0)
                lines = said.read().decode(errors="replace").strip()[-300:].splitlines()
                reason = failed or (lines[-1] if lines else "it ended without a word")
                raise SandboxError(f"the process for students' code did not start: {reason}")

    def _failed(self) -> str | None:
        """None when it can serve, else why not ("" when it ended first)."""
        self._control.settimeout(_START_S)
        try:
            said = self._control.recv(4096)
        except TimeoutError:
            return f"it was not ready within {_START_S:g} s"
        return (json.loads(said)["failed"] or None) if said else ""

    def ended(self, wait_s: float = 0.0) -> bool:
        """Whether it has ended, or does within that time."""
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def start(self, link: socket.socket, life: socket.socket, output: int) -> None:
        """Forks a process for one exercise that gets these three (see `worker.Job`)."""
        try:
            socket.send_fds(self._control, [b"start"], [link.fileno(), life.fileno(), output])
        except OSError as error:
            raise SandboxError(f"the process for students' code is gone: {error}") from None

    def close(self) -> None:
        """Ends it and, within seconds, everything that was started from it."""
        self._control.close()
        if not self.ended(_STOP_S):
            self.kill()

    def kill(self) -> None:
        """Ends it at once, without waiting for what it does."""
        self._control.close()
        if not self.ended():  # its number may be another's by now
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_STOP_S)


def _python(runtime: Path, walled: bool) -> tuple[list[str], dict[str, str]]:
    """The words that start Python, and its environment variables."""
    if not walled:
        return [sys.executable], {**_VARIABLES, "PYTHONPATH": str(runtime.resolve())}
    program = which("bwrap")
    if program is None:
        raise SandboxError("bubblewrap (the program bwrap) is not installed")
    return bubblewrap_command(program, runtime), {**_VARIABLES, "PYTHONPATH": RUNTIME_INSIDE}


class Report(NamedTuple):
    """How a student's process ended: exit code (minus a signal's number), and what it used."""

    code: int
    cpu_s: float
    peak_bytes: int


class StudentProcess:
    """A process forked from the warm parent, and the channel to it.

    What it prints is kept by the kernel, which takes only so much and makes nobody wait.
    """

    def __init__(self, parent: WarmParent) -> None:
        self._parent = parent
        self._said = b""  # by the guardian, about the end
        self.ended = False
        near, link = socket.socketpair()
        self._life, life = socket.socketpair()
        self._reader, output = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.channel = Channel(near)
        try:
            with link, life:
                parent.start(link, life, output)
        except SandboxError:
            self._close()
            raise
        finally:
            os.close(output)

    def printed(self) -> bytes:
        """What it has printed since the last call."""
        with suppress(BlockingIOError):
            return os.read(self._reader, 2**20)
        return b""

    def last_words(self, wait_s: float) -> Report | None:
        """The guardian's report, if everything of the process is gone within that time.

        SandboxError when there never was a process, or its guardian ended without a report.
        """
        deadline = time.monotonic() + wait_s
        while part := self._life_says(deadline - time.monotonic()):
            self._said += part
        if part is None:
            return None
        said = json.loads(self._said.partition(b"\n")[0] or '{"failed": "its guardian is gone"}')
        if "failed" in said:
            raise SandboxError(f"no process for a student's code: {said['failed']}")
        return Report(said["code"], said["cpu_s"], said["peak_bytes"])

    def _life_says(self, wait_s: float) -> bytes | None:
        """Some bytes, b"" after the last of them, None when the time is over."""
        self._life.settimeout(max(wait_s, 0.001))
        try:
            return self._life.recv(4096)
        except TimeoutError:
            return None
        except ConnectionError:
            return b""

    def end(self) -> Report | None:
        """Ends it and all it started; its report, unless the warm parent had to end with it."""
        report = None
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_WR)
        with suppress(SandboxError):
            report = self.last_words(_END_S)
        if report is None:  # nobody is left to say that all is gone
            self._parent.kill()
        self._close()
        return report

    def _close(self) -> None:
        self.ended = True
        self.channel.sock.close()
        self._life.close()
        os.close(self._reader)
