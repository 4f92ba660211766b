"""What honest code gives in a student's process."""

from typing import Any

import numpy as np
import pytest
from sandboxed import LIMITS, ask

from autograder.sandbox import Sandbox
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline, simulate


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
