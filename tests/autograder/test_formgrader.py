"""nbgrader's formgrader in a real browser, on a class that we graded."""

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from autograder.demo import DATA, answered, read_sections
from autograder.grader import ROOT, source_notebook, unit_of_assignment
from autograder.records.results import write_whole
from autograder.release import nbgrader_config, student_notebook
from autograder.server import Server, choose_port, serving
from autograder.submissions.cells import canonical, parse_notebook

playwright = pytest.importorskip(
    "playwright.sync_api",
    reason="the package playwright is not installed (pip install -e .[browser])",
)
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium or google-chrome on the path")

A = "03-gpipe"
RELEASED = student_notebook(source_notebook(unit_of_assignment(A)))
RIGHT = dict(read_sections(DATA / "student-01.py"))
HALF = RIGHT | {"solution-cause": "cause = 'I do not know.'"}
LIMIT_MS = 60_000  # for a page on a busy machine; all of them are there within one second
LIVE = """
<script>window.ran = "script"</script>
<img src=x onerror="window.ran = 'image'">
<svg onload="window.ran = 'drawing'">
<iframe srcdoc="<script>parent.ran = 'frame'</script>"></iframe>
<a href="javascript:window.ran = 'tag'">tag</a>
[link](javascript:window.ran='link'), [entity](java&#115;cript:window.ran='entity'),
[reference], <javascript:window.ran='auto'>, ![image](/formgrader/api/students)

[reference]: javascript:window.ran='reference'

# <img src=x onerror="window.ran = 'heading'">

| a | b |
|---|---|
| <img src=x onerror="window.ran = 'table'"> | $\\href{javascript:window.ran='formula'}{x}$ |

It is a *bubble*: `a < b`.
"""


def hand_in(folder: Path, student: str, sections: Mapping[str, str]) -> None:
    """Writes a student's notebook."""
    text = canonical(answered(parse_notebook(RELEASED.encode()), dict(sections)))
    write_whole(folder / student / A / f"{A}.ipynb", text)


