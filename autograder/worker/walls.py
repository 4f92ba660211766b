"""Limits of a student's process, and what else keeps it apart that needs no namespaces.

Linux only; each function raises OSError naming the call that failed. Runs inside the walls, so it
knows nothing of the autograder. Notebooks on other systems import it too, so what those lack is
looked for only when it is used.
"""

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from autograder.worker.kernel import NOBODY, call, forbid_inspection, prctl

_PR_SET_CHILD_SUBREAPER = 36
_JOIN_SESSION_KEYRING = 1
# Memory above the limit, for the worker to say that the limit was reached.
_RESERVE_BYTES = 32 * 2**20
_MOST_ADDRESSES, _PAGE = 2**47, 4096


class Limits(NamedTuple):
    """What one exercise of one student may use; times but `cpu_s` are those that the judge waits.

    A cell over its time is interrupted and passed over, as are the student's own cells together
    over `own_s`; the rest ends what they bound.
    `memory_bytes`, `cpu_s`, `n_files` and `file_bytes` hold for each of at most `n_processes`
    processes; memory counts from what the warm parent has already loaded. `job_bytes` and
    `job_processes` hold for all of them and those of further ranks together, where the machine can
    count that.
    """

    call_s: float = 5.0
    cell_s: float = 10.0
    own_s: float = 10.0
    exercise_s: float = 40.0
    cpu_s: int = 60
    memory_bytes: int = 2**30
    n_processes: int = 32
    n_files: int = 64
    file_bytes: int = 16 * 2**20
    output_bytes: int = 48 * 2**10
    job_bytes: int = 2 * 2**30
    job_processes: int = 400


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant that loses its own."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def become_nobody() -> None:
    """Gives root away: the kernel exempts root from limits and lets it write settings in /proc."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def leave_keyring() -> None:
    """A session keyring of its own: in the login's, one student could leave notes for the next."""
    number = 250 if os.uname().machine == "x86_64" else 219
    try:
        call("syscall", *map(ctypes.c_long, (number, _JOIN_SESSION_KEYRING, 0)))
    except OSError as error:
        if error.errno != errno.ENOSYS:  # a kernel without keyrings has none to leave
            raise


def be_killed_first() -> None:
    """Makes this process the one that the kernel ends when memory runs out."""
    with suppress(OSError):  # there may be no /proc
        forbid_inspection(False)  # else the file belongs to root; no other process is here yet
        Path("/proc/self/oom_score_adj").write_text("1000")
    forbid_inspection()


def set_limits(limits: Limits, n_running: int, counts_addresses: bool = True) -> None:
    """Limits this process and its children; `n_running` of the user's processes do not count."""
    import resource

    n_processes = n_running + limits.n_processes
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_NPROC, n_processes),
        (resource.RLIMIT_NOFILE, limits.n_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
    ):
        resource.setrlimit(what, (most, most))
    if counts_addresses:  # with a GPU, addresses are taken by the terabyte
        most = _n_addresses() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most + _RESERVE_BYTES))


def _n_addresses() -> int:
    """Bytes of addresses that this process has taken."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    # Without /proc: the least limit under which a page more can be had.
    import mmap
    import resource

    low, high = 0, _MOST_ADDRESSES
    while high - low > 2**20:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, resource.RLIM_INFINITY))
        try:
            mmap.mmap(-1, _PAGE).close()
            high = middle
        except OSError:
            low = middle
    return high


def use_memory_reserve() -> None:
    """Lets this process use the little memory above its limit."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def processes_of(uid: int) -> int:
    """How many processes and threads of that user run on the machine, as far as one can see."""
    count = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended
            if folder.name.isdigit() and folder.stat().st_uid == uid:
                count += len(os.listdir(folder / "task"))
    return count


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid`, ended ones that nobody waited for included."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # the name, in parentheses, may hold anything
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(state[1]) == pid:
                    found.append(int(folder.name))
    return found
