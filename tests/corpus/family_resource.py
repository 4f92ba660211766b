"""Code that takes too much or does not end: it costs its own exercise and nobody else's.

Graded with LIMITS, shorter than a class's own, so that the test is done in a minute.
"""

import textwrap
from functools import partial

from making import Due, Submission, changed, made, nothing_for

from autograder.sandbox import Limits

LIMITS = Limits(
    call_s=3,
    cell_s=2,
    exercise_s=5,
    cpu_s=20,
    memory_bytes=200 * 2**20,
    n_processes=24,
    n_files=32,
    file_bytes=2**20,
    output_bytes=4000,
)
# What left-over processes can be known by, on the command line or in the environment.
MARKER = "corpus-left-over"


def in_split(name: str, what: str, source: str, status: str, **more: bool | None) -> Submission:
    """A right notebook whose `split_batch` is this body; it gets that status and no points."""
    body = textwrap.indent(textwrap.dedent(source).strip(), "    ")
    code = f"def split_batch(n_samples, n_microbatches):\n{body}"
    due = Due(points={"split_batch": 0}, statuses={"split_batch": status})
    return made(
        "resource",
        name,
        what,
        partial(changed, {"solution-split_batch": code}),
        due=due,
        unwalled=more.get("unwalled", False),
    )


def whole(name: str, what: str, source: str, status: str) -> Submission:
    """An answer's cell that no process comes past: it costs what that cell answers, no more."""
    answer = "def gpipe(n_stages, n_microbatches): return []\n"
    cells = {"solution-gpipe": answer + textwrap.dedent(source)}
    lost = nothing_for("03", "gpipe", "gpipe_fast")
    due = Due(points=lost, statuses=dict.fromkeys(lost, status))
    return made("resource", name, what, partial(changed, cells), due=due)


RESISTS = """
    while True:
        try:
            while True: sum(range(99))
        except BaseException:
            pass
"""

SUBMISSIONS = [
    in_split("loop", "an endless loop", "while True: pass", "timeout"),
    in_split(
        "loop-catches-all",
        "a loop that catches whatever stops it",
        """
        while True:
            try:
                while True: sum(range(99))
            except BaseException:
                pass
        """,
        "timeout",
    ),
    in_split(
        "loop-ignores-signals",
        "a loop with every signal ignored",
        """
        import signal
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True: pass
        """,
        "timeout",
    ),
    in_split(
        "loop-in-c",
        "a regular expression that takes for ever",
        """
        import re
        re.match(r"(a*)*b", "a" * 60)
        """,
        "timeout",
    ),
    in_split("sleeps", "asleep", "import time; time.sleep(10_000)", "timeout"),
    in_split(
        "sleeps-each-time",
        "slow in every call",
        "import time; time.sleep(1)\nreturn [(n_samples, 1.0)]",
        "timeout",
    ),
    in_split(
        "waits-for-input",
        "waits for a pipe nobody writes to",
        """
        import os
        os.read(os.pipe()[0], 1)
        """,
        "timeout",
    ),
    in_split(
        "stops-itself",
        "sends itself SIGSTOP, then loops",
        """
        import os, signal
        os.kill(os.getpid(), signal.SIGSTOP)
        while True: pass
        """,
        "timeout",
    ),
    in_split(
        "drips",
        "an answer byte by byte",
        """
        import os, time
        for byte in b"\\0\\0\\4\\0" + b"x" * 1000:
            os.write(3, bytes([byte])); time.sleep(0.05)
        """,
        "timeout",
    ),
    in_split(
        "deadlock",
        "waits for a lock it holds",
        """
        import threading
        lock = threading.Lock()
        with lock, lock: pass
        """,
        "timeout",
    ),
    in_split("exits", "os._exit(0)", "import os; os._exit(0)", "crashed"),
    in_split("exits-politely", "sys.exit(0)", "import sys; sys.exit(0)", "failed"),
    in_split(
        "exit-leaves-child",
        "exits while a child holds the line",
        """
        import os, time
        if os.fork() == 0: time.sleep(10_000)
        os._exit(0)
        """,
        "crashed",
    ),
    in_split("segfaults", "reads address 0", "import ctypes; ctypes.string_at(0)", "crashed"),
    in_split(
        "closes-the-line",
        "closes every descriptor",
        """
        import os, time
        os.closerange(0, 64)
        time.sleep(10_000)
        """,
        "crashed",
    ),
    in_split(
        "recursion",
        "calls itself without end",
        "return split_batch(n_samples, n_microbatches)",
        "failed",
    ),
    in_split("memory", "asks for 100 GB", "return [0] * 12_500_000_000", "out_of_memory"),
    in_split(
        "memory-slowly",
        "holds ever more",
        """
        kept = []
        while True: kept.append(bytearray(2**20))
        """,
        "out_of_memory",
    ),
    in_split(
        "huge-result", "an array of 8 GB in 8 bytes", "return np.broadcast_to(0.5, 10**9)", "failed"
    ),
    in_split("large-result", "a hundred thousand pieces", "return [(1, 0.5)] * 100_000", "failed"),
    in_split(
        "deep-result",
        "ten thousand lists in each other",
        """
        result = []
        for _ in range(10_000): result = [result]
        return result
        """,
        "failed",
    ),
    in_split(
        "endless-result",
        "a generator without end",
        """
        import itertools
        return itertools.cycle([(1, 1.0)])
        """,
        "failed",
    ),
    in_split(
        "huge-number",
        "a whole number of a million bits",
        "return [(1 << 1_000_000, 1.0)]",
        "failed",
    ),
    in_split(
        "fork-bomb", "forks for ever", "import os\nwhile True: os.fork()", "failed", unwalled=None
    ),
    whole("answer-exits", "os._exit in an answer's cell", "import os; os._exit(0)", "crashed"),
    whole("answer-nested", "5,000 signs before a number", f"x = {'-' * 5000}1", "failed"),
    whole(
        "answer-resists",
        "an answer's cell without end that catches whatever stops it",
        RESISTS,
        "timeout",
    ),
]
