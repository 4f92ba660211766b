"""One rank: what runs in the process that `launch` starts for it.

The fork server imports this module once, and with it everything a rank needs, so that a rank starts
in milliseconds. Nothing here may touch CUDA when it is imported.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent import futures
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import torch
from torch.distributed import FileStore  # type: ignore[attr-defined]

from mpedu.agreement import Mismatch
from mpedu.distributed import ProcessComm
from mpedu.distributed.staging import HostBuffers, device_of
from mpedu.distributed.started import LostPeer
from mpedu.distributed.world import World, initialise
from mpedu.ranks.board import Board
from mpedu.ranks.outcome import Failed, stacks_file
from mpedu.ranks.travel import pickled

Pipe = Any  # multiprocessing.connection.Connection, which is generic in some versions only
# Frames of the machinery, left out of a student's traceback.
_PACKAGE = Path(__file__).parents[1]
_OURS = (
    "ranks/rank.py",
    "ranks/travel.py",
    "comm.py",
    "calls.py",
    "differentiable.py",
    "distributed.py",
    "checked.py",
    "flights.py",
    "started.py",
    "world.py",
)
_LIBRARY = (contextlib, futures._base, futures.thread)
MACHINERY = {
    *(str(module.__file__) for module in _LIBRARY),
    *(str(_PACKAGE / name) for name in _OURS),
}
MOST_CHARACTERS = 4000  # of an error's text
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # names of malloc.h


class Setup(NamedTuple):
    """What a rank is told before its program: the folder holds the store and the board."""

    rank: int
    n_ranks: int
    folder: str
    environment: dict[str, str]
    path: list[str]
    limit_s: float
    use_gpus: bool
    check_messages: bool


class _Told(Exception):
    """An error whose text says everything: (type name, message)."""


def run(setup: Setup, payload: bytes, pipe: Pipe, output: Pipe) -> None:
    """Runs the pickled (program, arguments) as rank `setup.rank`; its end goes into `pipe`.

    Sent are ("started",), ("report", value)s and at last ("done", result, spans, counts of the
    meter, ledger) or ("failed", Failed), each pickled. Ends when the starter closes the pipe, so
    that no peer loses its connection before everybody is done.
    """
    _settle(setup, output)
    try:
        comm = _comm(setup, pipe)
        program, arguments = cloudpickle.loads(payload)
        pipe.send_bytes(pickled(("started",), ""))
        result = _returned(program, comm, arguments)
        end = ("done", result, comm.spans, comm.meter.counts, comm.ledger)
        last = pickled(end, "its result cannot be sent back")
    except BaseException as error:  # whatever it is, the starter must hear of it
        last = pickled(("failed", failed(setup.rank, error)), "its error cannot be sent back")
    _flush()
    with contextlib.suppress(OSError):  # the starter may have gone
        pipe.send_bytes(last)
        pipe.poll(None)
    # Past every handler at exit: gloo's may abort a process whose peer has gone already.
    os._exit(0)


def _returned(program: Callable[..., Any], comm: ProcessComm, arguments: tuple[Any, ...]) -> Any:
    try:
        return program(comm, *arguments)
    except SystemExit as error:
        told = _Told("SystemExit", f"the program called sys.exit({error.code!r}); return instead")
        raise told.with_traceback(error.__traceback__) from error


def _flush() -> None:
    """Sends on what Python and C have printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)


def _settle(setup: Setup, output: Pipe) -> None:
    """Makes the process a rank: its own group, its output into the pipe, an end with its parent."""
    # The starter decides what an interrupt means; Jupyter sends it to everybody.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    _end_with_parent()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave_server)
    for number in (1, 2):
        os.dup2(descriptor(output, os.O_WRONLY), number)
    sys.stdout, sys.stderr = (
        open(number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )
    os.environ.clear()
    os.environ.update(setup.environment)
    sys.path[:] = setup.path
    stacks = stacks_file(setup.folder, setup.rank).open("w")  # stays open for the handlers
    faulthandler.enable(stacks)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file=stacks)
    torch.set_num_threads(1)
    _keep_freed_memory()
    if "numpy.random" in sys.modules:  # the server's state, the same in every rank and every call
        sys.modules["numpy.random"].seed()


