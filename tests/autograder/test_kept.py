"""Points given by hand that are gone from the gradebook: told, and taken off only if accepted."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from books import KEY, WRITTEN, A, Home, scored

from autograder.gradebook.handover import Handover
from autograder.gradebook.kept import LostByHand, copy_path, list_path
from autograder.gradebook.marks import NONE_GIVEN
from autograder.records.results import Result, write_grades, write_whole

BOTH = [scored("ann"), scored("bob")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A class that is published, ann's written answer graded by hand and that published, too."""
    home = Home(tmp_path / "build")
    for result in BOTH:
        write_whole(home.out / "results" / A / f"{result.student}.json", result.dumps())
    home.fill(*BOTH)
    publish(home)
    assert not list_path(home.out).exists()  # nobody gave anything
    home.by_hand(WRITTEN, manual_score=3.0)
    home.comment("solution-gpipe", "Nearly.")
    publish(home)
    return home


def publish(home: Home, results: list[Result] = BOTH, accept_lower: bool = False) -> Handover:
    handover = Handover(home.out, accept_lower=accept_lower)
    handover.publish([], results)
    return handover


def page(home: Home) -> str:
    return (home.out / "feedback" / "ann" / f"{A}.html").read_text()


def lose_all(home: Home) -> None:
    home.file.unlink()


def empty(home: Home) -> None:
    home.file.write_bytes(b"")


def replace_by_a_fresh_one(home: Home) -> None:
    home.file.unlink()
    home.fill(*BOTH)


@pytest.mark.parametrize("mishap", [lose_all, empty, replace_by_a_fresh_one])
def test_a_gradebook_without_the_points_by_hand_stops_before_any_page_is_changed(
    home: Home, mishap: Callable[[Home], None]
) -> None:
    before = page(home), (home.out / "grades.csv").read_text()
    assert "23 of 24 points" in before[0]
    mishap(home)
    with pytest.raises(LostByHand) as raised:
        Handover(home.out).marks()
    said = str(raised.value)
    assert (
        f"lacks points given by hand that the pages show, of ann, {A} (3 points and 1 comment)"
        in said
    )
    assert "bob" not in said
    assert said.index("--accept-lower") > said.index("run the same command again")
    with pytest.raises(LostByHand):
        publish(home)
    assert (page(home), (home.out / "grades.csv").read_text()) == before


@pytest.mark.parametrize("mishap", [lose_all, empty, replace_by_a_fresh_one])
def test_the_command_that_is_told_puts_the_gradebook_back(
    home: Home, mishap: Callable[[Home], None]
) -> None:
    before = home.rows()
    mishap(home)
    with pytest.raises(LostByHand) as raised:
        publish(home)
    command = str(raised.value).split("last run (")[1].split("), and run")[0]
    assert "cp" in shlex.split(command)
    subprocess.run(["sh", "-c", command], check=True, timeout=60)
    assert publish(home).lost == []
    assert home.rows() == before
    assert "23 of 24 points" in page(home)


def test_accepted_they_go_and_what_was_kept_lies_beside(home: Home) -> None:
    kept = list_path(home.out).read_text()
    assert '"written-why-slower": 3.0' in kept
    lose_all(home)
    assert publish(home, accept_lower=True).lost == [f"ann, {A} (3 points and 1 comment)"]
    assert "20 of 24 points" in page(home)
    for path in (list_path(home.out), copy_path(home.out)):
        assert path.with_name(f"{path.name}.before").exists()
    assert list_path(home.out).with_name("by-hand.json.before").read_text() == kept
    assert publish(home).lost == []


def test_what_a_person_changes_is_no_loss_but_what_is_taken_away_is_asked_for(home: Home) -> None:
    home.by_hand(WRITTEN, manual_score=1.0)
    home.comment("solution-gpipe", "")
    publish(home)
    home.by_hand(WRITTEN, manual_score=None)
    with pytest.raises(LostByHand, match=r"of ann, 03-gpipe \(1 points\)\. If it was deleted"):
        publish(home)
    assert publish(home, accept_lower=True).lost


def test_a_list_that_is_damaged_is_told(home: Home) -> None:
    list_path(home.out).write_text("{")
    with pytest.raises(LostByHand, match=r"by-hand\.json, which lists .* is damaged; see in"):
        publish(home)


def test_where_nothing_was_kept_there_is_nothing_to_ask(tmp_path: Path) -> None:
    assert Handover(tmp_path).marks() == NONE_GIVEN
    assert write_grades(tmp_path).read_text().count("\n") == 1
    assert KEY not in Handover(tmp_path).marks()
