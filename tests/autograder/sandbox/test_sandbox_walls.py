"""What a student's process cannot reach."""

import socket
import uuid
from pathlib import Path

import pytest
from sandboxed import LIMITS, ROOT, ask, trouble

from autograder.sandbox import Sandbox


def test_nothing_of_the_checkout_home_or_grader_can_be_seen(walled: Sandbox) -> None:
    source = "import os\ndef f(paths): return [p for p in paths if os.path.lexists(p)]"
    hidden = [ROOT, ROOT / "autograder", ROOT / "build", Path.home() / ".bashrc", Path(__file__)]
    hidden += [Path(p) for p in ("/etc/passwd", "/etc/hostname", "/home", "/var", "/run", "/sys")]
    seen = ask(walled, source, [str(path) for path in hidden])
    assert seen == []


def test_the_environment_and_other_processes_cannot_be_seen(
    runtime: Path, walled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLASS_SECRET", "canary")
    source = "import os\ndef f(): return [dict(os.environ), os.listdir('/proc'), os.getuid()]"
    with Sandbox(runtime, LIMITS) as other:
        environment, processes, uid = ask(other, source)
    assert "canary" not in repr(environment)
    assert str(ROOT) not in repr(environment)
    assert processes == []
    assert uid != 0


def test_the_package_s_answer_is_neither_in_memory_nor_on_disk(walled: Sandbox) -> None:
    source = """
import sys
sys.path.insert(0, checkout)
for name in [m for m in sys.modules if m.startswith("mpedu")]: del sys.modules[name]
from mpedu.families import gpipe
def f(n_stages, n_microbatches): return gpipe(n_stages, n_microbatches)
"""
    error = trouble(walled, f"checkout = {str(ROOT)!r}\n{source}", 2, 2)
    assert error.message.startswith("your code raises Withheld: this is the exercise")


def test_nothing_outside_can_be_connected_to(walled: Sandbox) -> None:
    source = """
import socket
def f(port, name):
    reached = []
    for family, address in ((socket.AF_INET, ("127.0.0.1", port)), (socket.AF_UNIX, "\\0" + name),
                            (socket.AF_INET, ("1.1.1.1", 53))):
        with socket.socket(family) as sock:
            sock.settimeout(2)
            try: sock.connect(address)
            except OSError: continue
            reached.append(repr(address))
    return reached
"""
    name = uuid.uuid4().hex
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0" + name)
        unix.listen()
        port = tcp.getsockname()[1]
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", port)),
            (socket.AF_UNIX, "\0" + name),
        ):
            with socket.socket(family) as sock:
                sock.connect(address)  # from out here it can
        assert ask(walled, source, port, name) == []


def test_nothing_can_be_written_but_its_own_empty_tmp(walled: Sandbox) -> None:
    source = """
import os
def f():
    found, written = os.listdir("/tmp") + os.listdir("/dev/shm"), []
    for folder in ("/", "/opt", "/opt/runtime", "/opt/runtime/mpedu", "/opt/venv", "/usr",
                   "/usr/local", "/dev", "/proc", "/tmp", "/dev/shm", "/root", "/etc"):
        try:
            with open(f"{folder}/left", "w") as file: file.write("x")
            written.append(folder)
        except OSError: pass
    return [found, written]
"""
    for _ in range(2):
        assert ask(walled, source) == [[], ["/tmp", "/dev/shm"]]


def test_there_is_no_way_to_more_rights(walled: Sandbox) -> None:
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def f():
    user, mount = 0x10000000, 0x00020000
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    return {
        "capabilities": list(sets),
        "bounding": [n for n in range(64) if libc.prctl(23, n, 0, 0, 0) == 1],
        "no new privileges": libc.prctl(39, 0, 0, 0, 0),
        "user namespace": libc.unshare(user), "mount namespace": libc.unshare(mount),
        "mount": libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        "unmount": libc.umount2(b"/proc", 2), "chroot": libc.chroot(b"/tmp"),
    }
"""
    assert ask(walled, source) == {
        "capabilities": [0] * 6,
        "bounding": [],
        "no new privileges": 1,
        **dict.fromkeys(("user namespace", "mount namespace", "mount", "unmount", "chroot"), -1),
    }


def test_only_the_connection_is_open(sandbox: Sandbox) -> None:
    source = """
import os, stat
def f():
    kinds = {}
    for fd in range(1000):
        try: kinds[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
        except OSError: pass
    return kinds
"""
    import stat

    assert ask(sandbox, source) == {
        0: stat.S_IFCHR,
        1: stat.S_IFIFO,
        2: stat.S_IFIFO,
        3: stat.S_IFSOCK,
    }


def test_the_checkout_cannot_be_imported_by_accident(sandbox: Sandbox) -> None:
    source = """
import importlib
def f(names):
    found = []
    for name in names:
        try: found.append(importlib.import_module(name).__name__)
        except ImportError: pass
    return found
"""
    names = ["autograder.checks", "autograder.bank", "autograder.judge", "mpedu.bench"]
    assert ask(sandbox, source, [*names, "mpedu.cost"]) == ["mpedu.cost"]
