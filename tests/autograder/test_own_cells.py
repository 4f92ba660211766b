"""A student's own cells: whatever they do, the answers beside them keep their points."""

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import toy_notebook as toy

from autograder.diagnosis import Case, Diagnosis, examine
from autograder.exercise import Draw, Exercise, Unit
from autograder.grader import Graded, Grader
from autograder.sandbox import Limits, build_runtime
from autograder.submissions.cells import parse_notebook
from autograder.submissions.finding import find_submissions
from autograder.submissions.ingest import SET_UP, Cell
from autograder.submissions.own_cells import Runnable
from autograder.worker.cells import Cells
from autograder.worker.trouble import Troubles

SHORT = Limits(call_s=2, cell_s=0.5, own_s=0.8, exercise_s=5)


def run(*cells: tuple[Any, ...], limits: Limits = SHORT) -> tuple[dict[str, Any], Cells]:
    names: dict[str, Any] = {}
    cells_run = Cells(names, Troubles(), limits)
    cells_run.run(cells)
    return names, cells_run


def test_a_function_keeps_its_name_though_a_later_cell_calls_its_result_so() -> None:
    names, ran = run(
        ("set-up", "import math\nfrom math import sqrt"),
        ("answer", "def bubble(): return 0.25"),
        ("own", "bubble = bubble()\nmath = math.pi\nsqrt = sqrt(4)\nmine = 5", True),
        ("own", "sum, max = 3, [4]", True),
        ("answer", "def total(): return sum([1, 2])"),
    )
    assert ran.failed == []
    assert names["bubble"]() == 0.25
    assert (names["math"], names["sqrt"]) == (math, math.sqrt)
    assert names["total"]() == 3
    assert names["mine"] == 5


def test_the_last_function_of_a_name_counts_and_values_are_left_alone() -> None:
    names, _ = run(
        ("answer", "def f(): return 1\nmax = 7\nrate = 5"),
        ("own", "def f(): return 2\ndef helper(): return 3", True),
        ("own", "f, helper, rate = 4, 5, 6", True),
        ("own", "del f", True),
    )
    assert names["f"]() == 2
    assert (names["helper"], names["rate"], names["max"]) == (5, 6, 7)


def test_own_cells_share_a_time_and_answers_have_another() -> None:
    busy = "while True: pass"
    cells = [("own", f"x = {n}\n{busy}", True) for n in range(5)]
    names, ran = run(*cells, ("own", "def helper(): return 1", True), ("answer", "y = 2"))
    assert names["helper"]() == 1
    assert names["y"] == 2
    assert ran.stopped == [(n, 2) for n in range(5)]
    assert ran.failed[0][1] == "ran for over 0.5 s (own)."
    assert ran.failed[1][1] == "was stopped, as your own cells have 0.8 s together (own)."


def test_hundreds_of_slow_own_cells_are_passed_over_in_the_end() -> None:
    cells = [("own", f"x = {n}\nwhile True: pass", True) for n in range(300)]
    names, ran = run(*cells)
    assert names["x"] < 30
    assert len(ran.failed) == len(ran.stopped) == 300


def test_slow_cells_for_answers_leave_time_for_calls_and_for_each_other() -> None:
    cells = [(f"a{n}", f"def f{n}(): return {n}\nwhile True: pass") for n in range(9)]
    names, ran = run(*cells, limits=SHORT._replace(exercise_s=2))
    assert [names[f"f{n}"]() for n in range(9)] == list(range(9))
    assert ran.failed[-1][1] == "was stopped, as the cells for your answers have 1 s together (a8)."
    assert ran.stopped == []


def learnt(cells: list[Cell], **how: Any) -> Runnable:
    runnable = Runnable(cells)
    subject: Any = SimpleNamespace(lost=False, has_run_cells=True, stopped=[])
    subject.__dict__.update(how)
    runnable.learn(subject, ["f"])
    return runnable


def test_what_was_stopped_is_not_run_again_but_what_came_before_it_is() -> None:
    source = "import math\nn = 4\nfor i in range(9**9):\n    n += i\nm = 5"
    cells = [Cell("answer", source), Cell("own", source, True)]
    runnable = learnt(cells, stopped=[(0, 4), (1, 4), (7, 1)])
    kept, cut = runnable.cells_for(["f"])
    assert kept == cells[0]
    assert cut.source.rstrip() == "import math\nn = 4"
    assert runnable.notes == []


def test_where_the_process_was_lost_only_definitions_of_own_cells_are_run() -> None:
    source = "import os\n@property\ndef f():\n    return 1\nos._exit(1)"
    cells = [Cell("answer", source), Cell("own", source, True), Cell("own", "no python =", True)]
    runnable = learnt(cells, lost=True, has_run_cells=False)
    answer, own, broken = runnable.cells_for(["f"])
    assert answer == cells[0]
    assert own.source.rstrip() == source.removesuffix("\nos._exit(1)")
    assert broken.source == ""
    (note,) = runnable.notes
    assert note.startswith("One of your own cells ended the process")
    assert learnt(cells[:1], lost=True, has_run_cells=False).notes == []


