"""Rank programs as submissions are graded: groups, lost processes, statuses."""

from collections.abc import Iterator
from typing import Any

import pytest
import toy_notebook as toy

from autograder.checks.ranks import ranks
from autograder.diagnosis import Diagnosis, Miss
from autograder.exercise import Draw, Exercise, Unit
from autograder.grader import Grader
from autograder.local import LocalSubject
from autograder.sandbox.runtime import build_runtime
from autograder.submissions.cells import parse_notebook
from autograder.submissions.ingest import Submission
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire


def check(subject: Any, draw: Draw) -> None:
    """In three groups, on 1, 2 and 3 ranks: the token, which has taken a second per rank."""
    for n_ranks in (1, 2, 3):
        with draw.group(f"{n_ranks} ranks", points=1):
            token = draw.int(0, 99)
            run = ranks(subject, "ring", n_ranks, [(token,)] * n_ranks, Simulated(Wire(1.0)))
            if run.results != [token] * n_ranks or run.makespan_s != (
                n_ranks if n_ranks > 1 else 0
            ):
                raise Miss(Diagnosis("wrong", "wrong here", "wrong in general"))


UNIT = Unit("99", "toy", (Exercise("e", "Ring", 3, ("ring",), "served", (), (), "99", check),), ())
RING = """
import os, time
import numpy as np

def ring(comm, token):
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.size == 1:
        return token
    if comm.rank == 0:
        comm.send(np.array(token), after)
        return int(comm.recv(before))
    got = comm.recv(before)
    {trouble}
    comm.send(got, after)
    return int(got)

def start_either(comm, got):
    comm.barrier(async_op=True) if comm.rank == 1 else comm.all_gather(got, async_op=True)
"""


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    folder = tmp_path_factory.mktemp("toy") / "runtime"
    build_runtime(UNIT, folder)
    with Grader(UNIT, parse_notebook(toy.notebook()), folder, b"s" * 32) as made:
        made.sandbox.limits = made.sandbox.limits._replace(call_s=1.0)
        yield made


def graded(grader: Grader, trouble: str) -> Any:
    source = RING.format(trouble=trouble)
    (verdict,) = grader.grade_submission(Submission("", [("ring", source)], [])).exercises
    return verdict


@pytest.mark.parametrize(
    ("trouble", "scores", "status", "told"),
    [
        ("pass", [1, 1, 1], "passed", None),
        ("if comm.size == 2: os._exit(0)", [1, 0, 1], "partial", "crashed"),
        ("while comm.size == 2: pass", [1, 0, 1], "partial", "timeout"),
        ("if comm.size == 2: comm.recv(before)", [1, 0, 1], "partial", "deadlock"),
        ("if comm.size == 3: start_either(comm, got)", [1, 1, 0], "partial", "mismatch"),
        ("comm.isend(got, before, tag=1)", [1, 0, 0], "partial", "unreceived"),
        ("got[...] += 1", [1, 0, 0], "partial", "wrong"),
    ],
)
def test_a_lost_or_failing_run_costs_its_own_group_only(
    grader: Grader, trouble: str, scores: list[int], status: str, told: str | None
) -> None:
    verdict = graded(grader, trouble)
    assert ([g.score for g in verdict.groups], verdict.status) == (scores, status)
    assert [g.diagnosis for g in verdict.groups if g.diagnosis][:1] == [told][: told is not None]


def test_a_program_that_only_deadlocks_has_failed(grader: Grader) -> None:
    source = "def ring(comm, token): comm.recv((comm.rank + 1) % comm.size)"
    (verdict,) = grader.grade_submission(Submission("", [("ring", source)], [])).exercises
    assert (verdict.status, verdict.score) == ("failed", 0)
    assert [group.diagnosis for group in verdict.groups] == ["raised", "deadlock", "deadlock"]


def test_the_same_check_passes_at_home() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(RING.format(trouble="pass"), namespace)
    draw = Draw(b"seed")
    groups = UNIT.exercises[0].run(LocalSubject(namespace, ["ring"]), draw)
    assert [group.diagnosis for group in groups] == [None] * 3


def test_a_failing_cell_is_told_once(grader: Grader) -> None:
    cells = [("ring", RING.format(trouble="pass")), ("own", "1 / 0")]
    got = grader.grade_submission(Submission("", cells, []))
    assert got.cell_errors == ["ZeroDivisionError: division by zero (own, line 1)."]
    assert got.exercises[0].score == 3
