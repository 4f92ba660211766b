"""One submission graded: each exercise in a fresh walled process, judged here, outside."""

import ast
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from autograder.exercise import Exercise, Unit, load_unit, unit_numbers
from autograder.judge import GRADED, INFRASTRUCTURE, UNREADABLE, Verdict, judge, without_answer
from autograder.pool import process_ends_after
from autograder.records.fingerprint import short_hash
from autograder.records.journal import Journal, Judged
from autograder.sandbox import PRELOAD, Limits, RemoteSubject, Sandbox, is_bare
from autograder.seeds import case_seed
from autograder.speed import TooNoisy
from autograder.submissions.cells import Node, nbgrader_metadata, read_notebook, role
from autograder.submissions.ingest import Refusal, Submission, ingest
from autograder.submissions.magics import plain_python
from autograder.submissions.own_cells import Runnable

ROOT = Path(__file__).resolve().parent.parent
NONE_RAN = "none of it ran"  # in place of the walls
MOST_TRIES = 3  # of an exercise where something failed on our side
NOISY_TRIES = 6  # of one whose speed could not be told, which is nobody's defect
_PAUSE_S = 1.0  # after the first of these, then longer: what makes noise goes on for a while


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
    """What grading one submission gave; `seconds`, `walls` and `runs` vary from run to run.

    `runs` tells of each exercise by its id: key, seconds of wall clock and processor, tries;
    `n_judged` counts those that were judged in this run.
    """

    sha256: str
    status: str
    reason: str
    exercises: list[Verdict]
    cell_errors: list[str]
    notes: list[str]
    seconds: float
    walls: str
    runs: Mapping[str, Mapping[str, Any]] = {}
    n_judged: int = 0


def without_verdicts(status: str, reason: str, sha256: str = "", seconds: float = 0.0) -> Graded:
    """What is left to say of a submission none of which ran."""
    return Graded(sha256, status, reason, [], [], [], seconds, NONE_RAN)


class Grader:
    """Grades submissions of one unit, one after the other, in one walled warm process.

    `master` is the unit's notebook, `runtime` the folder that `sandbox.build_runtime` made; without
    a `secret` only the public cases are asked. `fingerprints` name by exercise what decides its
    verdicts besides the submission: only with them is a verdict found again in a journal.
    """

    def __init__(
        self,
        unit: Unit,
        master: Node,
        runtime: Path,
        secret: bytes | None,
        round_number: int = 0,
        rung: str | None = None,
        limits: Limits | None = None,
        fingerprints: Mapping[str, str] | None = None,
    ) -> None:
        self.unit = unit
        self.master = master
        self.secret = secret
        self.round_number = round_number
        self.fingerprints = fingerprints or {}
        self.process_ends_s: float | None = None  # after which an exercise ends this process
        preload = (*PRELOAD, *set_up_imports(master, runtime))
        self.sandbox = Sandbox(runtime, limits, preload=preload, rung=rung)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.sandbox.close()

    def grade(self, path: Path, journal: Journal | None = None, member: str = "") -> Graded:
        """The verdicts on the notebook at `path`; unreadable with the reason if it cannot be.

        `member` names the notebook where the file is an archive.
        """
        start = time.perf_counter()
        try:
            read = ingest(path, self.master, member)
        except RecursionError:
            read = Refusal("A cell of it nests too deeply to be read; a person has to look.")
        except Exception as error:  # a defect of ours is nobody's unreadable file
            reason = f"The grader itself failed to read it: {type(error).__name__}: {error}"
            return without_verdicts(INFRASTRUCTURE, reason)
        if isinstance(read, Refusal):
            seconds = time.perf_counter() - start
            return without_verdicts(UNREADABLE, read.reason, read.sha256, seconds)
        return self.grade_submission(read, start, journal)

    def grade_submission(
        self, submission: Submission, start: float | None = None, journal: Journal | None = None
    ) -> Graded:
        """The verdicts on cells already read; `start` is when the work on them began."""
        start = time.perf_counter() if start is None else start
        journal = journal or Journal()
        runnable = Runnable(submission.cells)
        judged = [self._judged(ex, submission, runnable, journal) for ex in self.unit.exercises]
        verdicts = [one.verdict for one in judged]
        broken = [v.messages[0] for v in verdicts if v.status == INFRASTRUCTURE]
        # Every exercise runs the same cells. Only of the first no secret case had been asked yet:
        # what a cell says later could tell of one.
        errors = judged[0].cell_errors if judged else []
        walls = {one.run["walls"] for one in judged if "walls" in one.run}
        return Graded(
            submission.sha256,
            INFRASTRUCTURE if broken else GRADED,
            broken[0] if broken else "",
            verdicts,
            errors,
            submission.notes,
            time.perf_counter() - start,
            # the weakest first, in case the machine changed between two runs
            "; ".join(sorted(walls, key=lambda text: not is_bare(text))) or NONE_RAN,
            {one.verdict.exercise: {"key": one.key, **one.run} for one in judged},
            journal.n_new,
        )

    def _key(self, exercise: Exercise, submission: Submission) -> str:
        """A hash of all that decides a verdict: the cells, our code, secret, round, limits."""
        secret = "" if self.secret is None else short_hash(self.secret)
        fingerprint = self.fingerprints.get(exercise.id, "")
        limits = repr(self.sandbox.limits)
        parts = (submission.cells, exercise.id, fingerprint, secret, self.round_number, limits)
        return short_hash(json.dumps(parts))

    def _judged(
        self, exercise: Exercise, submission: Submission, runnable: Runnable, journal: Journal
    ) -> Judged:
        """The verdict on one exercise, from the journal if it is there.

        What goes wrong on our side is tried again, in fresh processes, before it is told.
        """
        key = self._key(exercise, submission)
        known = journal.known(key)
        if known is not None and self._holds(known):
            return known
        reason, most = "the process that grades ended each time", MOST_TRIES
        while (n_tries := journal.n_begun(key)) < most:
            journal.begin(key)
            try:
                with process_ends_after(self.process_ends_s):
                    judged = self._judge(exercise, runnable, key)
            except Exception as error:  # a defect of ours is nobody's 0 points
                reason = f"{type(error).__name__}: {error}"
                self.sandbox.close()
                if isinstance(error, TooNoisy):
                    most = NOISY_TRIES
                    time.sleep(_PAUSE_S * (n_tries + 1))
            else:
                judged.run["tries"] = n_tries + 1
                journal.add(judged)
                return judged
        text = f"{exercise.id} could not be graded, tried {n_tries} times: {reason}."
        verdict = without_answer(exercise, INFRASTRUCTURE, text)
        return Judged(key, verdict, [], {"tries": n_tries})

    def _holds(self, known: Judged) -> bool:
        """Whether a verdict need not be made again: not one made before there were walls."""
        bare = is_bare(str(known.run["walls"]))
        return not bare or is_bare(self._walls())

    def _walls(self) -> str:
        return ": ".join(part for part in self.sandbox.walls if part)

    def _judge(self, exercise: Exercise, runnable: Runnable, key: str) -> Judged:
        start = time.perf_counter()
        with _Answer(self.sandbox, runnable, exercise) as answer:
            verdict = judge(
                exercise, answer, self.secret, self.round_number, answer.renew, answer.start_over
            )
        run = {
            "walls": self._walls(),
            "wall_s": round(time.perf_counter() - start, 3),
            "cpu_s": round(answer.cpu_s, 3),
        }
        if answer.measured:
            run["measured"] = answer.measured
        if self.secret is not None:
            seed = case_seed(self.secret, exercise.unit, exercise.id, self.round_number)
            run["seed"] = short_hash(seed)
        return Judged(key, verdict, answer.cell_errors, run)


