"""Where the submissions of a class lie, and which student each belongs to."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from autograder.cells import MAX_NOTEBOOK_BYTES, NotebookError, canonical, parse_notebook

RULE = (
    "DIR holds <student>/<assignment>/*.ipynb, or notebooks side by side, where the student is"
    " the file name without the ending and without a trailing -<assignment>."
)
_MAX_NAME_BYTES = 200  # the longest file name has 255, and results add an ending
_MOST_NAMES = 5
_LINK = "The folder is a link; hand in the folder itself."
_NUMBERED = re.compile(r"\d\d-")  # a unit's folder, perhaps not of those asked for
_NBGRADERS_OWN = "timestamp.txt"  # which its `collect` writes beside each notebook


class Entry(NamedTuple):
    """One submission; `problem` is why it cannot be taken as it lies there, "" if it can."""

    student: str
    assignment: str
    path: Path
    problem: str = ""


class Found(NamedTuple):
    """The submissions by assignment and student, and the names of what was not looked at."""

    entries: list[Entry]
    strays: list[str]


def find_submissions(
    directory: Path, assignments: Sequence[str], released: Callable[[str], str] = lambda _: ""
) -> Found:
    """The submissions for one of `assignments` under a folder, and whatever else lies there.

    `released` gives the text of an assignment's notebook as given out: a file that still is that
    one needs no second look. Upper and lower case are the same, no link is followed. ValueError in
    one sentence when there is nothing to grade.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a folder. {RULE}")
    search = _Search(directory, assignments, released)
    by_student: dict[tuple[str, str], list[Entry]] = {}
    for entry in search.entries():
        by_student.setdefault((entry.assignment, entry.student), []).append(entry)
    if not search.found_one:
        there = [_clean(path.name) for path in _visible(directory)]
        raise ValueError(
            f"There is no submission for {' or '.join(assignments)} in {directory}"
            f" (found: {some_of(there)}). {RULE}"
        )
    return Found([_only(entries) for _, entries in sorted(by_student.items())], search.strays)


def some_of(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first few names with the number of the others, "nothing" for none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}" if names else "nothing"


def _visible(folder: Path) -> list[Path]:
    """What lies in a folder, hidden files (editors' copies, checkpoints) left out."""
    with os.scandir(folder) as items:
        return sorted(folder / item.name for item in items if not item.name.startswith("."))


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb" and (path.is_symlink() or not path.is_dir())


