"""Calls of the kernel that walled processes are refused.

Locks, leases and watches belong to a file, not to a namespace: a lock on a file of the system is
seen by every process that can read it, and its offsets can carry data. So can which parts of a
file are cached, where a call tells or changes that, and how many descriptors are on their way over
sockets. Keys of a user, too, are seen by others. The rest is a second wall behind the others, and
the only one where namespaces cannot be nested: looking into other processes, making namespaces, the
kernel's rarer corners. What is left must be read off a clock: the load of the machine, its caches.

Sources: seccomp(2), fcntl(2), inotify(7); numbers from the kernel's tables of system calls.
"""

import ctypes
import errno
import os
import struct
from typing import NamedTuple

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24  # what is looked at
_NEXT, _ALLOW, _FAIL, _ABSENT, _KILL = 0, -4, -3, -2, -1  # where to go on; or steps to skip
_ENDS = (0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000)
_OTHER_ABI = 0x40000000  # numbers of x86's 32-bit pointers on 64 bits start here
# Commands of fcntl: locks, locks of open files, leases, notes of changes.
_COMMANDS = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
_NEW_NAMESPACES = 0x7E020000  # any of these flags of clone
_SIGKILL = 9
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Machine(NamedTuple):
    """A machine's mark, its numbers of some calls, and those of the calls that fail."""

    architecture: int
    fcntl: int
    clone: int
    kill: int
    refused: tuple[int, ...]


_CLONE3 = 435
# io_uring_setup, open_tree, move_mount, fsopen, fsmount, pidfd_getfd, process_madvise,
# mount_setattr, cachestat: alike on all machines
_ALIKE = (425, 428, 429, 430, 432, 438, 440, 442, 451)
_MACHINES = {
    # flock, inotify_init, inotify_init1, inotify_add_watch, fanotify_init, mincore,
    # ptrace, process_vm_readv, process_vm_writev, kcmp, add_key, request_key, keyctl,
    # unshare, setns, mount, umount2, pivot_root, chroot, bpf, perf_event_open, userfaultfd,
    # preadv2, pwritev2, fadvise64, readahead, sendmsg, sendmmsg
    "x86_64": _Machine(
        0xC000003E,
        *(72, 56, 62),
        (
            *(73, 253, 294, 254, 300, 27, 101, 310, 311, 312, 248, 249, 250),
            *(272, 308, 165, 166, 155, 161, 321, 298, 323),
            *(327, 328, 221, 187, 46, 307, *_ALIKE),
        ),
    ),
    # the same; there is no inotify_init
    "aarch64": _Machine(
        0xC00000B7,
        *(25, 220, 129),
        (
            *(32, 26, 27, 262, 232, 117, 270, 271, 272, 217, 218, 219),
            *(97, 268, 40, 39, 41, 51, 280, 241, 282),
            *(286, 287, 223, 213, 211, 269, *_ALIKE),
        ),
    ),
}


def refuse_calls() -> None:
    """Refuses these calls to this process and its children from now on.

    Nothing is refused on other machines than the two above, and by kernels without filters. The
    process must have given up new privileges.
    """
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return
    steps = _program(machine)
    code = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("HP", len(steps) // 8, ctypes.addressof(code))
    libc, zero = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), program, zero, zero):
        number = ctypes.get_errno()
        if number != errno.EINVAL:
            raise OSError(number, f"seccomp: {os.strerror(number)}")


def _program(machine: _Machine) -> bytes:
    """The filter: 8 bytes a step, the last ones being its ends."""
    steps = [
        (_LOAD, _ARCHITECTURE_AT, _NEXT, _NEXT),
        (_IF_EQUAL, machine.architecture, _NEXT, _FAIL),
        (_LOAD, _NUMBER_AT, _NEXT, _NEXT),
        (_IF_AT_LEAST, _OTHER_ABI, _FAIL, _NEXT),
        *((_IF_EQUAL, number, _FAIL, _NEXT) for number in machine.refused),
        # Its flags are out of sight: libc does without what is absent.
        (_IF_EQUAL, _CLONE3, _ABSENT, _NEXT),
        (_IF_EQUAL, machine.clone, _NEXT, 2),
        (_LOAD, _FIRST_AT, _NEXT, _NEXT),
        (_IF_ANY_BIT, _NEW_NAMESPACES, _FAIL, _ALLOW),
        # The first process of a namespace would outlive its own SIGKILL, as nowhere else.
        (_IF_EQUAL, machine.kill, _NEXT, 4),
        (_LOAD, _SECOND_AT, _NEXT, _NEXT),
        (_IF_EQUAL, _SIGKILL, _NEXT, _ALLOW),
        (_LOAD, _FIRST_AT, _NEXT, _NEXT),
        (_IF_EQUAL, 1, _KILL, _ALLOW),
        (_IF_EQUAL, machine.fcntl, _NEXT, _ALLOW),
        (_LOAD, _SECOND_AT, _NEXT, _NEXT),
        *((_IF_EQUAL, command, _FAIL, _NEXT) for command in _COMMANDS),
        *((_RETURN, end, _NEXT, _NEXT) for end in _ENDS),
    ]
    packed = b""
    for at, (code, operand, *going) in enumerate(steps):
        jumps = [len(steps) + to - at - 1 if to < 0 else to for to in going]
        packed += struct.pack("=HBBI", code, *jumps, operand)
    return packed
