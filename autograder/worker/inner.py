"""The inner wall, which a process builds around itself before it runs a student's code."""

import ctypes
import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from autograder.worker import kernel as k
from autograder.worker.kernel import call, forbid_inspection, mount_tmpfs, prctl

_ALL_NAMESPACES = k.MOUNT | k.UTS | k.IPC | k.USER | k.PID | k.NET
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 24, 38, 47, 4


def enter_namespaces(which: int = _ALL_NAMESPACES, uid: int = k.NOBODY) -> None:
    """Moves this process into new namespaces, its children into the pid one; it is `uid` there."""
    forbid_inspection(False)  # the maps belong to root while the process may not be inspected
    ids = ("uid", os.getuid()), ("gid", os.getgid())  # outside
    call("unshare", which)
    if which & k.USER:
        Path("/proc/self/setgroups").write_text("deny")
        for name, outside in ids:
            Path(f"/proc/self/{name}_map").write_text(f"{uid} {outside} 1")
    forbid_inspection()
    call("mount", b"none", b"/", None, k.REC | k.PRIVATE, None)


def close_in(tmp_bytes: int) -> None:
    """In new namespaces: a loopback, nothing in /proc, /dev/shm and /tmp, where it goes."""
    with socket.socket() as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sH22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    with suppress(OSError):  # a further one would give mounts and rights; older kernels lack this
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    mount_tmpfs("/proc", 4096, k.RDONLY | k.NOEXEC)
    mount_tmpfs("/dev/shm", tmp_bytes, k.NOEXEC)
    mount_tmpfs("/tmp", tmp_bytes)
    os.chdir("/tmp")


def bound_rights(kept: int = 0) -> None:
    """No program started from now on gains a capability but those bits."""
    for capability in range(64):
        with suppress(OSError):  # numbers that this kernel does not know
            if not kept >> capability & 1:
                prctl(_PR_CAPBSET_DROP, capability)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_rights() -> None:
    """Gives up every capability, for good."""
    bound_rights()
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    call("capset", (ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)())