class _Search:
    """One look through a folder; `found_one` says whether anything in it is a submission."""

    def __init__(
        self, directory: Path, assignments: Sequence[str], released: Callable[[str], str]
    ) -> None:
        self.directory = directory
        self.assignments = assignments
        self.released = released
        self.strays: list[str] = []
        self.found_one = False

    def entries(self) -> Iterator[Entry]:
        """What each student handed in, several for one whose files are not clear."""
        for path in _visible(self.directory):
            if _is_notebook(path):
                self.found_one = True
                yield self._flat(path)
            elif path.is_dir():
                yield from self._readable(path)
            else:
                self._pass_over(path)

    def _readable(self, home: Path) -> Iterator[Entry]:
        """A student's entries; one that cannot be read costs no other student's."""
        try:
            yield from list(self._nested(home))
        except OSError as error:
            self.found_one = True
            for assignment in self.assignments:
                problem = f"The folder cannot be read ({error.strerror})."
                yield Entry(_clean(home.name), assignment, home, problem)

    def _pass_over(self, path: Path, why: str = "") -> None:
        parts = path.relative_to(self.directory).parts
        self.strays.append("/".join(map(_clean, parts)) + why)

    def _flat(self, path: Path) -> Entry:
        stem = path.stem
        named = [a for a in self.assignments if stem.lower().endswith(a.lower())]
        if not named and len(self.assignments) > 1:
            raise ValueError(
                f"Which assignment {path.name} belongs to is not known;"
                f" add --assignment with one of {', '.join(self.assignments)}."
            )
        assignment = named[0] if named else self.assignments[0]
        student = (stem[: -len(assignment)] if named else stem).rstrip(" -_.")
        if student:
            return Entry(_clean(student), assignment, path)
        problem = f"The file name holds no student; call it <student>-{assignment}.ipynb."
        return Entry(_clean(stem), assignment, path, problem)

    def _nested(self, home: Path) -> Iterator[Entry]:
        student = _clean(home.name)
        if home.is_symlink():
            for assignment in self.assignments:
                self.found_one |= (home / assignment).is_dir()
                yield Entry(student, assignment, home / assignment, _LINK)
            return
        inside = _visible(home)
        wanted = {a.lower(): a for a in self.assignments}
        folders = [path for path in inside if path.is_dir() and path.name.lower() in wanted]
        for folder in folders:
            self.found_one = True
            yield self._in_folder(student, wanted[folder.name.lower()], folder)
        if not folders:
            names = some_of([_clean(path.name) for path in inside])
            for assignment in self.assignments:
                problem = f"There is no folder {assignment} in {student}; found {names}."
                yield Entry(student, assignment, home, problem)
            return
        for path in inside:
            if path not in folders and not (path.is_dir() and _NUMBERED.match(path.name)):
                self._pass_over(path)

    def _in_folder(self, student: str, assignment: str, folder: Path) -> Entry:
        """The entry of a submission's folder; its problem if it is not clear what to grade."""
        if folder.is_symlink():
            return Entry(student, assignment, folder, _LINK)
        inside = _visible(folder)
        notebooks = [path for path in inside if _is_notebook(path)]
        if not notebooks:
            names = some_of([_clean(path.name) for path in inside])
            problem = f"There is no notebook in the folder; found {names}."
            return Entry(student, assignment, folder, problem)
        for path in inside:
            if path not in notebooks and path.name != _NBGRADERS_OWN:
                self._pass_over(path)
        notebooks.sort(key=lambda path: path.stem.lower() != assignment.lower())  # its name first
        worked_on = self._worked_on(notebooks, assignment)
        if len(worked_on) == 1:
            return Entry(student, assignment, worked_on[0])
        names = some_of([_clean(path.name) for path in worked_on])
        problem = (
            f"There are {len(worked_on)} notebooks ({names}), and which one counts is not known;"
            " leave one."
        )
        return Entry(student, assignment, folder, problem)

    def _worked_on(self, notebooks: list[Path], assignment: str) -> list[Path]:
        """Those that differ from each other and from what was given out; at least one."""
        if len(notebooks) == 1:
            return notebooks
        different: dict[bytes, Path] = {}
        untouched = []
        for path in notebooks:
            data = _bytes(path)
            if _text(data) == self.released(assignment):
                untouched.append(path)
            elif data in different:
                self._pass_over(path, f" (the same as {_clean(different[data].name)})")
            else:
                different[data] = path
        kept = list(different.values()) or untouched[:1]
        for path in untouched:
            if path not in kept:
                self._pass_over(path, " (as it was given out)")
        return kept


def _bytes(path: Path) -> bytes:
    """A plain file's bytes; something of its own for what is none or too large."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_NOTEBOOK_BYTES:
        return os.fsencode(path)
    try:
        return path.read_bytes()
    except OSError:
        return os.fsencode(path)


def _text(data: bytes) -> str | None:
    """A notebook's canonical text, whatever was run in it; None for what is no notebook."""
    try:
        return canonical(parse_notebook(data))
    except NotebookError:
        return None


def _only(entries: list[Entry]) -> Entry:
    """The one entry of a student, or one that says that there are several."""
    first = entries[0]
    if len(entries) == 1:
        return first
    names = some_of([_clean(entry.path.name) for entry in entries])
    return first._replace(
        problem=f"{len(entries)} submissions belong to {first.student} ({names}); leave one."
    )


def _clean(name: str) -> str:
    """A file name that can be printed and written: no control characters, no broken encoding."""
    printable = "".join(c if c.isprintable() and c not in "/\\" else "?" for c in name)
    return printable.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
