"""Work that rank programs buy, and the processes they run in."""

import math
import os
import signal
import threading

import pytest
from ranks_toy import IMPORTS, TOY, at_home, behind_walls, both, outcome, vectors

from autograder.checks.ranks import RanksRun, Served, ranks
from autograder.diagnosis import StudentError
from autograder.programs import Defect
from autograder.sandbox import Sandbox, build_runtime
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire

SLOW = Simulated(Wire(1.0, 8.0), Wire(10.0, 4.0), node_size=3)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "runtime"
    build_runtime(TOY, folder)
    with Sandbox(folder) as made:
        yield made


# Work that is bought

STAGES = {
    "all of it": (
        "",
        "def f(comm, stage, x):\n"
        "  x = comm.recv(comm.rank - 1) if comm.rank else x\n"
        "  y = stage.forward(x)\n"
        "  if comm.rank < comm.size - 1: comm.send(y, comm.rank + 1)\n"
        "  return [y, comm.now_s()]",
    ),
    "none of it": ("", "def f(comm, stage, x):\n  return x + comm.rank + 1"),
    "the wrong input": (
        "raised",
        "def f(comm, stage, x):\n  return stage.forward('x')",
    ),
    "no plain data": ("not_plain", "def f(comm, stage, x):\n  return stage.forward({1})"),
    "an unknown method": ("raised", "def f(comm, stage, x):\n  return stage.train(x)"),
    "a caught refusal": (
        "",
        "def f(comm, stage, x):\n"
        "  try: stage.forward(None)\n"
        "  except ValueError as error: return [str(error), repr(stage)]",
    ),
    "too few arguments": ("raised", "def f(comm, stage, x):\n  return stage.forward()"),
}


def stages(n_ranks):
    """One stage per rank that adds its number and one, and takes 2 s."""
    stage = Served("stage", {"forward": lambda rank, x: (x + rank + 1, 2.0)})
    return [(stage, x) for (x,) in vectors(n_ranks)]


@pytest.mark.parametrize("program", STAGES)
def test_bought_work_is_the_same_in_both_places(sandbox, program):
    kind, source = STAGES[program]
    home = outcome(at_home(source), 3, stages(3), SLOW)
    assert home[0] == kind
    with behind_walls(sandbox, source) as subject:
        assert outcome(subject, 3, stages(3), SLOW) == home


def test_bought_work_is_charged_where_it_is_bought_and_recorded(sandbox):
    source = STAGES["all of it"][1]
    for subject in both(sandbox, source):
        run = ranks(subject, "f", 3, stages(3), Simulated(Wire(0.5, math.inf)))
        assert run.bought == [[("stage", "forward")]] * 3
        assert run.makespan_s == 3 * 2.0 + 2 * 0.5
        assert [now_s for _, now_s in run.results] == [2.0, 4.5, 7.0]
        spans = [(s.rank, s.kind, s.start_s, s.end_s) for s in run.timeline.spans]
        assert ("stage.forward" in {kind for _, kind, _, _ in spans}) and len(spans) >= 3
        assert [y.tolist() for y, _ in run.results] == [[1, 2, 3, 4], [3, 4, 5, 6], [6, 7, 8, 9]]


@pytest.mark.parametrize(
    "given, told", [((1, -1.0), "-1.0 s is no price"), (({1}, 1.0), "gives no plain data")]
)
def test_a_served_value_or_price_that_is_none_is_a_defect_of_the_check(sandbox, given, told):
    stage = Served("stage", {"forward": lambda rank: given})
    source = "def f(comm, stage):\n  try: return stage.forward()\n  except ValueError: pass"
    for subject in both(sandbox, source):
        with pytest.raises(Defect, match=f"stage.forward:? {told}"):
            ranks(subject, "f", 2, [(stage,), (stage,)])


def test_a_run_is_what_it_says():
    run = ranks(at_home("def f(comm): return comm.rank"), "f", 2, [(), ()])
    assert isinstance(run, RanksRun)
    assert (run.results, run.makespan_s, run.timeline.spans, run.bought) == (
        [0, 1],
        0.0,
        [],
        [[], []],
    )
    assert run.meter.total().bytes == 0


@pytest.mark.parametrize("is_notebook", [False, True])
def test_the_stop_button_stops_a_program_at_home(is_notebook):
    subject = at_home("def f(comm):\n  while True: pass")
    if is_notebook:
        subject._namespace["get_ipython"] = None
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        ranks(subject, "f", 2, [(), ()])
    timer.join()
    assert str(caught.value).startswith("Stopped: `f` was still running") is is_notebook


# The processes of an exercise


def test_a_rank_keeps_its_process_but_a_run_leaves_nothing_in_it(sandbox):
    source = IMPORTS + "n = 0\ndef f(comm):\n  global n; n += 1\n  return [os.getpid(), n, id(sys)]"
    with behind_walls(sandbox, source) as subject:
        processes = [one._process for one in subject._members(3)]
        for _ in range(3):
            assert [n for _, n, _ in ranks(subject, "f", 3, [()] * 3).results] == [1, 1, 1]
        assert [one._process for one in subject._members(3)] == processes
        assert len(ranks(subject, "f", 2, [()] * 2).results) == 2


def test_a_rank_that_does_not_stop_is_replaced_before_the_next_run(sandbox):
    source = """
def f(comm, fails):
    if comm.rank == 1 and fails:
        comm.recv(0)
        raise KeyError(7)
    try:
        comm.send(np.zeros(1), 1) if fails and not comm.rank else comm.barrier()
        while fails and comm.rank == 0: pass
    except BaseException:
        while True: pass
    return comm.rank
"""
    with behind_walls(sandbox, IMPORTS + source) as subject:
        first = [one._process for one in subject._members(3)]
        with pytest.raises(StudentError, match="KeyError: 7"):
            ranks(subject, "f", 3, [(True,)] * 3)
        assert not subject.lost
        assert ranks(subject, "f", 3, [(False,)] * 3).results == [0, 1, 2]
        now = [one._process for one in subject._members(3)]
        assert [a is b for a, b in zip(first, now, strict=True)] == [False, True, False]


def test_functions_can_be_asked_between_runs(sandbox):
    source = "n = 0\ndef f(comm): return n\ndef up():\n  global n; n += 1; return n"
    names = ("f", "up")
    with behind_walls(sandbox, source, names) as walled:
        for subject in (at_home(source, names), walled):
            assert subject.up() == 1
            # at home every rank is copied from the notebook; in grading from its own process
            assert ranks(subject, "f", 1, [()]).results == [1]


def test_no_process_is_left_when_a_run_has_failed(sandbox):
    with behind_walls(sandbox, "def f(comm): return 1 / (comm.rank - 2)") as subject:
        with pytest.raises(StudentError):
            ranks(subject, "f", 4, [()] * 4)
        processes = [one._process for one in subject._members(4)]
    assert all(process.ended for process in processes)


def test_only_functions_of_the_exercise_can_be_run(sandbox):
    with behind_walls(sandbox, "def g(comm): pass") as subject, pytest.raises(AttributeError):
        ranks(subject, "g", 2, [()] * 2)
