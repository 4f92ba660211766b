"""Ranks that somebody else has started: `torchrun`, or whatever sets the same variables.

There is no parent that watches, so every rank watches itself: one that waits too long says for whom
and ends, and so does one that fails; torchrun then ends the others.
"""

import contextlib
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from mpedu.comm import Comm
from mpedu.distributed import ProcessComm
from mpedu.distributed.staging import HostBuffers, device_of
from mpedu.distributed.started import LostPeer, told_of_loss
from mpedu.distributed.world import World, initialise
from mpedu.launch import require_limit
from mpedu.ranks.board import ENTRY_BYTES, MOST_RANKS, Board, Waiting
from mpedu.ranks.deadlock import deadlock
from mpedu.ranks.errors import failure_text, frame_lines, own_frames, waiting_lines
from mpedu.ranks.rank import failed
from mpedu.ranks.unfinished import left_over

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LOOK_S = 0.05
TURN_S = 0.1  # those that did not wait longest speak after the first
LAST_S = 1.0  # what a cause may take to be noticed before its consequences end too
MARGIN_S = 30.0  # torch's own limit is longer than ours, so that ours tells what happened
ALWAYS = timedelta(days=7)
START_S = 120.0  # limit for the start of all ranks: each of them loads torch
STARTING = "start, until every rank has come"
FINISHED = "the end of the other ranks"


class Place(NamedTuple):
    """Which of how many ranks this process is, among all and on its own machine."""

    rank: int
    n_ranks: int
    local_rank: int
    n_local: int


@contextlib.contextmanager
def from_environment(
    wait_s: float = 60.0,
    use_gpus: bool = True,
    check_messages: bool = True,
    on_report: Callable[[object], None] = lambda _: None,
) -> Iterator[Comm]:
    """This process as a rank, of those that torchrun has started.

        with from_environment() as comm:
            program(comm)
        # torchrun --standalone --nproc-per-node 4 this_file.py

    The end of the block is that of all ranks: nobody goes on before all have come to it. With a GPU
    for every rank of the machine each gets its own, fewer are shared; all machines must be alike.
    wait_s: a rank that waits longer ends the process with status 1, after it has said for whom.
    So does an error inside the block, after it has said what failed; and so do all ranks at its end
    where a message was never received or a request never waited for. None of these can be caught.
    ValueError where the variables of torchrun are missing or wrong.
    """
    require_limit("wait_s", wait_s)
    place = _place()
    board = _board(place)
    watch = _Watch(board, place.rank, wait_s)
    threading.Thread(target=watch.run, daemon=True).start()
    try:
        comm, end_group = _joined(place, board, wait_s, use_gpus, check_messages, on_report)
        yield comm
    except BaseException as error:
        _board_file(place).unlink(missing_ok=True)  # where not all have come
        _end_with(place.rank, error, watch)
    _end_together(comm, end_group, watch)
    watch.is_over.set()


def _joined(
    place: Place,
    board: Board,
    wait_s: float,
    use_gpus: bool,
    check_messages: bool,
    on_report: Callable[[object], None],
) -> tuple[ProcessComm, dist.ProcessGroup]:
    device, is_staged = device_of(place.local_rank, place.n_local, use_gpus)
    if device != "cpu":
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    if place.n_local == place.n_ranks and sys.platform != "win32":
        # gloo would look up the host's name, which takes seconds on some machines.
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    limit_s = max(wait_s, START_S) + MARGIN_S
    board.wait_in(place.rank, STARTING, range(place.n_ranks))
    initialise(place.rank, place.n_ranks, None, device != "cpu" and not is_staged, limit_s)
    host = HostBuffers(pinned=True) if is_staged else None
    world = World(board, device, limit_s, host, place.n_local, check_messages)
    end_group = dist.new_group(backend="gloo", timeout=ALWAYS)
    dist.barrier(group=end_group)  # all have opened the board: its file may go
    board.go_on(place.rank)
    if place.local_rank == 0:
        _board_file(place).unlink(missing_ok=True)
    return ProcessComm(world, on_report), end_group


