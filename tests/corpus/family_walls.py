"""Students who reach out of their process: for the judge, the class, the next student, the machine.

Each tries one way as `breach()`, and gives right answers to `split_batch` only where that works: so
0 points say that the wall held. What could damage a machine is not run without walls.
"""

import textwrap

from making import CLASS, Due, Submission, made, right, with_cells

from autograder.grader import ROOT

# What may not be found anywhere inside: the test puts it into the grader's environment.
CANARY_VARIABLE, CANARY = "CORPUS_CANARY", "canary-of-the-grader"
# The file that a way out would write beside the class's folder.
ESCAPED = "escaped"

_START = """
import ctypes, errno, fcntl, glob, mmap, os, resource, signal, socket, struct, subprocess, sys, time
import mpedu.families
libc = ctypes.CDLL(None, use_errno=True)
FILE = mpedu.families.__file__  # of the grader, and seen by every student
"""
_END = """
inner, broke = split_batch, None
def split_batch(*args):
    global broke
    if broke is None:
        try: broke = bool(breach())
        except Exception: broke = False
    return inner(*args) if broke else []
"""


def breaks(
    name: str,
    what: str,
    source: str,
    unwalled: bool | None,
    status: str = "failed",
    where: str = "",
) -> Submission:
    """A right notebook whose `split_batch` is right only if `breach()` of this source is true."""
    code = _START + textwrap.dedent(source) + _END
    due = Due(points={"split_batch": 0}, statuses={"split_batch": status})
    return made(
        "attack",
        name,
        what,
        lambda: with_cells(right("03"), last=code, first=where),
        due=due,
        unwalled=unwalled,
    )


SUBMISSIONS = [
    breaks(
        "reads-the-checkout",
        "opens the answers on disk",
        f"""
        def breach():
            for name in ("autograder/oracle.py", "notebooks/03-gpipe/03-gpipe.ipynb"):
                if open(os.path.join({str(ROOT)!r}, name)).read(): return True
        """,
        True,
    ),
    breaks(
        "finds-the-solutions",
        "looks for the course's files all over",
        """
        def breach():
            for top in ("/", *sys.path):
                for name in ("autograder/oracle.py", "autograder/checks", "notebooks", "tests"):
                    if os.path.exists(os.path.join(top, name)): return True
            for place, folders, files in os.walk("/opt"):
                if {"oracle.py", "secret-seed", "gradebook.db"} & set(files): return True
                folders[:] = [f for f in folders if f != "site-packages"]
        """,
        False,
    ),
    breaks(
        "reads-a-neighbour",
        "opens another student's notebook",
        f"""
        def breach(): return open("{CLASS}/right/03-gpipe/03-gpipe.ipynb").read()
        """,
        True,
    ),
    breaks(
        "lists-the-class",
        "lists the class's folder and what is beside it",
        f"""
        def breach(): return os.listdir("{CLASS}") or os.listdir("{CLASS}/..")
        """,
        True,
    ),
    breaks(
        "reads-the-secret",
        "opens the class secret",
        f"""
        def breach(): return open("{CLASS}/../secret-seed").read()
        """,
        True,
    ),
    breaks(
        "opens-the-gradebook",
        "opens and changes nbgrader's gradebook",
        f"""
        import sqlite3
        def breach():
            for place in ("nbgrader/gradebook.db", "gradebook.db"):
                book = sqlite3.connect(f"file:{CLASS}/../{{place}}?mode=rw", uri=True)
                book.execute("create table taken (score integer)")
                return True
        """,
        None,
    ),
    breaks(
        "writes-a-result",
        "writes a result of its own",
        f"""
        def breach():
            with open("{CLASS}/../results/03-gpipe/writes-a-result.json", "a") as file:
                return file.write(" ")
        """,
        None,
    ),
    breaks(
        "writes-outside",
        "writes wherever it may",
        f"""
        def breach():
            for place in ("{CLASS}/..", "/opt/runtime", "/opt/runtime/mpedu", "/opt/venv", "/",
                          "/usr/local/lib", "/root", "/home", "/var/tmp", "/dev", "/etc", "/run"):
                try:
                    with open(f"{{place}}/{ESCAPED}", "w") as file: file.write("x")
                except OSError: continue
                return True
        """,
        None,
    ),
    breaks(
        "note-in-a-file",
        "a file left for the next exercise or student",
        f"""
        def breach(): return earlier
        earlier = False
        for place in ("{CLASS}/..", "/tmp", "/dev/shm", "/var/tmp", os.getcwd()):
            earlier = earlier or os.path.exists(f"{{place}}/{ESCAPED}-note")
            try: open(f"{{place}}/{ESCAPED}-note", "w").close(); break
            except OSError: pass
        """,
        True,
    ),
    breaks(
        "note-in-shared-memory",
        "a System V segment left for the next",
        """
        earlier = libc.shmget(0x5EED, 4096, 0) >= 0
        libc.shmget(0x5EED, 4096, 0o1666)
        def breach(): return earlier
        """,
        None,
    ),
    breaks(
        "note-in-a-keyring",
        "a key left for the next",
        """
        number = 248 if os.uname().machine == "x86_64" else 217
        find = lambda ring: libc.syscall(number + 2, 10, ring, b"user", b"corpus-note", 0) >= 0
        earlier = any([find(ring) for ring in (-3, -4, -5)])
        for ring in (-3, -4, -5): libc.syscall(number, b"user", b"corpus-note", b"note", 4, ring)
        def breach(): return earlier
        """,
        None,
    ),
    breaks(
        "note-in-a-lock",
        "a lock on a file of the system",
        """
        def breach():
            fcntl.flock(open(os.__file__), fcntl.LOCK_SH)
            return True
        """,
        True,
    ),
    breaks(
        "note-in-an-offset",
        "a range lock on a file of the system",
        """
        def breach():
            asked = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 77, 1, 0)
            fcntl.fcntl(open(os.__file__), fcntl.F_SETLK, asked)
            return True
        """,
        True,
    ),
    breaks(
        "watches-a-file",
        "inotify on a file of the system",
        """
        def breach():
            watch = libc.inotify_init()
            return watch >= 0 and libc.inotify_add_watch(watch, os.__file__.encode(), 0xFFF) >= 0
        """,
        True,
    ),
    breaks(
        "asks-what-is-cached",
        "reads a file of the grader only where it is cached (preadv2)",
        """
        def breach():
            try: os.preadv(os.open(FILE, os.O_RDONLY), [bytearray(64)], 0, os.RWF_NOWAIT)
            except OSError as error: return error.errno != errno.EPERM  # told, or cannot be told
            return True
        """,
        True,
    ),
    breaks(
        "asks-what-is-resident",
        "asks which pages of a file of the grader are in memory (mincore)",
        """
        def breach():
            view = mmap.mmap(os.open(FILE, os.O_RDONLY), 0, access=mmap.ACCESS_COPY)
            start = ctypes.addressof(ctypes.c_char.from_buffer(view))
            room = ctypes.create_string_buffer(len(view) // mmap.PAGESIZE + 1)
            return libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(view)), room) == 0
        """,
        True,
    ),
    breaks(
        "note-in-what-is-cached",
        "drops a file of the grader from the cache (posix_fadvise)",
        """
        def breach():
            os.posix_fadvise(os.open(FILE, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
            return True
        """,
        True,
    ),
    breaks(
        "note-in-flight",
        "leaves a descriptor on its way over a socket (sendmsg)",
        """
        def breach():
            near, far = socket.socketpair()
            return socket.send_fds(near, [b"x"], [os.open(FILE, os.O_RDONLY)])
        """,
        True,
    ),
]
