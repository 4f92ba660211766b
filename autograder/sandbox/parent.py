"""The near ends of the processes that run students' code: a warm parent, and one per exercise."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from autograder.sandbox.cgroups import Group
from autograder.sandbox.ended import Report, how
from autograder.sandbox.rungs import Place, SandboxError, command
from autograder.worker.kernel import NOBODY
from autograder.worker.protocol import HERE, Channel, ProtocolError, encode
from autograder.worker.standing import GO_ON, OBEYED, STOP
from autograder.worker.walls import Limits, processes_of

_START_S = 120.0  # a loaded machine needs long to import torch
_STOP_S = 5.0
_END_S = 10.0
_FREE_S = 2.0
_HERE_S = 30.0  # for a fork and its walls, which take 20 ms on a quiet machine
_HERE = encode(HERE, envelope=1)


class WarmParent:
    """The process that students' processes are forked from; SandboxError where it cannot start."""

    def __init__(self, place: Place, limits: Limits, preload: Sequence[str]) -> None:
        self.place = place
        python, variables = command(place)
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        shared = place.mode == "alone" and os.geteuid() == 0  # by all who became nobody
        others = processes_of(NOBODY) if shared else 0
        settings = json.dumps([place.mode, list(preload), list(limits), place.gpu is None, others])
        words = [*python, "-P", "-s", "-m", "autograder.worker", str(far.fileno()), settings]
        self.group = Group.make()
        with far, tempfile.TemporaryFile() as said:
            self._process = subprocess.Popen(
                self.group.around(words) if self.group else words,
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
        self.note = ""  # what limits students' processes together, beside the walls
        if self.group:
            try:
                self.group.limit(limits.job_bytes, limits.job_processes)
            except OSError as error:
                self.kill()
                raise SandboxError(f"a control group takes no limits: {error}") from None
            self.note = self.group.note

    def n_killed(self) -> int:
        """How many processes the kernel has killed here for want of memory."""
        return self.group.n_killed() if self.group else 0

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

    def is_free(self) -> bool:
        """Whether nothing is left of exercises that are over, or soon will be."""
        return self.group is None or self.group.is_free(_FREE_S)

    def start(self, link: socket.socket, life: socket.socket, output: int) -> "WarmParent":
        """Forks a process for one exercise that gets these three (see `worker.Job`); itself."""
        try:
            socket.send_fds(self._control, [b"start"], [link.fileno(), life.fileno(), output])
        except OSError as error:
            raise SandboxError(f"the process for students' code is gone: {error}") from None
        return self

    def close(self) -> None:
        """Ends it and, within seconds, everything that was started from it."""
        self._control.close()
        if not self.ended(_STOP_S):
            self.kill()
        elif self.group:
            self.group.remove()

    def kill(self) -> None:
        """Ends it at once, without waiting for what it does."""
        self._control.close()
        if not self.ended():  # its number may be another's by now
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_STOP_S)
        if self.group:
            self.group.remove()


class FreshParents:
    """A worker for each exercise alone, where one may not wall in what it forks; as `WarmParent`.

    Slow: every exercise waits for a new interpreter.
    """

    def __init__(self, place: Place, limits: Limits, preload: Sequence[str]) -> None:
        self._make = partial(WarmParent, place, limits, preload)
        self._spare: WarmParent | None = self._make()  # shows that it can be done
        self._busy: list[WarmParent] = []
        self.note = self._spare.note

    def start(self, link: socket.socket, life: socket.socket, output: int) -> WarmParent:
        """Starts a process for one exercise that gets these three; the worker it belongs to."""
        self._busy = [one for one in self._busy if not one.ended()]
        worker, self._spare = self._spare or self._make(), None
        self._busy.append(worker)
        return worker.start(link, life, output)

    def ended(self, wait_s: float = 0.0) -> bool:
        """Never: each exercise gets a new worker."""
        return False

    def is_free(self) -> bool:
        """Always, for the same reason."""
        return True

    def close(self) -> None:
        """Ends all workers."""
        for worker in filter(None, [self._spare, *self._busy]):
            worker.close()


