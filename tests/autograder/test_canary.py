"""A secret case is in no reach of a student before it is asked: not in memory, nor in a file."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from autograder.diagnosis import Diagnosis, Miss, Subject
from autograder.exercise import Draw, Unit, exercise
from autograder.judge import judge
from autograder.sandbox import NAMESPACES, NOT_WALLED, WALLED, Sandbox, SandboxError, build_runtime

# Looks at memory around what it knows of, page by page: one that is not there gives no signal, as
# the kernel is asked to copy it. And at every small file, at /proc and the environment.
SEARCH = """
import ctypes, gc, os, re
libc = ctypes.CDLL(None)
libc.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
reader, writer = os.pipe()
os.set_blocking(writer, False)
token = re.compile(rb"canary-[0-9a-f]{32}")
kept = []

def pages():
    room = ctypes.create_string_buffer(64)
    anchors = [id(kept), id(token), id(os), ctypes.addressof(room), id("x" * 70_000),
               ctypes.cast(libc.write, ctypes.c_void_p).value, *map(id, gc.get_objects()[::50])]
    for part in sorted({anchor >> 20 for anchor in anchors}):
        for page in range(part << 20, (part + 1) << 20, 4096):
            if libc.write(writer, page, 4096) == 4096: yield os.read(reader, 4096)

def files():
    yield repr(dict(os.environ)).encode()
    for top in ("/tmp", "/dev/shm", "/proc", "/opt/runtime", os.getcwd(), "/run", "/var", "/etc"):
        for place, _, names in os.walk(top):
            for name in names:
                try:
                    with open(os.path.join(place, name), "rb") as file: yield file.read(2**20)
                except OSError: pass

def look(said):
    kept.append(said)
    return sorted({found.decode() for way in (pages, files) for text in way()
                   for found in token.findall(text)})
"""


@exercise("look", title="Look", points=1, names=["look"])
def searched(subject: Subject, draw: Draw) -> None:
    """Misses where a token that only this check knows is found before it was said."""
    token = f"canary-{draw.rng.getrandbits(128):032x}"
    with draw.group("before it is asked", points=1):
        if token in subject("nothing"):
            raise Miss(Diagnosis("leaked", token, "a secret case was found before it was asked"))
        if token not in subject(token):
            raise Miss(Diagnosis("blind", token, "the search finds nothing, so it proves nothing"))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canary") / "runtime"
    build_runtime(Unit("99", "canary", (searched,), ()), folder)
    return folder


@pytest.fixture(params=[WALLED, NAMESPACES])
def sandbox(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    with Sandbox(runtime, rung=request.param) as made:
        try:
            assert made.rung == request.param
        except SandboxError as error:
            pytest.skip(str(error))
        yield made


def test_no_secret_case_is_found_before_it_is_asked(sandbox: Sandbox) -> None:
    for _ in range(3):  # the second and third are forks of a parent that served another
        with sandbox.open([("cell", SEARCH)], ["look"]) as subject:
            verdict = judge(searched, subject, b"s" * 32)
            assert subject.cell_errors == []
        assert (verdict.status, verdict.messages) == ("passed", [])


PARENT = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.process_vm_readv.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2,
                                  ctypes.c_ulong]

def f(pids):
    read = []
    room = ctypes.create_string_buffer(64)
    mine = (ctypes.c_void_p * 2)(ctypes.addressof(room), 16)
    theirs = (ctypes.c_void_p * 2)(id(os), 16)  # a fork has it at the same place
    for pid in pids:
        if pid != os.getpid() and libc.process_vm_readv(pid, mine, 1, theirs, 1, 0) > 0:
            read.append(pid)
    return [read, libc.process_vm_readv(os.getpid(), mine, 1, theirs, 1, 0)]
"""


def test_the_memory_of_no_other_process_can_be_read(sandbox: Sandbox, runtime: Path) -> None:
    below = [process.pid for process in psutil.Process().children(recursive=True)]
    pids = [*range(300), *below, psutil.Process().pid]
    with sandbox.open([("cell", PARENT)], ["f"]) as subject:
        assert subject(pids)[0] == []
    with (
        Sandbox(runtime, rung=NOT_WALLED) as plain,
        plain.open([("cell", PARENT)], ["f"]) as subject,
    ):
        assert subject([])[1] == 16  # the call as such works: on its own memory
