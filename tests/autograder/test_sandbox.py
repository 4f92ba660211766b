"""Students' code in its process: what it gives, what it cannot reach, and what it leaves behind."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from autograder.diagnosis import StudentError
from autograder.exercise import Exercise, Unit
from autograder.sandbox import Limits, RemoteSubject, Sandbox, SandboxError, build_runtime, parent
from autograder.worker import walls
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline, simulate

ROOT = Path(__file__).parents[2]
LIMITS = Limits(
    call_s=10,
    exercise_s=30,
    memory_bytes=200 * 2**20,
    n_processes=12,
    n_files=32,
    file_bytes=2**20,
    output_bytes=4000,
)
HASTY = LIMITS._replace(call_s=0.8, cell_s=0.8)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    withheld = ("mpedu.families.gpipe", "mpedu.simulate.Timeline.idle_share")
    exercise = Exercise("toy", "Toy", 1, ("f",), "data", withheld, (), "99", lambda s, d: None)
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(Unit("99", "toy", (exercise,), ()), folder)
    return folder


def started(runtime: Path, walled: bool, limits: Limits) -> Iterator[Sandbox]:
    with Sandbox(runtime, limits, walled=walled) as sandbox:
        if walled and sandbox.rung == "not walled":
            pytest.skip(f"no walls on this machine: {sandbox.walls.note}")
        yield sandbox


@pytest.fixture(scope="module", params=[True, False], ids=["walled", "plain"])
def sandbox(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, request.param, LIMITS)


@pytest.fixture(scope="module", params=[True, False], ids=["walled", "plain"])
def hasty(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, request.param, HASTY)


@pytest.fixture(scope="module")
def walled(runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, True, LIMITS)


def ask(sandbox: Sandbox, source: str, *args: Any) -> Any:
    with sandbox.open([("solution", source)], ["f"]) as subject:
        assert subject.cell_errors == []
        return subject(*args)


def trouble(sandbox: Sandbox, source: str, *args: Any) -> StudentError:
    with sandbox.open([("solution", source)], ["f"]) as subject, pytest.raises(StudentError) as got:
        subject(*args)
    return got.value


def works(sandbox: Sandbox) -> bool:
    return bool(ask(sandbox, "def f(x): return x + 1", 1) == 2)


def running(marker: str) -> list[int]:
    """Processes of this machine whose command line holds the marker."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found


def descendants(pid: int) -> list[int]:
    return [pid, *(found for child in walls.children_of(pid) for found in descendants(child))]


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def within(seconds: float, holds: Any) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# What honest code gives


@pytest.mark.parametrize(
    "value",
    [3, 0.1, "µ", None, [1, (2, "x")], {"a": [0.5]}, [Action("F", 0, 1)], Costs(forward_s=[1, 2])],
    ids=repr,
)
def test_values_pass_through_a_student_s_function_unchanged(sandbox: Sandbox, value: Any) -> None:
    assert repr(ask(sandbox, "def f(x): return x", value)) == repr(value)


def test_records_are_the_package_s_own_on_both_sides(sandbox: Sandbox) -> None:
    source = """
from mpedu.families import naive
from mpedu.simulate import simulate
def f(timeline): return [timeline == simulate(naive(2, 2)), timeline.makespan_s, timeline]
"""
    from mpedu.families import naive

    timeline = simulate(naive(2, 2))
    same, makespan_s, back = ask(sandbox, source, timeline)
    assert (same, makespan_s) == (True, timeline.makespan_s)
    assert (type(back), back) == (Timeline, timeline)


def test_numpy_results_arrive_as_numbers_and_arrays(sandbox: Sandbox) -> None:
    source = "import numpy as np\ndef f(): return [np.float64(0.5), np.arange(3) * 2]"
    number, array = ask(sandbox, source)
    assert type(number) is float
    assert np.array_equal(array, [0, 2, 4])


def test_a_shared_inner_list_is_still_shared_outside(sandbox: Sandbox) -> None:
    first, second = ask(sandbox, "def f(): return [[1]] * 2")
    assert first is second


