"""Code that never ends, ends its process, breaks the worker, or leaves processes."""

import struct
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from sandboxed import HASTY, LIMITS, ROOT, framed, running, sends, trouble, within, works

from autograder.diagnosis import StudentError
from autograder.sandbox import Sandbox

LOOPS = {
    "a loop": "def f():\n  while True: pass",
    "a sleep": "import time\ndef f(): time.sleep(1000)",
    "a loop that swallows every exception": """
def f():
    while True:
        try:
            while True: pass
        except BaseException: pass
""",
    "a loop with signals ignored": """
import signal
def f():
    for n in range(1, 32):
        try: signal.signal(n, signal.SIG_IGN)
        except OSError: pass
    while True: pass
""",
    "an exception whose text takes for ever": """
class E(Exception):
    def __str__(self):
        while True: pass
def f(): raise E
""",
    "an answer that comes byte by byte": """
import os, time
def f():
    os.write(3, b"\\0\\0\\x10\\0")
    while True:
        os.write(3, b"x")
        time.sleep(0.01)
""",
}


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_what_does_not_end_is_ended_and_told_again_at_once(hasty: Sandbox, source: str) -> None:
    with hasty.open([("solution", source)], ["f"]) as subject:
        for _ in range(20):
            with pytest.raises(StudentError) as caught:
                subject()
            assert caught.value.kind == "timeout"
    assert works(hasty)


def test_an_endless_cell_is_passed_over(hasty: Sandbox) -> None:
    cells = [("own", "while True: pass"), ("solution", "def f(): return 5")]
    with hasty.open(cells, ["f"]) as subject:
        assert subject.cell_errors == ["ran for over 0.8 s (own)."]
        assert subject() == 5


def test_an_endless_cell_that_resists_ends_the_exercise(runtime: Path, sandbox: Sandbox) -> None:
    source = "while True:\n  try:\n    for _ in iter(int, 1): pass\n  except BaseException: pass"
    limits = HASTY._replace(exercise_s=1)
    with (
        Sandbox(runtime, limits, rung=sandbox.rung) as other,
        other.open([("own", source), ("solution", "def f(): return 5")], ["f"]) as subject,
        pytest.raises(StudentError) as caught,
    ):
        subject()
    assert caught.value.kind == "timeout"


CRASHES = {
    "exits": ("import os\ndef f(): os._exit(0)", "exit code 0"),
    "exits in the cell": ("import os\nos._exit(3)", "exit code 3"),
    "reads nothing": ("import ctypes\ndef f(): ctypes.string_at(0)", "signal SIGSEGV"),
    "aborts": ("import os\ndef f(): os.abort()", "signal SIG"),
    "closes the connection": ("import os, time\ndef f(): os.close(3); time.sleep(1000)", "connect"),
    "sends noise": (sends(b"\xff" * 50), "a frame of 4294967295 bytes"),
    "sends broken bytes": (sends(b"\0\0\0\4\xc1\xc1\xc1\xc1"), "no plain value"),
    "sends depth": (sends(struct.pack(">I", 60_000) + b"\x91" * 60_000), "no plain value"),
    "promises too much": (sends(struct.pack(">I", 2**23 + 1)), "8388609 bytes"),
    "sends no message": (sends(framed(7)), "broke the connection"),
    "sends an array": (sends(framed([1, [4, "|b1", [2], b"\1\1"], 1, 5])), "broke the connection"),
    "answers a later call": (sends(framed([1, "answer", 2, 5])), "broke the connection"),
    "claims what it may not": (
        sends(framed([1, "trouble", 1, "timeout", "", "", None])),
        "broke the connection",
    ),
    "spoils the protocol": (
        "import autograder.worker.protocol as p\n"
        "p.encode = lambda *a, **k: b'junk'\ndef f(): return 1",
        "no plain value",
    ),
    "spoils the builtins": (
        "import builtins\ndef f():\n  builtins.type = builtins.isinstance = builtins.len = None",
        "ended before it answered",
    ),
    "spoils its limits": (
        "import resource\ndef f():\n"
        "  resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\n  while True: pass",
        "signal SIGKILL",
    ),
}


