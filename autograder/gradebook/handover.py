"""After grading: the published results go into nbgrader's gradebook, and its folder is filled.

What a person then does in formgrader comes back as marks, for pages and lists of grades.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote

from autograder.exercise import load_unit, unit_numbers
from autograder.feedback import write_pages
from autograder.gradebook.autograded import prepare
from autograder.gradebook.book import Book, default_url
from autograder.gradebook.by_hand import manual_grades
from autograder.gradebook.fill import fill
from autograder.gradebook.kept import ensure_kept, keep, lost_by_hand
from autograder.gradebook.marks import AllMarks
from autograder.gradebook.nbgrader_settings import (
    SETTINGS,
    gradebook_url,
    late_penalty,
    read_settings,
)
from autograder.grader import source_notebook
from autograder.records.record import submission_hash
from autograder.records.results import Result, write_grades, write_whole
from autograder.release import nbgrader_config, nbgrader_folder, student_notebook
from autograder.submissions.cells import Node, parse_notebook
from autograder.submissions.finding import Entry
from autograder.submissions.matching import Matcher


class Handover:
    """The gradebook of one output folder; `url` names another database than nbgrader's settings.

    Without `accept_lower` nothing is read or published from a gradebook that lacks what people gave
    by what the pages show: LostByHand. With it, `lost` says whose points that are.

    ValueError if the URL is none or nbgrader's settings cannot be read, BookError if the gradebook
    cannot be used: made before anything is graded, it tells of that early.
    """

    def __init__(self, out: Path, url: str | None = None, accept_lower: bool = False) -> None:
        self.out = out
        self.accept_lower = accept_lower
        self.lost: list[str] = []
        self.home = nbgrader_folder(out.resolve())
        settings = read_settings(self.home)
        self.book = Book(url or gradebook_url(settings) or default_url(self.home))
        self.penalty = late_penalty(settings)

    def marks(self) -> AllMarks:
        """What people gave so far; {} where there is no gradebook yet."""
        marks = manual_grades(self.book)
        if not self.accept_lower:
            ensure_kept(self.out, self.book, marks)
        self.lost = lost_by_hand(self.out, marks)
        return marks

    def how_to_grade_by_hand(self) -> str:
        """What to type to give points and comments in nbgrader's formgrader."""
        jupyter = Path(sys.executable).with_name("jupyter")
        return (
            f"To grade by hand: (cd {quote(str(self.home))} && {quote(str(jupyter))} lab), there"
            " Nbgrader > Formgrader > Manual Grading;"
            f" then ./course feedback --out {quote(str(self.home.parent))}"
        )

    def publish(
        self,
        entries: Sequence[Entry],
        results: Sequence[Result],
        watch: Callable[[Result, int], None] = lambda result, n_total: None,
    ) -> AllMarks:
        """Gives, and writes pages and grades.csv with what people gave; the marks after it.

        `watch` gets the result of each page written, and how many that will be.
        """
        self.marks()  # before anything is changed
        marks = self.give(entries, results)
        for result in results:
            write_pages(self.out, [result], marks)
            watch(result, len(results))
        write_grades(self.out, marks)
        keep(self.out, self.book, marks)
        return marks

    def give(self, entries: Sequence[Entry], results: Sequence[Result]) -> AllMarks:
        """Puts published results there, with the notebooks for formgrader; the marks after it.

        Of a submission that is not among `entries`, or whose file is another than the one that the
        result is of, only the verdicts are put in.
        """
        by_key = {(result.assignment, result.student): result for result in results}
        masters = _masters({result.assignment for result in results})
        matchers = {name: Matcher(master) for name, master in masters.items()}
        prepared = {}
        for entry in entries:
            key = (entry.assignment, entry.student)
            if key in by_key and submission_hash(entry) == by_key[key].hashes["submission"]:
                name = entry.assignment
                made = prepare(self.home, entry, by_key[key], masters[name], matchers[name])
                prepared[key] = made
        handed = {key: made.handed for key, made in prepared.items()}
        if not (self.home / SETTINGS).exists():
            write_whole(self.home / SETTINGS, nbgrader_config())
        fill(self.book, masters, results, handed, self.penalty)
        for made in prepared.values():
            made.write()
        return self.marks()


def _masters(wanted: set[str]) -> dict[str, Node]:
    """The notebooks given out, by assignment, of those that the course still has."""
    units = [unit for unit in map(load_unit, unit_numbers()) if unit.assignment in wanted]
    return {
        unit.assignment: parse_notebook(student_notebook(source_notebook(unit)).encode())
        for unit in units
    }