def test_several_functions_are_asked_by_name_and_keep_state(sandbox: Sandbox) -> None:
    cells = [("a", "n = 0\ndef up(*, by):\n    global n; n += by; return n"), ("b", "down = -1")]
    with sandbox.open(cells, ["up", "other"]) as subject:
        assert [subject.up(by=2), subject.up(by=3)] == [2, 5]
        with pytest.raises(AttributeError, match="down is not asked for"):
            subject.down()
        with pytest.raises(TypeError, match="2 functions"):
            subject(1)


def test_cells_share_names_and_a_failing_one_is_passed_over(sandbox: Sandbox) -> None:
    cells = [
        ("set-up", "from dataclasses import dataclass\nget_ipython().run_line_magic('x', 'y')"),
        ("broken", "x = (\n"),
        ("broken", "x = 1\n  y = 2"),
        ("own", "\n\ndef g():\n    return 1 / 0\ng()"),
        ("own", "raise SystemExit(3)"),
        ("own", "open('/nowhere/file')"),
        ("surrogate", "x = '\ud800'"),
        ("solution", "@dataclass\nclass C:\n    x: int\ndef f(): return [C(1).x, __name__]"),
    ]
    with sandbox.open(cells, ["f"]) as subject:
        assert subject() == [1, "__main__"]
        errors = subject.cell_errors
    assert errors == [
        "SyntaxError: '(' was never closed (broken, line 1).",
        "IndentationError: unexpected indent (broken, line 2).",
        "ZeroDivisionError: division by zero (own, line 4).",
        "SystemExit: 3 (own, line 1).",
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/file' (own, line 1).",
    ]


def test_two_exercises_at_a_time_do_not_meet(sandbox: Sandbox) -> None:
    source = "import pathlib\nplace = pathlib.Path('x')\nf, g = place.write_text, place.read_text"
    with sandbox.open([("c", source)], ["f", "g"]) as one:
        with sandbox.open([("c", source)], ["f", "g"]) as two:
            one.f("one")
            two.f("two")
            assert (one.g(), two.g()) == ("one", "two")
        assert one.g() == "one"


def test_prints_and_warnings_are_kept_up_to_the_limit(sandbox: Sandbox) -> None:
    source = """
import os, sys, warnings
def f(n):
    print("printed \\x1b[2J")
    print("to stderr", file=sys.stderr)
    warnings.warn("careful")
    os.write(1, b"from below\\n")
    for _ in range(n): print("x" * 1000)
"""
    with sandbox.open([("c", source)], ["f"]) as subject:
        subject(0)
        first = subject.output
        subject(300_000)
        second = subject.output
    assert "printed \ufffd[2J\nto stderr\n" in first
    assert "UserWarning: careful" in first
    assert "from below\n" in first
    assert second.startswith(first)
    assert len(first) + 1000 < len(second) <= LIMITS.output_bytes


# What goes wrong in honest code

NO_KEYBOARD = "it calls input(), and there is no keyboard when graded"
PROCESSES = "it starts more processes than allowed"
AGAIN = "Resource temporarily unavailable"


