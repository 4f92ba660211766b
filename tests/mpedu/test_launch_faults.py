"""The first failing rank is named first: faults drawn at random, MPEDU_FAULTS of them."""

import ctypes
import os
import random
import signal
import sys
import time

import cloudpickle
import pytest
import torch

from mpedu.launch import run_ranks
from mpedu.ranks.errors import RankError

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
N_FAULTS = int(os.environ.get("MPEDU_FAULTS", "12"))


def fail_with(error):
    raise error


HOW = {
    "raise": lambda comm: fail_with(ValueError("fault")),
    "exit": lambda comm: os._exit(5),
    "sys.exit": lambda comm: sys.exit(1),
    "kill": lambda comm: os.kill(os.getpid(), signal.SIGKILL),
    "crash": lambda comm: ctypes.string_at(0),
    "bad input": lambda comm: comm.send(torch.zeros(1), 99),
    "out of memory": lambda comm: fail_with(MemoryError()),
    "no result": lambda comm: (n for n in []),
}


@pytest.mark.parametrize("seed", range(N_FAULTS))
def test_the_first_failing_rank_is_named_first_whatever_fails_when(seed):
    """Which rank, when, how, and what the others do: drawn. All of HOW in every eight."""
    draw = random.Random(seed)
    how = HOW[list(HOW)[seed % len(HOW)]]
    n_ranks = draw.randint(2, 4)
    faulty, n_rounds = draw.randrange(n_ranks), draw.randint(0, 30)
    traffic, late_s = draw.choice(["ring", "sum", "star"]), draw.choice([0, 0.01, 0.1])

    def program(comm):
        for _ in range(n_rounds):
            comm.all_reduce(torch.zeros(1))
        if comm.rank == faulty:
            time.sleep(late_s)
            return how(comm)
        while True:
            if traffic == "sum":
                comm.all_reduce(torch.zeros(100))
            elif traffic == "star":
                comm.recv(faulty, torch.zeros(1))
            else:
                sending = comm.isend(torch.zeros(100), (comm.rank + 1) % comm.size)
                comm.recv((comm.rank - 1) % comm.size, torch.zeros(100))
                sending.wait()

    with pytest.raises(RankError) as caught:
        run_ranks(program, n_ranks, timeout_s=30)
    first, *others = caught.value.failures
    assert first.rank == faulty and not first.is_consequence
    assert str(caught.value).startswith(f"rank {faulty} ")
    assert all(f.is_consequence for f in others)
