"""Tricks that make slow work look fast, each with what it may be found out by."""

from speed_toy import INDEXED, REFERENCE

# The reference under another name, for what wraps it.
SLOW = REFERENCE.replace("def dispatch", "def slow")
# Where a cheat takes over the worker's answers to the judge.
WORKER = (
    SLOW
    + """
import gc, os, socket, threading, time
from autograder.worker import protocol, student, timed
serve, run = student._Notebook.serve, timed.Timed.run
FORM = ("<f4", (8, 144, 64))
def dispatch(*given):
    return slow(*given)
"""
)
SLOWLY, WRONG, REFUSED, BROKEN = "slow", "wrong_when_timed", "not_plain", "crashed"
CHEATS = {
    "caches by identity": (
        SLOW
        + """
cache = {}
def dispatch(x, expert, *rest):
    key = id(x), id(expert)
    if key not in cache:
        cache[key] = slow(x, expert, *rest)
    return cache[key]
""",
        {WRONG},
    ),
    "caches by value": (
        SLOW
        + """
cache = {}
def dispatch(x, expert, slot, *rest):
    key = x.tobytes(), expert.tobytes(), slot.tobytes()
    if key not in cache:
        cache[key] = slow(x, expert, slot, *rest)
    return cache[key]
""",
        {SLOWLY},
    ),
    "a lazy subclass": (
        SLOW
        + """
class Lazy(np.ndarray):
    pass
def dispatch(x, *rest):
    return np.empty(FORM).view(Lazy)
FORM = 8, 144, 64
""",
        {REFUSED},
    ),
    "a lazy object": (
        SLOW
        + """
class Lazy:
    def __init__(self, *given):
        self.given = given
    def __array__(self, dtype=None, copy=None):
        return slow(*self.given)
def dispatch(*given):
    return Lazy(*given)
""",
        {REFUSED},
    ),
    "a list of lazy objects": (
        SLOW
        + """
class Lazy:
    def __init__(self, *given):
        self.given = given
    def __array__(self, dtype=None, copy=None):
        return slow(*self.given)
def dispatch(*given):
    return [Lazy(*given)]
""",
        {REFUSED, SLOWLY, WRONG},
    ),
    "a lazy array that the worker lets pass": (
        WORKER
        + """
class Lazy:
    def __init__(self, *given):
        self.given = given
def dispatch(*given):
    return Lazy(*given)
def lazily(self, function):
    answer = function(*self._arguments)
    place = timed.array_at(self._memory, self._answer_at, FORM)
    place[...] = slow(*answer.given)
    return FORM
timed.Timed.run = lazily
""",
        {SLOWLY},
    ),
    "patched clocks": (
        SLOW
        + """
import time
for name in ("perf_counter", "monotonic", "time", "process_time", "perf_counter_ns"):
    setattr(time, name, lambda: 0.0)
def dispatch(*given):
    return slow(*given)
""",
        {SLOWLY},
    ),
    "a thread that spins": (
        WORKER
        + """
def spin():
    while True:
        sum(range(10**6))
def dispatch(*given):
    try:
        threading.Thread(target=spin, daemon=True).start()
    except RuntimeError:
        pass
    return slow(*given)
""",
        {SLOWLY},
    ),
    "a process that spins": (
        WORKER
        + """
for _ in range(4):
    try:
        if os.fork() == 0:
            while True:
                sum(range(10**6))
    except OSError:
        pass
""",
        {SLOWLY},
    ),
    "it spins after its answer": (
        WORKER
        + """
junk = np.zeros(2**22)
def late(self, channel, message):
    serve(self, channel, message)
    end = time.monotonic() + 0.02
    while message[0] == "go" and time.monotonic() < end:
        junk[...] += 1
student._Notebook.serve = late
""",
        {SLOWLY},
    ),
    "skips every second call": (
        SLOW
        + """
calls = []
def dispatch(*given):
    calls.append(0)
    if len(calls) % 2 or len(calls) < 4:
        dispatch.last = slow(*given)
    return dispatch.last
""",
        {WRONG},
    ),
    "skips work after the warm-up": (
        SLOW
        + """
calls = []
def dispatch(*given):
    calls.append(0)
    return slow(*given) if len(calls) < 3 else np.zeros((8, 144, 64), np.float32)
""",
        {WRONG},
    ),
    "skips half of the tokens": (
        INDEXED.replace("out[expert, slot] = x", "out[expert[::2], slot[::2]] = x[::2]"),
        {WRONG},
    ),
    "says done, then works": (
        WORKER
        + """
def early(self, channel, message):
    if message[0] != "go":
        return serve(self, channel, message)
    channel.send(("done", message[1], *FORM))
    self.timed[1].run(slow)
student._Notebook.serve = early
""",
        {WRONG, SLOWLY},
    ),
    "answers before go": (
        WORKER
        + """
def before(self, channel, message):
    serve(self, channel, message)
    if message[0] == "timed":
        channel.send(("done", 7, *FORM))
student._Notebook.serve = before
""",
        {BROKEN},
    ),
    "answers twice": (
        WORKER
        + """
def twice(self, channel, message):
    serve(self, channel, message)
    if message[0] == "go":
        channel.send(("done", message[1], *FORM))
student._Notebook.serve = twice
""",
        {BROKEN},
    ),
    "says done and nothing else": (
        WORKER
        + """
timed.Timed.run = lambda self, function: FORM
""",
        {WRONG},
    ),
    "gives its input back": (
        SLOW
        + """
def dispatch(x, *rest):
    return x
""",
        {WRONG},
    ),
    "gives the memory of its input in the right form": (
        SLOW
        + """
def dispatch(x, *rest):
    return np.lib.stride_tricks.as_strided(x, (8, 144, 64), (0, *x.strides))
""",
        {WRONG},
    ),
    "claims a form of another size": (
        WORKER
        + """
timed.Timed.run = lambda self, function: ("<f4", (2**40, 2**40))
""",
        {BROKEN},
    ),
    "claims objects": (
        WORKER
        + """
timed.Timed.run = lambda self, function: ("|O8", (8,))
""",
        {BROKEN},
    ),
    "answers what is no number": (
        WORKER
        + """
def run(self, function):
    timed.array_at(self._memory, self._answer_at, FORM)[...] = float("nan")
    return FORM
timed.Timed.run = run
""",
        {WRONG},
    ),
    "cuts the memory off": (
        WORKER
        + """
kept, close = [], os.close
timed.os.close = kept.append
def dispatch(*given):
    try:
        os.ftruncate(kept[0], 0)
    except OSError:
        return slow(*given)
    return np.zeros((8, 144, 64), np.float32)
""",
        {SLOWLY},
    ),
    "looks for the reference's result": (
        WORKER
        + """
import glob, mmap
def dispatch(*given):
    found = glob.glob("/proc/[0-9]*/fd/*") + os.listdir("/dev/shm")
    for descriptor in range(4, 200):
        try:
            os.fstat(descriptor)
            found.append(descriptor)  # one: its own memory, for which the other has no name
        except OSError:
            pass
    return slow(*given) if len(found) < 2 else np.zeros((8, 144, 64), np.float32)
""",
        {SLOWLY},
    ),
    "a higher priority": (
        WORKER
        + """
for raises in (lambda: os.nice(-10), lambda: os.sched_setscheduler(0, 1, os.sched_param(50))):
    try:
        raises()
    except OSError:
        pass
""",
        {SLOWLY},
    ),
}
