from pathlib import Path

import pytest
import toy_notebook as toy

from autograder import submissions
from autograder.cells import canonical, parse_notebook
from autograder.submissions import Entry, find_submissions, some_of

A, B = "03-gpipe", "04-memory"


def put(path: Path, data: bytes = b"{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_nbgraders_layout_gives_one_entry_per_student(tmp_path: Path) -> None:
    first = put(tmp_path / "amy" / A / f"{A}.ipynb")
    renamed = put(tmp_path / "bob" / A / f"{A} (1).ipynb")
    put(tmp_path / "bob" / B / f"{B}.ipynb")
    put(tmp_path / "bob" / A / ".ipynb_checkpoints" / f"{A}.ipynb")
    found = find_submissions(tmp_path, [A])
    assert found.strays == []
    assert found.entries == [Entry("amy", A, first), Entry("bob", A, renamed)]


GIVEN_OUT = canonical(parse_notebook(toy.notebook()))
RUN = toy.notebook(metadata={"kernelspec": {"name": "other"}})  # opened and saved, nothing written
WRITTEN = toy.notebook(toy.cells()[:3])


@pytest.mark.parametrize(
    ("others", "strays"),
    [
        ({f"{A}.new.ipynb": RUN}, [f"{A}.new.ipynb (as it was given out)"]),
        ({"copy.ipynb": WRITTEN}, [f"copy.ipynb (the same as {A}.ipynb)"]),
        ({"report.pdf": b"", "timestamp.txt": b""}, ["report.pdf"]),
    ],
)
def test_a_second_file_without_work_of_its_own_is_told_and_not_graded(
    tmp_path: Path, others: dict[str, bytes], strays: list[str]
) -> None:
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    for name, data in others.items():
        put(tmp_path / "amy" / A / name, data)
    found = find_submissions(tmp_path, [A], lambda _: GIVEN_OUT)
    assert found == ([Entry("amy", A, right)], [f"amy/{A}/{name}" for name in strays])


def test_work_beside_the_notebook_given_out_is_what_counts(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / f"{A}.ipynb", RUN)
    new = put(tmp_path / "amy" / A / f"{A}.new.ipynb", WRITTEN)
    found = find_submissions(tmp_path, [A], lambda _: GIVEN_OUT)
    assert found.entries == [Entry("amy", A, new)]


def test_of_two_untouched_notebooks_the_one_of_the_assignments_name_counts(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / "copy.ipynb", RUN)
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", RUN)
    found = find_submissions(tmp_path, [A], lambda _: GIVEN_OUT)
    assert found.entries == [Entry("amy", A, right)]
    assert found.strays == [f"amy/{A}/copy.ipynb (as it was given out)"]


def test_two_notebooks_that_differ_are_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    put(tmp_path / "amy" / A / f"{A}-copy.ipynb", toy.notebook(toy.cells()[:4]))
    (entry,) = find_submissions(tmp_path, [A], lambda _: GIVEN_OUT).entries
    assert f"2 notebooks ({A}.ipynb, {A}-copy.ipynb)" in entry.problem


def test_a_link_beside_the_notebook_is_a_second_one_and_not_followed(tmp_path: Path) -> None:
    right = put(tmp_path / "amy" / A / f"{A}.ipynb", WRITTEN)
    (tmp_path / "amy" / A / "link.ipynb").symlink_to(right)
    (entry,) = find_submissions(tmp_path, [A], lambda _: GIVEN_OUT).entries
    assert "2 notebooks" in entry.problem


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("3-gpipe/03-gpipe.ipynb", "3-gpipe"),
        ("03-gpipe.ipynb", "03-gpipe.ipynb"),
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
    ("file", "student"),
    [
        (f"amy-{A}.ipynb", "amy"),
        (f"amy_{A}.ipynb", "amy"),
        (f"amy {A}.ipynb", "amy"),
        ("amy.ipynb", "amy"),
        ("student-01.ipynb", "student-01"),
    ],
)
def test_in_a_flat_folder_the_file_name_is_the_student(
    tmp_path: Path, file: str, student: str
) -> None:
    path = put(tmp_path / file)
    put(tmp_path / ".hidden.ipynb")
    put(tmp_path / "notes.txt")
    assert find_submissions(tmp_path, [A]) == ([Entry(student, A, path)], ["notes.txt"])


def test_a_flat_folder_of_two_assignments_goes_by_the_file_names(tmp_path: Path) -> None:
    put(tmp_path / f"amy-{A}.ipynb")
    put(tmp_path / f"amy-{B}.ipynb")
    assert [entry.assignment for entry in find_submissions(tmp_path, [A, B]).entries] == [A, B]
    put(tmp_path / "bob.ipynb")
    with pytest.raises(ValueError, match=r"bob\.ipynb belongs to is not known; add --assignment"):
        find_submissions(tmp_path, [A, B])


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ([f"amy/{A}/one.ipynb", f"amy/{A}/two.ipynb"], "2 notebooks (one.ipynb, two.ipynb)"),
        ([f"amy/{A}/readme.txt"], "no notebook in the folder; found readme.txt"),
        (["amy.ipynb", f"amy-{A}.ipynb"], "2 submissions belong to amy"),
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
    assert entry.student == "a?[2Jb?" + "\u00e9" * 96


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
    look = submissions._visible

    def refused(folder: Path) -> list[Path]:
        if folder == tmp_path / "ben" / A:  # root, who may run this, reads any folder
            raise PermissionError(13, "Permission denied")
        return look(folder)

    monkeypatch.setattr(submissions, "_visible", refused)
    amy, ben = find_submissions(tmp_path, [A]).entries
    assert amy.problem == ""
    assert ben.problem == "The folder cannot be read (Permission denied)."
