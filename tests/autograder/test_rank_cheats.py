"""Rank programs that lie or take shortcuts: bytes, clock and bought work are the judge's own."""

import numpy as np
import pytest
from ranks_toy import IMPORTS, RAW, TOY, at_home, behind_walls, outcome, vectors

from autograder.checks.ranks import Served, ranks
from autograder.diagnosis import Diagnosis, Miss
from autograder.exercise import exercise
from autograder.judge import judge
from autograder.sandbox import Limits, Sandbox, build_runtime
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "runtime"
    build_runtime(TOY, folder)
    with Sandbox(folder, Limits(call_s=3)) as made:
        yield made


def run_of(sandbox, body, n_ranks=2, machine=None, arguments=None):
    source = f"{IMPORTS}{RAW}\ndef f(comm, x):\n{body}"
    with behind_walls(sandbox, source) as subject:
        return outcome(subject, n_ranks, arguments or vectors(n_ranks), machine)


def test_a_result_in_place_of_a_receive_leaves_the_sender_alone(sandbox):
    body = "  if comm.rank == 0: comm.send(x, 1)\n  return [0.0, 1.0]"
    assert run_of(sandbox, body)[:2] == (
        "deadlock",
        "deadlock: rank 0 waits for rank 1, which has finished (rank 0 in send to rank 1).",
    )


def test_a_claimed_receive_gives_nothing(sandbox):
    body = """
  from autograder.worker.ranks import _Asked
  if comm.rank == 0: return comm.isend(x, 1).wait()
  request = comm.irecv(0)
  request._is_done = True
  return request.wait()
"""
    kind, message, *_ = run_of(sandbox, body)
    assert kind == "unreceived"
    assert message.startswith("rank 1 never waited for what it started to receive from rank 0")


def test_a_forged_number_does_not_make_another_rank_s_message(sandbox):
    body = """
  if comm.rank == 1:
      comm.rank = comm._world_rank = 0
      comm.isend(x, 2)
  if comm.rank == 2: return comm.recv(0)
"""
    kind, message, *_ = run_of(sandbox, body, 3)
    assert (kind, message.partition(" (")[0]) == (
        "deadlock",
        "deadlock: rank 2 waits for rank 0, which has finished",
    )


@pytest.mark.parametrize(
    "lie",
    [
        "comm.meter._counts.clear()",
        "import autograder.worker.ranks as r; r.MOST_ARRAY_BYTES = 0 * len(r.__name__) + 10**9",
        "comm.spans.clear(); comm.size = 2",
        "comm._line.n_requests += 0; comm.now_s = lambda: 0.0",
        "comm.compute(seconds=0); comm.report('0 bytes')",
    ],
)
def test_bytes_and_clock_are_the_judge_s(sandbox, lie):
    body = "  {}\n  if comm.rank == 0: comm.send(x, 1)\n  else: comm.recv(0)"
    machine = Simulated(Wire(1.0, 8.0))
    told, honest = (run_of(sandbox, body.format(b), 2, machine) for b in (lie, "pass"))
    assert told[0] == "" and told == honest
    assert honest[2] == {(0, "send"): (1, 1, 32, 0, 0), (1, "recv"): (1, 0, 0, 0, 0)}
    assert honest[3] == 32 / 8.0 + 1.0


# A graded exercise whose evidence is served: each shortcut scores 0


@exercise("total", title="Total", points=1, names=["f"], evidence="served")
def total(subject, draw):
    """Every rank's own array times two, bought, and the sum of all over a ring, on every rank."""
    n_ranks, n = 3, draw.int(20, 40)
    xs = [np.array([draw.int(0, 99) for _ in range(n)], dtype=float) for _ in range(n_ranks)]
    layer = Served("layer", {"forward": lambda rank, x: (2 * x, 4.0)})
    run = ranks(subject, "f", n_ranks, [(layer, x) for x in xs], Simulated(Wire(1.0, 8.0)))
    least_s = 4.0 + (n_ranks - 1) * (n + 1.0)
    holds = {
        "results": all(np.array_equal(y, 2 * sum(xs)) for y in run.results),
        "bought": run.bought == [[("layer", "forward")]] * n_ranks,
        "sends": run.meter.total(kind="send").bytes == n_ranks * (n_ranks - 1) * 8 * n,
        "others": run.meter.total().calls == 2 * n_ranks * (n_ranks - 1),
        "clock": run.makespan_s >= least_s,
    }
    wrong = [name for name, is_right in holds.items() if not is_right]
    if wrong:
        raise Miss(Diagnosis(wrong[0], f"{wrong[0]} are wrong", "wrong"))


