"""A class graded: what is new or changed is graded by a pool of processes and recorded at once."""

import errno
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from autograder.cells import read_notebook
from autograder.feedback import feedback_path, write_feedback
from autograder.grader import (
    ROOT,
    Graded,
    Grader,
    manual_points,
    max_score,
    source_notebook,
    unit_of_assignment,
    without_verdicts,
)
from autograder.ingest import Refusal, read_file
from autograder.pool import Lost, run_tasks
from autograder.results import (
    GRADED,
    INFRASTRUCTURE,
    UNREADABLE,
    Result,
    fingerprint,
    read_result,
    result_path,
    short_hash,
    versions,
    write_grades,
    write_whole,
)
from autograder.sandbox import NOT_WALLED, Limits, Sandbox, Walls, build_runtime
from autograder.seeds import MIN_SECRET_BYTES
from autograder.submissions import Entry
from mpedu.faults import Failure

_SPARE_S = 120.0  # of a submission's limit, for everything that is not the student's code


class RecordError(Failure):
    """Results could not be written; those recorded before are intact."""


class Settings(NamedTuple):
    """What one run of the grader depends on besides the submissions."""

    out: Path
    secret: bytes
    jobs: int = 1
    round_number: int = 0
    force: bool = False


def grade_class(
    entries: Sequence[Entry],
    settings: Settings,
    watch: Callable[[Result, int], None],
    warn: Callable[[Walls], None] = lambda walls: None,
) -> list[Result]:
    """The results of all entries; `watch` gets each one graded now, and how many that will be.

    `warn` gets what students' code will run behind before any of it runs.

    What has a result for the same bytes, checks and secret is not graded again. RecordError when
    nothing can be written any more. Whatever ends the run, what was recorded stays.
    """
    run = _Run(settings)
    results: dict[Entry, Result] = {}
    todo: list[Entry] = []
    for entry in entries:
        before = run.recorded(entry)
        if before is None:
            todo.append(entry)
        else:
            results[entry] = before
    try:
        for entry, graded in _graded(todo, settings, warn):
            results[entry] = run.record(entry, graded)
            watch(results[entry], len(todo))
    finally:
        run.write_grades()
    return [results[entry] for entry in entries]


def _graded(
    entries: Sequence[Entry], settings: Settings, warn: Callable[[Walls], None]
) -> Iterator[tuple[Entry, Graded]]:
    """Each entry with its verdicts, in order of completion."""
    readable = []
    for entry in entries:
        refused = _refusal(entry)
        if refused is None:
            readable.append(entry)
        else:
            yield entry, without_verdicts(UNREADABLE, refused.reason, refused.sha256)
    if not readable:
        return
    with tempfile.TemporaryDirectory(prefix="mpedu-grade-") as folder:
        runtimes = {}
        for assignment in {entry.assignment for entry in readable}:
            runtimes[assignment] = Path(folder) / assignment
            build_runtime(unit_of_assignment(assignment), runtimes[assignment])
        walls = walls_here(next(iter(runtimes.values())))
        warn(walls)
        # Decided once: a student who brings down a process must not get the next one unwalled.
        walled = walls.rung != NOT_WALLED
        args = (runtimes, settings.secret, settings.round_number, walled)
        limit_s = max(_limit_s(assignment) for assignment in runtimes)
        with closing(run_tasks(graders, args, readable, settings.jobs, limit_s)) as outcomes:
            for entry, got in outcomes:
                if isinstance(got, Lost):
                    got = without_verdicts(INFRASTRUCTURE, f"Not graded: {got.reason}.")
                yield entry, got


def walls_here(runtime: Path) -> Walls:
    """What students' code runs behind on this machine, tried with a runtime."""
    with Sandbox(runtime, preload=()) as sandbox:
        return sandbox.walls


def _limit_s(assignment: str) -> float:
    """Seconds a submission may take at most: twice each exercise's limit (its cells, its calls)."""
    return 2 * len(unit_of_assignment(assignment).exercises) * Limits().exercise_s + _SPARE_S


def _refusal(entry: Entry) -> Refusal | None:
    """Why the entry's file cannot even be read, None if it can."""
    if entry.problem:
        return Refusal(entry.problem)
    read = read_file(entry.path)
    return read if isinstance(read, Refusal) else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _content_hash(entry: Entry) -> str:
    """The hash of the file's bytes, or of the reason why there are none."""
    data = Refusal(entry.problem) if entry.problem else read_file(entry.path)
    return _sha256(data.reason.encode() if isinstance(data, Refusal) else data)