class Class(NamedTuple):
    """A class of four that was graded, and the JupyterLab that its formgrader runs in."""

    submitted: Path
    out: Path

    def course(self, *arguments: str) -> str:
        """What a command of ours prints; it must not fail."""
        command = [sys.executable, "-P", "-m", "autograder", *arguments, "--out", str(self.out)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def page(self, student: str) -> str:
        """The words of a student's page."""
        text = (self.out / "feedback" / student / f"{A}.html").read_text()
        return " ".join(re.sub("<[^>]*>", " ", text.split("<body>")[1]).split())

    def grades(self) -> dict[str, dict[str, str]]:
        with (self.out / "grades.csv").open(newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Class:
    made = Class(*(tmp_path_factory.mktemp("course") / name for name in ("in", "build")))
    hand_in(made.submitted, "ann", HALF | {"answer": "Every piece pays its start again."})
    hand_in(made.submitted, "bob", RIGHT | {"answer": LIVE, "mine": f"#{LIVE!r}"})
    hand_in(made.submitted, "cyd", {})
    write_whole(made.submitted / "dan" / A / f"{A}.ipynb", "{")
    # what `./course release` leaves for nbgrader; its proofs are tested elsewhere and take long
    write_whole(made.out / "nbgrader" / "nbgrader_config.py", nbgrader_config())
    made.course("grade", str(made.submitted), "--assignment", A)
    return made


@pytest.fixture(scope="module")
def server(graded: Class) -> Iterator[Server]:
    home = graded.out / "nbgrader"
    before = Path.cwd()
    os.chdir(home)  # where JupyterLab is started is where nbgrader looks for its settings
    try:
        with (
            (home / "log").open("w") as log,
            serving(home, choose_port(None), log, os.environ) as up,
        ):
            yield up
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def context(server: Server) -> Iterator[Any]:
    """A browser that is logged in and reaches nothing but the server."""
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=BROWSER, args=options)
        context = browser.new_context()
        context.set_default_timeout(LIMIT_MS)
        context.route(lambda url: not url.startswith(server.address), lambda r: r.abort())
        page = context.new_page()
        page.goto(f"{server.address}/lab?token={server.token}")
        page.close()
        yield context
        context.close()
        browser.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    page = context.new_page()
    yield page
    page.close()


def open_submission(page: Any, server: Server, student: str) -> None:
    """Opens a student's notebook, as a click on its line in formgrader does."""
    page.goto(f"{server.address}/formgrader/manage_students/{student}/{A}")
    page.click(f"tbody a:has-text('{A}')")
    page.wait_for_function("window.formgrader?.grades?.loaded && formgrader.comments?.loaded")


def saved(page: Any, selector: str, text: str) -> None:
    """Types into a field of formgrader and waits until the server has it.

    Leaving a field saves it once more, so the text tells whose answer this is.
    """
    with page.expect_response(
        lambda r: r.request.method == "PUT" and text in r.request.post_data_json.values() and r.ok
    ):
        page.fill(selector, text)
        page.dispatch_event(selector, "change")


def test_formgrader_shows_our_scores_and_who_waits_for_a_person(page: Any, server: Server) -> None:
    page.goto(f"{server.address}/formgrader/manage_submissions/{A}")
    page.wait_for_selector("tbody tr:nth-child(4)")
    rows = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    found = {cells[1]: (cells[3], cells[4]) for cells in rows}
    waits = "needs manual grading"
    assert found == {
        "ann": (waits, "17 / 24"),
        "bob": (waits, "20 / 24"),
        "cyd": ("graded", "0 / 24"),  # nothing was answered
        "dan": (waits, "0 / 24"),  # and ours says that it is not graded
    }


def test_a_students_text_is_shown_and_nothing_of_it_runs(page: Any, server: Server) -> None:
    open_submission(page, server, "bob")
    answer = page.locator(".nbgrader_cell:has(#written-why-slower)")
    assert "<script>window.ran" in answer.inner_text().replace("\u2060", "")
    assert answer.locator("em").inner_text() == "bubble"
    assert (
        page.locator("#notebook :is(script, img, svg, iframe, a[href^='javascript'])").count() == 0
    )
    for link in page.locator("#notebook .panel-body a").all():
        link.click(no_wait_after=True)
    assert page.evaluate("window.ran") is None


def test_the_same_text_runs_where_it_is_left_as_it_is(
    page: Any, server: Server, graded: Class
) -> None:
    """The test above can fail."""
    path = graded.out / "nbgrader" / "autograded" / "bob" / A / f"{A}.ipynb"
    safe = path.read_text()
    assert "\u2060" in safe
    path.write_text(safe.replace("\u2060", ""))
    try:
        open_submission(page, server, "bob")
        assert page.evaluate("window.ran")
    finally:
        path.write_text(safe)


def test_a_submission_that_was_not_read_can_be_opened_and_says_why(
    page: Any, server: Server
) -> None:
    open_submission(page, server, "dan")
    assert "Not graded: The file is not a notebook" in page.inner_text("#notebook")
    assert page.get_attribute("#check-gpipe", "placeholder") is None
    assert "needs_manual_grade" in str(page.get_attribute("#check-gpipe", "class"))


def test_points_and_comments_by_hand_outlive_grading_again(
    page: Any, server: Server, graded: Class
) -> None:
    open_submission(page, server, "ann")
    assert page.get_attribute("#check-cause", "placeholder") == "0"
    assert "Not right yet: 0 of 3 points" in page.inner_text("#notebook")
    saved(page, "#check-gpipe", "2")
    saved(page, "#written-why-slower", "3.5")
    saved(page, "#solution-gpipe-comment", "Say <b>why</b> it is legal.")
    saved(page, "#written-why-slower-comment", "And the memory?")

    hand_in(graded.submitted, "ann", RIGHT | {"answer": "Every piece pays its start again."})
    graded.course("grade", str(graded.submitted), "--assignment", A, "--force")
    open_submission(page, server, "ann")
    assert page.get_attribute("#check-cause", "placeholder") == "3"
    assert page.input_value("#check-gpipe") == "2"
    assert page.input_value("#written-why-slower") == "3.5"
    assert page.input_value("#solution-gpipe-comment") == "Say <b>why</b> it is legal."
    text = graded.page("ann")
    assert "22.5 of 24 points" in text
    assert "Your instructor gave 2 points in place of these." in text
    assert "From your instructor Say &lt;b&gt;why&lt;/b&gt; it is legal." in text
    assert "From your instructor And the memory?" in text
    row = graded.grades()["ann"]
    assert [row[name] for name in ("score", "manual", "total", "to_grade")] == [
        "20",
        "2.5",
        "22.5",
        "0",
    ]


def test_pages_are_written_again_without_grading(page: Any, server: Server, graded: Class) -> None:
    open_submission(page, server, "cyd")
    saved(page, "#written-why-slower-comment", "Come to my office hour.")
    assert "office hour" not in graded.page("cyd")
    graded.course("feedback")
    assert "From your instructor Come to my office hour." in graded.page("cyd")
    assert graded.grades()["dan"]["total"] == ""


def test_autograding_in_formgrader_finds_nothing_to_run(
    page: Any, server: Server, graded: Class
) -> None:
    """Its button would run students' code with all the rights of whoever clicks it."""
    page.goto(f"{server.address}/formgrader/manage_submissions/{A}")
    path = graded.out / "nbgrader" / "autograded" / "ann" / A / f"{A}.ipynb"
    before = path.read_text()
    with page.expect_response(re.compile("ann/autograde")) as answer:
        page.click("tbody tr:has-text('ann') .autograde a")
    assert answer.value.json()["success"] is False
    assert path.read_text() == before
