from pathlib import Path

import pytest

from autograder.submissions import Entry, find_submissions

A, B = "03-gpipe", "04-memory"


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_nbgraders_layout_gives_one_entry_per_student(tmp_path: Path) -> None:
    first = put(tmp_path / "amy" / A / f"{A}.ipynb")
    renamed = put(tmp_path / "bob" / A / f"{A} (1).ipynb")
    put(tmp_path / "bob" / B / f"{B}.ipynb")
    put(tmp_path / "bob" / A / ".ipynb_checkpoints" / f"{A}.ipynb")
    found = find_submissions(tmp_path, [A])
    assert found == [Entry("amy", A, first), Entry("bob", A, renamed)]


def test_the_notebook_of_the_assignments_name_counts_among_several(tmp_path: Path) -> None:
    put(tmp_path / "amy" / A / "scratch.ipynb")
    right = put(tmp_path / "amy" / A / f"{A}.ipynb")
    assert find_submissions(tmp_path, [A]) == [Entry("amy", A, right)]


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
    assert find_submissions(tmp_path, [A]) == [Entry(student, A, path)]


def test_a_flat_folder_of_two_assignments_goes_by_the_file_names(tmp_path: Path) -> None:
    put(tmp_path / f"amy-{A}.ipynb")
    put(tmp_path / f"amy-{B}.ipynb")
    assert [entry.assignment for entry in find_submissions(tmp_path, [A, B])] == [A, B]
    put(tmp_path / "bob.ipynb")
    with pytest.raises(ValueError, match=r"bob\.ipynb belongs to is not known; add --assignment"):
        find_submissions(tmp_path, [A, B])


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ([f"amy/{A}/one.ipynb", f"amy/{A}/two.ipynb"], "2 notebooks (one.ipynb, two.ipynb)"),
        ([f"amy/{A}/readme.txt"], "no notebook in the folder"),
        (["amy.ipynb", f"amy-{A}.ipynb"], "2 files belong to amy"),
        ([f"{A}.ipynb"], f"call it <student>-{A}.ipynb"),
    ],
)
def test_what_is_not_clear_is_listed_with_its_problem(
    tmp_path: Path, files: list[str], problem: str
) -> None:
    for file in files:
        put(tmp_path / file)
    (entry,) = find_submissions(tmp_path, [A])
    assert problem in entry.problem


@pytest.mark.parametrize("linked", ["amy", f"amy/{A}"])
def test_a_folder_that_is_a_link_is_listed_and_not_followed(tmp_path: Path, linked: str) -> None:
    put(tmp_path / "elsewhere" / A / f"{A}.ipynb")
    link = tmp_path / "class" / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere" / (A if "/" in linked else ""))
    (entry,) = find_submissions(tmp_path / "class", [A])
    assert "is a link" in entry.problem


def test_names_can_be_printed_and_written(tmp_path: Path) -> None:
    put(tmp_path / ("a\x1b[2Jb\n" + "\u00e9" * 110 + ".ipynb"))
    (entry,) = find_submissions(tmp_path, [A])
    assert entry.student == "a?[2Jb?" + "\u00e9" * 96


@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_nothing_to_grade_is_said_with_the_rule(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="DIR holds <student>/<assignment>"):
        find_submissions(tmp_path / folder, [A])
