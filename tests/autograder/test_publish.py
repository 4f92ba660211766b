import made_results as made
import pytest

from autograder.records.publish import Change
from autograder.records.results import Result


def scored(score: int | None, status: str = "graded", **changes: object) -> Result:
    verdict = made.verdict(score=score or 0)
    return made.result(score=score, status=status, exercises=[verdict], **changes)


def hashes(**changed: str) -> dict[str, str]:
    return made.HASHES | changed


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ({"hashes": hashes(submission="x")}, "handed in anew"),
        ({"hashes": hashes(checks="x")}, "checks changed"),
        ({"hashes": hashes(package="x")}, "course code changed"),
        ({"hashes": hashes(environment="x")}, "another Python, NumPy or msgpack"),
        ({"run": made.RUN | {"secret": "x"}}, "another secret"),
        ({"run": made.RUN | {"round": 1}}, "another round"),
        (
            {"hashes": hashes(submission="x", checks="x"), "run": made.RUN | {"round": 1}},
            "handed in anew and checks changed and another round",
        ),
        ({}, "graded again"),
    ],
)
def test_a_change_says_why_and_which_exercises(after: dict[str, object], why: str) -> None:
    change = Change(scored(3), scored(1, **after))
    assert str(change) == f"student-01, 03-gpipe: 3 -> 1 ({why}; gpipe 3 -> 1)"


@pytest.mark.parametrize(
    ("before", "after", "lower", "held"),
    [
        (scored(3), scored(1), True, [True, False]),
        (scored(1), scored(3), False, [False, False]),
        (made.refused(), scored(0), False, [False, False]),
        (scored(0), made.refused(), True, [True, False]),
        (scored(3), scored(None, "infrastructure"), True, [True, True]),
    ],
)
def test_a_score_drops_only_if_accepted_and_never_for_trouble_of_ours(
    before: Result, after: Result, lower: bool, held: list[bool]
) -> None:
    change = Change(before, after)
    assert change.lower == lower
    assert [change.held(accepted) for accepted in (False, True)] == held


def test_a_status_stands_where_there_is_no_score() -> None:
    text = str(Change(made.refused("student-01"), scored(2)))
    assert text == "student-01, 03-gpipe: unreadable -> 2 (graded again)"
    text = str(Change(scored(2), made.refused("student-01")))
    assert text == "student-01, 03-gpipe: 2 -> unreadable (graded again; The file is empty.)"
