"""Where the submissions of a class lie, and which student each belongs to."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

RULE = (
    "DIR holds <student>/<assignment>/*.ipynb, or notebooks side by side, where the student is"
    " the file name without the ending and without a trailing -<assignment>."
)
_MAX_NAME_BYTES = 200  # the longest file name has 255, and results add an ending


class Entry(NamedTuple):
    """One submission; `problem` is why it cannot be taken as it lies there, "" if it can."""

    student: str
    assignment: str
    path: Path
    problem: str = ""


def find_submissions(directory: Path, assignments: Sequence[str]) -> list[Entry]:
    """The submissions for one of `assignments` under a folder, by assignment and student.

    No link is followed. ValueError in one sentence when there is nothing to grade.
    """
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a folder. {RULE}")
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in [*_flat(directory, assignments), *_nested(directory, assignments)]:
        found.setdefault((entry.assignment, entry.student), []).append(entry)
    if not found:
        raise ValueError(
            f"There is no submission for {' or '.join(assignments)} in {directory}. {RULE}"
        )
    return [_only(entries) for _, entries in sorted(found.items())]


def _visible(folder: Path) -> list[Path]:
    """What lies in a folder, hidden files (editors' copies, checkpoints) left out."""
    with os.scandir(folder) as items:
        return sorted(folder / item.name for item in items if not item.name.startswith("."))


def _flat(directory: Path, assignments: Sequence[str]) -> Iterator[Entry]:
    for path in _visible(directory):
        if path.suffix != ".ipynb" or (path.is_dir() and not path.is_symlink()):
            continue
        named = [a for a in assignments if path.stem.endswith(a)]
        if not named and len(assignments) > 1:
            raise ValueError(
                f"Which assignment {path.name} belongs to is not known;"
                f" add --assignment with one of {', '.join(assignments)}."
            )
        assignment = named[0] if named else assignments[0]
        student = path.stem.removesuffix(assignment).rstrip(" -_.")
        if student:
            yield Entry(_clean(student), assignment, path)
        else:
            problem = f"The file name holds no student; call it <student>-{assignment}.ipynb."
            yield Entry(_clean(path.stem), assignment, path, problem)


def _nested(directory: Path, assignments: Sequence[str]) -> Iterator[Entry]:
    for home in _visible(directory):
        for assignment in assignments:
            folder = home / assignment
            if folder.is_dir():
                linked = home.is_symlink() or folder.is_symlink()
                path, problem = (folder, _LINK) if linked else _notebook_in(folder)
                yield Entry(_clean(home.name), assignment, path, problem)


_LINK = "The folder is a link; hand in the folder itself."


def _notebook_in(folder: Path) -> tuple[Path, str]:
    """The notebook of a submission's folder, and the problem if it is not clear which that is."""
    notebooks = [path for path in _visible(folder) if path.suffix == ".ipynb"]
    exact = folder / f"{folder.name}.ipynb"
    if exact in notebooks:
        return exact, ""
    if len(notebooks) == 1:
        return notebooks[0], ""
    if not notebooks:
        return folder, "There is no notebook in the folder."
    names = ", ".join(_clean(path.name) for path in notebooks[:5])
    return folder, f"There are {len(notebooks)} notebooks ({names}); leave {exact.name} only."


def _only(entries: list[Entry]) -> Entry:
    """The one entry of a student, or one that says that there are several."""
    first = entries[0]
    if len(entries) == 1:
        return first
    names = ", ".join(_clean(entry.path.name) for entry in entries[:5])
    return first._replace(
        problem=f"{len(entries)} files belong to {first.student} ({names}); leave one."
    )


def _clean(name: str) -> str:
    """A file name that can be printed and written: no control characters, no broken encoding."""
    printable = "".join(c if c.isprintable() and c not in "/\\" else "?" for c in name)
    return printable.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
