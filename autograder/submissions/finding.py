"""Where the submissions of a class lie, and which student each belongs to."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from autograder.submissions.archives import FileError, archive_suffix
from autograder.submissions.choice import Choice, Work
from autograder.submissions.choice import Entry as Entry
from autograder.submissions.naming import (
    File,
    Packed,
    alike,
    clean,
    is_archive,
    is_notebook,
    lms_student,
    some_of,
    student_of_folder,
    students_in,
    visible,
)

RULE = (
    "DIR holds <student>/<assignment>/*.ipynb, or notebooks side by side, where the student is"
    " the file name without the ending and without a trailing -<assignment>. A .zip, .tar, .tgz or"
    " .tar.gz may stand in a notebook's place, or in that of DIR."
)
_LINK = "The folder is a link; hand in the folder itself."
_NBGRADERS_OWN = "timestamp.txt"  # which its `collect` writes beside each notebook


class Found(NamedTuple):
    """The submissions by assignment and student, and the names of what was not looked at."""

    entries: list[Entry]
    strays: list[str]


_NOBODY = "The name of the file or folder holds no student; name it after one."


def ensure_apart(directory: Path, out: Path) -> None:
    """ValueError where results would be written among the submissions, and be taken for them."""
    if out.resolve().is_relative_to(directory.resolve()):
        raise ValueError(
            f"--out {out} is the folder of submissions ({directory}) or lies in it; name a folder"
            " outside it."
        )


def find_submissions(
    directory: Path,
    assignments: Sequence[str],
    work: Work = lambda _, data: data,
    known: Sequence[str] = (),
) -> Found:
    """The submissions for one of `assignments` under a folder, and whatever else lies there.

    `work` is asked where a student has several notebooks: those with the same work, or none, need
    no second look. No student is called like one of the `known` assignments. Upper and lower case
    are the same, no link is followed. ValueError in one sentence when there is nothing to grade,
    or where it is not known for which assignment something was handed in.
    """
    packed = is_archive(directory)
    if not packed and not directory.is_dir():
        raise ValueError(f"{directory} is not a folder. {RULE}")
    search = _Search(directory, assignments, work)
    search.known = known
    found = list(search.packed() if packed else search.entries())
    if not search.found_one:
        there = search.strays if packed else [clean(path.name) for path in visible(directory)]
        raise ValueError(
            f"There is no submission for {' or '.join(assignments)} in {directory}"
            f" (found: {some_of(there)}). {RULE}"
        )
    by_student: dict[tuple[str, str], list[Entry]] = {}
    for entry in search.with_missing(found):
        if not entry.student.strip("?. "):
            entry = entry._replace(problem=entry.problem or _NOBODY)
        by_student.setdefault((entry.assignment, entry.student), []).append(entry)
    if search.unknown:
        verb = "belongs" if len(search.unknown) == 1 else "belong"
        raise ValueError(
            f"Which assignment {some_of(search.unknown)} {verb} to is not known;"
            f" add --assignment with one of {', '.join(assignments)}."
        )
    entries = [search.only(entries) for _, entries in sorted(by_student.items())]
    return Found(entries, search.strays)


class _Search(Choice):
    """One look through a folder; `found_one` says whether anything in it is a submission."""

    found_one = False
    known: Sequence[str] = ()

    def entries(self) -> Iterator[Entry]:
        """What each student handed in, several for one whose files are not clear."""
        for path in visible(self.directory):
            if is_notebook(path) or is_archive(path):
                self.found_one = True
                yield from self._flat(path)
            elif path.is_dir():
                yield from self._readable(path)
            elif student := lms_student(File(path).stem):
                self._no_notebook(clean(student), [File(path)])
            else:
                self.pass_over(File(path))

    def packed(self) -> Iterator[Entry]:
        """What each student handed in, of a class in one archive; ValueError if it is not sound."""
        try:
            students = students_in(self.directory, self.assignments, self.known)
        except FileError as error:
            raise ValueError(f"{self.directory}: {error}") from None
        for student, files in students.items():
            yield from self._of_packed(student, files)

    def _of_packed(self, student: str, files: list[Packed]) -> Iterator[Entry]:
        """The entries of a student's files in the archive of a class."""
        notebooks = [one.file for one in files if one.file.name.lower().endswith(".ipynb")]
        others = [one for one in files if one.file not in notebooks]
        handed_in = [] if notebooks else [one.file for one in others if one.looks_handed_in]
        for one in others:
            if one.file not in handed_in:
                self.pass_over(one.file)
        self.found_one |= bool(notebooks)
        if student:
            yield from self.of_notebooks(student, self.assignments, self.directory, notebooks)
        else:
            yield from map(self._nameless, notebooks)
        if handed_in:
            self._no_notebook(student or clean(handed_in[0].stem), handed_in)

    def _readable(self, home: Path) -> Iterator[Entry]:
        """A student's entries; one that cannot be read costs no other student's."""
        try:
            yield from list(self._nested(home))
        except OSError as error:
            self.found_one = True
            problem = f"The folder cannot be read ({error.strerror})."
            student = student_of_folder(home)
            yield from self.without_notebook(student, self.assignments, home, problem)

    def _nameless(self, file: File) -> Entry:
        """The entry of a file that is called like an assignment and no more."""
        assignment = file.names_only([*self.assignments, *self.known])
        problem = f"The file name holds no student; call it <student>-{assignment}.ipynb."
        asked = assignment if assignment in self.assignments else self.assignments[0]
        return Entry(clean(file.stem), asked, file.path, problem)

    def _flat(self, path: Path) -> Iterator[Entry]:
        """The entries of a file that lies beside those of other students."""
        file = File(path)
        if file.names_only([*self.assignments, *self.known]):
            yield self._nameless(file)
            return
        student = clean(file.student(self.assignments))
        yield from self.of_files(student, self._told_by(file), path, [path])

    def _told_by(self, file: File) -> Sequence[str]:
        """The assignment that a file's name tells, or all that it may be."""
        named = [one for one in self.assignments if file.student_of(one) is not None]
        return named[:1] or self.assignments

    def _no_notebook(self, student: str, files: list[File]) -> None:
        """Keeps what was handed in and is no notebook, to be listed if there is none."""
        self.found_one = True
        packed = any(archive_suffix(file.name) for file in files)
        why = "; an archive in an archive is not looked into, unpack the outer one" * packed
        names = some_of([clean(file.name) for file in files])
        problem = f"There is no notebook, only {names}{why}."
        self.missing.append(
            [
                Entry(student, one, files[0].path, problem, files[0].member)
                for one in self._told_by(files[0])
            ]
        )

    def _nested(self, home: Path) -> Iterator[Entry]:
        """The entries of a student's folder."""
        student = student_of_folder(home)
        if home.is_symlink():
            there = [one for one in self.assignments if (home / one).is_dir()]
            self.found_one |= bool(there)
            yield from (Entry(student, one, home / one, _LINK) for one in there)
            if not there:
                yield from self.without_notebook(student, self.assignments, home, _LINK)
            return
        inside = visible(home)
        within = [path for path in inside if path.is_dir()]
        loose = [path for path in inside if is_notebook(path) or is_archive(path)]
        folders = {path: one for one in self.assignments for path in _called(one, within)}
        if not folders and not loose:
            folders = {path: one for one in self.assignments for path in _bearing(one, within)}
        self.found_one |= bool(folders or loose)
        for folder, assignment in folders.items():
            yield from self._in_folder(student, assignment, folder)
        if not folders and not loose:
            self._list_missing(student, home, inside)
            return
        if not folders:
            yield from self.of_files(student, self.assignments, home, loose)
        seen = list(folders) or loose
        for path in inside:
            if path not in seen and not (path.is_dir() and self.is_of_another(path.name)):
                self.pass_over(File(path))

    def _list_missing(self, student: str, home: Path, inside: list[Path]) -> None:
        """Keeps a student's folder that holds nothing to grade."""
        names = some_of([clean(path.name) for path in inside])
        of_lms = bool(lms_student(home.name))  # where somebody handed in something
        self.found_one |= of_lms
        self.missing.append(
            [
                Entry(student, one, home, f"There is no folder {one} in {student}; found {names}.")
                if not of_lms
                else Entry(student, one, home, f"There is no notebook, only {names}.")
                for one in self.assignments
            ]
        )

    def _in_folder(self, student: str, assignment: str, folder: Path) -> Iterator[Entry]:
        """The entry of a submission's folder; its problem if it is not clear what to grade."""
        if folder.is_symlink():
            yield Entry(student, assignment, folder, _LINK)
            return
        inside = visible(folder)
        files = [path for path in inside if is_notebook(path) or is_archive(path)]
        entries = list(self.of_files(student, [assignment], folder, files))
        if not entries:
            names = some_of([clean(path.name) for path in inside])
            problem = f"There is no notebook in the folder; found {names}."
            entries = [Entry(student, assignment, folder, problem)]
            files = inside
        yield from entries
        for path in inside:
            if path not in files and path.name != _NBGRADERS_OWN:
                self.pass_over(File(path))


def _called(assignment: str, folders: list[Path]) -> list[Path]:
    """The folders that are called like an assignment, or else what is clearly meant by it."""
    same = [path for path in folders if path.name.lower() == assignment.lower()]
    return same or [path for path in folders if alike(path.name) == alike(assignment)]


def _bearing(assignment: str, folders: list[Path]) -> list[Path]:
    """The one folder of which the one notebook is called like an assignment, if there is one."""
    found = []
    for folder in folders:
        if not folder.is_symlink():
            notebooks = [File(path) for path in visible(folder) if is_notebook(path)]
            if len(notebooks) == 1 and notebooks[0].student_of(assignment) is not None:
                found.append(folder)
    return found if len(found) == 1 else []
