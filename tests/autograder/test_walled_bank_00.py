"""The bank where it counts: one walled process per rank, with a class secret."""

from collections.abc import Iterator

import pytest
from judged import SECRETS, first_diagnosis

from autograder.bank.unit_00 import CHEATS, RIGHT, WRONG
from autograder.cells import read_notebook
from autograder.exercise import load_unit
from autograder.grader import Grader, source_notebook
from autograder.ingest import Submission
from autograder.sandbox import build_runtime

UNIT = load_unit("00")


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    runtime = tmp_path_factory.mktemp("walled") / "runtime"
    build_runtime(UNIT, runtime)
    with Grader(UNIT, read_notebook(source_notebook(UNIT)), runtime, SECRETS[0]) as made:
        graded = made.grade_submission(Submission("", [], []))
        if not graded.walls.startswith("bubblewrap"):
            pytest.skip(f"no walls on this machine: {graded.walls}")
        yield made


@pytest.mark.parametrize("answer", [*RIGHT, *WRONG, *CHEATS], ids=lambda answer: answer.id)
def test_every_answer_of_the_bank_gets_its_verdict(grader: Grader, answer) -> None:
    submission = Submission("", [("answer", answer.source)], [])
    verdicts = grader.grade_submission(submission).exercises
    got = {v.exercise: (v.score, first_diagnosis(v)) for v in verdicts}
    assert {exercise: got[exercise] for exercise in answer.expected} == answer.expected
