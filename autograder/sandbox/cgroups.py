"""A limit on all processes of an exercise together, by the kernel's control groups.

Version 1 or 2, where the groups of this process can be written; elsewhere each process has limits
of its own alone. A group is named after the process that made it, so that the next run can remove
what a killed one has left.
"""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import NamedTuple, Self

_PREFIX = "exercises"
_OWN, _MOUNTED = Path("/proc/self/cgroup"), Path("/proc/self/mountinfo")
_REMOVE_S = 2.0
_FREE_SHARE = 16  # a warm parent grows a little with what it forks
_numbers = itertools.count()


class Files(NamedTuple):
    """What a version of control groups calls its files."""

    memory: str
    swap: str  # with the memory together, or by itself
    usage: str
    events: str
    held: tuple[str, str]  # of memory.stat: what the kernel cannot take back by itself


_FILES = {
    1: Files(
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.oom_control",
        ("rss", "shmem"),
    ),
    2: Files("memory.max", "memory.swap.max", "memory.current", "memory.events", ("anon", "shmem")),
}


class Group:
    """A control group: one folder for memory and one for processes, the same in version 2."""

    def __init__(self, version: int, memory: Path, pids: Path) -> None:
        self._version, self._memory, self._pids = version, memory, pids
        self._folders = list(dict.fromkeys((memory, pids)))
        self._idle_bytes = self._n_bytes = 0
        self.note = f"memory and processes counted together by cgroup v{version}"

    @classmethod
    def make(cls) -> Self | None:
        """A new group; None where this process may make none."""
        for version, parents in _places():
            name = f"{_PREFIX}-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"
            for parent in parents:
                _sweep(parent)
            group = cls(version, *(parent / name for parent in parents))
            with suppress(OSError, subprocess.SubprocessError):
                for folder in group._folders:
                    folder.mkdir()
                group.limit(2**50, 2**15)  # it may lack a controller, or refuse processes
                subprocess.run(group.around(["true"]), check=True, timeout=10, stderr=DEVNULL)
                return group
            group.remove()
        return None

    def around(self, words: list[str]) -> list[str]:
        """The command that runs `words` within the group."""
        enter = (
            'for f in "$1" "$2"; do echo $$ >"$f/cgroup.procs" || exit; done; shift 2; exec "$@"'
        )
        return ["/bin/sh", "-c", enter, "sh", str(self._memory), str(self._pids), *words]

    def limit(self, n_bytes: int, n_processes: int) -> None:
        """From now on no more than that beside the memory in use now, all its processes together.

        Only ever less: the limit of memory may not pass the one with swap.
        """
        files = _FILES[self._version]
        self._idle_bytes, self._n_bytes = self._held(), n_bytes
        most = int((self._memory / files.usage).read_text()) + n_bytes
        (self._memory / files.memory).write_text(str(most))
        with suppress(OSError):  # without swap there is none to count
            (self._memory / files.swap).write_text(str(most if self._version == 1 else 0))
        (self._pids / "pids.max").write_text(str(n_processes))

    def is_free(self, wait_s: float) -> bool:
        """Whether nearly all it was given is there for a new process, or is within that time.

        Memory that belonged to no process goes some time after the last one that could reach it.
        """
        deadline = time.monotonic() + wait_s
        while self._held() - self._idle_bytes > self._n_bytes / _FREE_SHARE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def n_killed(self) -> int:
        """How many of its processes the kernel has killed for want of memory."""
        return self._sum(_FILES[self._version].events, ("oom_kill",))

    def _held(self) -> int:
        """Bytes that only the end of who holds them frees."""
        return self._sum("memory.stat", _FILES[self._version].held)

    def _sum(self, file: str, names: Sequence[str]) -> int:
        """The sum of the numbers of those names; 0 where the file is gone."""
        with suppress(OSError):
            lines = map(str.split, (self._memory / file).read_text().splitlines())
            return sum(int(n) for name, n in lines if name in names)
        return 0

    def remove(self) -> None:
        """Removes it once its processes are gone, or leaves it to a later run."""
        deadline = time.monotonic() + _REMOVE_S
        while any(map(_stays, self._folders)) and time.monotonic() < deadline:
            time.sleep(0.01)


def _stays(folder: Path) -> bool:
    """Whether a group that should go is still there."""
    with suppress(OSError):
        folder.rmdir()
    return folder.exists()


def _places() -> Iterator[tuple[int, tuple[Path, Path]]]:
    """Versions and the folders in which this process may make a group of each, best first."""
    own = dict(_own())
    mounts = list(_mounts())
    v1 = [_folder(mounts, own, name) for name in ("memory", "pids")]
    if all(v1):
        yield 1, (v1[0], v1[1])  # type: ignore[misc]
    v2 = _folder(mounts, own, "")
    if v2:
        # Processes and groups with limits do not mix in one folder: beside is often the place.
        for folder in (v2, v2.parent):
            with suppress(OSError):
                (folder / "cgroup.subtree_control").write_text("+memory +pids")
            yield 2, (folder, folder)


def _own() -> Iterator[tuple[str, str]]:
    """Each controller with the group of this process; "" stands for version 2."""
    with suppress(OSError):
        for line in _OWN.read_text().splitlines():
            _, names, path = line.split(":", 2)
            for name in names.split(","):
                yield name, path


def _mounts() -> Iterator[tuple[str, str, str]]:
    """What is mounted of control groups: root within the hierarchy, place, and options or ""."""
    with suppress(OSError):
        for line in _MOUNTED.read_text().splitlines():
            before, _, after = line.partition(" - ")
            root, place = before.split(" ")[3:5]
            kind, _, options = after.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                yield root, place, options if kind == "cgroup" else ""


def _folder(mounts: list[tuple[str, str, str]], own: dict[str, str], name: str) -> Path | None:
    """Where the group of this process for one controller is seen, if it can be written."""
    for root, place, options in mounts:
        above = root.rstrip("/")
        if name in own and name in options.split(",") and own[name].startswith(above):
            folder = Path(place + own[name].removeprefix(above))
            if os.access(folder, os.W_OK):
                return folder
    return None


def _started(pid: int) -> str:
    """When a process started, which tells it from a later one of its number; "" for none."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _sweep(parent: Path) -> None:
    """Removes empty groups whose makers are gone."""
    for folder in parent.glob(f"{_PREFIX}-*-*-*"):
        pid, started = folder.name.split("-")[1:3]
        if pid.isdigit() and _started(int(pid)) != started:
            with suppress(OSError):  # it has processes yet
                folder.rmdir()
