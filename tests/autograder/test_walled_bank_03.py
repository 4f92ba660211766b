"""The bank where it counts: behind walls, with a class secret, as a submission is graded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from judged import SECRETS, UNIT, first_diagnosis

from autograder.bank.unit_03 import CHEATS, RIGHT, WRONG
from autograder.cells import read_notebook
from autograder.grader import Grader, source_notebook
from autograder.ingest import Submission
from autograder.sandbox import build_runtime

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    runtime = tmp_path_factory.mktemp("walled") / "runtime"
    build_runtime(UNIT, runtime)
    with Grader(UNIT, read_notebook(source_notebook(UNIT)), runtime, SECRETS[0]) as made:
        graded = made.grade_submission(Submission("", [], []))
        if not graded.walls.startswith("bubblewrap"):
            pytest.skip(f"no walls on this machine: {graded.walls}")
        yield made


def graded(grader: Grader, source: str) -> dict[str, tuple[int, str, list[str]]]:
    """Score, first diagnosis and messages of every exercise of a submission with one cell."""
    verdicts = grader.grade_submission(Submission("", [("answer", source)], [])).exercises
    return {v.exercise: (v.score, first_diagnosis(v), v.messages) for v in verdicts}


@pytest.mark.parametrize("answer", [*RIGHT, *WRONG, *CHEATS], ids=lambda answer: answer.id)
def test_every_answer_of_the_bank_gets_its_verdict(grader: Grader, answer) -> None:
    got = graded(grader, answer.source)
    verdicts = {exercise: got[exercise][:2] for exercise in answer.expected}
    assert verdicts == answer.expected


IMPORTS = {
    "by its name": "from mpedu.families import gpipe",
    "under another name": """
from mpedu.families import gpipe as given
def gpipe(n_stages, n_microbatches): return given(n_stages, n_microbatches)""",
    "by another family": """
import mpedu.families
def gpipe(n_stages, n_microbatches):
    return [sorted(actions, key=lambda a: "FB".index(a.kind))
            for actions in mpedu.families.one_f_one_b(n_stages, n_microbatches)]""",
    "from the checkout": f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
for name in [n for n in sys.modules if n.partition(".")[0] in ("mpedu", "autograder")]:
    del sys.modules[name]
from mpedu.families import gpipe""",
}


@pytest.mark.parametrize("way", IMPORTS)
def test_the_imported_answer_scores_nothing(grader: Grader, way: str) -> None:
    got = graded(grader, IMPORTS[way])
    assert (got["gpipe"][0], got["gpipe_fast"][0]) == (0, 0)
    assert "this is the exercise" in got["gpipe"][2][0]
