import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.exercise import Exercise, Unit, load_unit, unit_numbers
from autograder.grader import ROOT
from autograder.records.fingerprint import Sources, package_hash

UNITS = {number: load_unit(number) for number in unit_numbers()}
Changed = Callable[..., set[str]]


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """The exercises whose checks' hashes change when `old` in a file becomes `new`."""
    root = tmp_path / "checkout"
    for package in ("autograder", "mpedu"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("*.pyc"))

    def hashes() -> dict[str, str]:
        sources = Sources(root)
        return {id: one for unit in UNITS.values() for id, one in sources.checks(unit).items()}

    def change(file: str, old: str, new: str) -> set[str]:
        before = hashes()
        path = root / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return {id for id, one in hashes().items() if one != before[id]}

    return change


@pytest.mark.parametrize(
    ("file", "old", "new", "exercises"),
    [
        # a check's own text, and what only it uses of its module
        ("checks/unit_03/__init__.py", "costs = [(1, 2)", "costs = [(1, 3)", {"gpipe_fast"}),
        ("checks/unit_03/__init__.py", "finishes all forwards", "begins with them", {"gpipe"}),
        ("checks/unit_03/__init__.py", 'title="E1 GPipe: its', 'title="E1: its', {"gpipe_fast"}),
        ("checks/unit_03/__init__.py", "FAST_TIME = 1", "FAST_TIME = 2", {"best_microbatches"}),
        # a module it names
        ("checks/unit_03/bubble_mistakes.py", "\n", "\nimport math\n", {"bubble"}),
        ("checks/unit_02/bytes_mistakes.py", "\n", "\nimport math\n", {"boundary_bytes"}),
        # what decides nothing
        ("checks/unit_03/__init__.py", "FAST_TIME", "# a comment\nFAST_TIME", set()),
        ("checks/unit_03/__init__.py", 'hints=HINTS["gpipe"]', 'hints=["try"]', set()),
        ("checks/unit_03/texts.py", "\n", "\nimport math\n", set()),
        ("report.py", "\n", "\nimport math\n", set()),
        ("bank/unit_03/right.py", "\n", "\nimport math\n", set()),
    ],
)
def test_a_change_touches_the_exercises_that_rest_on_it(
    changed: Changed, file: str, old: str, new: str, exercises: set[str]
) -> None:
    assert changed(f"autograder/{file}", old, new) == exercises


@pytest.mark.parametrize(
    ("file", "some", "others"),
    [
        # used by a module that a check names: a truth, and one of mpedu's own
        ("autograder/oracle.py", {"bubble", "gpipe"}, {"hello", "ring_all_gather"}),
        ("autograder/oracle_02.py", {"naive", "memory_bill"}, {"bubble", "hello", "cost_s"}),
        ("mpedu/families/one_stage.py", {"idle_share"}, {"hello", "cost_s"}),
        ("autograder/checks/programs.py", {"ring_pass", "ring_all_gather"}, {"bubble", "naive"}),
    ],
)
def test_a_change_deep_down_touches_all_that_rest_on_it_and_no_others(
    changed: Changed, file: str, some: set[str], others: set[str]
) -> None:
    touched = changed(file, "\n", "\nimport math\n")
    assert some <= touched
    assert not others & touched


def test_what_every_check_rests_on_touches_every_exercise(changed: Changed) -> None:
    everything = {exercise.id for unit in UNITS.values() for exercise in unit.exercises}
    assert changed("autograder/diagnosis.py", "\n", "\nimport math\n") == everything


def test_another_units_checks_touch_nothing_here(changed: Changed) -> None:
    here = {exercise.id for exercise in UNITS["03"].exercises}
    for file in sorted((ROOT / "autograder/checks/unit_01").glob("*.py")):
        name = str(file.relative_to(ROOT))
        assert not here & changed(name, "\n", "\nimport math\nx = math.pi\n"), name


TOY = """
import math, random as r
from mpedu import used as u, unused
from mpedu.deep import one, two

A, B = 1, 2
C: int = 3
LATER = {}
LATER["x"] = C

def check(subject, draw):
    from mpedu.inside import late
    return helper(A) + u.x + one

def helper(n):
    return r.random() + n

def other(n):
    return two + B
"""


