"""Calls into the kernel for which Python has no function, by way of libc.

Linux only; each raises OSError naming the call that failed. Notebooks on other systems import this
too, so libc is looked for only when it is used.
"""

import ctypes
import os
from functools import cache

NOBODY = 65534
# Flags of unshare, then of mount.
MOUNT, CGROUP, UTS, IPC, USER, PID, NET = (1 << at for at in (17, 25, 26, 27, 28, 29, 30))
RDONLY, NOSUID, NODEV, NOEXEC, BIND, REC, PRIVATE = (1 << at for at in (0, 1, 2, 3, 12, 14, 18))
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> None:
    """Calls libc's function of that name; OSError where it gives -1."""
    if getattr(_libc(), name)(*args) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def prctl(option: int, value: int) -> None:
    """Sets one property of this process."""
    # variadic: every argument must have the width the kernel reads
    call("prctl", option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def forbid_inspection(forbidden: bool = True) -> None:
    """Makes this process's memory and files in /proc unreadable for others of the same user."""
    prctl(_PR_SET_DUMPABLE, 0 if forbidden else 1)


def die_with_parent(signal_number: int) -> None:
    """Has the kernel send this process a signal when the thread that started it ends."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def mount_tmpfs(place: str, n_bytes: int, flags: int = 0) -> None:
    """Mounts an empty file system in memory that everyone may write to."""
    options = f"size={n_bytes},nr_inodes=4096,mode=1777".encode()
    call("mount", b"tmpfs", place.encode(), b"tmpfs", flags | NOSUID | NODEV, options)
