"""Students whose names are the same for a person or for the disk are never mixed up."""

import unicodedata
from pathlib import Path

import made_results as made
import pytest

from autograder.records import names
from autograder.records.names import told_apart
from autograder.records.results import result_path, write_whole
from autograder.submissions.finding import Entry

A = "03-gpipe"
ONE = unicodedata.normalize("NFC", "José")
OTHER = unicodedata.normalize("NFD", "José")


def entry(student: str) -> Entry:
    return Entry(student, A, Path(f"{student}.ipynb"))


def record(out: Path, *students: str) -> None:
    for student in students:
        write_whole(result_path(out, A, student), made.result(student=student).dumps())


def left(out: Path, *students: str) -> tuple[list[str], str]:
    kept, said = told_apart([entry(student) for student in students], out)
    return [one.student for one in kept], said


def test_a_name_stored_otherwise_than_at_the_last_run_is_left_out_and_listed(
    tmp_path: Path,
) -> None:
    record(tmp_path, ONE)
    kept, said = left(tmp_path, OTHER, "amy")
    assert kept == ["amy"]
    assert rf"{OTHER} (Jose\u0301), like {ONE} (Jos\xe9)." in said
    assert left(tmp_path, ONE, "amy") == ([ONE, "amy"], "")


def test_two_such_names_in_one_run_are_both_left_out_unless_one_has_a_result(
    tmp_path: Path,
) -> None:
    kept, said = left(tmp_path, ONE, OTHER, "amy")
    assert kept == ["amy"]
    assert said.startswith("Not graded, since their names differ from another only in upper")
    record(tmp_path, ONE)
    assert left(tmp_path, ONE, OTHER, "amy")[0] == [ONE, "amy"]


@pytest.mark.parametrize("tells", [True, False])
def test_case_alone_tells_students_apart_where_the_disk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    monkeypatch.setattr(names, "_tells_case", lambda _: tells)
    record(tmp_path, "amy")
    kept, said = left(tmp_path, "Amy", "bob")
    assert kept == (["Amy", "bob"] if tells else ["bob"])
    assert ("Amy, like amy." in said) == (not tells)


def test_the_disk_is_asked_whether_it_tells_case_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert names._tells_case(tmp_path) == (not (tmp_path / "A").exists())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