def toy_hash(root: Path, **changes: str) -> str:
    files = {
        "autograder/__init__.py": "",
        "autograder/toy.py": TOY,
        "mpedu/__init__.py": "",
        "mpedu/used.py": "import mpedu.below\n",
        "mpedu/unused.py": "",
        "mpedu/deep/__init__.py": "one = two = 1\n",
        "mpedu/deep/module.py": "",
        "mpedu/below.py": "",
        "mpedu/inside.py": "late = 1\n",
    }
    for name, text in (files | changes).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(subject: object, draw: object) -> None:
        pass

    check.__module__ = "autograder.toy"
    exercise = Exercise("e", "Toy", 1, ("e",), "data", (), (), "99", check)
    return Sources(root).checks(Unit("99", "toy", (exercise,), ()))["e"]


@pytest.mark.parametrize(
    ("file", "old", "new", "touched"),
    [
        ("autograder/toy.py", "A, B = 1", "A, B = 7", True),
        ("autograder/toy.py", "return r", "return -r", True),
        ("autograder/toy.py", "C: int = 3", "C: int = 4", True),  # through LATER["x"], which runs
        ("autograder/toy.py", "two + B", "two - B", False),
        ("mpedu/used.py", "", "x = 1\n", True),
        ("mpedu/below.py", "", "x = 1\n", True),
        ("mpedu/inside.py", "late = 1", "late = 2", True),
        ("mpedu/deep/__init__.py", "one", "one = zero", True),
        ("mpedu/__init__.py", "", "x = 1\n", True),  # run before any module of the package
        ("mpedu/unused.py", "", "x = 1\n", False),
        ("mpedu/deep/module.py", "", "x = 1\n", False),
    ],
)
def test_a_check_rests_on_what_it_names_and_nothing_else(
    tmp_path: Path, file: str, old: str, new: str, touched: bool
) -> None:
    before = toy_hash(tmp_path)
    text = (tmp_path / file).read_text()
    assert old in text
    assert (toy_hash(tmp_path, **{file: text.replace(old, new, 1)}) != before) == touched


def test_the_machinery_is_judge_walls_and_what_students_processes_are_made_of(
    tmp_path: Path,
) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    (runtime / "student.py").write_text("1")
    before = Sources(ROOT).machinery(runtime)
    assert Sources(ROOT).machinery(runtime) == before
    (runtime / "student.py").write_text("2")
    assert Sources(ROOT).machinery(runtime) != before


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("autograder/judge.py", True),
        ("autograder/sandbox/remote.py", True),
        ("autograder/worker/protocol.py", True),
        ("autograder/grader.py", True),
        ("mpedu/simulated/exchange.py", True),
        ("autograder/report.py", False),
        ("autograder/checks/unit_03/__init__.py", False),
        ("mpedu/train.py", False),
    ],
)
def test_the_machinery_changes_with_its_files(tmp_path: Path, file: str, counts: bool) -> None:
    for package in ("autograder", "mpedu"):
        ignored = shutil.ignore_patterns("*.pyc")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    before = Sources(tmp_path).machinery(runtime)
    with (tmp_path / file).open("a") as source:
        source.write("\nx = 1\n")
    assert (Sources(tmp_path).machinery(runtime) != before) == counts


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("autograder/report.py", True),
        ("autograder/feedback.html", True),
        ("mpedu/a.py", True),
        ("data/models.toml", True),
        ("notebooks/n.ipynb", True),
        ("autograder/checks/unit_01/__init__.py", False),
        ("autograder/bank/unit_01/right.py", False),
    ],
)
def test_the_package_is_all_but_checks_of_units_and_banks(
    tmp_path: Path, file: str, counts: bool
) -> None:
    def written(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    for name in ("notebooks/n.ipynb", file):
        written(name, "1")
    before = package_hash(tmp_path, tmp_path / "notebooks/n.ipynb")
    written(file, "2")
    assert (package_hash(tmp_path, tmp_path / "notebooks/n.ipynb") != before) == counts
