"""Nothing is shared between the ranks of a program but their sockets to the judge.

Every way is tried in plain processes too, where most of them work: so that what fails behind walls
fails because of them.
"""

import uuid

import pytest
from ranks_toy import TOY, behind_walls

from autograder.checks.ranks import ranks
from autograder.sandbox import NOT_WALLED, Sandbox, build_runtime

# Rank 0 leaves a note for rank 1, over what both can reach; `name` is new in every test.
START = """
import ctypes, errno, fcntl, os, select, signal, socket, struct, sys, time
import numpy as np
def libc(): return ctypes.CDLL(None, use_errno=True)
shared = os.path.realpath(os.__file__)  # a file that both may read

def f(comm, name):
    state = leave(name) if comm.rank == 0 else None
    comm.barrier()
    try:
        return find(name) if comm.rank == 1 else None
    except Exception as error:
        return [type(error).__name__, getattr(error, "errno", None)]
    finally:
        comm.barrier()
        if comm.rank == 0: clear(name)

def clear(name): pass
"""
FILE = """
def leave(name): open(where(name), "w").write("note")
def find(name): return open(where(name)).read()
def clear(name): os.unlink(where(name))
"""
SOCKET = """
def leave(name):
    global listening
    listening = socket.socket(family)
    listening.bind(address(name))
    listening.listen()
def find(name):
    with socket.socket(family) as reaching:
        reaching.settimeout(2)
        reaching.connect(address(name))
        return "note"
"""
WAYS = {
    "a file in /tmp": (FILE + "where = '/tmp/{}'.format", True),
    "a file in /dev/shm": (FILE + "where = '/dev/shm/{}'.format", True),
    "a file beside it": (FILE + "where = str", False),
    "a socket on loopback": (
        SOCKET
        + "family = socket.AF_INET\n"
        + "def address(name): return ('127.0.0.1', 20000 + int(name[:4], 16) % 20000)",
        True,
    ),
    "an abstract socket": (
        SOCKET + "family = socket.AF_UNIX\ndef address(name): return '\\0' + name",
        True,
    ),
    "shared memory": (
        """
def key(name): return int(name[:7], 16)
def leave(name):
    if libc().shmget(key(name), 4096, 0o1666) < 0: raise OSError(ctypes.get_errno(), "shmget")
def find(name):
    if libc().shmget(key(name), 4096, 0) < 0: raise OSError(ctypes.get_errno(), "shmget")
    return "note"
def clear(name): libc().shmctl(libc().shmget(key(name), 4096, 0), 0, None)
""",
        True,
    ),
    "a message queue": (
        """
def key(name): return int(name[:7], 16)
def leave(name):
    if libc().msgget(key(name), 0o1666) < 0: raise OSError(ctypes.get_errno(), "msgget")
def find(name):
    if libc().msgget(key(name), 0) < 0: raise OSError(ctypes.get_errno(), "msgget")
    return "note"
def clear(name): libc().msgctl(libc().msgget(key(name), 0), 0, None)
""",
        True,
    ),
    "a lock on a file of the system": (
        """
def leave(name):
    global held
    held = open(shared)
    try: fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass
def find(name):
    with open(shared) as file:
        try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: return "note"
def clear(name): held.close()
""",
        True,
    ),
    "where a lock on a file of the system starts": (
        """
def leave(name):
    global held
    held = open(shared)
    try: fcntl.lockf(held, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, int(name[:7], 16))
    except OSError: pass
def find(name):
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    with open(shared) as file:
        start = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[2]
    return "note" if start == int(name[:7], 16) else None
def clear(name): held.close()
""",
        True,
    ),
    "variables of the environment": (
        "def leave(name): os.environ[name] = 'note'\ndef find(name): return os.environ[name]",
        False,
    ),
    "a module": (
        "def leave(name): setattr(np, name, 'note')\ndef find(name): return getattr(np, name)",
        False,
    ),
    "a descriptor": (
        """
def leave(name):
    global ends
    ends = os.pipe()
    os.write(ends[1], b"note")
def find(name):
    for number in range(4, 64):
        try: return os.read(number, 4).decode()
        except OSError as error: last = error
    raise last
""",
        False,
    ),
    "a key of the user": (
        """
number = 248 if os.uname().machine == "x86_64" else 217
def leave(name):
    note = (b"user", name.encode(), b"note", 4, -4)
    libc().syscall(number, *note)
def find(name):
    found = libc().syscall(number + 2, 10, -4, b"user", name.encode(), 0)
    if found < 0: raise OSError(ctypes.get_errno(), "keyctl")
    return "note"
""",
        True,
    ),
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "runtime"
    build_runtime(TOY, folder)
    return folder


@pytest.fixture(scope="module")
def walled(runtime):
    with Sandbox(runtime) as made:
        if made.rung == NOT_WALLED:
            pytest.skip(f"no walls on this machine: {made.walls.note}")
        yield made


@pytest.fixture(scope="module")
def plain(runtime):
    with Sandbox(runtime, rung=NOT_WALLED) as made:
        yield made


def found(sandbox, way):
    name = uuid.uuid4().hex
    with behind_walls(sandbox, START + WAYS[way][0]) as subject:
        return ranks(subject, "f", 2, [(name,)] * 2).results[1]


@pytest.mark.parametrize("way", WAYS)
def test_no_note_passes_from_rank_to_rank(walled, way):
    assert found(walled, way) not in ("note", None)


@pytest.mark.parametrize("way", [way for way, (_, works) in WAYS.items() if works])
def test_without_walls_the_same_note_passes(plain, way):
    assert found(plain, way) == "note"


def test_a_watch_on_a_file_of_the_system_is_refused(walled):
    source = """
import ctypes, os
def f(comm):
    libc = ctypes.CDLL(None, use_errno=True)
    got = [libc.inotify_init(), libc.inotify_init1(0), libc.fanotify_init(0, 0)]
    return [*got, ctypes.get_errno()]
"""
    with behind_walls(walled, source) as subject:
        assert ranks(subject, "f", 2, [()] * 2).results == [[-1, -1, -1, 1]] * 2


def test_a_signal_reaches_no_other_rank(walled):
    source = """
import os, signal
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
def f(comm):
    import __main__
    before = len(__main__.heard)
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGUSR1)  # the number of every rank
    comm.barrier()
    return [os.getpid(), len(__main__.heard) - before]
"""
    with behind_walls(walled, source) as subject:
        assert ranks(subject, "f", 3, [()] * 3).results == [[1, 0], [1, 1], [1, 0]]


def test_ranks_are_apart_before_any_cell_runs(walled):
    name = uuid.uuid4().hex
    source = f"""
import os
place = "/tmp/{name}"
was_there = os.path.exists(place)
open(place, "w").write("note")
def f(comm): return [was_there, os.listdir("/tmp")]
"""
    with behind_walls(walled, source) as subject:
        assert ranks(subject, "f", 3, [()] * 3).results == [[False, [name]]] * 3


def test_every_rank_sees_its_own_number_alone(walled):
    source = "import sys\ndef f(comm): return [comm.rank, len(comm._members), sys.argv[1:]]"
    with behind_walls(walled, source) as subject:
        results = ranks(subject, "f", 2, [()] * 2).results
    assert [result[:2] for result in results] == [[0, 2], [1, 2]]