@pytest.mark.parametrize("source, how", CRASHES.values(), ids=CRASHES)
def test_a_broken_process_is_a_crash_and_costs_no_other_exercise(
    sandbox: Sandbox, source: str, how: str
) -> None:
    with sandbox.open([("solution", source)], ["f"]) as subject:
        for _ in range(3):
            with pytest.raises(StudentError) as caught:
                subject()
            assert caught.value.kind == "crashed"
            assert how in caught.value.message
    assert works(sandbox)


def test_bytes_a_student_writes_can_be_no_better_than_an_answer(sandbox: Sandbox) -> None:
    sent = framed([1, "answer", 1, 5])
    source = f"import os\ndef f(): os.write(3, {sent!r}); return 6"
    with sandbox.open([("solution", source)], ["f"]) as subject:
        assert subject() == 5
        with pytest.raises(StudentError, match="broke the connection"):
            subject()


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("class E(Exception):\n  def __str__(self): raise self\ndef f(): raise E", "E: its text"),
        (
            "class S(str):\n  def encode(self, *a, **k): return 3\n  __len__ = None\n"
            "class E(Exception):\n  def __str__(self): return S('lies')\ndef f(): raise E",
            "E: lies",
        ),
        (
            "class M(type):\n  @property\n  def __name__(c): raise KeyError\n"
            "class E(Exception, metaclass=M): pass\ndef f(): raise E",
            "E (solution",
        ),
        (
            "class E(Exception):\n  @property\n  def __traceback__(self): raise KeyError\n"
            "def f(): raise E('x')",
            "E: x",
        ),
        (
            "class L(list):\n  def __repr__(self): raise KeyError\n  __iter__ = None\n"
            "def f(): return L()",
            "a L, a subclass of list",
        ),
    ],
)
def test_values_that_resist_being_shown_are_told_all_the_same(
    sandbox: Sandbox, source: str, sentence: str
) -> None:
    assert sentence in trouble(sandbox, source).message


def test_a_fork_that_comes_back_gives_one_answer(sandbox: Sandbox) -> None:
    source = "import os\ndef f(): os.fork(); return 1\nos.fork()"
    with sandbox.open([("c", source)], ["f"]) as subject:
        assert [subject(), subject()] == [1, 1]


def test_processor_time_is_limited_apart_from_the_clock(runtime: Path, sandbox: Sandbox) -> None:
    with Sandbox(runtime, LIMITS._replace(cpu_s=1), rung=sandbox.rung) as other:
        error = trouble(other, "def f():\n  while True: pass")
    assert (error.kind, error.message) == (
        "timeout",
        "your code takes more than 1 s of processor time.",
    )


LEAVES = """
import os, subprocess, sys, time, ctypes
def f(marker, how):
    code = f"import os, signal, time\\n" \\
           f"for n in (1, 2, 3, 13, 15): signal.signal(n, signal.SIG_IGN)\\n" \\
           f"time.sleep(600) # {marker}"
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        if os.fork(): os._exit(0)
        subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        time.sleep(600)
    time.sleep(0.3)
    if how == "exits": os._exit(0)
    if how == "hangs":
        while True: pass
    return how
"""


@pytest.mark.parametrize("how", ["answers", "exits"])
def test_no_process_is_left_of_an_exercise(sandbox: Sandbox, how: str) -> None:
    marker = uuid.uuid4().hex
    with sandbox.open([("c", LEAVES)], ["f"]) as subject:
        if how == "answers":
            assert subject(marker, how) == how
            assert within(10, lambda: running(marker))
        else:
            with pytest.raises(StudentError):
                subject(marker, how)
    assert within(10, lambda: not running(marker))
    assert works(sandbox)


def test_no_process_is_left_of_one_that_hangs(hasty: Sandbox) -> None:
    marker = uuid.uuid4().hex
    assert trouble(hasty, LEAVES, marker, "hangs").kind == "timeout"
    assert within(10, lambda: not running(marker))
    assert works(hasty)


def test_a_dead_judge_leaves_no_process(runtime: Path, sandbox: Sandbox) -> None:
    marker = uuid.uuid4().hex
    judge = f"""
import sys, time
from pathlib import Path
from autograder.sandbox import Sandbox
sandbox = Sandbox(Path({str(runtime)!r}), rung={sandbox.rung!r})
subject = sandbox.open([("c", {LEAVES!r})], ["f"])
subject({marker!r}, "answers")
print("ready", flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", judge], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        alive = within(10, lambda: len(running(marker)) > 1)
        process.kill()
    assert alive
    assert within(20, lambda: not running(marker))
