import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_results as made
import pytest

from autograder.exercise import EVIDENCE
from autograder.feedback import render, write_feedback
from autograder.judge import STATUSES

EVIL = '</pre><script>alert("x")</script><img src=x onerror=alert(1)>'


class Page(HTMLParser):
    """The tags of a page, their nesting checked, and the text that is read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def words(result: made.Result) -> str:
    return " ".join(Page(render(result)).text.split())


def test_the_page_tells_points_status_evidence_and_message() -> None:
    failed = made.verdict("failed", "Stage 2 never runs F1..F7.", 0)
    text = words(made.result(score=0, exercises=[failed]))
    assert "0 of 3 points" in text
    assert "Not right yet: 0 of 3 points Stage 2 never runs F1..F7." in text


def test_evidence_is_told_once_and_by_exercise_only_where_it_differs() -> None:
    one = made.verdict()
    same = words(made.result(exercises=[one, one]))
    assert same.count("Evidence") == 1
    assert f"Evidence: data, {EVIDENCE['data']}." in same
    other = one._replace(title="Its speed", evidence="observed")
    mixed = words(made.result(exercises=[one, other]))
    assert f"Evidence for {one.title}: data" in mixed
    assert "Evidence for Its speed: observed" in mixed


def test_what_stands_between_backticks_is_code() -> None:
    page = render(made.result(exercises=[made.verdict("failed", "`f<1>(2)` and a ` alone", 0)]))
    assert "<code>f&lt;1&gt;(2)</code> and a ` alone" in page


def test_a_part_that_was_not_tried_says_so() -> None:
    first = made.verdict("failed", "m", 0).groups[0]
    second = first._replace(label="speed")
    verdict = made.verdict("failed", "m", 0)._replace(groups=[first, second])
    told = words(made.result(exercises=[verdict]))
    assert 'speed: 0 of 3, not tried, because "legal order" was missed' in told
    assert told.count("not tried") == 1
    tried = verdict._replace(groups=[first, second._replace(message="another")])
    assert "not tried" not in words(made.result(exercises=[tried]))


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_said_in_words(status: str) -> None:
    if status != "unreadable":  # a status of files, not of exercises
        exercises = [made.verdict(status, "m", 0)]
        assert f"{status}:" not in words(made.result(exercises=exercises))


@pytest.mark.parametrize(
    "changes",
    [
        {"student": EVIL},
        {"exercises": [made.verdict("failed", EVIL, 0)]},
        {"cell_errors": [EVIL]},
        {"notes": [EVIL]},
        {"status": "unreadable", "score": None, "reason": EVIL},
    ],
)
def test_no_text_of_a_student_becomes_html(changes: dict[str, Any]) -> None:
    page = Page(render(made.result(**changes)))
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert EVIL in page.text


def test_an_unreadable_file_is_no_zero() -> None:
    text = words(made.refused())
    assert "Not graded. Why The file is empty. This is not a zero" in text
    assert "points" not in text
    assert render(made.refused()._replace(manual_points=4.0)) == render(made.refused())


def test_a_defect_of_the_grader_is_not_told_as_the_students() -> None:
    text = words(made.result(status="infrastructure", score=None, reason="judge.py:57"))
    assert "on the side of the grader" in text
    assert "judge.py" not in text


def test_errors_repairs_and_written_points_are_told_where_there_are_any() -> None:
    plain = words(made.result())
    assert not re.search("stopped with an error|differs|Written answers", plain)
    full = words(made.result(cell_errors=["a: NameError"], notes=["b"], manual_points=4.0))
    assert "Cells of the notebook that stopped with an error" in full
    assert "What differs from the notebook given out b" in full
    assert "Written answers are read by a person; their 4 points" in full


def test_only_the_last_element_depends_on_the_run() -> None:
    other = {key: f"other {value}" for key, value in made.RUN.items()}
    other |= {"versions": {"python": "9"}, "seconds": 77.0}
    first, second = (render(made.result(run=run)) for run in (made.RUN, other))
    assert first != second
    (a, a_run), (b, b_run) = (page.split('<section id="run"') for page in (first, second))
    assert a == b
    for page_run in (a_run, b_run):
        assert page_run.split("</section>")[1].split() == ["</main>", "</body>", "</html>"]


def test_a_reader_without_sight_finds_language_title_and_headings() -> None:
    page = Page(render(made.result()))
    assert ("html", {"lang": "en"}) in page.tags
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2")] == ["h1", "h2", "h2"]
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    named_by = {attrs["aria-labelledby"] for tag, attrs in page.tags if tag == "section"}
    assert named_by <= ids


def test_the_page_lies_under_the_students_name(tmp_path: Path) -> None:
    path = write_feedback(tmp_path, made.result())
    assert path == tmp_path / "feedback" / "student-01" / "03-gpipe.html"
    assert path.read_text() == render(made.result())
