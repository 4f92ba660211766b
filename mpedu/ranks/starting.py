"""How the processes of ranks come to be: forked from a server that has torch loaded already.

Where the system has no fork server each is started anew, which takes seconds.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import spawn, util
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

NAME = "mpedu-rank"
PAUSES_S = (0.1, 0.5)
DEATH_LOOKS, DEATH_LOOK_S = 20, 0.01
_one_at_a_time = threading.Lock()  # for what is shared by the whole process


def warm_up() -> None:
    """Starts the fork server in the background, so that the first `run_ranks` need not wait.

    Nothing where nbgrader runs the notebook: nobody waits there, for one server per student.
    """
    if "NBGRADER_EXECUTION" in os.environ:
        return
    # In a thread, which no interrupt can reach half way.
    threading.Thread(target=_ensure_server, daemon=True).start()


def start_process(target: Callable[..., None], rank: int, arguments: tuple[Any, ...]) -> Any:
    """A new process that runs `target(*arguments)`; it may wait for the server's own start.

    OSError or EOFError where it cannot be started.
    """
    for pause_s in PAUSES_S:
        try:
            return _start(target, rank, arguments)
        except (EOFError, ConnectionError):  # somebody has killed the server, which takes a moment
            time.sleep(pause_s)
    return _start(target, rank, arguments)


def _start(target: Callable[..., None], rank: int, arguments: tuple[Any, ...]) -> Any:
    _ensure_server()
    name = f"{NAME}-{rank}"
    process = context().Process(target=target, args=arguments, name=name, daemon=True)
    with _one_at_a_time, _without_main():
        process.start()
    return process


def context() -> Any:
    """What makes processes and pipes here."""
    method = _method()
    if method == "spawn":
        _say_slow()
    return multiprocessing.get_context(method)


def _method() -> str:
    known = multiprocessing.get_all_start_methods()
    return "forkserver" if "forkserver" in known else "spawn"


@functools.cache
def _say_slow() -> None:
    print("This system has no fork server: each rank loads PyTorch anew, which takes seconds.")


def _ensure_server() -> None:
    if _method() != "forkserver":
        return
    from multiprocessing import forkserver, resource_tracker

    with _one_at_a_time:
        _leave_lost_server(forkserver._forkserver)
    forkserver.set_forkserver_preload(["mpedu.ranks.preload"])
    # An interrupt while the server still imports torch would kill it. The tracker first: its own
    # start, inside that of the server, would let interrupts through again.
    resource_tracker.ensure_running()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _leave_lost_server(server: Any) -> None:
    """Lets go of a server whose socket, a file in a temporary folder, somebody has deleted.

    Nobody can reach it any more. It ends with the last of its ranks; the next one is started anew.
    """
    # Python makes the folder once for each process, and would use it again, gone or not.
    Path(util.get_temp_dir()).mkdir(mode=0o700, exist_ok=True)
    with server._lock:
        address, pid = server._forkserver_address, server._forkserver_pid
        if pid is None or util.is_abstract_socket_namespace(address) or Path(address).exists():
            return
        os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = server._forkserver_address = server._forkserver_pid = None
    threading.Thread(target=_reap, args=(pid,), daemon=True).start()


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def server_has_died() -> bool:
    """Whether the fork server was there and is no longer."""
    if _method() != "forkserver":
        return False
    from multiprocessing import forkserver

    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if pid is None:
        return False
    # Its pipes are closed a moment before the system calls it dead.
    for _ in range(DEATH_LOOKS):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(DEATH_LOOK_S)
    return False


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keeps from new ranks, and from them only, where the caller's script is.

    Otherwise each of them would import it again and repeat what it does at top level. The program
    itself travels by value.
    """
    whole = spawn.get_preparation_data

    def without_main(name: str) -> dict[str, Any]:
        data = whole(name)
        if name.startswith(NAME):
            data = {key: data[key] for key in data if not key.startswith("init_main")}
        return data

    spawn.get_preparation_data = without_main
    try:
        yield
    finally:
        spawn.get_preparation_data = whole