Parent = WarmParent | FreshParents


class StudentProcess:
    """A process forked from the warm parent, and the channel to it.

    What it prints is kept by the kernel, which takes only so much and makes nobody wait.
    """

    def __init__(self, parent: Parent) -> None:
        self._said = b""  # by the guardian, about the end
        self.ended = self.is_stopped = False
        near, link = socket.socketpair()
        self._life, life = socket.socketpair()
        self._reader, output = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.channel = Channel(near)
        try:
            with link, life:
                self._worker = parent.start(link, life, output)
        except SandboxError:
            self._close()
            raise
        finally:
            os.close(output)
        self._n_killed = self._worker.n_killed()

    def meet(self, limit_s: float) -> None:
        """Hears that it is there, which it says before any code of the student's runs in it.

        TimeoutError, EOFError or ProtocolError where it does not.
        """
        if self.channel.frame(limit_s) != _HERE:
            raise ProtocolError("it says something else first")

    @contextmanager
    def starting(self) -> Iterator[float]:
        """Inside, no code of the student's has run in it: what goes wrong is a SandboxError.

        Gives the seconds that a wait may take.
        """
        try:
            yield _HERE_S
            return
        except TimeoutError:
            why = f"it was not ready within {_HERE_S:g} s"
        except ProtocolError as error:
            why = str(error)
        except (EOFError, OSError):
            report = self.last_words(_STOP_S)
            why = f"it ended first ({how(report.code)})" if report else "it closed its link first"
            said = self.printed().decode(errors="replace").strip()[-300:].splitlines()
            why += f": {said[-1]}" if said else ""
        raise SandboxError(f"no process for a student's code: {why}")

    @property
    def is_guarded(self) -> bool:
        """Whether it cannot end the process that watches over it."""
        return self._worker.place.is_guarded

    def lacked_memory(self) -> bool:
        """Whether the kernel has killed a process for want of memory since it was started."""
        return self._worker.n_killed() > self._n_killed

    def printed(self) -> bytes:
        """What it has printed since the last call."""
        with suppress(BlockingIOError):
            return os.read(self._reader, 2**20)
        return b""

    def stop(self, limit_s: float) -> float:
        """Stops it as the operating system does; its CPU seconds so far, once it stands still.

        EOFError when it has ended, SandboxError when nobody says that it stands still.
        """
        self.is_stopped = True
        return self._command(STOP, limit_s)

    def go_on(self, limit_s: float) -> float:
        """Lets it go on; its CPU seconds so far, and errors as of `stop`."""
        self.is_stopped = False
        return self._command(GO_ON, limit_s)

    def _command(self, command: bytes, limit_s: float) -> float:
        self._life.settimeout(limit_s)
        try:
            self._life.sendall(command)
            answer = self._life.recv(OBEYED.size)
        except TimeoutError:
            raise SandboxError(f"its guardian did not answer within {limit_s:g} s") from None
        except ConnectionError:
            answer = b""
        if answer[:1] != b".":
            self._said += answer
            raise EOFError("it has ended")
        return float(OBEYED.unpack(answer)[1])

    def last_words(self, wait_s: float) -> Report | None:
        """The guardian's report, if everything of the process is gone within that time.

        SandboxError when there never was a process, or its guardian ended without a report.
        """
        deadline = time.monotonic() + wait_s
        while part := self._life_says(deadline - time.monotonic()):
            self._said += part
        if part is None:
            return None
        try:
            said = json.loads(
                self._said.partition(b"\n")[0] or '{"failed": "its guardian is gone"}'
            )
            if "failed" not in said:
                return Report(int(said["code"]), float(said["cpu_s"]), int(said["peak_bytes"]))
        except (ValueError, KeyError, TypeError):
            said = {"failed": "its guardian makes no sense"}
        raise SandboxError(f"no process for a student's code: {said['failed']}")

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
            self._worker.kill()
        self._close()
        if self._worker.place.mode == "alone":
            self._worker.close()  # it served this exercise only
        return report

    def _close(self) -> None:
        self.ended = True
        self.channel.sock.close()
        self._life.close()
        os.close(self._reader)
