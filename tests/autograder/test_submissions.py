import re
from pathlib import Path

import pytest
import toy_notebook as toy
from class_files import A, B, put, zipped

from autograder.submissions import finding as submissions
from autograder.submissions.cells import parse_notebook
from autograder.submissions.finding import Entry, find_submissions
from autograder.submissions.ingest import read_entry, work
from autograder.submissions.matching import given_out
from autograder.submissions.naming import File, clean, name_note, some_of


def test_nbgraders_layout_gives_one_entry_per_student(tmp_path: Path) -> None:
    first = put(tmp_path / "amy" / A / f"{A}.ipynb")
    renamed = put(tmp_path / "bob" / A / f"{A} (1).ipynb")
    put(tmp_path / "bob" / B / f"{B}.ipynb")
    put(tmp_path / "bob" / A / ".ipynb_checkpoints" / f"{A}.ipynb")
    found = find_submissions(tmp_path, [A])
    assert found.strays == []
    assert found.entries == [Entry("amy", A, first), Entry("bob", A, renamed)]


MASTER = parse_notebook(toy.notebook())
RELEASED = [cell | {"source": given_out(cell["source"])} for cell in toy.cells()]
RUN = toy.notebook(RELEASED, metadata={"kernelspec": {"name": "other"}})  # opened and saved
WRITTEN = toy.notebook(toy.cells()[:3])
GUESSED = toy.notebook(toy.cells()[:4])  # the same answers, another cell that only shows
OTHER = toy.notebook(
    [*toy.cells()[:2], toy.cells()[2] | {"source": "def double(n):\n    return 2 * n"}]
)


def work_on_toy(_assignment: str, data: bytes) -> object:
    return work(data, MASTER)


@pytest.mark.parametrize(
    ("others", "strays"),
    [
        ({f"{A}.new.ipynb": RUN}, [f"{A}.new.ipynb (as it was given out)"]),
        ({"copy.ipynb": WRITTEN}, [f"copy.ipynb (the same as {A}.ipynb)"]),
        ({f"{A}-Copy1.ipynb": GUESSED}, [f"{A}-Copy1.ipynb (the same as {A}.ipynb)"]),
        ({"report.pdf": b"", "timestamp.txt": b""}, ["report.pdf"]),
    ],
)
def test_a_second_file_without_work_of_its_own_is_told_and_not_graded(
    tmp_path: Path, others: dict[str, bytes], strays: list[str]
) -> None:
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    for name, data in others.items():
        put(tmp_path / "amy" / A / name, data)
    found = find_submissions(tmp_path, [A], work_on_toy)
    assert found == ([Entry("amy", A, right)], [f"amy/{A}/{name}" for name in strays])


def test_work_beside_the_notebook_given_out_is_what_counts(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / f"{A}.ipynb", RUN)
    new = put(tmp_path / "amy" / A / f"{A}.new.ipynb", WRITTEN)
    found = find_submissions(tmp_path, [A], work_on_toy)
    assert found.entries == [Entry("amy", A, new)]


def test_of_two_untouched_notebooks_the_one_of_the_assignments_name_counts(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / "copy.ipynb", RUN)
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", RUN)
    found = find_submissions(tmp_path, [A], work_on_toy)
    assert found.entries == [Entry("amy", A, right)]
    assert found.strays == [f"amy/{A}/copy.ipynb (as it was given out)"]


def test_two_notebooks_that_differ_are_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    put(tmp_path / "amy" / A / f"{A}-copy.ipynb", OTHER)
    (entry,) = find_submissions(tmp_path, [A], work_on_toy).entries
    assert f"2 notebooks ({A}.ipynb, {A}-copy.ipynb)" in entry.problem


def test_a_link_beside_the_notebook_is_a_second_one_and_not_followed(tmp_path: Path) -> None:
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    (tmp_path / "amy" / A / "link.ipynb").symlink_to(right)
    (entry,) = find_submissions(tmp_path, [A], work_on_toy).entries
    assert "2 notebooks" in entry.problem


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("3-gpipe/work.ipynb", "3-gpipe"),
        ("", "nothing"),
    ],
)
def test_a_student_folder_without_the_assignment_is_listed(
    tmp_path: Path, inside: str, found: str
) -> None:
    put(tmp_path / "bob" / A / f"{A}.ipynb")
    (tmp_path / "amy").mkdir()
    if inside:
        put(tmp_path / "amy" / inside)
    amy, _ = find_submissions(tmp_path, [A]).entries
    assert amy.problem == f"There is no folder {A} in amy; found {found}."


