"""What runs behind the walls: a warm parent, a guardian per exercise, the student's process.

The warm parent imports once what exercises need and forks a guardian per job. The guardian moves
into own namespaces, forks the student's process, and ends everything of the job when the judge says
so or is gone. It never runs a student's code, so nothing a student does can stop it. Where
namespaces cannot be nested ("alone"), a warm parent serves one exercise, as its guardian, in those
that it has. Where there are none ("plain"), the guardian adopts what a student's processes leave.

Started as `python -m autograder.worker SOCKET SETTINGS`; knows nothing of the autograder but the
modules beside it in the runtime folder.
"""

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from typing import NamedTuple, NoReturn

from autograder.worker import inner, walls
from autograder.worker.kernel import forbid_inspection
from autograder.worker.seccomp import refuse_calls
from autograder.worker.standing import obey

_TICK_S = 1.0  # how often to look whether the parent is still there
_SWEEP_S = 5.0


class Settings(NamedTuple):
    """What the judge's side tells a warm parent."""

    mode: str  # "nested", "alone" or "plain"
    preload: list[str]
    limits: walls.Limits
    counts_addresses: bool
    n_running: int  # processes of the user that are not this exercise's, if "alone"


class Job(NamedTuple):
    """The three descriptors of one exercise.

    `link` carries calls and answers; `life` lives as long as the judge wants the job to, and
    carries one report of how it ended; what the student prints goes to `output`.
    """

    link: int
    life: int
    output: int


def main() -> None:
    """The warm parent: forks a guardian per job until the judge is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = _settings(sys.argv[2])
    parent = os.getppid()
    if settings.mode == "nested" and os.getuid() == 0:
        walls.become_nobody()
    forbid_inspection()
    # An editable install finds modules that the runtime folder lacks, where the checkout is there.
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]
    # Only now, so that what nobody may not read fails here and not later in a student's cell.
    for name in ("autograder.worker.student", *settings.preload):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is loaded stays shared between the forks
    control.send(json.dumps({"failed": _trial(settings)}).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended guardians need no wait
    control.settimeout(_TICK_S)
    while os.getppid() == parent:
        with suppress(TimeoutError):
            message, descriptors, _, _ = socket.recv_fds(control, 16, len(Job._fields))
            if not message:
                return
            if settings.mode == "alone":
                control.close()
                _guard(Job(*descriptors), settings)
            _start(Job(*descriptors), settings, control)


def _settings(text: str) -> Settings:
    mode, preload, limits, *rest = json.loads(text)
    return Settings(mode, preload, walls.Limits(*limits), *rest)


def _trial(settings: Settings) -> str:
    """Why walls cannot be built here; "" when they can, or none are asked for."""
    if settings.mode == "plain":
        return ""
    near, far = socket.socketpair()
    with near, far:
        guardian = os.fork()
        if guardian == 0:
            nowhere = [os.open(os.devnull, os.O_RDWR) for _ in range(2)]
            _guard(Job(nowhere[0], far.detach(), nowhere[1]), settings, trial=True)
        far.close()
        first, _, _ = near.makefile("rb").read().partition(b"\n")
        os.waitpid(guardian, 0)
    return str(json.loads(first).get("failed", ""))


def _start(job: Job, settings: Settings, control: socket.socket) -> None:
    try:
        guardian = os.fork()
    except OSError as error:
        _report(job.life, failed=f"fork: {error}")
    else:
        if guardian == 0:
            control.close()
            _guard(job, settings)
    for descriptor in job:
        os.close(descriptor)


def _report(life: int, **what: object) -> None:
    with suppress(OSError):  # nobody is there to hear it
        os.write(life, json.dumps(what).encode() + b"\n")


def _guard(job: Job, settings: Settings, trial: bool = False) -> NoReturn:
    """The guardian; never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _watch(job, settings, trial)
    except BaseException as error:
        _report(job.life, failed=f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _watch(job: Job, settings: Settings, trial: bool) -> None:
    parent = os.getppid()
    folder = "/tmp"
    if settings.mode == "nested":
        inner.enter_namespaces()
    elif settings.mode == "plain":
        walls.adopt_orphans()
        folder = tempfile.mkdtemp(prefix="exercise-")
    student = os.fork()
    if student == 0:
        _become_student(job, settings, folder, trial)
    os.close(job.link)
    os.close(job.output)
    ended = os.pidfd_open(student)
    while os.getppid() == parent:
        heard = select.select([job.life, ended], [], [], _TICK_S)[0]
        if ended in heard or (heard and not obey(job.life, student)):
            break
    os.kill(student, signal.SIGKILL)  # the first process of a namespace: all others die with it
    _, status, used = os.wait4(student, 0)
    if settings.mode == "plain":
        _sweep()
        shutil.rmtree(folder, ignore_errors=True)
    elif settings.mode == "alone" and not trial:
        with suppress(OSError):
            os.kill(-1, signal.SIGKILL)  # all but this process and the namespace's first
    code = os.waitstatus_to_exitcode(status)
    cpu_s = used.ru_utime + used.ru_stime
    _report(job.life, code=code, cpu_s=cpu_s, peak_bytes=1024 * used.ru_maxrss)


def _sweep() -> None:
    """Kills what the student's processes left behind, the children of killed ones included."""
    deadline = time.monotonic() + _SWEEP_S
    while time.monotonic() < deadline:
        for pid in walls.children_of(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _become_student(job: Job, settings: Settings, folder: str, trial: bool) -> NoReturn:
    """Puts up the walls, closes every descriptor but the link and runs the student's code."""
    try:
        os.setsid()
        walls.be_killed_first()
        os.chdir(folder)
        _close_in(settings)
        if trial:
            os._exit(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, target in ((job.output, 1), (job.output, 2), (job.link, 3)):
            os.dup2(descriptor, target)
        from autograder.worker.student import run_student  # loaded by the warm parent

        os.closerange(4, 2**16)
    except BaseException as error:
        _report(job.life, failed=f"{type(error).__name__}: {error}")
        os._exit(1)
    run_student(socket.socket(fileno=3), settings.limits)


def _close_in(settings: Settings) -> None:
    """Limits this process to what the student may use and reach."""
    limits, n_running = settings.limits, 0
    if settings.mode == "plain":
        n_running = walls.processes_of(os.getuid())
    elif settings.mode == "alone":
        n_running = settings.n_running
        if os.getuid() == 0:
            inner.bound_rights()
            walls.become_nobody()
    walls.set_limits(limits, n_running, settings.counts_addresses)
    if settings.mode == "plain":
        return
    walls.leave_keyring()
    if settings.mode == "nested":
        inner.close_in(tmp_bytes=4 * limits.file_bytes)
    inner.drop_rights()
    refuse_calls()


if __name__ == "__main__":
    main()
