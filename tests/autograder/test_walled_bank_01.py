"""What is told apart by walls alone: cheats of unit 01, and what goes wrong among ranks."""

from collections.abc import Iterator

import pytest
from judged import SECRETS, first_diagnosis

from autograder.bank import Answer
from autograder.bank.unit_01 import CHEATS, RIGHT, WRONG
from autograder.cells import read_notebook
from autograder.exercise import load_unit
from autograder.grader import Grader, source_notebook
from autograder.ingest import Submission
from autograder.sandbox import build_runtime

UNIT = load_unit("01")
AMONG_RANKS = ("all_send_first", "all_receive_first", "raised", "collective", "no_array")


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    runtime = tmp_path_factory.mktemp("walled") / "runtime"
    build_runtime(UNIT, runtime)
    with Grader(UNIT, read_notebook(source_notebook(UNIT)), runtime, SECRETS[0]) as made:
        graded = made.grade_submission(Submission("", [], []))
        if not graded.walls.startswith("bubblewrap"):
            pytest.skip(f"no walls on this machine: {graded.walls}")
        yield made


@pytest.mark.parametrize(
    "answer",
    [
        *RIGHT,
        *CHEATS,
        *(a for a in WRONG if {told for _, told in a.expected.values()} & {*AMONG_RANKS}),
    ],
    ids=lambda answer: answer.id,
)
def test_an_answer_gets_its_verdict_behind_walls(grader: Grader, answer: Answer) -> None:
    verdicts = grader.grade_submission(Submission("", [("answer", answer.source)], [])).exercises
    got = {v.exercise: (v.score, first_diagnosis(v)) for v in verdicts}
    assert {exercise: got[exercise] for exercise in answer.expected} == answer.expected