def test_upper_and_lower_case_are_the_same(tmp_path: Path) -> None:
    nested = put(tmp_path / "amy" / A.upper() / f"{A}.IPYNB")
    flat = put(tmp_path / f"Bob-{A.upper()}.IPYNB")
    assert set(find_submissions(tmp_path, [A]).entries) == {
        Entry("amy", A, nested),
        Entry("Bob", A, flat),
    }


def test_a_download_that_lies_beside_itself_counts_once(tmp_path: Path) -> None:
    right = put(tmp_path / f"amy-{A}.ipynb", WRITTEN)
    put(tmp_path / f"amy-{A} (1).ipynb", WRITTEN)
    put(tmp_path / f"Copy of amy-{A}.ipynb", RUN)
    found = find_submissions(tmp_path, [A], work_on_toy)
    assert found.entries == [Entry("amy", A, right)]
    assert found.strays == [
        f"amy-{A} (1).ipynb (the same as amy-{A}.ipynb)",
        f"Copy of amy-{A}.ipynb (as it was given out)",
    ]


@pytest.mark.parametrize(
    "place", [f"amy-{A}.zip", "amy.zip", f"amy/{A}/work.zip", "amy/work.zip", f"amy/{A}.zip"]
)
def test_an_archive_stands_in_a_notebooks_place(tmp_path: Path, place: str) -> None:
    files = {f"x/{A}.ipynb": b"{}", "x/torch.py": b"", "__MACOSX/x/._a.ipynb": b""}
    path = put(tmp_path / place, zipped(files))
    found = find_submissions(tmp_path, [A])
    assert found.entries == [Entry("amy", A, path, "", f"x/{A}.ipynb")]
    assert found.strays == [f"{place}/x/torch.py"]
    assert read_entry(found.entries[0]) == b"{}"


def test_one_archive_may_hold_several_assignments(tmp_path: Path) -> None:
    files = {f"{A}/{A}.ipynb": b"a", f"{B}/work.ipynb": b"b"}
    put(tmp_path / "amy.zip", zipped(files))
    entries = find_submissions(tmp_path, [A, B]).entries
    assert [(one.assignment, read_entry(one)) for one in entries] == [(A, b"a"), (B, b"b")]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (zipped({}), "no notebook in the archive (found nothing)"),
        (zipped({"inner.zip": b""}), "an archive in an archive is not looked into"),
        (zipped({"../a.ipynb": b""}), "leads out of it"),
        (b"PK\x03\x04 and then nothing", "is broken"),
        (zipped({"a.ipynb": b"1", "b.ipynb": b"2"}), "2 notebooks (a.ipynb, b.ipynb)"),
    ],
)
def test_an_archive_that_will_not_do_costs_no_other_student(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    put(tmp_path / "amy.zip", data)
    put(tmp_path / "bob.ipynb")
    amy, bob = find_submissions(tmp_path, [A]).entries
    assert problem in amy.problem
    assert bob.problem == ""


@pytest.mark.parametrize("outer", ["", "submissions/"])
@pytest.mark.parametrize(
    "names", [(f"amy-{A}.ipynb", "bob.ipynb"), (f"amy/{A}/{A}.ipynb", "bob/work.ipynb")]
)
def test_a_class_may_come_in_one_archive(
    tmp_path: Path, outer: str, names: tuple[str, str]
) -> None:
    files = {outer + name: name.encode() for name in names}
    path = put(tmp_path / "class.zip", zipped(files | {f"{outer}amy/data.csv": b""}))
    found = find_submissions(path, [A])
    assert [(one.student, read_entry(one)) for one in found.entries] == [
        ("amy", names[0].encode()),
        ("bob", names[1].encode()),
    ]
    assert found.strays == [f"{outer}amy/data.csv"]


def test_an_archive_of_a_class_that_will_not_do_is_told(tmp_path: Path) -> None:
    for files, said in (({"../a": b""}, "leads out"), ({"a.pdf": b""}, r"found: a\.pdf")):
        with pytest.raises(ValueError, match=said):
            find_submissions(put(tmp_path / "class.zip", zipped(files)), [A])


def test_a_notebook_counts_before_an_archive_beside_it(tmp_path: Path) -> None:
    right = put(tmp_path / "amy" / A / f"{A}.ipynb")
    put(tmp_path / "amy" / A / "all.zip", b"anything")
    found = find_submissions(tmp_path, [A])
    assert found == ([Entry("amy", A, right)], [f"amy/{A}/all.zip"])


def test_what_is_no_submission_is_told(tmp_path: Path) -> None:
    put(tmp_path / "amy.ipynb")
    put(tmp_path / "bob" / A / f"{A}.ipynb")
    for name in ("notes.txt", "x.ipynb.txt", "bob/old.ipynb", f"bob/{B}/{B}.ipynb"):
        put(tmp_path / name)
    (tmp_path / "dir.ipynb").mkdir()
    found = find_submissions(tmp_path, [A])
    assert found.strays == ["bob/old.ipynb", "notes.txt", "x.ipynb.txt"]
    assert [entry.student for entry in found.entries] == ["amy", "bob", "dir.ipynb"]
    assert "no folder" in found.entries[2].problem


def test_a_long_list_of_names_is_cut_with_the_number_left() -> None:
    assert some_of(["a", "b"]) == "a, b"
    assert some_of(list("abcdefg"), 5) == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ([f"amy/{A}/one.ipynb", f"amy/{A}/two.ipynb"], "2 notebooks (one.ipynb, two.ipynb)"),
        ([f"amy/{A}/readme.txt"], "no notebook in the folder; found readme.txt"),
        (["amy.ipynb", f"amy-{A}.ipynb"], "2 submissions belong to amy"),
        (["amy.ipynb", "amy (1).ipynb"], "2 submissions belong to amy"),
        ([f"amy/{A}.ipynb", f"amy/{A} (1).ipynb"], "2 notebooks"),
        ([f"{A}.ipynb"], f"call it <student>-{A}.ipynb"),
    ],
)
def test_what_is_not_clear_is_listed_with_its_problem(
    tmp_path: Path, files: list[str], problem: str
) -> None:
    for file in files:
        put(tmp_path / file, file.encode())
    (entry,) = find_submissions(tmp_path, [A]).entries
    assert problem in entry.problem


