from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_notebook as toy

from autograder.diagnosis import Case, Diagnosis, examine
from autograder.exercise import Draw, Exercise, Unit
from autograder.grader import Graded, Grader, set_up_imports, unit_of_assignment
from autograder.records.journal import Journal
from autograder.sandbox import Limits, SandboxError
from autograder.sandbox.runtime import build_runtime
from autograder.submissions.cells import parse_notebook


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


class Failing:
    """A check that fails with `error` in its first `n` runs, and counts all."""

    def __init__(self, n: int, error: Exception) -> None:
        self.n, self.error, self.n_runs = n, error, 0

    def __call__(self, subject: Any, draw: Draw) -> None:
        self.n_runs += 1
        if self.n_runs <= self.n:
            raise self.error
        check_twice(subject, draw)


@pytest.mark.parametrize("error", [SandboxError("no process"), OSError(28, "No space left")])
def test_trouble_on_our_side_is_tried_twice_more(
    runtime: Path, tmp_path: Path, error: Exception
) -> None:
    check = Failing(2, error)
    with Grader(unit(check), parse_notebook(toy.notebook()), runtime, b"s" * 32) as grader:
        graded = grader.grade(submitted(tmp_path, toy.cells()))
    assert [verdict.status for verdict in graded.exercises] == ["passed"]
    assert graded.runs["e0"]["tries"] == 3


def test_trouble_that_stays_is_listed_and_other_verdicts_are_kept(
    runtime: Path, tmp_path: Path
) -> None:
    check = Failing(99, SandboxError("no process"))
    with Grader(
        unit(check_twice, check, check_twice), parse_notebook(toy.notebook()), runtime, b"s" * 32
    ) as grader:
        graded = grader.grade(submitted(tmp_path, toy.cells()))
    assert check.n_runs == 3
    assert graded.status == "infrastructure"
    assert graded.reason == "e1 could not be graded, tried 3 times: SandboxError: no process."
    assert [v.status for v in graded.exercises] == ["passed", "infrastructure", "passed"]


def journaled(runtime: Path, folder: Path, *checks: Any, **settings: Any) -> Graded:
    """What a submission gets with a journal that outlives the grader."""
    made = {"secret": b"s" * 32, "fingerprints": {"e0": "1", "e1": "1"}} | settings
    master = parse_notebook(toy.notebook())
    with (
        Grader(unit(*checks), master, runtime, **made) as grader,
        Journal(folder / "journal", "run") as journal,
    ):
        return grader.grade(submitted(folder, toy.cells()), journal)


def test_a_verdict_in_the_journal_is_not_made_again(runtime: Path, tmp_path: Path) -> None:
    checks = Failing(0, OSError()), Failing(0, OSError())
    first = journaled(runtime, tmp_path, *checks)
    n_runs = [check.n_runs for check in checks]
    again = journaled(runtime, tmp_path, *checks)
    assert [check.n_runs for check in checks] == n_runs
    assert again._replace(seconds=first.seconds) == first


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"fingerprints": {"e0": "1", "e1": "2"}}, [False, True]),
        ({"secret": b"t" * 32}, [True, True]),
        ({"round_number": 1}, [True, True]),
        ({"limits": Limits(call_s=3.0)}, [True, True]),
    ],
)
def test_only_what_a_change_can_decide_is_judged_again(
    runtime: Path, tmp_path: Path, changed: dict[str, Any], again: list[bool]
) -> None:
    checks = Failing(0, OSError()), Failing(0, OSError())
    journaled(runtime, tmp_path, *checks)
    n_runs = [check.n_runs for check in checks]
    journaled(runtime, tmp_path, *checks, **changed)
    assert [check.n_runs > n for check, n in zip(checks, n_runs, strict=True)] == again


def test_an_exercise_that_ended_its_judge_three_times_is_listed_the_others_are_graded(
    runtime: Path, tmp_path: Path
) -> None:
    class Killed(BaseException):
        """Stands for the end of the process."""

    check = Failing(99, OSError())
    check.error = Killed()  # type: ignore[assignment]
    for _ in range(3):
        with pytest.raises(Killed):
            journaled(runtime, tmp_path, check_twice, check)
    graded = journaled(runtime, tmp_path, check_twice, check)
    assert [v.status for v in graded.exercises] == ["passed", "infrastructure"]
    assert graded.reason.endswith("tried 3 times: the process that grades ended each time.")


def test_the_run_tells_the_time_of_each_exercise(runtime: Path, tmp_path: Path) -> None:
    busy = (
        "import time\n\nstart = time.process_time()\nwhile time.process_time() < start + 0.3: pass"
    )
    cells = answered(f"{busy}\n{toy.SOLUTION}")
    with Grader(unit(check_twice), parse_notebook(toy.notebook()), runtime, b"s" * 32) as grader:
        graded = grader.grade(submitted(tmp_path, cells))
    run = graded.runs["e0"]
    assert run["wall_s"] >= 0.3
    assert run["cpu_s"] >= 0.3
    assert run["walls"] == graded.walls
    assert len(run["key"]) == len(run["seed"]) == 16


def test_the_secret_cases_have_as_much_time_as_the_public_ones(
    runtime: Path, tmp_path: Path
) -> None:
    source = "import time\n\ndef double(n):\n    time.sleep(0.25)\n    return 2 * n"
    with Grader(unit(check_twice), parse_notebook(toy.notebook()), runtime, b"s" * 32) as grader:
        grader.sandbox.limits = grader.sandbox.limits._replace(exercise_s=1.2)
        (verdict,) = grader.grade(submitted(tmp_path, answered(source))).exercises
    assert verdict.status == "passed"  # 3 public calls and 3 secret ones take 1.5 s
