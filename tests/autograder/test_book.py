"""The connection to the gradebook: waited for, whole, and told of where it fails."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from books import Home, scored

from autograder.gradebook.book import Book, BookError
from autograder.gradebook.by_hand import manual_grades


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "build")


def test_reading_makes_no_gradebook(home: Home) -> None:
    book = Book(home.url)
    assert manual_grades(book) == {}
    assert not home.folder.exists()
    home.folder.mkdir(parents=True)
    home.file.touch()
    assert manual_grades(book) == {}


@pytest.fixture
def held(home: Home) -> Iterator[sqlite3.Connection]:
    """The gradebook while another program writes to it."""
    home.fill(scored())
    other = sqlite3.connect(home.file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_gradebook_that_is_held_is_waited_for(home: Home, held: sqlite3.Connection) -> None:
    end = threading.Timer(0.5, lambda: held.execute("COMMIT"))
    end.start()
    home.fill(scored(gpipe=0))
    end.join()
    assert home.grade("check-gpipe")["auto_score"] == 0


def test_one_that_stays_held_is_told_in_a_sentence_and_can_be_read(
    home: Home, held: sqlite3.Connection
) -> None:
    with pytest.raises(BookError, match=r"gradebook.db cannot be used: another program has held"):
        home.fill(scored(gpipe=0), wait_s=0.1)
    assert home.marks().cells["check-gpipe"].auto == 3


@pytest.mark.parametrize("url", ["no url", "nosuch://x", "postgresql+nodriver://x"])
def test_what_is_no_database_is_refused_with_what_is_one(url: str) -> None:
    with pytest.raises(ValueError, match=r"like sqlite:////folder/gradebook\.db"):
        Book(url)


def test_a_file_that_is_no_gradebook_is_told_and_left_alone(home: Home) -> None:
    home.folder.mkdir(parents=True)
    home.file.write_text("these are my notes " * 100)
    way = r"damaged or no database at all \(file is not a database\), .*; move it away \(mv "
    with pytest.raises(BookError, match=way) as raised:
        home.fill(scored())
    assert f"The gradebook {home.file} cannot be used" in str(raised.value)
    with pytest.raises(BookError, match=way):
        manual_grades(Book(home.url))
    assert home.file.read_text().startswith("these are my notes")


def test_a_writer_that_is_killed_leaves_all_or_nothing(home: Home) -> None:
    home.fill(scored())
    before = home.rows()
    code = f"""
import os
from autograder.gradebook.book import Book
from nbgrader.api import Student
def work(session):
    session.add(Student(id="half"))
    session.flush()
    os._exit(9)
Book({home.url!r}).write(work)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 9
    assert home.ask(lambda g: [s.id for s in g.students]) == ["ann"]
    home.fill(scored())
    assert home.rows() == before


def test_a_copy_holds_all_and_one_that_fails_leaves_the_one_before(home: Home) -> None:
    home.fill(scored())
    copy = home.out / "copy.db"
    Book(home.url).copy(copy)
    assert manual_grades(Book(f"sqlite:///{copy}")) == manual_grades(Book(home.url))
    before = copy.read_bytes()
    home.file.write_text("these are my notes " * 100)
    with pytest.raises(BookError, match=r"copy of the gradebook cannot be written to .*copy\.db"):
        Book(home.url).copy(copy)
    assert copy.read_bytes() == before
    assert sorted(path.name for path in home.out.iterdir()) == ["copy.db", "nbgrader"]


def test_of_a_gradebook_in_memory_there_is_no_copy(home: Home) -> None:
    Book("sqlite://").copy(home.out / "copy.db")
    assert not home.out.exists()