@pytest.mark.parametrize(
    "source, kind, message, type_name, line",
    [
        ("", "missing", "`f` is not defined.", "", None),
        ("def f():\n  raise NotImplementedError", "unwritten", "`f` is not written yet.", "", None),
        (
            "def f():\n  x = 1\n  raise ValueError(f'n={x} is too small')",
            "raised",
            "your code raises ValueError: n=1 is too small (solution, line 3).",
            "ValueError",
            3,
        ),
        (
            "def f(): exit()",
            "raised",
            "your code raises SystemExit: None (solution, line 1).",
            "SystemExit",
            1,
        ),
        (
            "f = 3",
            "raised",
            "your code raises TypeError: 'int' object is not callable.",
            "TypeError",
            None,
        ),
        (
            "def f(): raise KeyboardInterrupt",
            "raised",
            "your code raises KeyboardInterrupt (solution, line 1).",
            "KeyboardInterrupt",
            1,
        ),
        (
            "def f(): return f()",
            "raised",
            "your code raises RecursionError: maximum recursion depth exceeded (solution, line 1).",
            "RecursionError",
            1,
        ),
        (
            "from mpedu.families import gpipe as f2\ndef f(): return f2(1, 1)",
            "withheld",
            "this is the exercise: mpedu.families.gpipe refuses while it is checked; write it"
            " yourself.",
            "",
            None,
        ),
        (
            "class A(int): pass\ndef f(): return [A()]",
            "not_plain",
            "answer[0] is an A, a subclass of int; return int itself.",
            "",
            None,
        ),
        (
            "def f(): return bytearray(2**40)",
            "out_of_memory",
            "your code asks for more memory than the 200 MiB it has.",
            "",
            None,
        ),
    ],
)
def test_trouble_is_told_with_kind_sentence_and_line(
    sandbox: Sandbox, source: str, kind: str, message: str, type_name: str, line: int | None
) -> None:
    error = trouble(sandbox, source)
    assert (error.kind, error.message) == (kind, message)
    assert (error.type_name, error.line) == (type_name, line)


@pytest.mark.parametrize(
    ("source", "stop"),
    [
        ("def f(:\n  return 1", "SyntaxError: invalid syntax (solution, line 1)"),
        ("n = input()\ndef f(): return n", f"EOFError: {NO_KEYBOARD} (solution, line 1)"),
        ("while True: pass\nf = len", "ran for over 0.8 s (solution)"),
    ],
)
def test_what_its_stopped_cell_would_have_defined_is_told_with_the_cause(
    hasty: Sandbox, source: str, stop: str
) -> None:
    cause = f"`f` is not defined, because its cell stopped with an error: {stop}."
    with hasty.open([("solution", source), ("own", "def g(): return f()")], ["f", "g"]) as subject:
        for call in (subject.f, subject.g):
            with pytest.raises(StudentError) as caught:
                call()
            assert caught.value.message.endswith(cause)
        assert caught.value.message.startswith("your code raises NameError")


def test_a_stopped_cell_is_no_cause_of_other_missing_names(sandbox: Sandbox) -> None:
    assert trouble(sandbox, "def ff(:\n  f()").message == "`f` is not defined."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("input()", f"EOFError: {NO_KEYBOARD}"),
        ("while True: os.fork() or time.sleep(9)", f"BlockingIOError: {PROCESSES}"),
        ("while True: subprocess.Popen(['sleep', '9'])", f"BlockingIOError: {PROCESSES}"),
        (
            "while True: threading.Thread(target=time.sleep, args=(9,)).start()",
            "RuntimeError: it starts more threads than allowed",
        ),
        (
            "open_files = [os.pipe() for _ in range(99)]",
            "OSError: it opens more files than allowed",
        ),
        ("raise EOFError('end of tape')", "EOFError: end of tape"),
        ("r, w = os.pipe2(os.O_NONBLOCK); os.read(r, 1)", f"BlockingIOError: [Errno 11] {AGAIN}"),
    ],
)
def test_what_only_grading_forbids_is_told_in_its_words(
    walled: Sandbox, body: str, said: str
) -> None:
    error = trouble(walled, f"import os, subprocess, threading, time\ndef f():\n  {body}")
    assert error.message == f"your code raises {said} (solution, line 3)."


def test_after_an_exception_the_process_still_answers(sandbox: Sandbox) -> None:
    source = (
        "kept = []\ndef f(n):\n  while n: kept.append(bytearray(2**20))\n  return len(kept) > 9"
    )
    with sandbox.open([("c", source)], ["f"]) as subject:
        with pytest.raises(StudentError) as caught:
            subject(1)
        assert caught.value.kind == "out_of_memory"
        assert subject(0) is True


def test_a_long_message_is_shortened_to_one_line_without_control_characters(
    sandbox: Sandbox,
) -> None:
    error = trouble(sandbox, "def f(): raise ValueError('a\\n\\x1b\\u202e' + 'b' * 10**6)")
    assert error.message.startswith("your code raises ValueError: a \ufffd\ufffdbbb")
    assert len(error.message) < 400