@pytest.mark.parametrize("linked", ["amy", f"amy/{A}"])
def test_a_folder_that_is_a_link_is_listed_and_not_followed(tmp_path: Path, linked: str) -> None:
    put(tmp_path / "elsewhere" / A / f"{A}.ipynb")
    link = tmp_path / "class" / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere" / (A if "/" in linked else ""))
    (entry,) = find_submissions(tmp_path / "class", [A]).entries
    assert "is a link" in entry.problem


def test_names_can_be_printed_and_written(tmp_path: Path) -> None:
    put(tmp_path / ("a\x1b[2Jb\n" + "\u00e9" * 110 + ".ipynb"))
    (entry,) = find_submissions(tmp_path, [A]).entries
    assert re.fullmatch(r"a\?\[2Jb\?\u00e9{90}~[0-9a-f]{12}", entry.student)


def test_long_names_that_begin_alike_are_two_students_and_short_ones_are_as_they_are() -> None:
    long = [clean("x" * 230 + end) for end in ("a", "b")]
    assert long[0] != long[1]
    assert {len(name.encode()) for name in long} == {200}
    assert clean("x" * 230 + "a") == long[0]
    assert clean("x" * 200) == "x" * 200


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (f"{A} (1).ipynb", True),
        (f"Copy of {A}.ipynb", True),
        ("homework.ipynb", True),
        (f"{A}.ipynb", False),
        (f"{A.upper()}.IPYNB", False),
        (f"amy-{A}.ipynb", False),
        ("amy.ipynb", False),
        (f"leeamy_123_456789_{A}-1.ipynb", False),
    ],
)
def test_a_file_with_another_name_than_the_one_given_out_is_told(name: str, told: bool) -> None:
    note = name_note(File(Path("amy") / A / name), A, "amy")
    assert note == (f"The file is called `{name}`; it was taken for `{A}.ipynb`." if told else "")


@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_nothing_to_grade_is_said_with_the_rule(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="DIR holds <student>/<assignment>"):
        find_submissions(tmp_path / folder, [A])


def test_a_folder_that_cannot_be_read_costs_no_other_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "amy" / A / f"{A}.ipynb")
    put(tmp_path / "ben" / A / f"{A}.ipynb")
    look = submissions.visible

    def refused(folder: Path) -> list[Path]:
        if folder == tmp_path / "ben" / A:  # root, who may run this, reads any folder
            raise PermissionError(13, "Permission denied")
        return look(folder)

    monkeypatch.setattr(submissions, "visible", refused)
    amy, ben = find_submissions(tmp_path, [A]).entries
    assert amy.problem == ""
    assert ben.problem == "The folder cannot be read (Permission denied)."
