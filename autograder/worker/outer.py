"""The outer wall where bubblewrap is missing: namespaces of its own, and a root built anew.

Started as `python -m autograder.worker.outer VIEW PATH WORDS...`: shows the program WORDS what VIEW
lists, steps in the words of bubblewrap's options, and nothing else of this machine; PATH is where
that program's Python finds modules. Own calls rather than
util-linux: its `unshare` makes an ordinary user root inside, and its `mount` could not make a whole
tree read-only before version 2.39.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from autograder.worker import inner
from autograder.worker import kernel as k
from autograder.worker.kernel import call, die_with_parent

_BEFORE = "/.before"  # where the machine's own root is while the new one is being built
_DETACH = 2
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155}  # the second is 41 on all others
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SETUID_AND_SETGID = 1 << 7 | 1 << 6
_DEVICES = ("null", "zero", "full", "random", "urandom")


def main() -> NoReturn:
    """Stays outside, ends with the program inside, and ends it when it is ended itself."""
    view, python_path, *words = sys.argv[1:]
    new = k.MOUNT | k.PID | k.NET | k.IPC | k.UTS | k.CGROUP
    if os.geteuid() != 0:  # root would stay root, for limits and for files, in one of its own
        new |= k.USER
    try:
        inner.enter_namespaces(new, os.geteuid())
    except OSError as error:
        sys.exit(f"there are no namespaces for the outer wall: {error}")
    die_with_parent(signal.SIGKILL)
    first = os.fork()
    if first == 0:
        _first_inside(json.loads(view), words, {**os.environ, "PYTHONPATH": python_path})
    os.closerange(3, 2**10)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


def _first_inside(view: list[list[str]], words: list[str], variables: dict[str, str]) -> NoReturn:
    """The first process of the namespaces, whose end ends all others; it adopts orphans."""
    try:
        die_with_parent(signal.SIGKILL)
        build_root(view)
        program = os.fork()
        if program == 0:
            # Bits of an ordinary user's are lost in `exec` by themselves.
            inner.bound_rights(_SETUID_AND_SETGID)
            os.execve(words[0], words, variables)
        os.closerange(3, 2**10)
        while (ended := os.wait())[0] != program:
            pass
        os._exit(os.waitstatus_to_exitcode(ended[1]) & 0xFF)
    except BaseException as error:
        print(f"the outer wall cannot be built: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def build_root(view: list[list[str]]) -> None:
    """Makes what `view` lists all that there is, in its order."""
    k.mount_tmpfs("/tmp", 2**20)
    os.mkdir(f"/tmp{_BEFORE}")
    pivot = _PIVOT_ROOT.get(os.uname().machine, 41)
    call("syscall", ctypes.c_long(pivot), b"/tmp", f"/tmp{_BEFORE}".encode())
    os.chdir("/")
    os.umask(0o022)
    for kind, *places in view:
        _MAKERS[kind](*places)
    call("umount2", _BEFORE.encode(), _DETACH)
    os.rmdir(_BEFORE)
    os.chmod("/", 0o755)
    for place in ("/dev", "/"):
        _only(place, k.RDONLY, 0)
    os.chdir("/tmp")


def _only(place: str, attributes: int, recursive: int) -> None:
    """Adds attributes to a mount, or to it and all below it; none can be taken away."""
    asked = (ctypes.c_uint64 * 4)(attributes)
    words = (_MOUNT_SETATTR, _AT_FDCWD, place.encode(), recursive, asked, ctypes.sizeof(asked))
    as_long = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    call("syscall", *as_long)


def _bind(source: str, place: str, attributes: int = k.RDONLY | k.NODEV) -> None:
    source = _BEFORE + source
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    else:
        Path(place).touch()
    call("mount", source.encode(), place.encode(), None, k.BIND | k.REC, None)
    _only(place, attributes | k.NOSUID, _AT_RECURSIVE)


def _bind_try(source: str, place: str) -> None:
    if os.path.exists(_BEFORE + source):
        _bind(source, place)


def _device_try(source: str, place: str) -> None:
    if os.path.exists(_BEFORE + source):
        _bind(source, place, 0)


def _scratch(place: str, n_bytes: str = "0") -> None:
    os.makedirs(place, exist_ok=True)
    k.mount_tmpfs(place, int(n_bytes) or 2**20)


def _proc(place: str) -> None:
    os.makedirs(place)
    flags = k.NOSUID | k.NODEV | k.NOEXEC
    call("mount", b"proc", place.encode(), b"proc", flags, None)


def _dev(place: str) -> None:
    _scratch(place)
    for name in _DEVICES:
        _device_try(f"/dev/{name}", f"{place}/{name}")


_MAKERS: dict[str, Callable[..., object]] = {
    "dir": lambda place: os.makedirs(place, exist_ok=True),
    "symlink": lambda target, place: os.symlink(target, place),
    "ro-bind": _bind,
    "ro-bind-try": _bind_try,
    "dev-bind-try": _device_try,
    "tmpfs": _scratch,
    "scratch": _scratch,
    "proc": _proc,
    "dev": _dev,
}

if __name__ == "__main__":
    main()
