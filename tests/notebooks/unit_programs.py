"""Rank programs made of the solutions of units 00 to 02, and a place to write what they give.

`SOURCE` is a program of its own: what a launcher would start, and what a cell would hold.
"""

from pathlib import Path

from autograder.submissions.cells import nbgrader_metadata, read_notebook

ROOT = Path(__file__).parents[2]
SOLUTIONS = {
    "00-start-here": ("hello", "ring_pass", "fix_deadlock"),
    "01-collectives": ("ring_all_gather", "ring_reduce_scatter", "ring_all_reduce"),
    "02-naive": ("naive",),
}
HEAD = """
import json
import sys

import numpy as np
import torch

from mpedu.comm import even_sizes
from mpedu.keyed import keyed_generator
from mpedu.model import GPTConfig, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.schedule import Action
"""
TAIL = """
SMALL = GPTConfig(vocab_size=17, n_layers=4, d_model=12, n_heads=3, n_positions=9)


def messages(comm):
    x = np.arange(5.0) + 10 * comm.rank
    token = np.array([7 + comm.rank, 9])
    return [hello(comm), ring_pass(comm, token).tolist(), fix_deadlock(comm, x).tolist()]


def rings(comm):
    whole = (np.arange(11) + 1) * 3 ** comm.rank
    part = np.arange(even_sizes(9, comm.size)[comm.rank]) + 100 * comm.rank
    even = np.arange(3) + 100 * comm.rank
    return [
        ring_all_reduce(comm, whole).tolist(),
        ring_reduce_scatter(comm, whole).tolist(),
        ring_all_gather(comm, even).tolist(),
        comm.all_reduce(whole).tolist(),
    ]


def pipeline(comm):
    stage = build_stage(SMALL, comm.size, comm.rank, dtype=torch.float64)
    schedule = naive(comm.size, 3)
    engine = PipelineEngine(schedule, comm, {comm.rank: stage}, token_loss, count_targets)
    drawn = torch.randint(17, (6, 8), generator=keyed_generator("tokens"))
    batch = (drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous())
    loss = engine.run(batch if comm.rank == 0 else None).loss
    return [loss, [p.grad.flatten().tolist() for p in stage.parameters()]]


def everything(comm):
    return [messages(comm), rings(comm), pipeline(comm)]
"""
MAIN = """
if __name__ == "__main__":
    from mpedu.comm import Comm

    with Comm.from_environment() as comm:
        with open(f"{sys.argv[1]}/{comm.rank}.json", "w", encoding="utf-8") as file:
            json.dump(everything(comm), file)
"""


def _solution(unit, name):
    cells = read_notebook(ROOT / "notebooks" / unit / f"{unit}.ipynb").cells
    found = [c for c in cells if nbgrader_metadata(c).get("grade_id") == f"solution-{name}"]
    return found[0].source


_PARTS = [_solution(unit, name) for unit, names in SOLUTIONS.items() for name in names]
SOURCE = "\n\n".join([HEAD, *_PARTS, TAIL, MAIN])
