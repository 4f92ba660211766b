"""The students' notebooks, made by nbgrader's own steps and published only with three proofs."""

import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment  # type: ignore[import-untyped]
from nbgrader.preprocessors import SaveCells  # type: ignore[import-untyped]

from autograder.cells import Node, canonical, parse_notebook, read_notebook, role
from autograder.errors import Failure
from autograder.exercise import Unit
from autograder.grader import ROOT, Graded, Grader, max_score, source_notebook
from autograder.results import GRADED, write_whole
from autograder.sandbox import build_runtime

_REGION = re.compile(r"BEGIN SOLUTION[^\n]*\n(.*?)[^\n]*END SOLUTION", re.DOTALL)
# Shorter lines, like "return total", stand in honest text too.
_TELLING_CHARACTERS = 20

_CONFIG = '''"""nbgrader's settings for this course; made by `python -m autograder release`."""

import os
import sys

c = get_config()  # noqa: F821
root = {root!r}
build = {build!r}
c.CourseDirectory.root = root
c.CourseDirectory.course_id = "mpedu"
c.CourseDirectory.source_directory = "notebooks"
c.CourseDirectory.release_directory = os.path.join(build, "release")
c.CourseDirectory.submitted_directory = os.path.join(build, "submitted")
c.CourseDirectory.autograded_directory = os.path.join(build, "autograded")
c.CourseDirectory.feedback_directory = os.path.join(build, "feedback")
# nbgrader copies what lies beside a notebook into the release
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".*.json", "*.md"]
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(build, "gradebook.db")
c.Exchange.root = os.path.join(build, "exchange")
# nbgrader runs the program alembic, which lies beside this Python, on the path or not
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
'''


class ReleaseError(Failure):
    """A proof failed, so nothing was published."""


def student_notebook(source: Path) -> str:
    """The canonical text of the student's notebook: what `nbgrader generate_assignment` makes."""
    notebook = nbformat.from_dict(read_notebook(source))  # type: ignore[no-untyped-call]
    resources: dict[str, object] = {}
    for step in GenerateAssignment.preprocessors.default():
        if step is not SaveCells:  # it only writes to the gradebook
            notebook, resources = step().preprocess(notebook, resources)
    return canonical(notebook)


def release(units: Sequence[Unit], out: Path, say: Callable[[str], object]) -> None:
    """Writes each unit's student notebook under `out` and nbgrader's settings beside it.

    Says each proof. ReleaseError if one fails: then nothing of any unit was written.
    """
    texts = {}
    for unit in units:
        texts[unit.assignment] = student_notebook(source_notebook(unit))
        for proof in proofs(unit, texts[unit.assignment]):
            say(f"{unit.assignment}: {proof}")
    for assignment, text in texts.items():
        path = out / assignment / f"{assignment}.ipynb"
        write_whole(path, text)
        say(f"{assignment}: written to {path}")
    write_whole(out.parent / "nbgrader_config.py", nbgrader_config(out.parent))


def nbgrader_config(build: Path) -> str:
    """The text of an nbgrader_config.py for this checkout, all that is made lying under `build`."""
    return _CONFIG.format(root=str(ROOT), build=str(build.resolve()))


def proofs(unit: Unit, text: str) -> Iterator[str]:
    """What was proven of a student notebook's text, a sentence each; ReleaseError if it fails."""
    source = source_notebook(unit)
    master = read_notebook(source)
    lines = set(solution_lines(master))
    shown = leaked(lines, text)
    if not lines or shown:
        found = f"line {shown[0]!r} is in the release" if shown else "no solution was found"
        raise ReleaseError(f"{unit.assignment}: {found}; nothing was published.")
    yield f"none of the {len(lines)} telling solution lines is in the release"
    full = max_score(unit)
    with tempfile.TemporaryDirectory(prefix="mpedu-release-") as folder:
        student = Path(folder) / "student.ipynb"
        student.write_text(text, encoding="utf-8")
        # New secret cases each time: full marks must not hang on the draw.
        runtime, secret = Path(folder) / "runtime", secrets.token_bytes(32)
        build_runtime(unit, runtime)
        with Grader(unit, master, runtime, secret) as grader:
            for name, path, wanted in (("release", student, 0), ("source", source, full)):
                graded = grader.grade(path)
                _expect_score(unit, name, graded, wanted)
                yield f"the {name} scores {wanted} of {full} ({graded.walls})"


def _expect_score(unit: Unit, name: str, graded: Graded, wanted: int) -> None:
    score = sum(verdict.score for verdict in graded.exercises)
    if graded.status == GRADED and score == wanted:
        return
    said = [f"{v.exercise}: {m}" for v in graded.exercises for m in v.messages] if wanted else []
    detail = graded.reason or " ".join([*graded.cell_errors, *said])
    raise ReleaseError(
        f"{unit.assignment}: the {name} scores {score}, not {wanted} ({graded.status});"
        f" nothing was published. {detail}".rstrip()
    )


def solution_lines(source: Node) -> Iterator[str]:
    """The lines between solution markers that say something, without indent and comments."""
    for cell in source.cells:
        if role(cell) != "solution":
            continue
        for region in _REGION.findall(cell.source):
            for line in region.splitlines():
                if len(line.strip()) >= _TELLING_CHARACTERS and not line.lstrip().startswith("#"):
                    yield line.strip()


def leaked(lines: set[str], text: str) -> list[str]:
    """Those of `lines` that are a line of some cell in a notebook's text."""
    shown = {
        line.strip()
        for cell in parse_notebook(text.encode()).cells
        for line in cell.source.splitlines()
    }
    return sorted(lines & shown)
