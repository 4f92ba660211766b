"""What students wrote in units 00 to 02 gives the same on every machine."""

import json
import subprocess
import sys

import numpy as np
import pytest
from unit_programs import SOURCE

from mpedu.launch import run_ranks

GUARD_S = 120


@pytest.fixture(scope="module")
def everything():
    namespace = {"__name__": "cells"}
    exec(compile(SOURCE, "<cells>", "exec"), namespace)
    return namespace["everything"]


def under_torchrun(n_ranks, folder):
    program = folder / "program.py"
    program.write_text(SOURCE, encoding="utf-8")
    command = ["-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run(
        [sys.executable, *command, str(n_ranks), str(program), str(folder)],
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [
        json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(n_ranks)
    ]


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_the_units_solutions_give_the_same_on_three_machines(n_ranks, everything, tmp_path):
    simulated = run_ranks(everything, n_ranks, machine="simulated").results
    processes = run_ranks(everything, n_ranks, machine="processes").results
    torchrun = under_torchrun(n_ranks, tmp_path)
    for others in (processes, torchrun):
        for own, other in zip(simulated, others, strict=True):
            assert own[:2] == other[:2]  # messages and whole numbers: bit for bit
            (loss, gradients), (other_loss, other_gradients) = own[2], other[2]
            assert abs(loss - other_loss) <= 1e-12
            for mine, yours in zip(gradients, other_gradients, strict=True):
                assert np.abs(np.subtract(mine, yours)).max() <= 1e-12
    hello, token, exchanged = simulated[0][0]
    assert hello == list(range(n_ranks)) and token == [7, 9] and len(exchanged) == 5
    assert simulated[0][1][0] == [sum(k * 3**r for r in range(n_ranks)) for k in range(1, 12)]
