"""Attacks on the inner wall from inside, with the filter of calls and, where others hold, without.

The filter refuses most of them at once, and would hide a hole in what stands behind it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import WALLED_RUNGS, started
from sandboxed import LIMITS, ask, works

from autograder.sandbox import NAMESPACES, NOT_WALLED, PER_EXERCISE, WALLED, Sandbox
from autograder.worker import inner

START = """
import ctypes, errno, fcntl, os, signal, socket, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
def called(name, *args):
    ctypes.set_errno(0)
    return "done" if getattr(libc, name)(*args) != -1 else errno.errorcode[ctypes.get_errno()]
def numbered(x86, arm, *args):
    number = x86 if os.uname().machine == "x86_64" else arm
    return called("syscall", *map(ctypes.c_long, (number, *args)))
def tried(function, *args):
    try: return function(*args) or "done"
    except OSError as error: return errno.errorcode[error.errno]
others = [pid for pid in range(1, 4000) if pid != os.getpid()]
class Span(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]
"""
# What each gives is compared with the errors that may stand in its way.
ATTACKS = {
    "remounts": """[called("mount", None, place, None, 0x1020, None)
      for place in (b"/", b"/usr", b"/dev", b"/proc", b"/opt/venv", b"/opt/runtime")]""",
    "mounts": """[called("mount", b"x", b"/tmp", kind, 0, None) for kind in (b"proc", b"tmpfs")]""",
    "binds": """[called("mount", b"/usr", b"/tmp", None, 0x1000, None)]""",
    "unmounts": """[called("umount2", place, 2)
      for place in (b"/proc", b"/tmp", b"/dev/shm", b"/dev", b"/usr", b"/")]""",
    "pivots": """[numbered(155, 41, id(b"/tmp") + 32, id(b"/tmp") + 32)]""",
    "unshares": """[called("unshare", 1 << at) for at in (17, 25, 26, 27, 28, 29, 30)]""",
    "clones": """[numbered(56, 220, (1 << 28) + 17, 0, 0, 0, 0)]""",
    "clones by its newest form": """[called("syscall", ctypes.c_long(435),
        (ctypes.c_uint64 * 8)(1 << 28, 0, 0, 0, 17), ctypes.c_long(64))]""",
    "becomes root": """[tried(os.setuid, 0), tried(os.setgid, 0), tried(os.setgroups, [0]),
        tried(os.setresuid, 0, 0, 0)]""",
    "makes devices": """[tried(os.mknod, "/tmp/a", kind | 0o600, os.makedev(254, 0))
        for kind in (stat.S_IFBLK, stat.S_IFCHR)]""",
    "leaves by chroot": """[tried(os.chroot, "/tmp")]""",
    "opens raw sockets": """[tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
        tried(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0)]""",
    "types for others": """[tried(fcntl.ioctl, fd, 0x5412, b"x") for fd in range(4)]
        + [tried(os.open, "/dev/tty", os.O_RDWR)]""",
    "is killed last": """[tried(open, "/proc/self/oom_score_adj", "w")]""",
    "opens files by handle": """[numbered(304, 265, -100, id(bytes(200)) + 32, 0)]""",
    "renames the host": """[called("sethostname", b"x", 1)]""",
    "runs before all others": """[tried(os.sched_setscheduler, 0, 1, os.sched_param(9)),
        tried(os.nice, -5)]""",
}
REFUSED = set("EPERM EACCES EINVAL ENOENT ENOSYS ENOTTY EBUSY ENOTDIR EAFNOSUPPORT".split())
REFUSED |= set("ENXIO EBADF EROFS ENOSPC ESTALE EOPNOTSUPP EFAULT".split())
LOOKS = """
found = {"seen": [p for p in others if os.path.exists(f"/proc/{p}")]}
found["opened"] = [p for p in others if tried(os.open, f"/proc/{p}/mem", os.O_RDWR) != "ENOENT"]
found["signalled"] = [p for p in others if tried(os.kill, p, 0) == "done"]
secret = b"of the warm parent"
kept = ctypes.create_string_buffer(18)
def read(pid):
    near, far = Span(ctypes.addressof(kept), 18), Span(id(secret) + 32, 18)
    return libc.process_vm_readv(pid, ctypes.byref(near), 1, ctypes.byref(far), 1, 0)
found["read"] = [p for p in others if read(p) != -1]
def write(pid):
    near, far = Span(id(secret) + 32, 18), Span(ctypes.addressof(kept), 18)
    return libc.process_vm_writev(pid, ctypes.byref(near), 1, ctypes.byref(far), 1, 0)
found["written"] = [p for p in others if write(p) != -1]
found["traced"] = [p for p in others if libc.ptrace(0x4206, p, None, None) != -1]
found["groups"] = [p for p in others if tried(os.getpgid, p) != "ESRCH"]
"""


@pytest.fixture(scope="module")
def unfiltered(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime, with a filter of calls that lets everything through."""
    copy = Path(shutil.copytree(runtime, tmp_path_factory.mktemp("unfiltered") / "runtime"))
    (copy / "autograder" / "worker" / "seccomp.py").write_text("def refuse_calls(): pass\n")
    return copy


