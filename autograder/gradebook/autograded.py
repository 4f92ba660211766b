"""The notebooks that formgrader opens: ours, with the student's text and our verdicts in them.

They are made from the notebook given out, so grade ids and metadata are whole whatever a student
did to them. No output of a student's is in them, and nothing of a student's text can run: in the
session of whoever grades, formgrader shows a notebook's Markdown as HTML.
"""

import contextlib
import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.utils import parse_utc  # type: ignore[import-untyped]

from autograder.feedback import words
from autograder.gradebook.fill import Handed
from autograder.gradebook.marks import CHECK
from autograder.judge import Verdict
from autograder.records.results import Result, write_again
from autograder.submissions.archives import read_plain
from autograder.submissions.cells import Node, NotebookError, grade_id, parse_notebook, role
from autograder.submissions.finding import Entry
from autograder.submissions.ingest import Refusal, read_entry
from autograder.submissions.matching import Matcher, Taken

# Where HTML, a link or an image begins, and the TeX commands that make either.
_TEX = "href|style|class|cssId|require|mmlToken|enclose|includegraphics|html\\w*"
_LIVE = re.compile(rf"<|\](?=[(:\[])|\\(?=(?:{_TEX})\b)")
_WORD_JOINER = "\u2060"  # is not seen, and no tag, link or command goes on with it
_TIMESTAMP, _TIMESTAMP_BYTES = "timestamp.txt", 100
_SHOWN_LINES = 200  # of all messages of a cell


class Prepared(NamedTuple):
    """A notebook to be written for formgrader, and what the gradebook is to know beside it."""

    path: Path
    text: str
    handed: Handed

    def write(self) -> None:
        """Writes the notebook if it is not there as it is to be."""
        write_again(self.path, self.text)


def prepare(home: Path, entry: Entry, result: Result, master: Node, matcher: Matcher) -> Prepared:
    """The notebook of one submission for the nbgrader folder `home`; nothing is written yet.

    `master` is the notebook given out, `matcher` finds its cells. A submission that cannot be read
    gives the bare master with the reason, so that a person can still grade it there.
    """
    assignment = entry.assignment
    path = home / "autograded" / entry.student / assignment / f"{assignment}.ipynb"
    theirs = _theirs(entry, matcher)
    text = _text(master, theirs, result)
    before = _recorded(path)
    changed = before is not None and before != result.hashes["submission"]
    blank = {grade_id(c) for c in master.cells if theirs.left_blank(c)}
    written = {grade_id(c) for c in master.cells if role(c) == "written"}
    sure = result.score is not None and not theirs.wrote_elsewhere
    unanswered = blank & written if sure else set()
    when, stamped = time_of(entry, home)
    handed = Handed(when, frozenset(blank), frozenset(unanswered), changed, stamped)
    return Prepared(path, text, handed)


class _Theirs:
    """What of a submitted notebook goes where: texts into our cells, other cells behind them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # by the id of our cell
        self.own: dict[str, list[Node]] = {}  # by the id of our cell before it, "" for none
        self.wrote_elsewhere = False
        self.after = ""

    def take(self, taken: Taken) -> None:
        """Puts one submitted cell, in the order of the notebook."""
        cell = taken.cell
        if not taken.ours:
            self.wrote_elsewhere |= taken.is_text and bool(cell.source.strip())
            self._keep(cell)
            return
        for ours in taken.ours:
            self.after = ours.id
            same = cell.source.strip() == ours.source.strip()
            if role(ours) == "written":
                self._write(ours, cell.source, same)
            elif role(ours) == "solution":
                self._solve(ours, taken.python if taken.is_text else cell.source)
            elif role(ours) != "graded" and not same:
                self._keep(cell)

    def _write(self, ours: Node, text: str, same: bool) -> None:
        """All texts for a written answer, one after the other."""
        before = self.texts.get(ours.id, ours.source)
        if before.strip() == ours.source.strip():
            self.texts[ours.id] = text
        elif not same:
            self.texts[ours.id] = f"{before}\n\n{text}"

    def _solve(self, ours: Node, text: str) -> None:
        """The last of several: it is what counts, since all are run in order."""
        before = self.texts.get(ours.id)
        if before is not None and text.strip() == ours.source.strip():
            return  # as given out, it counts for nothing beside another
        if before is not None and before.strip() != ours.source.strip():
            self._keep(Node(cell_type="code", source=before))
        self.texts[ours.id] = text

    def _keep(self, cell: Node) -> None:
        if cell.source.strip():
            self.own.setdefault(self.after, []).append(cell)

    def left_blank(self, ours: Node) -> bool:
        """Whether the student left a cell of ours as it was given out."""
        fills = role(ours) in ("solution", "written")
        return fills and self.texts.get(ours.id, "").strip() == ours.source.strip()


def _theirs(entry: Entry, matcher: Matcher) -> _Theirs:
    """What is there of a submitted notebook; nothing if it cannot be read."""
    theirs = _Theirs()
    data = read_entry(entry)
    if isinstance(data, Refusal):
        return theirs
    try:
        for taken in matcher.match(parse_notebook(data).cells):
            theirs.take(taken)
    except NotebookError:
        return theirs
    except Exception:  # a defect of ours, which grading met as well, costs no other student
        return _Theirs()
    return theirs


def _text(master: Node, theirs: _Theirs, result: Result) -> str:
    """The notebook as JSON."""
    outputs = {CHECK + v.exercise: _verdict_lines(v) for v in result.exercises}
    cells = [_remarks(result)] if result.notes or result.cell_errors or result.reason else []
    cells += [_own(cell, number) for number, cell in enumerate(theirs.own.get("", ()))]
    number = len(cells)
    for ours in master.cells:
        cells.append(_ours(ours, theirs, outputs.get(grade_id(ours), [])))
        for cell in theirs.own.get(ours.id, ()):
            cells.append(_own(cell, number := number + 1))
    metadata = dict(master.metadata) | {"mpedu": {"submission": result.hashes["submission"]}}
    tree = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(tree, sort_keys=True, ensure_ascii=False) + "\n"  # indenting is slow


def _ours(cell: Node, theirs: _Theirs, lines: Sequence[str]) -> dict[str, Any]:
    """A cell of ours, with the student's text where it is theirs to fill."""
    source = cell.source
    if role(cell) in ("solution", "written"):
        source = theirs.texts.get(cell.id, source)
    return _cell(cell.cell_type, cell.id, dict(cell.metadata), source, lines)


