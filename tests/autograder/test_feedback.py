import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_results as made
import pytest

from autograder.exercise import EVIDENCE
from autograder.feedback import render, write_feedback
from autograder.gradebook.marks import NO_MARKS, Mark, Marks, totals
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


def words(result: made.Result, marks: Marks = NO_MARKS) -> str:
    return " ".join(Page(render(result, marks)).text.split())


CAUSE = made.verdict()._replace(exercise="cause", title="The cause")
GIVEN = Marks(
    {
        "check-gpipe": Mark(3.0, 3.0, 2.0, 0.5),
        "check-cause": Mark(3.0, 3.0, None, None),
        "written-why-slower": Mark(4.0, None, 3.5, None),
    },
    {"solution-gpipe": EVIL, "written-why-slower": "And the\nmemory?", "gone": "Well done."},
    1.0,
)
BOTH = made.result(score=6, max_score=6, manual_points=4.0, exercises=[made.verdict(), CAUSE])


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


def test_what_a_person_gave_is_told_where_it_belongs() -> None:
    page = Page(render(BOTH, GIVEN))
    assert EVIL in page.text
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    text = words(BOTH, GIVEN)
    assert "8 of 10 points" in text
    assert "Written answer: why slower By your instructor 3.5 of 4" in text
    assert "Extra points By your instructor +0.5 Late penalty" in text
    gpipe = text.split("Right: 3 of 3 points")[1]
    assert "gave 2 points in place of these. Your instructor gave 0.5 in extra credit." in gpipe
    assert "From your instructor </pre>" in gpipe
    assert "On the whole From your instructor Well done." in text


def test_a_page_without_a_gradebook_is_that_of_the_result_alone() -> None:
    text = words(BOTH)
    assert "6 of 6 points" in text
    assert "instructor" not in text.split("For your instructor")[0]


def test_answers_that_wait_for_a_person_are_in_no_total() -> None:
    waiting = Marks({"written-why-slower": Mark(4.0, None, None, None)})
    text = words(BOTH, waiting)
    assert "6 of 10 points" in text
    assert "Written answer: why slower Not graded yet of 4" in text
    assert "4 points are still to be given by a person" in text


def test_a_file_that_a_person_graded_by_hand_has_a_total() -> None:
    refused = made.refused()._replace(manual_points=4.0)
    some = Marks({"check-a": Mark(2.0, None, 2.0, None), "check-b": Mark(1.0, None, None, None)})
    assert totals(refused, some).total is None
    assert totals(refused, some).to_grade == 1 + 4
    assert "Not graded." in words(refused, some)
    given = {"check-a": Mark(2.0, None, 2.0, None), "check-b": Mark(1.0, None, 0.5, None)}
    text = words(refused, Marks(given))
    assert "2.5 of 3 points" in text
    assert "Why it was not graded by the checks The file is empty." in text
    assert "not a zero" not in text


def test_a_late_penalty_takes_no_more_than_there_is() -> None:
    assert totals(BOTH, Marks(late_penalty=99.0)).total == 0


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", css))


def luminance(colour: str) -> float:
    """Relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize("behind", ["page", "box"])
@pytest.mark.parametrize("name", ["text", "quiet", "good", "part", "bad", "link"])
def test_every_colour_of_text_can_be_read_in_light_and_dark(
    scheme: int, behind: str, name: str
) -> None:
    css = render(made.result()).split("<style>")[1].split("@media print")[0]
    found = colours(css.split("prefers-color-scheme")[scheme])
    lighter, darker = sorted((luminance(found[name]), luminance(found[behind])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_headings_links_and_tables_can_be_followed_without_sight() -> None:
    page = Page(render(BOTH, GIVEN))
    tags = [tag for tag, _ in page.tags]
    assert [tags.count(tag) for tag in ("h1", "header", "main", "caption")] == [1, 1, 1, 1]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert max(levels) == 3
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    links = [str(attrs["href"]) for tag, attrs in page.tags if tag == "a"]
    assert len(links) == 1 + len(BOTH.exercises)
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert next(attrs for tag, attrs in page.tags if tag == "a")["class"] == "skip"
    assert {attrs.get("scope") for tag, attrs in page.tags if tag == "th"} == {"row", "col"}
    assert not [attrs for _, attrs in page.tags if int(attrs.get("tabindex") or 0) > 0]


def test_the_page_lies_under_the_students_name(tmp_path: Path) -> None:
    path = write_feedback(tmp_path, made.result())
    assert path == tmp_path / "feedback" / "student-01" / "03-gpipe.html"
    assert path.read_text() == render(made.result())
