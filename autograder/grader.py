"""One submission graded: each exercise in a fresh walled process, judged here, outside."""

import ast
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from autograder.cells import Node, nbgrader_metadata, read_notebook, role
from autograder.exercise import Exercise, Unit, load_unit, unit_numbers
from autograder.ingest import Refusal, Submission, ingest, plain_python
from autograder.judge import Verdict, judge, without_answer
from autograder.results import GRADED, INFRASTRUCTURE, UNREADABLE
from autograder.sandbox import PRELOAD, Sandbox

ROOT = Path(__file__).resolve().parent.parent


def unit_of_assignment(assignment: str) -> Unit:
    """The unit of an assignment like "03-gpipe" or just "03"; ValueError listing the known ones."""
    units = {unit.assignment: unit for unit in map(load_unit, unit_numbers())}
    found = [unit for name, unit in units.items() if assignment in (name, unit.number)]
    if not found:
        raise ValueError(f"There is no assignment {assignment!r}; known: {', '.join(units)}.")
    return found[0]


def source_notebook(unit: Unit) -> Path:
    """Where the unit's notebook with solutions lies."""
    return ROOT / "notebooks" / unit.assignment / f"{unit.assignment}.ipynb"


class Graded(NamedTuple):
    """What grading one submission gave, without anything of the run but `seconds` and `walls`."""

    sha256: str
    status: str
    reason: str
    exercises: list[Verdict]
    cell_errors: list[str]
    notes: list[str]
    seconds: float
    walls: str


def without_verdicts(status: str, reason: str, sha256: str = "", seconds: float = 0.0) -> Graded:
    """What is left to say of a submission none of which ran."""
    return Graded(sha256, status, reason, [], [], [], seconds, "none of it ran")


class Grader:
    """Grades submissions of one unit, one after the other, in one walled warm process.

    `master` is the unit's notebook, `runtime` the folder that `sandbox.build_runtime` made; without
    a `secret` only the public cases are asked.
    """

    def __init__(
        self,
        unit: Unit,
        master: Node,
        runtime: Path,
        secret: bytes | None,
        round_number: int = 0,
        walled: bool | None = None,
    ) -> None:
        self.unit = unit
        self.master = master
        self.secret = secret
        self.round_number = round_number
        preload = (*PRELOAD, *set_up_imports(master, runtime))
        # None: as this machine can. True: never without walls, whatever happens meanwhile.
        wanted, required = walled is not False, walled is True
        self.sandbox = Sandbox(runtime, preload=preload, walled=wanted, required=required)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.sandbox.close()

    def grade(self, path: Path) -> Graded:
        """The verdicts on the notebook at `path`; unreadable with the reason if it cannot be."""
        start = time.perf_counter()
        read = ingest(path, self.master)
        if isinstance(read, Refusal):
            seconds = time.perf_counter() - start
            return without_verdicts(UNREADABLE, read.reason, read.sha256, seconds)
        return self.grade_submission(read, start)

    def grade_submission(self, submission: Submission, start: float | None = None) -> Graded:
        """The verdicts on cells already read; `start` is when the work on them began."""
        start = time.perf_counter() if start is None else start
        errors: dict[str, None] = {}  # as an ordered set: every exercise runs the same cells
        verdicts = [self._verdict(ex, submission, errors) for ex in self.unit.exercises]
        broken = [v.messages[0] for v in verdicts if v.status == INFRASTRUCTURE]
        return Graded(
            submission.sha256,
            INFRASTRUCTURE if broken else GRADED,
            broken[0] if broken else "",
            verdicts,
            list(errors),
            submission.notes,
            time.perf_counter() - start,
            ": ".join(part for part in self.sandbox.walls if part),
        )

    def _verdict(
        self, exercise: Exercise, submission: Submission, errors: dict[str, None]
    ) -> Verdict:
        try:
            with _Answer(self.sandbox, submission, exercise) as answer:
                verdict = judge(exercise, answer, self.secret, self.round_number, answer.renew)
                errors.update(dict.fromkeys(answer.cell_errors))
                return verdict
        except Exception as error:  # a defect of ours is nobody's 0 points
            reason = f"The grader itself failed on {exercise.id}: {type(error).__name__}: {error}"
            return without_answer(exercise, INFRASTRUCTURE, reason)


class _Answer:
    """One exercise's subject, with a new process for a group where an earlier one lost its own.

    New processes end with the time that an exercise has: each costs the class up to that again.
    """

    def __init__(self, sandbox: Sandbox, submission: Submission, exercise: Exercise) -> None:
        self._open = partial(sandbox.open, submission.cells, exercise.names)
        self._deadline = time.monotonic() + sandbox.limits.exercise_s
        self._subject = self._open()
        self.cell_errors = self._subject.cell_errors

    def __call__(self, *args: Any) -> Any:
        return self._subject(*args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._subject, name)
        return function

    def renew(self) -> None:
        """Starts a new process if the last one is lost and there is time."""
        if self._subject.lost and time.monotonic() < self._deadline:
            self._subject.close()
            self._subject = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._subject.close()


def set_up_imports(master: Node, runtime: Path) -> list[str]:
    """The modules of the runtime that our set-up cells import.

    Loaded once in the warm parent, they halve the time that an exercise takes to start.
    """
    found: set[str] = set()
    for cell in master.cells:
        if role(cell) == "setup":
            for node in ast.walk(ast.parse(plain_python(cell.source))):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module)
    return sorted(name for name in found if (runtime / f"{name.replace('.', '/')}.py").exists())


def manual_points(unit: Unit) -> float:
    """Points of the unit's written answers, which a person gives."""
    cells = read_notebook(source_notebook(unit)).cells
    return float(sum(nbgrader_metadata(c).get("points", 0) for c in cells if role(c) == "written"))


def rubric(unit: Unit) -> Path | None:
    """The notes for whoever grades the unit's written answers, None where there are none."""
    path = ROOT / "notebooks" / "instructor-notes" / f"{unit.assignment}.md"
    return path if path.exists() else None


def max_score(unit: Unit) -> int:
    """Points of the unit's exercises together."""
    return sum(exercise.points for exercise in unit.exercises)