SOLUTION = """
def f(comm, layer, x):
    part = total = layer.forward(x)
    for _ in range(comm.size - 1):
        sent = comm.isend(part, (comm.rank + 1) % comm.size)
        part = comm.recv((comm.rank - 1) % comm.size)
        sent.wait()
        total = total + part
    return total
"""
CHEATS = {
    "calls the collective": (
        "sends",
        "def f(comm, layer, x): return comm.all_reduce(layer.forward(x))",
    ),
    "leaves out the work": ("bought", SOLUTION.replace("layer.forward(x)", "2 * x")),
    "replaces the proxy's method": (
        "bought",
        SOLUTION.replace("part = total", "layer.forward = lambda x: 2 * x\n    part = total"),
    ),
    "spoils the proxy": (
        "raised",
        SOLUTION.replace("part = total", "layer.forward.args = ()\n    part = total"),
    ),
    "sends halves as float32": (
        "sends",
        SOLUTION.replace("comm.isend(part,", "comm.isend(part.astype('f4'),"),
    ),
    "sends junk of the right size": (
        "results",
        SOLUTION.replace("comm.isend(part,", "comm.isend(np.zeros_like(x),"),
    ),
    "is silent": ("results", "def f(comm, layer, x): return comm.size * layer.forward(x)"),
    "keeps a global": (
        "raised",
        "kept = {}\ndef f(comm, layer, x):\n  kept[comm.rank] = layer.forward(x)\n"
        "  comm.barrier()\n  return kept[0] + kept[1] + kept[2]",
    ),
    "keeps it in a module": (
        "raised",
        "def f(comm, layer, x):\n  vars(np)[f'kept{comm.rank}'] = layer.forward(x)\n"
        "  comm.barrier()\n  return np.kept0 + np.kept1 + np.kept2",
    ),
    "keeps it in the environment": (
        "raised",
        "def f(comm, layer, x):\n"
        "  os.environ[f'kept{comm.rank}'] = str(layer.forward(x).tolist())\n"
        "  comm.barrier()\n"
        "  return sum(np.array(eval(os.environ[f'kept{r}'])) for r in range(3))",
    ),
    "keeps it in a file": (
        "raised",
        "def f(comm, layer, x):\n  np.save(f'/tmp/kept{comm.rank}.npy', layer.forward(x))\n"
        "  comm.barrier()\n  return sum(np.load(f'/tmp/kept{r}.npy') for r in range(3))",
    ),
}


def verdict(sandbox, source):
    with behind_walls(sandbox, IMPORTS + source) as subject:
        given = judge(total, subject, b"s" * 32)
    return given.score, given.groups[0].diagnosis


def test_the_exercise_can_be_passed(sandbox):
    assert verdict(sandbox, SOLUTION) == (1, "")
    assert judge(total, at_home(IMPORTS + SOLUTION)).score == 1


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_shortcut_scores_nothing(sandbox, cheat):
    diagnosis, source = CHEATS[cheat]
    assert verdict(sandbox, source) == (0, diagnosis)


def test_leaving_out_bought_work_cannot_be_hidden_and_idle_work_costs(sandbox):
    stage = Served("stage", {"forward": lambda rank, x: (x, 3.0)})
    sources = {
        "bought": "def f(comm, stage, x): return stage.forward(x)",
        "left out": "def f(comm, stage, x): return x",
        "waits": "def f(comm, stage, x): comm.compute(seconds=3.0); time.sleep(0.1); return x",
    }
    clocks = {}
    for name, source in sources.items():
        with behind_walls(sandbox, IMPORTS + source) as subject:
            run = ranks(subject, "f", 1, [(stage, 1.0)])
            clocks[name] = run.makespan_s, run.bought
    assert clocks == {
        "bought": (3.0, [[("stage", "forward")]]),
        "left out": (0.0, [[]]),
        "waits": (0.0, [[]]),
    }