def _own(cell: Node, number: int) -> dict[str, Any]:
    """A cell of the student's own; ours know nothing of it but its text."""
    kind = "code" if cell.cell_type == "code" else "markdown"
    return _cell(kind, f"own-{number}", {}, cell.source)


def _cell(
    kind: str, cell_id: str, metadata: dict[str, Any], source: str, lines: Sequence[str] = ()
) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": cell_id, "metadata": metadata}
    if kind != "code":
        return cell | {"source": harmless(source).splitlines(keepends=True)}
    said = [{"name": "stdout", "output_type": "stream", "text": [f"{line}\n" for line in lines]}]
    cell |= {"execution_count": None, "outputs": said if lines else []}
    return cell | {"source": source.splitlines(keepends=True)}


def harmless(markdown: str) -> str:
    """The text with nothing live in it: HTML, links and images show as what was typed.

    Emphasis, lists, code and formulas stay. What is put in is not seen and is no character of any
    script, so it does no harm in code either.
    """
    return _LIVE.sub(lambda found: found[0] + _WORD_JOINER, markdown)


def _verdict_lines(verdict: Verdict) -> list[str]:
    """A verdict as lines of text."""
    lines = [f"{words(verdict.status)}: {verdict.score} of {verdict.points} points"]
    for message in verdict.messages:
        lines += ["", *message.splitlines()]
    return _shown(lines)


def _remarks(result: Result) -> dict[str, Any]:
    """A cell at the top with what the grader noted on the whole."""
    lines = [f"Not graded: {result.reason}"] if result.score is None else []
    lines += result.notes
    if result.cell_errors:
        lines += ["", "Cells that stopped with an error:"]
        lines += [line for error in result.cell_errors for line in error.splitlines()]
    return _cell("code", "remarks", {}, "# what the grader noted on this submission", _shown(lines))


def _shown(lines: Sequence[str]) -> list[str]:
    """The lines without what a terminal would act on, the first few hundred of them."""
    more = [f"({len(lines) - _SHOWN_LINES} more lines)"] if len(lines) > _SHOWN_LINES else []
    plain = ["".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in lines]
    return plain[:_SHOWN_LINES] + more


def _recorded(path: Path) -> str | None:
    """The hash of the submission in the notebook written last; None if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["metadata"]["mpedu"]["submission"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(found)


def time_of(entry: Entry, home: Path) -> tuple[datetime | None, bool]:
    """When a submission was handed in, in UTC without a zone, and whether that is certain.

    The time in the timestamp.txt that nbgrader puts into a submission's folder, else that of the
    file, which a copy may have changed, but no later than now. In nbgrader's own folder only the
    first counts, as it does for nbgrader. None where nothing tells.
    """
    folder = entry.path if entry.path.is_dir() else entry.path.parent
    if folder.name.lower() == entry.assignment.lower():
        # ValueError is what most texts raise that are no time, but not all
        with contextlib.suppress(Exception):
            stamp = read_plain(folder / _TIMESTAMP, _TIMESTAMP_BYTES)
            stamped: datetime = parse_utc(stamp.decode().strip())
            return stamped, True
    if entry.path.resolve().is_relative_to((home / "submitted").resolve()):
        return None, False
    with contextlib.suppress(OSError):
        seconds = int(min(entry.path.lstat().st_mtime, time.time()))
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None), False
    return None, False
