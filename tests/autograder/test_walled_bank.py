"""The banks where they count: behind walls, with a class secret, as a submission is graded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from judged import SECRETS, UNITS, bank_of, first_diagnosis

from autograder.exercise import Unit, load_unit
from autograder.grader import Grader, source_notebook
from autograder.judge import Verdict
from autograder.sandbox import build_runtime
from autograder.submissions.cells import read_notebook
from autograder.submissions.ingest import Submission

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def grader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """The grader of the unit that is asked for, one at a time."""
    unit: Unit = request.param
    runtime = tmp_path_factory.mktemp("walled") / "runtime"
    build_runtime(unit, runtime)
    with Grader(unit, read_notebook(source_notebook(unit)), runtime, SECRETS[0]) as made:
        graded = made.grade_submission(Submission("", [], []))
        if not graded.walls.startswith("bubblewrap"):
            pytest.skip(f"no walls on this machine: {graded.walls}")
        yield made


def verdicts_on(grader: Grader, source: str) -> dict[str, Verdict]:
    """By exercise, of a submission with one cell."""
    verdicts = grader.grade_submission(Submission("", [("answer", source)], [])).exercises
    return {verdict.exercise: verdict for verdict in verdicts}


@pytest.mark.parametrize(
    "grader, answer",
    [
        pytest.param(unit, answer, id=f"{unit.number}-{answer.id}")
        for unit in UNITS
        for kind in ("RIGHT", "WRONG", "CHEATS")
        for answer in getattr(bank_of(unit.number), kind)
    ],
    indirect=["grader"],
)
def test_every_answer_of_the_bank_gets_its_verdict(grader: Grader, answer) -> None:
    got = verdicts_on(grader, answer.source)
    for exercise, expected in answer.expected.items():
        assert (got[exercise].score, first_diagnosis(got[exercise])) == expected


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


@pytest.mark.parametrize("grader", [load_unit("03")], indirect=True, ids=["03"])
@pytest.mark.parametrize("way", IMPORTS)
def test_the_imported_answer_scores_nothing(grader: Grader, way: str) -> None:
    got = verdicts_on(grader, IMPORTS[way])
    assert (got["gpipe"].score, got["gpipe_fast"].score) == (0, 0)
    assert "this is the exercise" in got["gpipe"].messages[0]
