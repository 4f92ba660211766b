"""What goes wrong in a student's process, in words."""

import pytest
from sandboxed import trouble

from autograder.diagnosis import StudentError
from autograder.sandbox import Sandbox

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
