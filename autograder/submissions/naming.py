"""Files as students name them, and what of it tells the student and the assignment."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from autograder.submissions.archives import (
    FileError,
    archive_suffix,
    member_names,
    read_member,
    read_plain,
)

_MAX_NAME_BYTES = 200  # the longest file name has 255, and results add an ending
_MOST_NAMES = 5
# "Copy of a", "a (1)", "a-Copy1", "a - Copy", "a copy 2"
_COPIED = re.compile(r"(?:copy of )*(.*?)(?: *\(\d+\)|[ _-]+copy *\d*)*", re.I | re.S)
_VERSION = re.compile(r"-\d{1,2}$")  # Canvas adds it to what is handed in again
# What learning management systems call a file, or a student's folder, as they give it out.
_CANVAS = re.compile(r"(?P<name>.+?)_(?:late_)?(?P<user>\d+)_(?:\d{3,}_.+|text|link)", re.I | re.S)
_MOODLE = re.compile(
    r"(?P<name>.+?)_\d+_(?:assignsubmission_)?(?:file|onlinetext)(?:_.*)?", re.I | re.S
)


class File(NamedTuple):
    """A notebook as it was handed in: a file, or the `member` of an archive."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """Its own name, without folders."""
        return PurePosixPath(self.member).name if self.member else self.path.name

    @property
    def stem(self) -> str:
        """Its name without the ending, and without what copying and downloading add to it."""
        ending = archive_suffix(self.name) or PurePosixPath(self.name).suffix
        return str(_COPIED.fullmatch(self.name[: len(self.name) - len(ending)])[1])  # type: ignore[index]

    def student_of(self, assignment: str) -> str | None:
        """What stands before the assignment in its name, None if that does not end in it."""
        for stem in (self.stem, _VERSION.sub("", self.stem)):
            if stem.lower().endswith(assignment.lower()):
                return lms_student(self.stem) or stem[: -len(assignment)].rstrip(" -_.")
        return None

    def names_only(self, assignments: Sequence[str]) -> str:
        """The assignment of which its name is all that it is called, or ""."""
        return next((one for one in assignments if self.student_of(one) == ""), "")

    def student(self, assignments: Sequence[str]) -> str:
        """The student by its name alone, "" where that is the name of an assignment."""
        named = (self.student_of(one) for one in assignments)
        before = next((one for one in named if one is not None), self.stem)
        return lms_student(self.stem) or before

    def belongs_to(self, assignment: str) -> bool:
        """Whether its name, or that of a folder in its archive, says so."""
        folders = PurePosixPath(self.member).parent.parts
        named = alike(assignment) in map(alike, folders)
        return named or self.student_of(assignment) is not None

    def data(self) -> bytes:
        """Its bytes; something of its own for what cannot be read."""
        try:
            return read_member(self.path, self.member) if self.member else read_plain(self.path)
        except FileError:
            return os.fsencode(self.path)


class Packed(NamedTuple):
    """A file in an archive of a whole class; `looks_handed_in` if not just lying beside others."""

    file: File
    looks_handed_in: bool


def students_in(
    archive: Path, assignments: Sequence[str], known: Sequence[str] = ()
) -> dict[str, list[Packed]]:
    """What each student has in an archive of a whole class, as systems give it out.

    It holds a folder for each student, or all files side by side. What is called like one of the
    assignments, or of others that are `known`, and no more, is under "". FileError if it is not
    sound.
    """
    paths = [PurePosixPath(name) for name in member_names(archive)]
    tops = {path.parts[0] for path in paths}
    n_outer = 1 if len(paths) > 1 and len(tops) == 1 and len(paths[0].parts) > 1 else 0
    found: dict[str, list[Packed]] = {}
    for path in paths:
        file, parts = File(archive, str(path)), path.parts[n_outer:]
        if len(parts) > 1:
            student, handed_in = student_of_folder(Path(parts[0])), True
        else:
            nameless = file.names_only([*assignments, *known])
            student = "" if nameless else clean(file.student(assignments))
            handed_in = bool(lms_student(file.stem) or archive_suffix(file.name))
        found.setdefault(student, []).append(Packed(file, handed_in))
    return found


def is_notebook(path: Path) -> bool:
    """Whether it is a notebook by its name, be it a link."""
    return path.suffix.lower() == ".ipynb" and (path.is_symlink() or not path.is_dir())


def is_archive(path: Path) -> bool:
    """Whether it is an archive by its name, be it a link."""
    return bool(archive_suffix(path.name)) and (path.is_symlink() or not path.is_dir())


def visible(folder: Path) -> list[Path]:
    """What lies in a folder, hidden files (editors' copies, checkpoints) left out."""
    with os.scandir(folder) as items:
        return sorted(folder / item.name for item in items if not item.name.startswith("."))


def student_of_folder(folder: Path) -> str:
    """The student to whom a folder belongs."""
    return clean(lms_student(folder.name) or folder.name)


def lms_student(name: str) -> str:
    """The student in the name that a system gave to a file or folder, "" if none did.

    The same for whatever a student hands in later: Canvas' user id is kept, a file's id is not.
    """
    if canvas := _CANVAS.fullmatch(name):
        return f"{canvas['name']}_{canvas['user']}"
    moodle = _MOODLE.fullmatch(name)
    return moodle["name"] if moodle else ""


def alike(name: str) -> str:
    """A folder's name without what people write differently: case, spaces, `_` for `-`."""
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


def some_of(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first few names with the number of the others, "nothing" for none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}" if names else "nothing"


def clean(name: str) -> str:
    """A file name that can be printed and written: no control characters, no broken encoding.

    And no HTML: formgrader writes a student's name into its pages as it is. Of a name that is none,
    or leads out of a folder, "?" is left.
    """
    printable = "".join(c if c.isprintable() and c not in '/\\<>&";' else "?" for c in name)
    return _cut(printable) if printable.strip(". ") else "?"


def _cut(name: str) -> str:
    """The name, or of one that is too long the beginning with a hash: no two become the same."""
    data = name.encode()
    if len(data) <= _MAX_NAME_BYTES:
        return name
    mark = f"~{hashlib.sha256(data).hexdigest()[:12]}"
    return data[: _MAX_NAME_BYTES - len(mark)].decode(errors="ignore") + mark


def name_note(file: File, assignment: str, student: str) -> str:
    """A sentence on a file with another name than it should have, as typed; "" where it is fine."""
    ending = archive_suffix(file.name) or PurePosixPath(file.name).suffix
    whole = file.name.removesuffix(ending)
    if whole == file.stem:
        told = file.student_of(assignment) is not None or lms_student(whole)
        if told or alike(whole) in (alike(assignment), alike(student)):
            return ""
    shown = "".join(c if c.isprintable() else "?" for c in file.name)
    return f"The file is called `{shown}`; it was taken for `{assignment}.ipynb`."