# Without namespaces of its own an exercise needs the filter, against signals to its own guardian.
WALLS = [(rung, True) for rung in WALLED_RUNGS] + [(WALLED, False), (NAMESPACES, False)]


@pytest.fixture(scope="module", params=WALLS, ids=lambda walls: f"{walls[0]} {walls[1]}")
def attacked(request: pytest.FixtureRequest, runtime: Path, unfiltered: Path) -> Iterator[Sandbox]:
    rung, filtered = request.param
    yield from started(runtime if filtered else unfiltered, rung, LIMITS)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_gets_anywhere(attacked: Sandbox, attack: str) -> None:
    source = f"{START}\ndef f(): return ({ATTACKS[attack]})"
    got = ask(attacked, source)
    assert got and set(got) <= REFUSED
    assert works(attacked)


def test_a_user_namespace_of_its_own_gives_no_rights(attacked: Sandbox) -> None:
    source = f"""{START}
def f():
    made = called("unshare", 0x10000000)
    return made, called("mount", b"x", b"/tmp", b"tmpfs", 0, None)
"""
    assert set(ask(attacked, source)) <= {"EPERM", "ENOSPC", "EINVAL"}


def test_no_other_process_can_be_seen_read_or_signalled(attacked: Sandbox) -> None:
    found = ask(attacked, f"{START}{LOOKS}\ndef f(): return found")
    if attacked.rung == PER_EXERCISE:
        # Bubblewrap's own and its guardian share its numbers; who is root cannot be signalled.
        assert len(found.pop("groups")) == 2
        signalled = found.pop("signalled")
        assert os.geteuid() != 0 or signalled == []
    assert set(map(tuple, found.values())) == {()}


def test_the_same_look_reads_a_process_without_walls(runtime: Path) -> None:
    """What is read above is there to be read: its own child's memory, at the same place."""
    source = f"""{START}
def f():
    secret, kept = b"of the warm parent", ctypes.create_string_buffer(18)
    child = os.fork()
    if child == 0: signal.pause()
    near, far = Span(ctypes.addressof(kept), 18), Span(id(secret) + 32, 18)
    libc.prctl(4, 1, 0, 0, 0)
    n = libc.process_vm_readv(child, ctypes.byref(near), 1, ctypes.byref(far), 1, 0)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return n, kept.raw
"""
    with Sandbox(runtime, LIMITS, rung=NOT_WALLED) as plain:
        n, read = ask(plain, source.replace("kept.raw", "kept.raw.decode(errors='replace')"))
    assert (n, read) in [(18, "of the warm parent"), (-1, "\0" * 18)]  # undumpable: root alone may


KEYS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def f():
    at = 0 if os.uname().machine == "x86_64" else -31
    calls = (248 + at, b"user", b"note", b"note", 4, -4), (250 + at, 0, -3, 1), (250 + at, 0, -4, 1)
    return [libc.syscall(*call) for call in calls]
"""


def test_no_key_can_be_left_for_the_next_student(walled: Sandbox) -> None:
    assert ask(walled, KEYS) == [-1, -1, -1]


# What is cached of a file outlives a process, and descriptors on their way count for a whole user.
SIGNS = """
import array, errno, os, socket
def tried(function, *args):
    try: return function(*args)
    except OSError as error: return errno.errorcode[error.errno]
def f():
    file = os.open("/usr/bin/env", os.O_RDONLY)
    near, far = socket.socketpair()
    return [
        tried(os.preadv, file, [bytearray(64)], 0, os.RWF_NOWAIT),
        tried(os.posix_fadvise, file, 0, 0, os.POSIX_FADV_DONTNEED),
        tried(socket.send_fds, near, [b"x"], [file]),
        tried(near.send, b"x"),
    ]
"""


def test_no_sign_can_be_left_for_the_next_process(walled: Sandbox) -> None:
    assert ask(walled, SIGNS) == ["EPERM", "EPERM", "EPERM", 1]


def test_the_loopback_is_there_and_private(attacked: Sandbox) -> None:
    source = """
import socket
def f():
    with socket.create_server(("127.0.0.1", 23456)) as server:
        with socket.create_connection(server.getsockname()) as near, server.accept()[0] as far:
            near.sendall(b"note")
            return [far.recv(4).decode(), [name for _, name in socket.if_nameindex()]]
"""
    with attacked.open([("c", source)], ["f"]) as one, attacked.open([("c", source)], ["f"]) as two:
        assert [one(), two()] == [["note", ["lo"]]] * 2


def test_the_inner_wall_is_short() -> None:
    assert len(Path(inner.__file__).read_text(encoding="utf-8").splitlines()) < 60