@contextmanager
def graders(
    runtimes: dict[str, Path], secret: bytes, round_number: int, walled: bool
) -> Iterator[Callable[[Entry], Graded]]:
    """What a pool process does: one walled warm parent per assignment, started when needed."""
    with ExitStack() as stack:

        @cache
        def grader(assignment: str) -> Grader:
            unit = unit_of_assignment(assignment)
            master = read_notebook(source_notebook(unit))
            made = Grader(unit, master, runtimes[assignment], secret, round_number, walled)
            return stack.enter_context(made)

        yield lambda entry: grader(entry.assignment).grade(entry.path)


class _Run:
    """The results of one run: found again, made, written."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.secret_hash = short_hash(settings.secret)
        self.versions = versions()
        self.fingerprints: dict[str, str] = {}
        self.n_recorded = 0

    def recorded(self, entry: Entry) -> Result | None:
        """The result of an earlier run that still holds, with its page; None if there is none."""
        result = read_result(result_path(self.settings.out, entry.assignment, entry.student))
        if result is None or self.settings.force or result.status == INFRASTRUCTURE:
            return None
        if result.run.get("key") != self._key(entry.assignment, _content_hash(entry)):
            return None
        if result.run["walls"].startswith(NOT_WALLED) and shutil.which("bwrap"):
            return None  # made before there were walls
        if not feedback_path(self.settings.out, entry.assignment, entry.student).exists():
            self._write(lambda: write_feedback(self.settings.out, result))
        return result

    def _key(self, assignment: str, content_hash: str) -> str:
        """What a verdict depends on: the file's bytes, our code and versions, secret and round."""
        if assignment not in self.fingerprints:
            notebook = source_notebook(unit_of_assignment(assignment))
            self.fingerprints[assignment] = fingerprint(ROOT, notebook)
        round_number = str(self.settings.round_number)
        parts = (content_hash, self.fingerprints[assignment], self.secret_hash, round_number)
        return short_hash(" ".join(parts))

    def record(self, entry: Entry, graded: Graded) -> Result:
        """The result of one submission, written with its page; RecordError if that fails."""
        unit = unit_of_assignment(entry.assignment)
        done = graded.status == GRADED
        result = Result(
            assignment=entry.assignment,
            student=entry.student,
            sha256=graded.sha256,
            status=graded.status,
            reason=graded.reason,
            score=sum(verdict.score for verdict in graded.exercises) if done else None,
            max_score=max_score(unit),
            manual_points=manual_points(unit),
            exercises=graded.exercises,
            cell_errors=graded.cell_errors,
            notes=graded.notes,
            run=self._run_block(entry, graded),
        )
        path = result_path(self.settings.out, entry.assignment, entry.student)
        self._write(lambda: write_whole(path, result.dumps()))
        self._write(lambda: write_feedback(self.settings.out, result))
        self.n_recorded += 1
        return result

    def _run_block(self, entry: Entry, graded: Graded) -> dict[str, Any]:
        return {
            "graded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(graded.seconds, 3),
            "jobs": self.settings.jobs,
            "secret": self.secret_hash,
            "round": self.settings.round_number,
            "walls": graded.walls,
            "versions": self.versions,
            "key": self._key(entry.assignment, graded.sha256 or _sha256(graded.reason.encode())),
        }

    def write_grades(self) -> None:
        """Writes `grades.csv` anew from everything recorded."""
        self._write(lambda: write_grades(self.settings.out))

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            place = error.filename or self.settings.out
            raise RecordError(
                f"{place} cannot be written ({error.strerror}); {self.n_recorded} of this run's"
                f" results are recorded and intact: {'make room' if full else 'clear the way'} and"
                " run the same command again to grade only the rest."
            ) from error


def _make_secret(path: Path) -> None:
    """Writes 32 random bytes as hex to a file only its owner may read; no file if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    except BaseException:
        path.unlink()
        raise


def class_secret(out: Path, file: Path | None) -> bytes:
    """The class secret of at least 128 bits: from `file`, else `out/secret-seed`, made if absent.

    ValueError in one sentence if the file holds none.
    """
    path = out / "secret-seed" if file is None else file
    if file is None and not path.exists():
        _make_secret(path)
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else "it is not a hex number"
        raise ValueError(f"The class secret cannot be read from {path}: {detail}.") from None
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(
            f"The class secret in {path} has {len(secret)} bytes;"
            f" at least {MIN_SECRET_BYTES} as hex digits are needed."
        )
    return secret