# Code that never ends, ends its process or breaks the worker


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
    is_walled = sandbox.rung != "not walled"
    with (
        Sandbox(runtime, limits, walled=is_walled) as other,
        other.open([("own", source), ("solution", "def f(): return 5")], ["f"]) as subject,
        pytest.raises(StudentError) as caught,
    ):
        subject()
    assert caught.value.kind == "timeout"


def framed(tree: Any) -> bytes:
    data = msgpack.packb(tree)
    return struct.pack(">I", len(data)) + data


def sends(data: bytes) -> str:
    return f"import os, time\ndef f():\n  os.write(3, {data!r})\n  time.sleep(1000)"


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
    is_walled = sandbox.rung != "not walled"
    with Sandbox(runtime, LIMITS._replace(cpu_s=1), walled=is_walled) as other:
        error = trouble(other, "def f():\n  while True: pass")
    assert (error.kind, error.message) == (
        "timeout",
        "your code takes more than 1 s of processor time.",
    )


# Limits and what is left behind

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
sandbox = Sandbox(Path({str(runtime)!r}), walled={sandbox.rung != "not walled"})
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


def test_a_process_that_tries_to_kill_everything_kills_only_itself(walled: Sandbox) -> None:
    source = """
import os
def f():
    if os.fork() == 0:
        while True: pass
    for pid in (-1, os.getpid()): os.kill(pid, 9)
    return [os.getpid(), os.getppid()]
"""
    before = walled._parent
    assert ask(walled, source) == [1, 0]  # the first process of a namespace is immune to its own
    assert works(walled)
    assert walled._parent is before


def test_a_fork_bomb_is_bounded(walled: Sandbox) -> None:
    source = """
import os, time
def f():
    n = 0
    try:
        while n < 500:
            if os.fork() == 0: time.sleep(600)
            n += 1
    except OSError: pass
    return n
"""
    assert 0 < ask(walled, source) < LIMITS.n_processes
    assert works(walled)


def test_a_file_and_all_files_together_are_bounded(walled: Sandbox) -> None:
    source = """
def f(place):
    sizes = []
    for n in range(50):
        try:
            with open(f"{place}/{n}", "wb") as file:
                sizes.append(0)
                for _ in range(40): sizes[-1] += file.write(bytes(100_000)); file.flush()
        except OSError: pass
    return sizes
"""
    for place in ("/tmp", "/dev/shm"):
        sizes = ask(walled, source, place)
        assert 0 < max(sizes) <= LIMITS.file_bytes
        assert sum(sizes) <= 4 * LIMITS.file_bytes


@pytest.mark.parametrize("what", ["CPU", "NOFILE", "FSIZE", "CORE", "NPROC"])
def test_limits_cannot_be_raised(walled: Sandbox, what: str) -> None:
    source = f"""
import resource
def f():
    soft, hard = resource.getrlimit(resource.RLIMIT_{what})
    try: resource.setrlimit(resource.RLIMIT_{what}, (hard + 1, hard + 1))
    except (ValueError, OSError): return "refused"
    return "raised"
"""
    assert ask(walled, source) == "refused"


# What it cannot reach


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


# The warm parent


def test_walls_stand_where_bubblewrap_works(runtime: Path) -> None:
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    if shutil.which("bwrap") is None or subprocess.run(probe, timeout=60).returncode:
        pytest.skip("bubblewrap is missing, or may not make namespaces on this machine")
    with Sandbox(runtime, LIMITS) as sandbox:
        assert sandbox.walls == ("bubblewrap+namespaces", "")


def test_a_dead_warm_parent_is_replaced(runtime: Path, sandbox: Sandbox) -> None:
    with Sandbox(runtime, LIMITS, walled=sandbox.rung != "not walled") as other:
        rung = other.rung
        assert works(other)
        first = other._parent
        assert first is not None
        os.killpg(first._process.pid, signal.SIGKILL)
        assert works(other)
        assert (other.rung, other._parent is first) == (rung, False)


