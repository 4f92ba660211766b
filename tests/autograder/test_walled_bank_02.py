"""The bank where it counts: behind walls, with a class secret, as a submission is graded."""

import pytest
from asked_02 import UNIT
from judged import SECRETS, first_diagnosis

from autograder.bank.unit_02 import CHEATS, RIGHT, WRONG
from autograder.cells import read_notebook
from autograder.grader import Grader, source_notebook
from autograder.ingest import Submission
from autograder.sandbox import build_runtime


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    runtime = tmp_path_factory.mktemp("walled") / "runtime"
    build_runtime(UNIT, runtime)
    with Grader(UNIT, read_notebook(source_notebook(UNIT)), runtime, SECRETS[0]) as made:
        graded = made.grade_submission(Submission("", [], []))
        if not graded.walls.startswith("bubblewrap"):
            pytest.skip(f"no walls on this machine: {graded.walls}")
        yield made


@pytest.mark.parametrize("answer", [*RIGHT, *WRONG, *CHEATS], ids=lambda answer: answer.id)
def test_every_answer_of_the_bank_gets_its_verdict(grader, answer):
    verdicts = grader.grade_submission(Submission("", [("answer", answer.source)], [])).exercises
    got = {verdict.exercise: (verdict.score, first_diagnosis(verdict)) for verdict in verdicts}
    assert {exercise: got[exercise] for exercise in answer.expected} == answer.expected
