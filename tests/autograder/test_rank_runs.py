"""A rank program gives the same at home, on simulated ranks, and in a walled process per rank."""

import random
import re

import numpy as np
import pytest
from rank_cases import RIGHT, STEPS, WRONG, drawn_steps
from ranks_toy import IMPORTS, TOY, at_home, behind_walls, both, outcome, vectors

from autograder.checks.ranks import ranks
from autograder.sandbox import Limits, Sandbox, build_runtime
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire

SLOW = Simulated(Wire(1.0, 8.0), Wire(10.0, 4.0), node_size=2)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "runtime"
    build_runtime(TOY, folder)
    with Sandbox(folder) as made:
        yield made


# One rank has nobody to send to.
SIZES = [
    (program, n_ranks)
    for program, source in RIGHT.items()
    for n_ranks in (1, 2, 4)
    if n_ranks > 1 or not re.search(r"comm\.(i?send|i?recv)\(", source)
]


@pytest.mark.parametrize("machine", [None, SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("program, n_ranks", SIZES)
def test_a_program_gives_the_same_in_both_places(sandbox, program, n_ranks, machine):
    if machine is SLOW and n_ranks == 1:
        machine = SLOW._replace(node_size=1)
    source = IMPORTS + RIGHT[program]
    home = outcome(at_home(source), n_ranks, vectors(n_ranks), machine)
    assert home[0] == ""
    with behind_walls(sandbox, source) as subject:
        for _ in range(2):  # the second run starts as the first one did
            assert outcome(subject, n_ranks, vectors(n_ranks), machine) == home


@pytest.mark.parametrize("program", WRONG)
def test_a_program_fails_alike_in_both_places(sandbox, program):
    kind, told, source = WRONG[program]
    home = outcome(at_home(IMPORTS + source), 4, vectors(4))
    assert home[0] == kind and told in home[1], home
    with behind_walls(sandbox, IMPORTS + source) as subject:
        for _ in range(2):
            assert outcome(subject, 4, vectors(4)) == home


@pytest.mark.parametrize("n_ranks", [2, 3, 5])
def test_drawn_programs_go_alike_in_both_places(sandbox, n_ranks):
    seen = set()
    with behind_walls(sandbox, STEPS) as walled:
        for seed in range(60):
            steps = drawn_steps(random.Random(seed), n_ranks)
            home = outcome(at_home(STEPS), n_ranks, steps, Simulated(Wire(1.0, 8.0)))
            assert outcome(walled, n_ranks, steps, Simulated(Wire(1.0, 8.0))) == home, seed
            seen.add(home[0])
    assert seen >= {"", "deadlock", "mismatch"}, seen


@pytest.mark.parametrize("rank", [0, 2])
def test_what_does_not_end_is_stopped_and_its_rank_is_named(sandbox, monkeypatch, rank):
    monkeypatch.setattr("autograder.local.Limits", lambda: Limits(call_s=0.5))
    monkeypatch.setattr(sandbox, "limits", Limits(call_s=0.5))
    source = f"def f(comm, x):\n  while comm.rank == {rank}: pass\n  comm.barrier()"
    told = f"rank {rank}: your code takes longer than 0.5 s and was stopped."
    assert outcome(at_home(source), 4, vectors(4)) == ("timeout", told, "", None)
    with behind_walls(sandbox, source) as subject:
        for _ in range(3):
            assert outcome(subject, 4, vectors(4)) == ("timeout", told, "", None)
        assert subject.lost


def test_inputs_differ_per_rank_and_are_nobody_else_s(sandbox):
    source = "def f(comm, x, y):\n  x[0] = 99\n  y.append(1)\n  return [x, y]"
    given = [(np.array([rank]), [rank]) for rank in range(3)]
    for subject in both(sandbox, source):
        run = ranks(subject, "f", 3, given)
        assert [y for _, y in run.results] == [[0, 1], [1, 1], [2, 1]]
    assert [(x.tolist(), y) for x, y in given] == [([0], [0]), ([1], [1]), ([2], [2])]


def test_every_rank_needs_its_arguments(sandbox):
    for subject in both(sandbox, "def f(comm): pass"):
        with pytest.raises(ValueError, match="give 3 tuples of arguments"):
            ranks(subject, "f", 3, [(), ()])


def test_where_torch_is_programs_still_send_numpy_arrays(tmp_path):
    source = "import torch\ndef f(comm, x):\n  comm.all_reduce(torch.ones(2) if x is None else x)"
    told = {
        None: "programs that are graded send NumPy arrays; give x.numpy()",
        1.5: "float is no array; give np.array(1.5)",
    }
    build_runtime(TOY, tmp_path / "runtime")
    home = at_home(source)
    # loaded before anybody waits: torch takes seconds
    with (
        Sandbox(tmp_path / "runtime", preload=["torch"]) as sandbox,
        behind_walls(sandbox, source) as walled,
    ):
        for x, why in told.items():
            message = f"rank 0: your code raises ValueError: all_reduce on rank 0: {why}."
            for subject in (home, walled):
                got = outcome(subject, 2, [(x,), (x,)])
                assert got == ("raised", message, "ValueError", 3)
