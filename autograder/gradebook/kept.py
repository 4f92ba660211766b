"""What people gave, as the pages showed it last: kept beside the results, for the day it is gone.

The gradebook owns it. These files only tell when a gradebook was deleted, emptied or replaced, and
hold what is needed to put it back.
"""

import json
from pathlib import Path
from shlex import quote
from typing import Any

from autograder.gradebook.book import Book
from autograder.gradebook.marks import NO_MARKS, AllMarks, Key, Marks
from autograder.records.results import write_again
from autograder.submissions.naming import some_of
from mpedu.faults import Failure

_SHOWN = 20


class LostByHand(Failure):
    """The gradebook lacks what people gave; no page was changed."""


def list_path(out: Path) -> Path:
    """Where the list of points and comments given by hand lies, if there are any."""
    return out / "by-hand.json"


def copy_path(out: Path) -> Path:
    """Where the copy of an SQLite gradebook lies, if people gave anything."""
    return out / "gradebook-copy.db"


def keep(out: Path, book: Book, marks: AllMarks) -> None:
    """Keeps what is published now; of an SQLite gradebook a copy, too. What was kept is replaced.

    What lacks something that was kept goes beside it (.before), so that it can still be put back.
    """
    lost = lost_by_hand(out, marks)
    for path in (list_path(out), copy_path(out)):
        if lost and path.exists():
            path.replace(path.with_name(f"{path.name}.before"))
    tree: dict[str, dict[str, Any]] = {}
    for (assignment, student), given in sorted(marks.items()):
        if (points := _points(given)) or given.comments:
            kept = {"points": points, "comments": dict(given.comments)}
            tree.setdefault(assignment, {})[student] = kept
    if tree or list_path(out).exists():
        write_again(list_path(out), json.dumps(tree, indent=1, ensure_ascii=False) + "\n")
    if tree:
        book.copy(copy_path(out))


def lost_by_hand(out: Path, marks: AllMarks) -> list[str]:
    """Whose points the gradebook lacks, like "ann, 03-gpipe (3 points)".

    Comments count only where nothing by hand is there any more: a person may delete one.
    """
    emptied = not any(_points(given) or given.comments for given in marks.values())
    found = []
    for (assignment, student), (points, n_comments) in _kept(out).items():
        now = _points(marks.get((assignment, student), NO_MARKS))
        gone = [value for cell, value in points.items() if cell not in now]
        parts = [f"{sum(gone):g} points"] if gone else []
        if emptied and n_comments:
            parts += [f"{n_comments} comment{'s' * (n_comments > 1)}"]
        if parts:
            found.append(f"{student}, {assignment} ({' and '.join(parts)})")
    return found


def ensure_kept(out: Path, book: Book, marks: AllMarks) -> None:
    """LostByHand, with the way back, where the gradebook lacks what people gave."""
    lost = lost_by_hand(out, marks)
    if not lost:
        return
    raise LostByHand(
        f"The gradebook {book.name} lacks points given by hand that the pages show, of"
        f" {some_of(lost, _SHOWN)}. If it was deleted or replaced, {_way_back(out, book)}, and run"
        f" the same command again; if they are to go, add --accept-lower. {list_path(out)} lists"
        " what was given; nothing was changed."
    )


def _way_back(out: Path, book: Book) -> str:
    """How to get a gradebook back, in words."""
    file, copy = book.file, copy_path(out)
    if file is None or not copy.exists():
        return "restore it from your own backup"
    aside = f"mv {quote(str(file))} {quote(f'{file}.before')} && " if file.exists() else ""
    command = f"{aside}cp {quote(str(copy))} {quote(str(file))}"
    return f"close formgrader and put the copy back that was made at the last run ({command})"


def _points(given: Marks) -> dict[str, float]:
    """The points that a person gave, by grade id."""
    return {
        name: (mark.manual or 0.0) + (mark.extra or 0.0)
        for name, mark in given.cells.items()
        if mark.manual is not None or mark.extra
    }


def _kept(out: Path) -> dict[Key, tuple[dict[str, float], int]]:
    """Points by grade id and the number of comments of each submission; {} for no list."""
    try:
        tree = json.loads(list_path(out).read_text(encoding="utf-8"))
        return {
            (assignment, student): (one["points"], len(one["comments"]))
            for assignment, students in tree.items()
            for student, one in students.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LostByHand(
            f"{list_path(out)}, which lists what people gave, is damaged; see in formgrader that"
            " their points are there, delete the file, and run the same command again."
        ) from None
