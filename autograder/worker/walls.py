"""The kernel's walls around one student's process: namespaces, mounts, capabilities, limits.

Every call into libc is here. Linux only; each function raises OSError naming the call that failed.
Runs inside the walls, so it knows nothing of the autograder. Notebooks on other systems import it
too, so what those lack is looked for only when it is used.
"""

import ctypes
import errno
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from autograder.worker.seccomp import refuse_shared_files

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 4, 24, 36
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION_3, _MOST_CAPABILITIES = 0x20080522, 64
_NEW_NAMESPACES = {
    "mount": 0x00020000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_JOIN_SESSION_KEYRING = 1
# Memory above the limit, for the worker to say that the limit was reached.
_RESERVE_BYTES = 32 * 2**20


class Limits(NamedTuple):
    """What one exercise of one student may use; times but `cpu_s` are those that the judge waits.

    A cell over its time is interrupted and passed over; the rest ends what they bound.
    `memory_bytes`, `cpu_s`, `n_files` and `file_bytes` hold for each of at most `n_processes`
    processes; memory counts from what the warm parent has already loaded.
    """

    call_s: float = 5.0
    cell_s: float = 10.0
    exercise_s: float = 40.0
    cpu_s: int = 60
    memory_bytes: int = 2**30
    n_processes: int = 32
    n_files: int = 64
    file_bytes: int = 16 * 2**20
    output_bytes: int = 48 * 2**10


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: object) -> None:
    if getattr(_libc(), name)(*args) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _prctl(option: int, value: int) -> None:
    # variadic: every argument must have the width the kernel reads
    _call("prctl", option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def forbid_inspection(forbidden: bool = True) -> None:
    """Makes this process's memory and files in /proc unreadable for others of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0 if forbidden else 1)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant that loses its own."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def become_nobody() -> None:
    """Gives root away: the kernel exempts root from limits and lets it write settings in /proc."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


def enter_namespaces() -> None:
    """Moves this process into own user, mount, net and ipc namespaces, its children in a pid one.

    The process must have a single thread.
    """
    uid, gid = os.getuid(), os.getgid()
    # The maps belong to root while the process may not be inspected. No code of a student runs in
    # this process, nor in another one of this pid namespace.
    forbid_inspection(False)
    _call("unshare", sum(_NEW_NAMESPACES.values()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    forbid_inspection()


def _leave_keyring() -> None:
    """A session keyring of its own: in the login's, one student could leave notes for the next."""
    number = 250 if os.uname().machine == "x86_64" else 219
    try:
        _call("syscall", *map(ctypes.c_long, (number, _JOIN_SESSION_KEYRING, 0)))
    except OSError as error:
        if error.errno != errno.ENOSYS:  # a kernel without keyrings has none to leave
            raise


def close_in(tmp_bytes: int) -> None:
    """Inside new namespaces: an empty /tmp and /proc, no way to more rights or over locks of files.

    Leaves it in /tmp.
    """
    _leave_keyring()
    _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    # A further user namespace would give a student mounts and capabilities of its own. Bubblewrap
    # cannot forbid it, as the worker needs one; older kernels lack the setting.
    with suppress(OSError):
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    _mount_tmpfs(b"/proc", 4096, _MS_RDONLY | _MS_NOEXEC)
    _mount_tmpfs(b"/dev/shm", tmp_bytes, _MS_NOEXEC)
    _mount_tmpfs(b"/tmp", tmp_bytes, 0)
    os.chdir("/tmp")
    _drop_capabilities()
    refuse_shared_files()


def _mount_tmpfs(place: bytes, n_bytes: int, flags: int) -> None:
    options = f"size={n_bytes},nr_inodes=4096,mode=1777".encode()
    _call("mount", b"tmpfs", place, b"tmpfs", flags | _MS_NOSUID | _MS_NODEV, options)


def _drop_capabilities() -> None:
    for capability in range(_MOST_CAPABILITIES):
        with suppress(OSError):  # numbers that this kernel does not know
            _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_limits(limits: Limits, n_running: int) -> None:
    """Limits this process and its children; `n_running` of the user's processes do not count."""
    import resource

    n_processes = n_running + limits.n_processes
    loaded_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    memory_bytes = loaded_bytes + limits.memory_bytes
    for what, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s),
        (resource.RLIMIT_NPROC, n_processes, n_processes),
        (resource.RLIMIT_NOFILE, limits.n_files, limits.n_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes + _RESERVE_BYTES),
    ):
        resource.setrlimit(what, (soft, hard))


def use_memory_reserve() -> None:
    """Lets this process use the little memory above its limit."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def processes_of_user() -> int:
    """How many processes and threads of this user run on the machine, as far as it can see."""
    uid, count = os.getuid(), 0
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
