"""`show`: a picture of whatever a cell hands it, or a line that says why there is none."""

import IPython
import IPython.display
import numpy as np
import pytest

from autograder.notebook import sealed_run, show
from mpedu.families import gpipe, interleaved_1f1b, naive, zbv
from mpedu.meter import Meter
from mpedu.plot import Picture, draw_deadlock, draw_lanes
from mpedu.ranks.board import Waiting
from mpedu.ranks.outcome import Failed, RankError, Run
from mpedu.schedule import Action
from mpedu.simulate import Costs, Sent, Span, Timeline, simulate

LANES = Timeline(
    [Span(0, "compute", -1, -1, 0.0, 2.0)], 2, (Sent(0, 1, "send", 8, 2.0, 2.5, 3.0, 3.0, 0),)
)
CIRCLE = [Waiting(0, "recv from rank 1", 1.0, (1,)), Waiting(1, "recv from rank 0", 1.0, (0,))]
DEADLOCK = RankError("deadlock: rank 0 waits for rank 1, ..", waiting=CIRCLE, timeline=LANES)


def unwritten(n_stages, n_microbatches):
    raise NotImplementedError


def broken(n_stages, n_microbatches):
    return 1 / 0


def sizes(n_samples, n_microbatches):
    return [(3, 0.3)]


def test_show_draws_what_it_is_given():
    assert isinstance(show(naive(4, 1), Costs(8, 16)), Picture)
    assert isinstance(show(simulate(naive(2, 1))), Picture)
    assert "33 s" in show(naive_as_gpipe, 4, 8, shade=True).text
    assert isinstance(show([]), Picture)
    assert "33 s" in show(gpipe, np.int64(4), np.int64(8)).text


def naive_as_gpipe(K, M):
    return gpipe(K, M)


def test_show_says_what_it_takes(capsys):
    for what in ("gpipe", 3, None):
        assert show(what, 4, 8) is None
        assert "show needs a function, a schedule, a timeline or a run" in capsys.readouterr().out
    assert show(gpipe(4, 8), 4, 8) is None
    assert "only Costs may follow" in capsys.readouterr().out


class Ran:
    """Stands for a run: words, and a picture of its own."""

    def __str__(self):
        return "it ran"

    def picture(self):
        return Picture(b"", "alt", "the run drawn")


class CannotRun(ValueError):
    picture = Ran.picture


def cannot_run():
    raise CannotRun("it ran")


@pytest.mark.parametrize("what", [Ran(), Ran, cannot_run])
def test_show_prints_and_draws_what_has_a_picture_of_its_own_raised_or_not(what, capsys):
    assert show(what).text == "the run drawn"
    assert capsys.readouterr().out == "it ran\n"


def test_show_starts_no_ranks_while_nbgrader_runs_the_notebook(monkeypatch, capsys):
    def train_step():
        raise AssertionError("was called")

    train_step.__module__ = "mpedu.train_step"
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert show(train_step) is None
    assert capsys.readouterr().out.startswith("train_step: not run while nbgrader grades")


def test_show_draws_the_evidence_of_a_sealed_run_with_its_table_once(capsys):
    run = sealed_run("A")
    picture = show(run)
    assert "gradient ratios" in picture.alt and picture.text.count(str(run)) == 1
    assert capsys.readouterr().out == ""


def test_in_a_notebook_every_show_of_a_cell_displays_its_picture(monkeypatch):
    displayed = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: "a shell")
    monkeypatch.setattr("IPython.display.display", displayed.append)
    assert [show(what) for what in (naive(2, 1), simulate(naive(2, 1)), Ran())] == [None] * 3
    assert [isinstance(picture, Picture) for picture in displayed] == [True] * 3
    assert show(unwritten, 4, 8) is None and len(displayed) == 3


def test_show_draws_the_work_that_is_missing_from_a_students_answer():
    def half(n_stages, n_microbatches):
        return [[Action("F", 0, 0), Action("B", 0, 0)]]

    assert "stage 1 never runs" in show(half, 2, 1).text


@pytest.mark.parametrize(
    "function, line",
    [
        (unwritten, "unwritten: not written yet"),
        (broken, "broken raises ZeroDivisionError: division by zero (your cell, line LINE)"),
    ],
)
def test_show_tells_in_one_line_why_there_is_nothing_to_see(function, line, capsys):
    assert show(function, 4, 8) is None
    number = str(function.__code__.co_firstlineno + 1)
    assert capsys.readouterr().out == line.replace("LINE", number) + "\n"


def test_show_draws_several_stages_per_rank_and_misses_those_that_are_not_there():
    def first_chunk_only(n_ranks, n_microbatches, n_chunks):
        return naive(n_ranks, n_microbatches)

    assert "never runs" not in show(interleaved_1f1b, 2, 2, 2).text
    assert "stage 2 never runs F0..F1 and B0..B1" in show(first_chunk_only, 2, 2, 2).text
    assert "never runs" not in show(zbv, 2, 3).text


def test_show_prints_an_answer_that_is_no_schedule(capsys):
    assert show(sizes, 10, 4) is None
    assert capsys.readouterr().out == "sizes: [(3, 0.3)]\n"


def test_show_draws_the_lanes_of_a_run_of_ranks_and_prints_its_results(capsys):
    run = Run([3, [1, 2]], LANES, Meter())
    assert show(run) == show(lambda: run) == show(run.timeline) == draw_lanes(LANES)
    assert capsys.readouterr().out == 2 * "rank 0: 3\nrank 1: [1, 2]\n"
    assert show(Run([None] * 20, None, Meter())) is None
    lines = capsys.readouterr().out.split("\n")
    assert lines[15:] == ["rank 15: None", "and 4 more", ""]


def test_show_draws_a_deadlock_given_or_raised(capsys):
    def stuck(n_ranks):
        raise DEADLOCK

    assert show(DEADLOCK) == draw_deadlock(DEADLOCK)
    assert show(stuck, 2, title="x") == draw_deadlock(DEADLOCK, title="x")
    assert capsys.readouterr().out == ""


def test_show_prints_another_error_of_ranks_and_draws_what_ran_before(capsys):
    failed = Failed(1, "ValueError", "no", [("a.py", 3, "ring_pass")], False, 0.0)
    assert show(RankError("rank 1 failed: ValueError: no", [failed], [], LANES)).text
    assert capsys.readouterr().out == "rank 1 failed: ValueError: no\n"
    assert show(RankError("rank 1 failed")) is None
    assert capsys.readouterr().out == "rank 1 failed\n"
    unwritten = failed._replace(type_name="NotImplementedError")
    assert show(RankError("rank 1 failed: ..", [unwritten])) is None
    assert capsys.readouterr().out == "ring_pass: not written yet\n"
