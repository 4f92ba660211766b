"""Calls of the kernel by which walled processes could talk over files that all may only read.

Locks, leases and watches belong to a file, not to a namespace: a lock on a file of the system is
seen by every process that can read it, and its offsets can carry data. A filter makes these calls
fail with EPERM. What is left is slow and noisy: the load of the machine, its caches.

Sources: seccomp(2), fcntl(2), inotify(7); numbers from the kernel's tables of system calls.
"""

import ctypes
import errno
import os
import struct
from typing import NamedTuple

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions
_NUMBER_AT, _ARCHITECTURE_AT, _COMMAND_AT = 0, 4, 24  # what is looked at; the second argument
_NEXT, _ALLOW, _FAIL = range(3)  # where to go on
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM
_OTHER_ABI = 0x40000000  # numbers of x86's 32-bit pointers on 64 bits start here
# Commands of fcntl: locks, locks of open files, leases, notes of changes.
_COMMANDS = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Machine(NamedTuple):
    """A machine's mark, and its numbers of fcntl and of the calls that fail."""

    architecture: int
    fcntl: int
    refused: tuple[int, ...]


# flock, inotify_init, inotify_init1, inotify_add_watch, fanotify_init, mincore, cachestat
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 72, (73, 253, 294, 254, 300, 27, 451)),
    "aarch64": _Machine(0xC00000B7, 25, (32, 26, 27, 262, 232, 451)),
}


def refuse_shared_files() -> None:
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
    """The filter: 8 bytes a step, the last two being its ends."""
    steps = [
        (_LOAD, _ARCHITECTURE_AT, _NEXT, _NEXT),
        (_IF_EQUAL, machine.architecture, _NEXT, _FAIL),
        (_LOAD, _NUMBER_AT, _NEXT, _NEXT),
        (_IF_AT_LEAST, _OTHER_ABI, _FAIL, _NEXT),
        *((_IF_EQUAL, number, _FAIL, _NEXT) for number in machine.refused),
        (_IF_EQUAL, machine.fcntl, _NEXT, _ALLOW),
        (_LOAD, _COMMAND_AT, _NEXT, _NEXT),
        *((_IF_EQUAL, command, _FAIL, _NEXT) for command in _COMMANDS),
        (_RETURN, _ALLOWED, _NEXT, _NEXT),
        (_RETURN, _REFUSED, _NEXT, _NEXT),
    ]
    packed = b""
    for at, (code, operand, if_true, if_false) in enumerate(steps):
        jump = {_NEXT: 0, _ALLOW: len(steps) - 3 - at, _FAIL: len(steps) - 2 - at}
        packed += struct.pack("=HBBI", code, jump[if_true], jump[if_false], operand)
    return packed