class _Answer:
    """One exercise's subject, with a new process for a group where an earlier one lost its own.

    New processes end with the time that an exercise has: each costs the class up to that again.
    """

    def __init__(self, sandbox: Sandbox, runnable: Runnable, exercise: Exercise) -> None:
        alone = exercise.evidence == "observed"
        self._start = partial(sandbox.open, names=exercise.names, alone=alone)
        self._runnable, self._names = runnable, exercise.names
        self._exercise_s = sandbox.limits.exercise_s
        self.cpu_s = 0.0  # of the student's processes that have ended
        self.measured: dict[str, dict[str, Any]] = {}  # what was timed, by function
        self._begun = time.monotonic()
        self._subject = self._open()
        self.cell_errors = [*runnable.notes, *self._subject.cell_errors]

    def _open(self) -> RemoteSubject:
        """A process in which the cells have run; without some where they had ended an other one."""
        subject = self._start(self._runnable.cells_for(self._names))
        while self._runnable.learn(subject, self._names):
            subject.close()
            self.cpu_s += subject.cpu_s
            self._begun = time.monotonic()
            subject = self._start(self._runnable.cells_for(self._names))
        return subject

    def _spent(self, share: float) -> bool:
        """Whether that share of an exercise's time is over."""
        return time.monotonic() - self._begun > share * self._exercise_s

    def __call__(self, *args: Any) -> Any:
        return self._subject(*args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._subject, name)
        return function

    def renew(self) -> None:
        """Starts a new process if the last one is lost and there is time."""
        if self._subject.lost and not self._spent(1):
            self._close()
            self._subject = self._open()

    def start_over(self) -> None:
        """As much time as at the beginning: in a new process, unless little was taken so far."""
        if self._subject.lost or self._spent(1 / 4):
            self._close()
            self._subject = self._open()
        self._begun = time.monotonic()

    def _close(self) -> None:
        self._subject.close()
        self.cpu_s += self._subject.cpu_s
        self.measured |= self._subject.measured

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()


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
    paths = {name: runtime / name.replace(".", "/") for name in found}
    return sorted(
        name
        for name, path in paths.items()
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists()
    )


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
