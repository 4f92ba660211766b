import csv
import errno
import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import made_results as made
import pytest

from autograder import classroom
from autograder.classroom import Settings, grade_class
from autograder.grader import Graded
from autograder.pool import Lost
from autograder.records import publish
from autograder.records.fingerprint import Sources
from autograder.records.publish import Change, RecordError, held_path
from autograder.records.results import Result, read_result, result_path
from autograder.sandbox import NOT_WALLED, Walls
from autograder.seeds import class_secret
from autograder.submissions.finding import Entry

A = "03-gpipe"
BARE = Walls(NOT_WALLED, "bwrap was not found")
Run = Callable[..., list[str]]


def entries(folder: Path, n: int = 3) -> list[Entry]:
    """Submissions of students s0, s1, ..., which nobody looks into here."""
    made_here = []
    for i in range(n):
        path = folder / f"s{i}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
        made_here.append(Entry(f"s{i}", A, path))
    return made_here


def graded(entry: Entry) -> Graded:
    sha256 = hashlib.sha256(entry.path.read_bytes()).hexdigest()
    return Graded(sha256, "graded", "", [made.verdict()], [], [], 0.1, "walls")


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands for the processes: answers each task from this list, full marks when it is empty."""
    answers: list[Any] = []

    def run_tasks(_make: Any, _args: Any, tasks: list[Entry], *_: Any) -> Iterator[Any]:
        for entry in tasks:
            answer = answers.pop(0) if answers else graded(entry)
            if isinstance(answer, BaseException):
                raise answer
            yield entry, answer

    monkeypatch.setattr(classroom, "run_tasks", run_tasks)
    monkeypatch.setattr(classroom, "walls_here", lambda *_: BARE)
    return answers


@pytest.fixture
def graded_now(tmp_path: Path) -> Run:
    """Grades entries and gives the students that were graded now."""

    def run(
        of: list[Entry], secret: bytes = b"s" * 32, confirm: Any = lambda _: False, **settings: Any
    ) -> list[str]:
        seen: list[str] = []
        results = grade_class(
            of,
            Settings(tmp_path / "out", secret, **settings),
            lambda result, _: seen.append(result.student),
            confirm=confirm,
        )
        assert [result.student for result in results] == [entry.student for entry in of]
        return seen

    return run


def recorded(out: Path, student: str) -> Result:
    result = read_result(result_path(out / "out", A, student))
    assert result is not None
    return result


def test_a_second_run_grades_only_what_is_new_or_changed(tmp_path: Path, graded_now: Run) -> None:
    of = entries(tmp_path / "class")
    assert graded_now(of) == ["s0", "s1", "s2"]
    assert graded_now(of) == []
    of[1].path.write_text("{")
    more = Entry("s3", A, tmp_path / "class" / "absent.ipynb")
    assert graded_now([*of, more]) == ["s3", "s1"]
    assert graded_now([*of, more]) == []


def test_what_code_runs_behind_is_told_before_any_runs_and_only_then(tmp_path: Path) -> None:
    of = entries(tmp_path / "class", 1)
    seen: list[object] = []

    def run() -> list[object]:
        seen.clear()
        settings = Settings(tmp_path / "out", b"s" * 32)
        grade_class(of, settings, lambda result, _: seen.append(result.student), seen.append)
        return seen

    assert run() == [BARE, "s0"]
    assert run() == []
    of[0].path.unlink()
    assert run() == ["s0"]  # unreadable: no code runs


@pytest.mark.parametrize("changed", [{"secret": b"t" * 32}, {"round_number": 1}, {"force": True}])
def test_another_secret_or_round_or_force_grades_again(
    tmp_path: Path, graded_now: Run, changed: dict[str, Any]
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    assert graded_now(of, **changed) == ["s0"]


def test_changed_checks_grade_again(
    tmp_path: Path, graded_now: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    monkeypatch.setattr(Sources, "checks", lambda *_: {"gpipe": "a mended check"})
    assert graded_now(of) == ["s0"]


def test_a_page_that_was_deleted_is_written_again_without_grading(
    tmp_path: Path, graded_now: Run
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    page = tmp_path / "out" / "feedback" / "s0" / f"{A}.html"
    text = page.read_text()
    page.unlink()
    assert graded_now(of) == []
    assert page.read_text() == text


def test_a_page_that_a_killed_run_left_old_is_written_again(
    tmp_path: Path, graded_now: Run
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    page = tmp_path / "out" / "feedback" / "s0" / f"{A}.html"
    text = page.read_text()
    page.write_text("of an earlier result")
    os.utime(page, (1, 1))
    assert graded_now(of) == []
    assert page.read_text() == text


def test_a_lost_process_is_never_zero_points_and_is_tried_again(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 3)
    pool += [Lost("the grading process ended with exit code -9")]
    graded_now(of)
    lost = recorded(tmp_path, "s0")
    assert (lost.status, lost.score) == ("infrastructure", None)
    assert "exit code -9" in lost.reason
    assert recorded(tmp_path, "s2").score == 3
    with (tmp_path / "out" / "grades.csv").open() as file:
        assert [row["score"] for row in csv.DictReader(file)] == ["", "3", "3"]
    graded_now(of)
    assert recorded(tmp_path, "s0").score == 3


def test_stopping_keeps_what_is_recorded_and_the_grades(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 2)
    pool += [graded(of[0]), KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        graded_now(of)
    assert recorded(tmp_path, "s0").score == 3
    assert "s0" in (tmp_path / "out" / "grades.csv").read_text()
    assert not result_path(tmp_path / "out", A, "s1").exists()


def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_is_recorded(
    tmp_path: Path, graded_now: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = entries(tmp_path / "class", 4)
    write_whole = publish.write_whole

    def fill_up(path: Path, text: str) -> None:
        if path.name == "s2.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(path, text)

    monkeypatch.setattr(publish, "write_whole", fill_up)
    with pytest.raises(RecordError, match=r"\(No space left on device\); 2 of this run's results"):
        graded_now(of)
    assert [recorded(tmp_path, name).score for name in ("s0", "s1")] == [3, 3]
    assert not result_path(tmp_path / "out", A, "s3").exists()


def test_what_stands_in_the_way_of_a_result_is_named_without_talk_of_room(
    tmp_path: Path, graded_now: Run
) -> None:
    (tmp_path / "out" / "results").mkdir(parents=True)
    (tmp_path / "out" / "results" / A).touch()
    with pytest.raises(RecordError, match=rf"results/{A} cannot be written .*: clear the way"):
        graded_now(entries(tmp_path / "class", 1))


def test_a_really_full_disk_leaves_only_whole_files(tmp_path: Path, graded_now: Run) -> None:
    out = tmp_path / "out"
    out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(out)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with pytest.raises(RecordError, match="No space left on device"):
            graded_now(entries(tmp_path / "class", 60))
        results = list((out / "results" / A).iterdir())
        assert len(results) > 3
        assert all(path.suffix == ".json" and read_result(path) for path in results)
    finally:
        subprocess.run(["umount", str(out)], check=True)


def test_the_run_block_names_the_secret_without_telling_it(tmp_path: Path, graded_now: Run) -> None:
    secret = bytes(range(32))
    graded_now(entries(tmp_path / "class", 1), secret)
    text = result_path(tmp_path / "out", A, "s0").read_text()
    assert recorded(tmp_path, "s0").run["secret"] in text
    assert secret.hex() not in text


def scored(entry: Entry, score: int) -> Graded:
    verdict = made.verdict("passed" if score == 3 else "partial", "", score)
    return graded(entry)._replace(exercises=[verdict])


def test_a_changed_score_is_told_before_it_is_published(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 2)
    pool += [scored(of[0], 1), scored(of[1], 3)]
    graded_now(of)
    seen: list[str] = []

    def confirm(changes: Sequence[Change]) -> bool:
        seen.extend(map(str, changes))
        assert recorded(tmp_path, "s0").score == 1  # not yet
        return False

    graded_now(of, secret=b"t" * 32, confirm=confirm)
    assert seen == [f"s0, {A}: 1 -> 3 (another secret; gpipe 1 -> 3)"]
    assert recorded(tmp_path, "s0").score == 3


def test_a_page_tells_escaped_under_which_name_the_file_came(
    tmp_path: Path, graded_now: Run
) -> None:
    path = tmp_path / "class" / "amy" / A / f"{A} (1).ipynb"
    other = path.with_name("<b>work<b>.ipynb")
    path.parent.mkdir(parents=True)
    for file in (path, other):
        file.write_text("{}")
    graded_now([Entry("amy", A, path), Entry("bob", A, other), *entries(tmp_path / "class", 1)])
    pages = [
        (tmp_path / "out" / "feedback" / student / f"{A}.html").read_text()
        for student in ("amy", "bob", "s0")
    ]
    assert f"The file is called <code>{A} (1).ipynb</code>; it was taken for" in pages[0]
    assert "<code>&lt;b&gt;work&lt;b&gt;.ipynb</code>" in pages[1]
    assert "<b>work" not in pages[1]
    assert "The file is called" not in pages[2]


def test_a_lower_score_is_held_back_and_not_made_again(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 2)
    graded_now(of)
    page = tmp_path / "out" / "feedback" / "s0" / f"{A}.html"
    before = recorded(tmp_path, "s0"), page.read_text(), grades(tmp_path)
    held = held_path(tmp_path / "out", A, "s0")
    seen: list[str] = []

    def refuse(changes: Sequence[Change]) -> bool:
        seen.extend(map(str, changes))
        return False

    pool += [scored(of[0], 1)]
    assert graded_now(of, round_number=1, confirm=refuse) == ["s0", "s1"]
    assert graded_now(of, round_number=1, confirm=refuse) == []
    assert seen == 2 * [f"s0, {A}: 3 -> 1 (another round; gpipe 3 -> 1)"]
    assert (recorded(tmp_path, "s0"), page.read_text(), grades(tmp_path)) == before
    assert read_result(held) is not None
    assert graded_now(of, round_number=1, confirm=lambda _: True) == []
    assert recorded(tmp_path, "s0").score == 1
    assert page.read_text() != before[1]
    assert not held.exists()


def test_what_is_held_back_is_dropped_when_the_published_result_holds_again(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    pool += [scored(of[0], 1)]
    graded_now(of, round_number=1)
    assert graded_now(of) == []
    assert not held_path(tmp_path / "out", A, "s0").exists()


def test_a_file_that_cannot_be_read_any_more_costs_no_score_unasked(
    tmp_path: Path, graded_now: Run
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    of[0].path.unlink()
    seen: list[str] = []
    graded_now(of, confirm=lambda changes: bool(seen.extend(map(str, changes))))
    (text,) = seen
    assert text.startswith(f"s0, {A}: 3 -> unreadable (handed in anew; The file cannot be opened")
    assert recorded(tmp_path, "s0").score == 3
    graded_now(of, confirm=lambda _: True)
    assert recorded(tmp_path, "s0").status == "unreadable"


def test_what_could_not_be_graded_never_replaces_a_score(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    pool += [Lost("the grading process ended with exit code -9")]
    graded_now(of, round_number=1, confirm=lambda _: True)
    assert recorded(tmp_path, "s0").score == 3
    assert graded_now(of, round_number=1) == ["s0"]  # tried again
    assert not held_path(tmp_path / "out", A, "s0").exists()


def test_stopping_at_the_question_publishes_nothing(
    tmp_path: Path, graded_now: Run, pool: list[Any]
) -> None:
    of = entries(tmp_path / "class", 1)
    graded_now(of)
    pool += [scored(of[0], 1)]

    def stop(_: object) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graded_now(of, round_number=1, confirm=stop)
    assert recorded(tmp_path, "s0").score == 3


def grades(out: Path) -> str:
    return (out / "out" / "grades.csv").read_text()


def test_the_class_secret_is_made_once_for_the_owner_only(tmp_path: Path) -> None:
    out = tmp_path / "build"
    secret = class_secret(out, None)
    assert len(secret) == 32
    assert class_secret(out, None) == secret
    assert stat.S_IMODE((out / "secret-seed").stat().st_mode) == 0o600
    assert class_secret(tmp_path / "other", None) != secret


def test_no_half_made_secret_is_left_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("secrets.token_hex", full)
    with pytest.raises(OSError, match="No space"):
        class_secret(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("not hex", "not a hex number"),
        ("\u00e9", "not a hex number"),
        ("abcd", "has 2 bytes; at least 16"),
        ("", "has 0 bytes; at least 16"),
    ],
)
def test_a_file_without_a_class_secret_is_refused(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=reason):
        class_secret(tmp_path, path)
