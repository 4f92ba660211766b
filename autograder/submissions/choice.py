"""Which of the files that a student handed in counts, and what is said of the others."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from autograder.submissions.archives import FileError, archive_suffix, member_names
from autograder.submissions.naming import File, alike, clean, is_notebook, some_of

_NUMBERED = re.compile(r"\d\d-")  # a unit's folder or notebook, perhaps not of those asked for

# What of a notebook's bytes is the student's work on an assignment, None where nothing is.
Work = Callable[[str, bytes], object]


class Entry(NamedTuple):
    """One submission; `problem` is why it cannot be taken as it lies there, "" if it can.

    `member` names the notebook in it where the file at `path` is an archive.
    """

    student: str
    assignment: str
    path: Path
    problem: str = ""
    member: str = ""


class Choice:
    """Chooses among files, and keeps what was not chosen.

    `strays` names what is not looked at, `unknown` the files whose assignment is not known.
    `missing` has, for what holds no notebook, the entries that may be listed for it: one for each
    assignment that it may be.
    """

    def __init__(self, directory: Path, assignments: Sequence[str], work: Work) -> None:
        self.directory = directory
        self.assignments = assignments
        self.work = work
        self.strays: list[str] = []
        self.unknown: list[str] = []
        self.missing: list[list[Entry]] = []

    def of_files(
        self, student: str, assignments: Sequence[str], place: Path, paths: Sequence[Path]
    ) -> Iterator[Entry]:
        """The entries of a student's notebooks, or else of the archives in their place."""
        notebooks = [File(path) for path in paths if is_notebook(path)]
        archives = [path for path in paths if not is_notebook(path)]
        if notebooks:
            yield from self.of_notebooks(student, assignments, place, notebooks)
            for path in archives:
                self.pass_over(File(path))
            return
        found: list[File] = []
        for path in archives:
            try:
                found += [File(path, name) for name in member_names(path)]
            except FileError as error:
                yield from self.without_notebook(student, assignments, path, str(error))
                return
        notebooks = [one for one in found if one.name.lower().endswith(".ipynb")]
        yield from self.of_notebooks(student, assignments, place, notebooks)
        if archives and not notebooks:
            names = some_of([clean(one.name) for one in found])
            nested = any(archive_suffix(one.name) for one in found)
            why = "; an archive in an archive is not looked into" * nested
            problem = f"There is no notebook in the archive (found {names}){why}."
            yield from self.without_notebook(student, assignments, archives[0], problem)
        for one in found:
            if one not in notebooks and not archive_suffix(one.name):
                self.pass_over(one)

    def of_notebooks(
        self, student: str, assignments: Sequence[str], place: Path, files: list[File]
    ) -> Iterator[Entry]:
        """An entry for each assignment that one of these notebooks may be."""
        left = list(files)
        for assignment in assignments:
            mine = [file for file in files if file.belongs_to(assignment)]
            # in the assignment's own folder every name will do
            if len(assignments) == 1 and (not mine or alike(place.name) == alike(assignment)):
                mine = files
            left = [file for file in left if file not in mine]
            if not mine:
                continue
            # its very name first
            mine.sort(key=lambda file: (file.student_of(assignment) != "", len(file.name)))
            kept = self._worked_on(mine, assignment)
            if len(kept) == 1:
                yield Entry(student, assignment, kept[0].path, "", kept[0].member)
                continue
            names = some_of([clean(file.name) for file in kept])
            problem = (
                f"There are {len(kept)} notebooks ({names}), and which one counts is not known;"
                " leave one."
            )
            yield Entry(student, assignment, place, problem)
        if len(left) == len(files):
            self.unknown += map(self.shown, left)
            return
        for file in left:
            if not self.is_of_another(file.name):
                self.pass_over(file)

    def without_notebook(
        self, student: str, assignments: Sequence[str], path: Path, problem: str
    ) -> list[Entry]:
        """The entry that says so, at once where it is known for which assignment."""
        entries = [Entry(student, one, path, problem) for one in assignments]
        if len(entries) == 1:
            return entries
        self.missing.append(entries)
        return []

    def with_missing(self, entries: list[Entry]) -> list[Entry]:
        """The entries, and those of students who are missing among them.

        A student is listed only for what somebody handed in: who has folders of one assignment
        grades that one. What lies beside the same student's notebook is not looked at.
        """
        told = {group[0].assignment for group in self.missing if len(group) == 1}
        handed_in = {one.assignment for one in entries} | told
        if not handed_in and not self.unknown:
            self.unknown += [self.shown(File(group[0].path)) for group in self.missing]
        entries = list(entries)
        for group in self.missing:
            theirs = {one.assignment for one in entries if one.student == group[0].student}
            if theirs and (len(group) > 1 or group[0].assignment in theirs):
                self.pass_over(File(group[0].path, group[0].member))
            else:
                entries += [one for one in group if one.assignment in handed_in]
        return entries

    def only(self, entries: list[Entry]) -> Entry:
        """The one entry of a student, or one that says that there are several."""
        first = entries[0]
        if len(entries) == 1:
            return first
        if not any(entry.problem for entry in entries):
            # "amy.ipynb" before "amy (1).ipynb"
            files = sorted(
                (File(entry.path, entry.member) for entry in entries),
                key=lambda file: (len(file.name), file),
            )
            kept = self._worked_on(files, first.assignment)
            if len(kept) == 1:
                return first._replace(path=kept[0].path, member=kept[0].member)
        names = some_of([clean(entry.path.name) for entry in entries])
        return first._replace(
            problem=f"{len(entries)} submissions belong to {first.student} ({names}); leave one."
        )

    def pass_over(self, file: File, why: str = "") -> None:
        """Keeps the name of what is not looked at."""
        self.strays.append(self.shown(file) + why)

    def shown(self, file: File) -> str:
        """Where a file lies, as it can be printed."""
        parts = file.path.relative_to(self.directory).parts + PurePosixPath(file.member).parts
        return "/".join(map(clean, parts))

    def is_of_another(self, name: str) -> bool:
        """Whether a name in a student's folder is that of an assignment nobody asked for."""
        return len(self.assignments) == 1 and bool(_NUMBERED.match(name))

    def _worked_on(self, files: list[File], assignment: str) -> list[File]:
        """Those that differ from each other and from what was given out; at least one."""
        if len(files) == 1:
            return files
        different: dict[object, File] = {}
        untouched = []
        for file in files:
            work = self.work(assignment, file.data())
            if work is None:
                untouched.append(file)
            elif work in different:
                self.pass_over(file, f" (the same as {clean(different[work].name)})")
            else:
                different[work] = file
        kept = list(different.values()) or untouched[:1]
        for file in untouched:
            if file not in kept:
                self.pass_over(file, " (as it was given out)")
        return kept
