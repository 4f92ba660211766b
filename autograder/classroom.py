"""A class graded: what is new or changed is graded by a pool of processes and recorded at once."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from autograder.gradebook.marks import NONE_GIVEN, AllMarks
from autograder.grader import (
    MOST_TRIES,
    NOISY_TRIES,
    Graded,
    Grader,
    source_notebook,
    unit_of_assignment,
    without_verdicts,
)
from autograder.judge import INFRASTRUCTURE, UNREADABLE
from autograder.pool import Lost, run_tasks
from autograder.records.fingerprint import short_hash
from autograder.records.journal import Journal, journal_path
from autograder.records.locks import scratch_folder
from autograder.records.publish import Change, Publisher
from autograder.records.record import Recorder
from autograder.records.results import Result, walls
from autograder.sandbox import UNSAFE, Limits, Walls, build_runtime, walls_here
from autograder.submissions.cells import read_notebook
from autograder.submissions.finding import Entry
from autograder.submissions.ingest import Refusal, read_entry
from autograder.submissions.naming import File, name_note

_SPARE_S = 60.0  # of a limit, for everything that is not the student's code


class Settings(NamedTuple):
    """What one run of the grader depends on besides the submissions."""

    out: Path
    secret: bytes
    jobs: int = 1
    round_number: int = 0
    force: bool = False
    limits: Limits = Limits()
    rung: str | None = None  # of the sandbox; None for the best that this machine has
    trust: bool = False  # whether students' code may run without walls
    marks: AllMarks = NONE_GIVEN  # what people gave, for pages and grades.csv


def grade_class(
    entries: Sequence[Entry],
    settings: Settings,
    watch: Callable[[Result, int], None],
    warn: Callable[[Walls], None] = lambda walls: None,
    confirm: Callable[[Sequence[Change]], bool] = lambda changes: False,
) -> list[Result]:
    """The published results of all entries; `watch` gets each one made now, and how many that is.

    `warn` gets what students' code will run behind before any of it runs; `confirm` the changed
    scores before they are published: lower ones are held back unless it returns True.

    What has a result for the same bytes, checks and secret is not looked at again, and no exercise
    is judged again whose verdict nothing has changed. RecordError when nothing can be written any
    more. Whatever ends the run, what was judged stays. Only one may write to a folder at a time
    (`locks.only_run`).
    """
    made = _Class(entries, settings)
    try:
        for entry, graded in _graded(made.todo, made.recorder, settings, warn):
            watch(made.take(entry, graded), len(made.todo))
        made.publish(confirm)
    finally:
        made.publisher.write_grades()
    return made.results()


class _Class:
    """The submissions of one run: those without a result are `todo`."""

    def __init__(self, entries: Sequence[Entry], settings: Settings) -> None:
        self.entries = entries
        self._trust = settings.trust
        self.recorder = Recorder(settings.secret, settings.round_number, settings.jobs)
        self.publisher = Publisher(settings.out, settings.marks)
        self._published: dict[Entry, Result] = {}
        self._changes: dict[Entry, Change] = {}
        self._hashes = {entry: self.recorder.hashes(entry) for entry in entries}
        self.todo = [entry for entry in entries if not self._recorded(entry) or settings.force]

    def _recorded(self, entry: Entry) -> bool:
        """Whether an earlier run has made this result, published or held back."""
        names = entry.assignment, entry.student
        published = self.publisher.published(*names)
        if published is None:
            return False
        self._published[entry] = published
        if self._alike(entry, published):
            self.publisher.release(published)
            self.publisher.complete(published)
            return True
        held = self.publisher.held(*names)
        if held is None or not self._alike(entry, held):
            return False
        self._changes[entry] = Change(published, held)
        return True

    def _alike(self, entry: Entry, result: Result) -> bool:
        # What ran without walls runs again where that is not allowed any more.
        allowed = self._trust or walls(result) != UNSAFE
        return allowed and self.recorder.made_alike(result, self._hashes[entry])

    def take(self, entry: Entry, graded: Graded) -> Result:
        """The result, published unless that would change a score."""
        graded = graded._replace(notes=[*_name_notes(entry), *graded.notes])
        result = self.recorder.result(entry, self._hashes[entry], graded)
        before = self._published.get(entry)
        self._changes.pop(entry, None)
        if before is None or before.score == result.score:
            self.publisher.publish(result)
            self._published[entry] = result
        else:
            self._changes[entry] = Change(before, result)
        return result

    def publish(self, confirm: Callable[[Sequence[Change]], bool]) -> None:
        """Publishes or holds back what would change a score."""
        changes = [self._changes[entry] for entry in self.entries if entry in self._changes]
        accepted = bool(changes) and confirm(changes)
        for entry, change in self._changes.items():
            if change.held(accepted):
                self.publisher.hold(change.after)
            else:
                self.publisher.publish(change.after)
                self._published[entry] = change.after

    def results(self) -> list[Result]:
        """What is published now, in the order of the entries."""
        return [self._published[entry] for entry in self.entries]


def _name_notes(entry: Entry) -> list[str]:
    """What a student is told of the name of the file, nothing where it is as it should be."""
    file = File(entry.path, entry.member)
    note = "" if entry.problem else name_note(file, entry.assignment, entry.student)
    return [note] if note else []


def _graded(
    entries: Sequence[Entry],
    recorder: Recorder,
    settings: Settings,
    warn: Callable[[Walls], None],
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
    with scratch_folder() as folder:
        units = {}
        for assignment in {entry.assignment for entry in readable}:
            runtime = folder / assignment
            build_runtime(unit_of_assignment(assignment), runtime)
            units[assignment] = _Unit(runtime, _fingerprints(recorder, assignment, runtime))
        runtime = next(iter(units.values())).runtime
        walls = walls_here(runtime, settings.rung, settings.trust)
        warn(walls)
        # Decided once: a student who brings down a process must not get the next one unwalled.
        args = (units, settings._replace(rung=walls.rung), secrets.token_hex(4))
        n_exercises = max(len(unit.fingerprints) for unit in units.values())
        limit_s = _SPARE_S + n_exercises * NOISY_TRIES * _exercise_s(settings.limits)
        most_tries = MOST_TRIES * n_exercises
        tasks = run_tasks(graders, args, readable, settings.jobs, limit_s, most_tries)
        with closing(tasks) as outcomes:
            for entry, got in outcomes:
                if isinstance(got, Lost):
                    got = without_verdicts(INFRASTRUCTURE, f"Not graded: {got.reason}.")
                yield entry, got


class _Unit(NamedTuple):
    """What a grader of a unit needs: the runtime, and by exercise what decides a verdict."""

    runtime: Path
    fingerprints: dict[str, str]


def _fingerprints(recorder: Recorder, assignment: str, runtime: Path) -> dict[str, str]:
    machinery = recorder.sources.machinery(runtime)
    checks = recorder.checks(assignment)
    return {exercise: short_hash(f"{check} {machinery}") for exercise, check in checks.items()}


def _exercise_s(limits: Limits) -> float:
    """Seconds that one exercise may keep its judge.

    Four times its limit: the public and the secret cases, each with a last process.
    """
    return 4 * limits.exercise_s + _SPARE_S


def _refusal(entry: Entry) -> Refusal | None:
    """Why the entry's file cannot even be read, None if it can."""
    read = read_entry(entry)
    return read if isinstance(read, Refusal) else None


@contextmanager
def graders(
    units: Mapping[str, _Unit], settings: Settings, run: str
) -> Iterator[Callable[[Entry], Graded]]:
    """What a pool process does: one walled warm parent per assignment, started when needed."""
    with ExitStack() as stack:

        @cache
        def grader(assignment: str) -> Grader:
            unit = unit_of_assignment(assignment)
            master = read_notebook(source_notebook(unit))
            made = Grader(
                unit,
                master,
                units[assignment].runtime,
                settings.secret,
                settings.round_number,
                settings.rung,
                settings.limits,
                units[assignment].fingerprints,
            )
            made.process_ends_s = _exercise_s(settings.limits)
            return stack.enter_context(made)

        def grade(entry: Entry) -> Graded:
            path = journal_path(settings.out, entry.assignment, entry.student)
            with Journal(path, run, settings.force) as journal:
                return grader(entry.assignment).grade(entry.path, journal, entry.member)

        yield grade
