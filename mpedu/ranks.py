"""One rank: what runs in the process that `launch` starts for it.

The fork server imports this module once, and with it everything a rank needs, so that a rank starts
in milliseconds. Nothing here may touch CUDA when it is imported.
"""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import traceback
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import torch
from torch.distributed import FileStore  # type: ignore[attr-defined]

from mpedu.board import Board
from mpedu.distributed import LostPeer, ProcessComm, initialise

Pipe = Any  # multiprocessing.connection.Connection, which is generic in some versions only
# Frames of the machinery, left out of a student's traceback.
MACHINERY = {str(Path(__file__)), str(Path(__file__).with_name("distributed.py"))}


class Setup(NamedTuple):
    """What a rank is told before its program: the folder holds the store and the board."""

    rank: int
    n_ranks: int
    folder: str
    environment: dict[str, str]
    limit_s: float
    use_gpus: bool


class Failed(NamedTuple):
    """An error of one rank; frames are (file, line, function), outermost first."""

    rank: int
    type_name: str
    message: str
    frames: list[tuple[str, int, str]]
    is_consequence: bool


def run(setup: Setup, payload: bytes, pipe: Pipe, output: Pipe) -> None:
    """Runs the pickled (program, arguments) as rank `setup.rank`; its end goes into `pipe`.

    Sent are ("report", value)s and at last ("done", result, spans) or ("failed", Failed), each
    pickled. Ends when the starter closes the pipe, so that no peer loses its connection before
    everybody is done.
    """
    _settle(setup, output)
    try:
        comm = _comm(setup, pipe)
        program, arguments = cloudpickle.loads(payload)
        result = program(comm, *arguments)
        last = cloudpickle.dumps(("done", result, comm.spans))
    except BaseException as error:  # whatever it is, the starter must hear of it
        last = cloudpickle.dumps(("failed", _failed(setup.rank, error)))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with contextlib.suppress(OSError):  # the starter may have gone
        pipe.send_bytes(last)
        pipe.poll(None)
    # Past every handler at exit: gloo's may abort a process whose peer has gone already.
    os._exit(0)


def _settle(setup: Setup, output: Pipe) -> None:
    """Makes the process a rank: its own group, its output into the pipe, an end with its parent."""
    # The starter decides what an interrupt means; Jupyter sends it to everybody.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    sys.stdout, sys.stderr = (
        open(number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )
    os.environ.clear()
    os.environ.update(setup.environment)
    if hasattr(faulthandler, "register"):
        stacks = stacks_file(setup.folder, setup.rank).open("w")  # stays open for the handler
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    torch.set_num_threads(1)


def stacks_file(folder: str, rank: int) -> Path:
    """Where a rank writes its Python stacks when it gets SIGUSR1."""
    return Path(folder) / f"stacks-{rank}"


def _end_with_parent() -> None:
    # The fork server outlives the starter while a rank lives, so that a signal at its parent's
    # death would never reach the rank.
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _comm(setup: Setup, pipe: Pipe) -> ProcessComm:
    device = "cpu"
    if setup.use_gpus and torch.cuda.is_available() and torch.cuda.device_count() >= setup.n_ranks:
        torch.cuda.set_device(setup.rank)
        device = f"cuda:{setup.rank}"
    board = Board(Path(setup.folder) / "board", setup.n_ranks)
    board.wait_in(setup.rank, "start, until every rank has come")
    store = FileStore(str(Path(setup.folder) / "store"), setup.n_ranks)
    initialise(setup.rank, setup.n_ranks, store, device, setup.limit_s)
    board.go_on(setup.rank)

    def hand_over(value: object) -> None:
        pipe.send_bytes(cloudpickle.dumps(("report", value)))

    return ProcessComm(board, device, on_report=hand_over)


def _failed(rank: int, error: BaseException) -> Failed:
    frames = [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in MACHINERY
    ]
    lost = isinstance(error, LostPeer)
    return Failed(rank, type(error).__name__, str(error), frames, lost)