def test_the_warm_parent_is_replaced_after_its_share(runtime: Path, sandbox: Sandbox) -> None:
    is_walled = sandbox.rung != "not walled"
    parents = []
    with Sandbox(runtime, LIMITS, walled=is_walled, exercises_per_parent=2) as other:
        for _ in range(5):
            assert works(other)
            assert other._parent is not None
            parents.append(other._parent._process.pid)
    assert [parents.index(pid) for pid in parents] == [0, 0, 2, 2, 4]


def test_a_closed_sandbox_leaves_no_process(runtime: Path, sandbox: Sandbox) -> None:
    with Sandbox(runtime, LIMITS, walled=sandbox.rung != "not walled") as other:
        assert works(other)
        assert other._parent is not None
        processes = descendants(other._parent._process.pid)
        assert exists(processes[0])
    assert within(10, lambda: not any(map(exists, processes)))


@pytest.mark.parametrize(
    "program, why",
    [
        (None, "bubblewrap (the program bwrap) is not installed"),
        (
            "#!/bin/sh\necho bwrap: No permissions to create a new namespace >&2\nexit 1",
            "bwrap: No",
        ),
        ("#!/bin/sh\nexit 1", "it ended without a word"),
    ],
)
def test_without_walls_it_says_so_and_why(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, why: str
) -> None:
    path = tmp_path / "bwrap"
    if program is not None:
        path.write_text(program)
        path.chmod(0o755)
    monkeypatch.setattr(parent, "which", lambda name: str(path) if program else None)
    with Sandbox(runtime, LIMITS) as sandbox:
        assert sandbox.rung == "not walled"
        assert why in sandbox.walls.note
        assert works(sandbox)


def test_a_machine_that_runs_nothing_is_no_student_s_fault(tmp_path: Path) -> None:
    package = tmp_path / "autograder"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "worker.py").write_text("raise SystemExit('no autograder here')")
    with Sandbox(tmp_path, LIMITS) as sandbox, pytest.raises(SandboxError, match="autograder"):
        sandbox.open([], ["f"])


def test_a_function_cannot_take_a_name_of_the_subject_s_own(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="output"):
        sandbox.open([], ["output"])


def test_a_closed_subject_says_so(sandbox: Sandbox) -> None:
    subject = sandbox.open([("c", "def f(): return 1")], ["f"])
    assert isinstance(subject, RemoteSubject)
    subject.close()
    subject.close()
    with pytest.raises(ValueError, match="closed"):
        subject()


KEYRING = """
import ctypes, os
def keyring():
    number = 250 if os.uname().machine == "x86_64" else 219
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(*map(ctypes.c_long, (number, 0, -3, 1)))
    return found if found != -1 else -ctypes.get_errno()
"""


def test_no_two_students_share_a_session_keyring(sandbox: Sandbox) -> None:
    if sandbox.rung == "not walled":
        pytest.skip("a plain process keeps the keyring of the login")
    found = [ask(sandbox, KEYRING.replace("keyring()", "f()")) for _ in range(2)]
    assert found[0] > 0 and found[0] != found[1]


def test_required_walls_are_never_given_up(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "bwrap"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with Sandbox(runtime, LIMITS) as sandbox:
        assert sandbox.rung == "not walled"
    with Sandbox(runtime, LIMITS, required=True) as sandbox, pytest.raises(SandboxError):
        sandbox.open([], ["f"])


def test_a_flood_of_cell_errors_is_cut_on_the_judges_side(sandbox: Sandbox) -> None:
    # frames to the judge go through the student's own descriptor: anything can be claimed there
    source = """
import autograder.worker.student as student
student._Notebook.run_cells = lambda self, cells: ["x" * 2000] * 10_000
"""
    cells = [("first", source)]
    with sandbox.open(cells, ["f"]) as subject:
        assert len(subject.cell_errors) <= 50
        assert all(len(text) <= 500 for text in subject.cell_errors)


def test_addresses_which_change_from_run_to_run_are_blotted(sandbox: Sandbox) -> None:
    with pytest.raises(StudentError, match=r"<object object at 0x\.\.\.>"):
        ask(sandbox, "def f(): raise RuntimeError(str(object()))")