def test_where_that_was_not_it_only_definitions_of_other_answers_are_run() -> None:
    lost: Any = SimpleNamespace(lost=True, has_run_cells=False, stopped=[])
    ending = "import os\ndef g(): return 2\nos._exit(1)"
    cells = [Cell(SET_UP, "print(1)"), Cell("a", "def f(): return 1\nprint(2)"), Cell("b", ending)]
    runnable = Runnable(cells)
    assert runnable.learn(lost, ["f"])
    setup, mine, other = runnable.cells_for(["f"])
    assert (setup, mine) == (cells[0], cells[1])
    assert other.source.rstrip() == "import os\ndef g(): return 2"
    assert not runnable.learn(lost, ["f"])  # so its own cell does it
    assert runnable.cells_for(["g"])[2] == cells[2]
    (note,) = runnable.notes
    assert note.startswith("One of your cells ended the process")


# ---- graded for real ----


def check(subject: Any, draw: Draw) -> None:
    wrong = Diagnosis("wrong", "wrong here", "wrong in general")
    cases = [Case("double", (draw.int(0, 99),)) for _ in range(3)]
    examine(subject, cases, lambda case, got: None if got == 2 * case.args[0] else wrong)


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    exercises = [
        Exercise(f"e{n}", "Doubling", 1, ("double",), "data", (), (), "99", check) for n in range(3)
    ]
    unit = Unit("99", "toy", tuple(exercises), ())
    runtime = tmp_path_factory.mktemp("toy") / "runtime"
    build_runtime(unit, runtime)
    master = parse_notebook(toy.notebook())
    with Grader(unit, master, runtime, b"s" * 32, limits=SHORT) as made:
        yield made


def graded(grader: Grader, folder: Path, *own: str, answer: str = toy.SOLUTION) -> Graded:
    cells = toy.cells()
    cells[2]["source"] = answer
    cells += [toy.cell("code", f"own-{n}", source) for n, source in enumerate(own)]
    path = folder / "a.ipynb"
    path.write_bytes(toy.notebook(cells))
    return grader.grade(path)


@pytest.mark.parametrize(
    "own",
    [
        ["double = double(21)"],
        ["1 / 0", "del double"],
        ["import sys\nsys.exit()"],
        ["import os\nos._exit(0)"],
        ["import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"],
        ["while 1:\n    try:\n        for i in range(9**9): x = i\n    except BaseException: pass"],
        ["import time\ntime.sleep(0.45)"] * 30,
        ["x = bytes(10**11)"],
        ["import threading\nthreading.Thread(target=lambda: exec('while 1: pass')).start()"],
    ],
    ids="rebound error exit ended stopped stubborn slow memory thread".split(),
)
def test_no_cell_of_the_students_own_costs_a_point(
    grader: Grader, tmp_path: Path, own: list[str]
) -> None:
    got = graded(grader, tmp_path, *own)
    assert [verdict.score for verdict in got.exercises] == [1, 1, 1]


def test_what_was_left_out_is_told(grader: Grader, tmp_path: Path) -> None:
    slow = graded(grader, tmp_path, "while True: pass", "while True: pass")
    assert slow.cell_errors == [
        "ran for over 0.5 s (cell 7 from the top).",
        "was stopped, as your own cells have 0.8 s together (cell 8 from the top).",
    ]
    (note,) = graded(grader, tmp_path, "import os\nos._exit(0)").cell_errors
    assert note.startswith("One of your own cells ended the process")


@pytest.mark.parametrize(
    "magic",
    [
        "%timeit -n 10 double(2)",
        "%timeit -n10 -r 3 -q double(2); double(3)",
        "x = %timeit -o double(2)",
        "%time --no-raise-error y = double(2)",
        "%prun -l 5 -q double(2)",
        "%%time\nz = 1",
    ],
)
def test_a_magic_in_an_answers_cell_does_not_stop_it(
    grader: Grader, tmp_path: Path, magic: str
) -> None:
    body = "\ndef double(n):\n    return later + n\nlater = 0\n"
    answer = (f"{magic}{body}" if "%%" in magic else f"{body}{magic}\n") + "_double = double\n"
    answer += "def double(n):\n    return 2 * n\n"
    got = graded(grader, tmp_path, answer=answer)
    assert [verdict.score for verdict in got.exercises] == [1, 1, 1]
    assert got.cell_errors == []


def test_files_beside_the_notebook_never_shadow_a_library(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "amy" / "99-toy"
    (home / "mpedu").mkdir(parents=True)
    for name in ("torch.py", "numpy.py", "json.py", "sitecustomize.py", "mpedu/__init__.py"):
        (home / name).write_text("raise RuntimeError('the file beside the notebook')")
    monkeypatch.chdir(home)
    answer = (
        "import json, mpedu.schedule, numpy\n\ndef double(n):\n"
        "    return json.loads(str(int(numpy.int64(2) * n)))\n"
    )
    got = graded(grader, home, answer=answer)
    assert [verdict.score for verdict in got.exercises] == [1, 1, 1]
    found = find_submissions(tmp_path, ["99-toy"])
    assert [entry.problem for entry in found.entries] == [""]
    names = ["json.py", "mpedu", "numpy.py", "sitecustomize.py", "torch.py"]
    assert found.strays == [f"amy/99-toy/{name}" for name in names]
