"""One program on every machine that `run_ranks` knows."""

import subprocess
import sys

import cloudpickle
import numpy as np
import pytest
import torch
import under_torchrun

from mpedu.comm import even_sizes
from mpedu.launch import RankError, run_ranks
from mpedu.simulated import Simulated
from mpedu.simulated.exchange import Wire

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
MACHINES = {
    "processes": "processes",
    "simulated": "simulated",
    "described": Simulated(link=Wire(1e-6, 1e9), node_size=2),
}
ON_ALL = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


@ON_ALL
def test_a_program_gives_the_same_on_every_machine(machine):
    run = run_ranks(under_torchrun.everything, 4, machine=machine)
    assert run.results == [([0, 2], [6]), ([1, 3], [6])] * 2
    sent = run.meter.total(kind="send")
    assert (sent.calls, sent.messages, sent.bytes) == (4, 4, 4 * 20_000)
    assert run.meter.total(kind="all_reduce").calls == run.meter.total(kind="barrier").calls == 4


@ON_ALL
def test_sums_of_floats_and_their_gradients_are_the_same_on_every_machine(machine):
    def program(comm):
        x = torch.linspace(-1, 1, 50, dtype=torch.float64) * (comm.rank + 1)
        x.requires_grad_()
        parts = comm.reduce_scatter(x.sin())
        total = comm.all_reduce(comm.all_gather(parts * parts, even_sizes(50, comm.size)))
        (total * (comm.rank + 1)).sum().backward()
        return total.detach().numpy(), x.grad.numpy()

    xs = [np.linspace(-1, 1, 50) * (rank + 1) for rank in range(4)]
    summed = sum(np.sin(x) for x in xs)
    for rank, (total, gradient) in enumerate(run_ranks(program, 4, machine=machine).results):
        assert np.abs(total - 4 * summed**2).max() <= 1e-12
        assert np.abs(gradient - 10 * 4 * 2 * summed * np.cos(xs[rank])).max() <= 1e-11


@ON_ALL
@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (under_torchrun.differing, "rank 0 gives float64 [1], rank 1 float64 [2]; all must give"),
        (under_torchrun.deadlock, "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0"),
        (under_torchrun.early_end, "rank 1 waits for rank 0, which has finished"),
        (under_torchrun.raising, "rank 1 failed: ValueError: odd"),
        (under_torchrun.leaving, "rank 1 never received what rank 0 sent it: float64 [5000]"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_is_told_alike_on_every_machine(machine, bad, text):
    with pytest.raises(RankError) as caught:
        run_ranks(bad, 2, machine=machine, wait_s=0.6)
    assert text in str(caught.value)


@pytest.mark.parametrize("machine", ["gpu", "", None, 3, Simulated])
def test_an_unknown_machine_is_refused(machine):
    with pytest.raises(
        ValueError, match="is unknown; give 'processes', 'simulated' or a Simulated"
    ):
        run_ranks(lambda comm: None, 2, machine=machine)


def test_the_simulated_machine_loads_no_torch():
    code = """
import sys
from mpedu.launch import RankError, Run, run_ranks, warm_up
import numpy as np
print(run_ranks(lambda comm: int(comm.all_reduce(np.array(1))), 3, machine="simulated").results)
print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[3, 3, 3]\nFalse\n"