def _place() -> Place:
    missing = [name for name in NAMES if name not in os.environ]
    if missing:
        raise ValueError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: start with "
            "torchrun --standalone --nproc-per-node 2 program.py, or use run_ranks"
        )
    try:
        place = Place(*(int(os.environ[name]) for name in NAMES[:4]))
    except ValueError:
        given = ", ".join(f"{name}={os.environ[name]!r:.40}" for name in NAMES[:4])
        raise ValueError(f"{given} must be whole numbers; start with torchrun") from None
    if not 0 <= place.rank < place.n_ranks <= MOST_RANKS:
        raise ValueError(
            f"RANK={place.rank} of WORLD_SIZE={place.n_ranks} cannot be; ranks count from 0, and "
            f"there are at most {MOST_RANKS}"
        )
    return place


def _board(place: Place) -> Board:
    """The board of the ranks on this machine, a file that whoever comes first makes."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    path = _board_file(place)
    number = os.open(path, flags, 0o600)
    try:
        os.truncate(number, ENTRY_BYTES * place.n_ranks)  # new bytes are 0; nothing is lost
    finally:
        os.close(number)
    return Board(path, place.n_ranks)


def _board_file(place: Place) -> Path:
    """Of this run alone: ranks on one machine have one parent, and one port for all."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    run = f"{os.getppid()}-{os.environ['MASTER_PORT']}-{attempt}"
    return Path(tempfile.gettempdir()) / f"mpedu-board-{run}"


class _Watch:
    """A thread that ends this rank when it waits for too long, or when who started it has gone."""

    def __init__(self, board: Board, rank: int, wait_s: float) -> None:
        self.board, self._rank, self._wait_s = board, rank, wait_s
        self._main = threading.main_thread().ident
        self._parent = os.getppid()
        self.is_over = threading.Event()
        self.has_spoken = False

    def run(self) -> None:
        """Looks until the rank is over."""
        while not self.is_over.wait(LOOK_S):
            if os.getppid() != self._parent:  # nobody is left who would end this rank
                _say([f"rank {self._rank} ends, for what started it has gone"])
                os._exit(1)
            waiting = [w for w in self.board.waiting() if w.text != FINISHED]
            late = {w.rank: self._limit_s(w) for w in waiting if w.for_s > self._limit_s(w)}
            if self._rank in late:
                self._give_up(waiting, late[self._rank], is_first=self._rank == min(late))

    def _limit_s(self, waiting: Waiting) -> float:
        return START_S if waiting.text == STARTING else self._wait_s

    def _give_up(self, waiting: list[Waiting], limit_s: float, is_first: bool) -> None:
        self.has_spoken = True
        finished = [w.rank for w in self.board.waiting() if w.text == FINISHED]
        circle = deadlock(waiting, finished)
        why = f"rank {self._rank} has waited for more than {limit_s:g} s"
        lines = [f"deadlock: {circle} ({why}):" if circle else f"{why}:"] if is_first else []
        if not is_first:
            time.sleep(TURN_S)
        own = waiting_lines([w for w in waiting if w.rank == self._rank])
        frame = sys._current_frames().get(self._main or 0)
        stack = traceback.extract_stack(frame) if frame is not None else []
        places = own_frames([(f.filename, f.lineno or 0, f.name) for f in stack])
        at = frame_lines(places[-1:])
        lines += [f"{line}, at {place}" for line in own for place in at] or own
        lines += [f"  rank {rank} has finished" for rank in finished if is_first]
        _say(lines)
        if is_first:
            time.sleep(2 * TURN_S)
        os._exit(1)


def _end_together(comm: ProcessComm, group: dist.ProcessGroup, watch: _Watch) -> None:
    """Waits until all ranks have come to their end; ends them where they left something over."""
    ledgers: list[Any] = [None] * comm.size
    watch.board.wait_in(comm.rank, FINISHED, range(comm.size))
    try:
        with told_of_loss(FINISHED):
            dist.all_gather_object(ledgers, comm.ledger, group=group)
    except LostPeer as error:
        _end_with(comm.rank, error, watch)
    left = left_over(ledgers)
    if left:
        _say(["\n  ".join(left)] if comm.rank == 0 else [])
        os._exit(1)  # a thread may still wait for the end of what nobody receives
    watch.board.go_on(comm.rank)
    dist.destroy_process_group()


def _end_with(rank: int, error: BaseException, watch: _Watch) -> None:
    """Says what failed and ends the process: its peers must learn it now, not when it collects."""
    end = failed(rank, error)
    if not end.is_consequence:
        _say([failure_text([end], [])])
    else:
        if not watch.has_spoken:
            _say([f"rank {rank} ends in consequence: {end.message}"])
        time.sleep(LAST_S)
    os._exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _say(lines: list[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        os.write(2, "".join(f"{line}\n" for line in lines).encode())
