from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_notebook as toy

from autograder.cells import parse_notebook
from autograder.diagnosis import Case, Diagnosis, examine
from autograder.exercise import Draw, Exercise, Unit
from autograder.grader import Grader, set_up_imports, unit_of_assignment
from autograder.sandbox.runtime import build_runtime


def check_twice(subject: Any, draw: Draw) -> None:
    cases = [Case("double", (draw.int(0, 99),)) for _ in range(3)]
    wrong = Diagnosis("wrong", "wrong here", "wrong in general")
    examine(subject, cases, lambda case, got: None if got == 2 * case.args[0] else wrong)


def check_with_a_defect(subject: Any, draw: Draw) -> None:
    raise KeyError("a defect of ours")


def unit(*checks: Any) -> Unit:
    made = [
        Exercise(f"e{i}", "Doubling", 2, ("double",), "data", (), (), "99", check)
        for i, check in enumerate(checks)
    ]
    return Unit("99", "toy", tuple(made), ())


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "runtime"
    build_runtime(unit(), folder)
    return folder


@pytest.fixture(scope="module")
def grader(runtime: Path) -> Iterator[Grader]:
    with Grader(unit(check_twice), parse_notebook(toy.notebook()), runtime, b"s" * 32) as made:
        yield made


def submitted(folder: Path, cells: list[dict[str, Any]]) -> Path:
    path = folder / "a.ipynb"
    path.write_bytes(toy.notebook(cells))
    return path


def answered(source: str) -> list[dict[str, Any]]:
    cells = toy.cells()
    cells[2]["source"] = source
    return cells


@pytest.mark.parametrize(
    ("source", "status", "score"),
    [
        (toy.SOLUTION, "passed", 2),
        ("def double(n):\n    return n", "failed", 0),
        ("def double(n):\n    raise NotImplementedError()", "unwritten", 0),
        ("import os\n\ndef double(n):\n    os._exit(0)", "crashed", 0),
    ],
)
def test_a_submission_gets_its_verdict(
    grader: Grader, tmp_path: Path, source: str, status: str, score: int
) -> None:
    graded = grader.grade(submitted(tmp_path, answered(source)))
    (verdict,) = graded.exercises
    assert (graded.status, verdict.status, verdict.score) == ("graded", status, score)
    assert graded.walls


def test_an_error_in_a_cell_is_told_and_passed_over(grader: Grader, tmp_path: Path) -> None:
    cells = [*toy.cells(), toy.cell("code", "own", "1 / 0")]
    graded = grader.grade(submitted(tmp_path, cells))
    assert [verdict.status for verdict in graded.exercises] == ["passed"]
    (error,) = graded.cell_errors
    assert error.startswith("ZeroDivisionError: division by zero (cell 7 from the top")


def test_what_cannot_be_read_has_a_reason_and_no_verdict(grader: Grader, tmp_path: Path) -> None:
    graded = grader.grade(tmp_path / "absent.ipynb")
    assert (graded.status, graded.exercises) == ("unreadable", [])
    assert "No such file" in graded.reason


def test_a_defect_of_the_judge_is_never_zero_points(runtime: Path, tmp_path: Path) -> None:
    defective = unit(check_with_a_defect, check_twice)
    with Grader(defective, parse_notebook(toy.notebook()), runtime, b"s" * 32) as grader:
        graded = grader.grade(submitted(tmp_path, toy.cells()))
    assert graded.status == "infrastructure"
    assert "KeyError: 'a defect of ours'" in graded.reason
    assert [verdict.status for verdict in graded.exercises] == ["infrastructure", "passed"]


def test_what_the_set_up_cells_import_from_the_runtime_is_loaded_beforehand(runtime: Path) -> None:
    cells = toy.cells()
    imports = "%matplotlib inline\nimport math, mpedu.schedule\nfrom mpedu.simulate import Costs"
    cells[1]["source"] = f"{imports}\nfrom mpedu.absent import x"
    cells[4]["source"] = "import mpedu.families"
    master = parse_notebook(toy.notebook(cells))
    assert set_up_imports(master, runtime) == ["mpedu.schedule", "mpedu.simulate"]


def test_an_unknown_assignment_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no assignment '99-nothing'; known: "):
        unit_of_assignment("99-nothing")


def check_in_groups(subject: Any, draw: Draw) -> None:
    wrong = Diagnosis("wrong", "wrong here", "wrong in general")
    for low in (0, 100, 200):
        with draw.group(f"from {low}", points=1):
            cases = [Case("double", (draw.int(low, low + 99),)) for _ in range(3)]
            examine(subject, cases, lambda case, got: None if got == 2 * case.args[0] else wrong)


@pytest.mark.parametrize(
    ("ending", "diagnosis"), [("os._exit(1)", "crashed"), ("while True: pass", "timeout")]
)
def test_a_process_lost_in_one_group_costs_no_other_group(
    runtime: Path, tmp_path: Path, ending: str, diagnosis: str
) -> None:
    source = (
        f"import os\n\ndef double(n):\n    if 100 <= n < 200:\n        {ending}\n    return 2 * n"
    )
    three = Exercise("e", "Doubling", 3, ("double",), "data", (), (), "99", check_in_groups)
    toy_unit = Unit("99", "toy", (three,), ())
    with Grader(toy_unit, parse_notebook(toy.notebook()), runtime, b"s" * 32) as grader:
        grader.sandbox.limits = grader.sandbox.limits._replace(call_s=0.5)
        (verdict,) = grader.grade(submitted(tmp_path, answered(source))).exercises
    assert [group.score for group in verdict.groups] == [1, 0, 1]
    assert verdict.groups[1].diagnosis == diagnosis
    assert len(verdict.messages) == 1
