"""The students' notebooks, made by nbgrader's own steps and published only with three proofs."""

import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote

import nbformat
from nbgrader.converters import GenerateAssignment  # type: ignore[import-untyped]
from nbgrader.preprocessors import SaveCells  # type: ignore[import-untyped]

from autograder.exercise import Unit
from autograder.grader import ROOT, Graded, Grader, max_score, source_notebook
from autograder.records.results import GRADED, ensure_writable, write_whole
from autograder.sandbox import build_runtime, is_bare
from autograder.submissions.cells import Node, canonical, parse_notebook, read_notebook, role
from mpedu.faults import Failure

_REGION = re.compile(r"BEGIN SOLUTION[^\n]*\n(.*?)[^\n]*END SOLUTION", re.DOTALL)
# Shorter lines, like "return total", stand in honest text too.
_TELLING_CHARACTERS = 20

_CONFIG = '''"""nbgrader's settings for this course; made by `./course release`.

Run nbgrader in this folder, or JupyterLab for its formgrader: the course's release is where it
looks for it, and all that it writes stays here. Settings of your own, like late penalties, belong
into own_config.py beside this file: they count over these, and no release changes them.
"""

import os
import sys

c = get_config()  # noqa: F821
here = os.path.dirname(os.path.abspath(__file__))
c.CourseDirectory.root = here
c.CourseDirectory.course_id = "mpedu"
c.CourseDirectory.source_directory = {source!r}
c.CourseDirectory.release_directory = os.path.join(os.path.dirname(here), "release")
# nbgrader copies what lies beside a notebook into the release
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".*.json", "*.md"]
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(here, "gradebook.db")
c.Exchange.root = os.path.join(here, "exchange")
os.makedirs(c.Exchange.root, exist_ok=True)  # or formgrader warns that it is missing
# `./course release` has written the release already; nbgrader makes the same one again
c.GenerateAssignment.force = True
# nbgrader runs the program alembic, which lies beside this Python, on the path or not
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
if os.path.exists(os.path.join(here, "own_config.py")):
    load_subconfig("own_config.py")  # noqa: F821
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
    """Writes each unit's student notebook to `out/release` and nbgrader's settings beside it.

    Says each proof. ReleaseError if one fails: then nothing of any unit was written. ValueError
    before any proof if `out` cannot be written.
    """
    ensure_writable(
        out, *(out / "release" / unit.assignment for unit in units), nbgrader_folder(out)
    )
    texts = {}
    for unit in units:
        texts[unit.assignment] = student_notebook(source_notebook(unit))
        for proof in proofs(unit, texts[unit.assignment]):
            say(f"{unit.assignment}: {proof}")
    for assignment, text in texts.items():
        path = out / "release" / assignment / f"{assignment}.ipynb"
        write_whole(path, text)
        say(f"{assignment}: written to {path}")
    write_whole(nbgrader_folder(out) / "nbgrader_config.py", nbgrader_config())
    say(how_to_grade(out, texts))


def how_to_grade(out: Path, assignments: Iterable[str]) -> str:
    """What to type to grade a class, with this course's grader or with stock nbgrader."""
    home = nbgrader_folder(out)
    nbgrader = Path(sys.executable).with_name("nbgrader")
    lines = ["To grade: ./course grade DIR. With stock nbgrader:", f"  cd {quote(str(home))}"]
    for assignment in assignments:
        lines += [
            f"  {quote(str(nbgrader))} generate_assignment {assignment}",
            f"  # put each notebook at submitted/STUDENT/{assignment}/{assignment}.ipynb",
            f"  {quote(str(nbgrader))} autograde {assignment}",
            f"  {quote(str(nbgrader))} generate_feedback {assignment}",
        ]
    return "\n".join(lines)


def nbgrader_folder(out: Path) -> Path:
    """Where nbgrader is run: its settings, and whatever it writes but the release."""
    return out / "nbgrader"


def nbgrader_config() -> str:
    """The text of the nbgrader_config.py for this checkout, to lie in a nbgrader folder."""
    return _CONFIG.format(source=str(ROOT / "notebooks"))


def proofs(unit: Unit, text: str) -> Iterator[str]:
    """What was proven of a student notebook's text, a sentence each; ReleaseError if it fails."""
    source = source_notebook(unit)
    master = read_notebook(source)
    lines = set(solution_lines(master))
    shown = leaked(lines, text)
    if not lines or shown:
        found = f"line {shown[0]!r} is in the release" if shown else "no solution was found"
        raise ReleaseError(f"{unit.assignment}: {found}; nothing was published.")
    yield f"no line of the solutions is in the release ({len(lines)} were looked for)"
    full = max_score(unit)
    with tempfile.TemporaryDirectory(prefix="mpedu-release-") as folder:
        student = Path(folder) / "student.ipynb"
        student.write_text(text, encoding="utf-8")
        # New secret cases each time: full marks must not hang on the draw.
        runtime, secret = Path(folder) / "runtime", secrets.token_bytes(32)
        build_runtime(unit, runtime)
        with Grader(unit, master, runtime, secret) as grader:
            for name, path, wanted in (("release", student, 0), ("solution", source, full)):
                graded = grader.grade(path)
                _expect_score(unit, name, graded, wanted)
                where = f"walls: {graded.walls}" if is_bare(graded.walls) else "behind walls"
                yield f"the {name} scores {wanted} of {full} ({where})"


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
