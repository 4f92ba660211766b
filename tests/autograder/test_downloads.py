from pathlib import Path

import pytest
from class_files import A, B, put, zipped

from autograder.__main__ import main
from autograder.submissions.finding import Entry, ensure_apart, find_submissions


@pytest.mark.parametrize(
    ("file", "student"),
    [
        (f"amy-{A}.ipynb", "amy"),
        (f"amy_{A}.ipynb", "amy"),
        (f"amy {A}.ipynb", "amy"),
        (f"amy-{A} (1).ipynb", "amy"),
        (f"Copy of amy-{A}.ipynb", "amy"),
        (f"amy-{A}-Copy1.ipynb", "amy"),
        (f"amy_12345_67890_{A}-2.ipynb", "amy_12345"),
        ("amy (2).ipynb", "amy"),
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


@pytest.mark.parametrize("assignments", [[A], [A, B]])
def test_a_notebook_in_the_students_folder_itself_is_found(
    tmp_path: Path, assignments: list[str]
) -> None:
    moodle = put(tmp_path / "Amy Lee_123_assignsubmission_file_" / f"{A}.ipynb")
    put(tmp_path / "Amy Lee_123_assignsubmission_file_" / "notes.pdf")
    found = find_submissions(tmp_path, assignments)
    assert found.entries == [Entry("Amy Lee", A, moodle)]
    assert found.strays == ["Amy Lee_123_assignsubmission_file_/notes.pdf"]


@pytest.mark.parametrize("assignments", [[A], [A, B]])
@pytest.mark.parametrize(
    "file",
    [
        f"lovelaceada_12346_678902_{A}.ipynb",
        f"lovelaceada_12346_999_{A}-2.ipynb",
        f"lovelaceada_LATE_12346_678902_{A}-2.ipynb",
        f"lovelaceada_LATE_12346_678902_mine-{A}.ipynb",
    ],
)
def test_what_is_handed_in_again_by_canvas_is_the_same_students(
    tmp_path: Path, file: str, assignments: list[str]
) -> None:
    path = put(tmp_path / file)
    entry = Entry("lovelaceada_12346", A, path)
    assert find_submissions(tmp_path, assignments).entries == [entry]
    packed = put(tmp_path / "class.zip", zipped({file: b"{}"}))
    assert find_submissions(packed, assignments).entries == [
        entry._replace(path=packed, member=file)
    ]


def test_both_of_a_canvas_students_files_are_refused_where_they_differ(tmp_path: Path) -> None:
    for file in (f"ada_12_678_{A}.ipynb", f"ada_LATE_12_679_{A}-1.ipynb"):
        put(tmp_path / file, file.encode())
    (entry,) = find_submissions(tmp_path, [A]).entries
    assert (entry.student, entry.problem[:28]) == ("ada_12", "2 submissions belong to ada_")


@pytest.mark.parametrize("file", ["ada_2026_11_30.ipynb", "ada_12346.ipynb", "ada_b.ipynb"])
def test_a_name_that_only_resembles_canvas_is_kept(tmp_path: Path, file: str) -> None:
    put(tmp_path / file)
    assert find_submissions(tmp_path, [A]).entries[0].student == file.removesuffix(".ipynb")


UNKNOWN = {
    "flat": {"bob.ipynb": b""},
    "canvas": {"bob_123_45678_work.ipynb": b""},
    "numbered": {"bob_123_45678_03-final.ipynb": b""},
    "moodle": {"bob_1_assignsubmission_file_/03-final.ipynb": b""},
    "folder": {"bob/work.ipynb": b"", "bob/notes.txt": b""},
    "archive": {"bob.zip": zipped({"work.ipynb": b""})},
    "in a folder": {"bob/all.zip": zipped({"work.ipynb": b""})},
}


@pytest.mark.parametrize("files", UNKNOWN.values(), ids=UNKNOWN)
def test_a_notebook_of_no_known_assignment_is_told_in_every_layout(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    files = files | {f"amy/{A}/{A}.ipynb": b""}
    for name, data in files.items():
        put(tmp_path / "class" / name, data)
    places = [tmp_path / "class"]
    if not any(name.endswith(".zip") for name in files):
        places.append(put(tmp_path / "all.zip", zipped(files)))
    said = rf"Which assignment \S*bob\S* belongs to is not known; add --assignment with .* {B}\.$"
    for place in places:
        with pytest.raises(ValueError, match=said):
            find_submissions(place, [A, B])
        students = [one.student for one in find_submissions(place, [A]).entries]
        assert (len(students), students[0]) == (2, "amy")


def test_many_of_no_known_assignment_are_told_at_once(tmp_path: Path) -> None:
    for number in range(7):
        put(tmp_path / f"amy{number}.ipynb")
    with pytest.raises(ValueError, match=r"amy0.* amy4\.ipynb and 2 more belong to is not known"):
        find_submissions(tmp_path, [A, B])


HANDED_IN = ["ada_12_678_report.pdf", "ada_12_678_work.html", "ada_12_text.html"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", HANDED_IN)
def test_what_is_handed_in_and_no_notebook_is_listed(
    tmp_path: Path, name: str, packed: bool
) -> None:
    put(tmp_path / "class" / name)
    path = put(tmp_path / "a.zip", zipped({name: b""})) if packed else tmp_path / "class"
    (entry,) = find_submissions(path, [A]).entries
    assert (entry.student, entry.problem) == ("ada_12", f"There is no notebook, only {name}.")
    with pytest.raises(ValueError, match="add --assignment"):
        find_submissions(path, [A, B])


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_handed_in_beside_a_notebook_is_not_looked_at(tmp_path: Path, packed: bool) -> None:
    names = [f"ada_12_67{number}_{A}{end}" for number, end in enumerate((".docx", ".ipynb"))]
    names += ["ada_12_679_z.pdf"]
    for name in names:
        put(tmp_path / "class" / name)
    path = put(tmp_path / "a.zip", zipped(dict.fromkeys(names, b""))) if packed else None
    found = find_submissions(path or tmp_path / "class", [A, B])
    assert [(one.student, one.problem) for one in found.entries] == [("ada_12", "")]
    assert found.strays == [names[0], names[2]]


def test_a_file_that_tells_its_assignment_is_listed_for_that(tmp_path: Path) -> None:
    put(tmp_path / f"ada_12_678_{A}.pdf")
    ada = put(tmp_path / f"ada_12_679_{B}.ipynb")
    first, second = find_submissions(tmp_path, [A, B]).entries
    assert (first.assignment, first.problem[:21]) == (A, "There is no notebook,")
    assert second == Entry("ada_12", B, ada)


@pytest.mark.parametrize("folder", ["Amy_12_onlinetext_", "Amy_12_assignsubmission_onlinetext_"])
def test_a_text_typed_into_moodle_is_a_student_without_a_notebook(
    tmp_path: Path, folder: str
) -> None:
    put(tmp_path / folder / "onlinetext.html")
    (entry,) = find_submissions(tmp_path, [A]).entries
    assert entry[:2] == ("Amy", A)
    assert entry.problem == "There is no notebook, only onlinetext.html."
    right = put(tmp_path / "Amy_12_assignsubmission_file_" / f"{A}.ipynb")
    assert find_submissions(tmp_path, [A, B]) == ([Entry("Amy", A, right)], [folder])


def test_an_archive_in_that_of_a_class_is_listed(tmp_path: Path) -> None:
    names = [f"amy-{A}.ipynb", "bob.zip", f"{A}.zip", "a.txt"]
    path = put(tmp_path / "a.zip", zipped(dict.fromkeys(names, b"")))
    found = find_submissions(path, [A, B])
    assert [one.student for one in found.entries] == [A, "amy", "bob"]
    assert "only bob.zip; an archive in an archive" in found.entries[2].problem
    assert found.strays == ["a.txt"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_student_is_listed_only_for_what_somebody_handed_in(tmp_path: Path, packed: bool) -> None:
    files = {f"amy/{B}/{B}.ipynb": b"", "bob/readme.txt": b""}
    for name in files:
        put(tmp_path / "class" / name)
    path = put(tmp_path / "a.zip", zipped(files)) if packed else tmp_path / "class"
    found = find_submissions(path, ["02-other", A, B]).entries
    assert [(one.student, one.assignment, bool(one.problem)) for one in found] == [
        ("amy", B, False),
        ("bob", B, True),
    ]


@pytest.mark.parametrize("assignments", [[A], [A, B]])
@pytest.mark.parametrize("folder", ["03_gpipe", "03 GPipe", "03 - gpipe", " 03-gpipe "])
def test_a_folder_that_is_clearly_meant_is_taken(
    tmp_path: Path, folder: str, assignments: list[str]
) -> None:
    right = put(tmp_path / "amy" / folder / "work.ipynb")
    assert find_submissions(tmp_path, assignments) == ([Entry("amy", A, right)], [])
    packed = put(tmp_path / "a.zip", zipped({f"amy/{folder}/work.ipynb": b""}))
    assert [one[:2] for one in find_submissions(packed, assignments).entries] == [("amy", A)]


def test_the_folder_of_the_very_name_counts_before_one_that_is_alike(tmp_path: Path) -> None:
    right = put(tmp_path / "amy" / A / "work.ipynb")
    put(tmp_path / "amy" / "03_gpipe" / "draft.ipynb", b"other")
    assert find_submissions(tmp_path, [A]) == ([Entry("amy", A, right)], ["amy/03_gpipe"])


@pytest.mark.parametrize("assignments", [[A], [A, B]])
def test_the_one_folder_of_the_notebook_is_taken(tmp_path: Path, assignments: list[str]) -> None:
    right = put(tmp_path / "amy" / "homework" / f"{A}.ipynb")
    put(tmp_path / "amy" / "other" / "data.ipynb")
    assert find_submissions(tmp_path, assignments) == ([Entry("amy", A, right)], ["amy/other"])
    put(tmp_path / "amy" / "other2" / f"{A}.ipynb")
    put(tmp_path / "bob" / A / f"{A}.ipynb")
    amy, _ = find_submissions(tmp_path, assignments).entries
    assert amy.problem == f"There is no folder {A} in amy; found homework, other, other2."


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [A, f"{A} (1)", B, "05-else"])
def test_a_notebook_called_like_an_assignment_names_no_student(
    tmp_path: Path, name: str, packed: bool
) -> None:
    put(tmp_path / "class" / f"{name}.ipynb")
    path = put(tmp_path / "a.zip", zipped({f"{name}.ipynb": b""})) if packed else None
    (entry,) = find_submissions(path or tmp_path / "class", [A], known=[A, B, "05-else"]).entries
    assert entry.problem == (
        f"The file name holds no student; call it <student>-{name.removesuffix(' (1)')}.ipynb."
    )


@pytest.mark.parametrize("out", ["class", "class/out/deep", "link", "class/../class"])
def test_results_are_not_written_among_submissions(tmp_path: Path, out: str) -> None:
    put(tmp_path / "class" / "amy.ipynb")
    (tmp_path / "link").symlink_to(tmp_path / "class")
    with pytest.raises(ValueError, match="lies in it; name a folder outside it"):
        ensure_apart(tmp_path / "class", tmp_path / out)
    before = sorted(tmp_path.rglob("*"))
    command = ["grade", str(tmp_path / "class"), "--assignment=03", f"--out={tmp_path / out}"]
    assert main(command) == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("out", [".", "class2", "class-out"])
def test_results_may_lie_around_or_beside_submissions(tmp_path: Path, out: str) -> None:
    ensure_apart(tmp_path / "class", tmp_path / out)
    with pytest.raises(ValueError, match="outside it"):
        ensure_apart(tmp_path / out, tmp_path / out)


@pytest.mark.parametrize("name", ["Copy of ...ipynb", "copy of .ipynb"])
def test_a_name_that_is_nobodys_or_leads_elsewhere_is_listed_as_such(
    tmp_path: Path, name: str
) -> None:
    put(tmp_path / name)
    (entry,) = find_submissions(tmp_path, ["03-gpipe"]).entries
    assert entry.student == "?"
    assert entry.problem.startswith("The name of the file or folder holds no student")
