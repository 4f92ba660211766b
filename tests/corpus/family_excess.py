"""Code that takes too much and is cut short or passed over, beside right answers: no point is lost.

Graded with the limits of `family_resource`.
"""

import textwrap

from borrowed import LEAVES
from family_resource import MARKER, RESISTS
from making import Due, Submission, changed, made, right, with_cells

from autograder.submissions.cells import Node


def beside(name: str, what: str, source: str, **more: bool | None) -> Submission:
    """A right notebook with this cell before its answers; it keeps every point."""
    code = textwrap.dedent(source)
    return made(
        "resource",
        name,
        what,
        lambda: with_cells(right("03"), first=code),
        due=Due(notes=bool(more.get("notes"))),
        unwalled=more.get("unwalled", False),
    )


def over(name: str, what: str, source: str, **more: bool | None) -> Submission:
    """A right notebook with this cell at its end, around its answers; it keeps every point."""
    code = textwrap.dedent(source)
    return made(
        "resource",
        name,
        what,
        lambda: with_cells(right("03"), last=code),
        unwalled=more.get("unwalled", False),
    )


def with_raw(source: str) -> Node:
    """The right notebook with a cell of this very text at its end."""
    notebook = with_cells(right("03"), last="x")
    notebook.cells[-1].source = source
    return notebook


def with_constant() -> Node:
    """An answer that rests on a constant of an own cell, while another one ends the process."""
    notebook = with_cells(changed({"solution-step_time": _BY_CONSTANT}), first="PHASES = 3")
    return with_cells(notebook, first="import os; os._exit(0)")


_INNER = """
    inner = split_batch
    def split_batch(n_samples, n_microbatches):
        spend()
        return inner(n_samples, n_microbatches)
"""
_BY_CONSTANT = """
    def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
        forward = overhead_s + n_samples / n_microbatches * sample_s
        return (n_microbatches + n_stages - 1) * PHASES * forward
"""

SUBMISSIONS = [
    made(
        "resource",
        "cell-exits-by-constant",
        "an own cell exits, another one is needed",
        with_constant,
        notes=True,
    ),
    made(
        "resource",
        "blank-lines",
        "60,000 blank lines in a cell that is no Python",
        lambda: with_raw("\n" * 60_000 + "1 1"),
    ),
    made(
        "resource",
        "magic-lines",
        "19 magics before 20,000 lines that are no Python",
        lambda: with_raw("%time x\n" * 19 + "1 1\n" * 20_000),
    ),
    beside("cell-loops", "an endless loop in a cell of its own", "while True: pass"),
    beside("cell-nested", "a sum nested 5,000 deep in a cell of its own", f"x = {'1 + ' * 5000}1"),
    beside("cell-too-large", "a cell that asks for 100 GB", "x = [0] * 12_500_000_000"),
    beside("cell-raises-exit", "a cell that ends with sys.exit", "import sys; sys.exit(3)"),
    beside(
        "zombies",
        "ended children nobody waits for",
        """
        import os
        for _ in range(15):
            if os.fork() == 0: os._exit(0)
        """,
    ),
    beside(
        "daemon-prints",
        "a thread that prints for ever",
        """
        import threading
        def talk():
            while True: print("talk " * 20)
        threading.Thread(target=talk, daemon=True).start()
        """,
    ),
    beside("fork-comes-back", "forks, and both go on", "import os\nos.fork()"),
    over(
        "prints-200-mb",
        "prints 200 MB",
        """
        spend = lambda: [print("x" * 1_000_000) for _ in range(3)] and None
        for _ in range(200): print("x" * 1_000_000)
        """
        + _INNER,
    ),
    over(
        "writes-200-mb",
        "writes 200 MB to the C-level output",
        """
        import os
        def spend():
            for _ in range(200):
                try: os.write(2, b"x" * 1_000_000)
                except BlockingIOError: pass
        spend()
        """
        + _INNER,
    ),
    over(
        "fills-the-disk",
        "writes files until no more can be written",
        """
        import os
        def spend():
            try:
                for number in range(200):
                    with open(f"/tmp/fill-{number}", "wb") as file: file.write(b"x" * 2**20)
            except OSError: pass
        """
        + _INNER,
        unwalled=None,
    ),
    over(
        "opens-files",
        "opens files until no more can be opened",
        """
        kept = []
        def spend():
            try:
                while True: kept.append(open("/dev/null"))
            except OSError: kept.clear()
        """
        + _INNER,
    ),
    over(
        "threads",
        "starts threads until no more can be started",
        """
        import threading
        wait = threading.Event()
        def spend():
            started = []
            try:
                for _ in range(500):
                    one = threading.Thread(target=wait.wait, daemon=True)
                    one.start(); started.append(one)
            except RuntimeError: pass
            wait.set()
            for one in started: one.join()
            wait.clear()
        """
        + _INNER,
        unwalled=None,
    ),
    over(
        "left-over",
        "leaves processes of their own sessions",
        f"""
{textwrap.indent(LEAVES.strip(), " " * 8)}
        left = []
        def spend():
            if not left: left.append(f({MARKER!r}, "answers"))
        """
        + _INNER,
    ),
    beside("cell-exits", "os._exit in a cell of its own", "import os; os._exit(0)", notes=True),
    beside(
        "cell-resists",
        "a cell of its own without end that catches whatever stops it",
        RESISTS,
        notes=True,
    ),
]