def _keep_freed_memory() -> None:
    """Lets glibc keep what is freed, where it is the C library: a step allocates it all again.

    Given back to the system, every page of it costs a fault at its next use: thousands a step.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, Windows
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_TRIM_THRESHOLD, 1 << 30)
        set_option(_M_MMAP_THRESHOLD, 1 << 25)  # the most it takes


def descriptor(pipe: Pipe, flags: int) -> int:
    """The file descriptor of one end of a pipe, which on Windows has a handle instead."""
    number: int = pipe.fileno()
    if sys.platform == "win32":
        import msvcrt

        number = msvcrt.open_osfhandle(number, flags)
    return number


def _end_with_parent() -> None:
    """Lets this process, and what it starts, end as soon as its parent does."""
    # The fork server outlives the starter while a rank lives, so that a signal at its parent's
    # death would never reach the rank. The pipe that the starter holds open says it.
    parent = parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        import fcntl

        # From the kernel itself: a thread cannot run while C code holds the interpreter's lock.
        alive = parent.sentinel
        fcntl.fcntl(alive, fcntl.F_SETOWN, -os.getpid())  # negative: the whole process group
        fcntl.fcntl(alive, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(alive, fcntl.F_GETFL)
        fcntl.fcntl(alive, fcntl.F_SETFL, flags | os.O_ASYNC)
    threading.Thread(target=_await_end, args=(parent.sentinel,), daemon=True).start()


def _await_end(sentinel: int) -> None:
    connection.wait([sentinel])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _leave_server() -> None:
    """Closes, in what a rank forks, the pipes that keep the fork server and the tracker alive.

    A child in a session of its own outlives the rank; those two should not wait for it.
    """
    from multiprocessing import forkserver, resource_tracker

    for owner, name in (
        (forkserver._forkserver, "_forkserver_alive_fd"),
        (resource_tracker._resource_tracker, "_fd"),
    ):
        number = getattr(owner, name)
        setattr(owner, name, None)
        if number is not None:
            os.close(number)


def _comm(setup: Setup, pipe: Pipe) -> ProcessComm:
    device, is_staged = device_of(setup.rank, setup.n_ranks, setup.use_gpus)
    if device != "cpu":
        torch.cuda.set_device(device)
    board = Board(Path(setup.folder) / "board", setup.n_ranks)
    board.wait_in(setup.rank, "start, until every rank has come")
    store = FileStore(str(Path(setup.folder) / "store"), setup.n_ranks)
    with_nccl = device != "cpu" and not is_staged
    initialise(setup.rank, setup.n_ranks, store, with_nccl, setup.limit_s)
    board.go_on(setup.rank)

    def hand_over(value: object) -> None:
        pipe.send_bytes(pickled(("report", value), "what it reports cannot be sent"))

    host = HostBuffers(pinned=True) if is_staged else None
    checks = setup.check_messages
    world = World(board, device, setup.limit_s, host, check_messages=checks)
    return ProcessComm(world, hand_over)


def failed(rank: int, error: BaseException) -> Failed:
    """What is told of an error of this rank."""
    frames = [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in MACHINERY
    ]
    name, message = type(error).__name__, _text(error)
    if isinstance(error, _Told):
        name, message = error.args
    if isinstance(error, Mismatch):
        name = "ValueError"
    return Failed(rank, name, message, frames, _comes_of_loss(error), time.monotonic())


def _comes_of_loss(error: BaseException | None) -> bool:
    """Whether a lost peer is behind it, also where the program made another error of that."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, LostPeer):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _text(error: BaseException) -> str:
    """What an error says, its notes too, as far as it can say it."""
    try:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    except Exception:  # an error whose own text fails
        text = "(its text cannot be made)"
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."
