"""The engine on simulated ranks: the same program, the same gradients as the serial model."""

from functools import cache

import pytest
from pipelines import Task, assert_equal, engine_outcome, serial_outcome

from mpedu.families import SCHEDULES, make_schedule
from mpedu.launch import run_ranks
from mpedu.schedule import stage_to_rank

serial = cache(serial_outcome)


def tasks(schedule, n_ranks):
    """A step for each number of micro-batches that this schedule can have, of some five of SGD."""
    for n_microbatches in (*range(1, 10), 16):
        try:
            make_schedule(schedule, n_ranks, n_microbatches)
        except ValueError as refused:  # which ones and how, test_families says
            assert f"n_microbatches={n_microbatches} on n_ranks={n_ranks}" in str(refused)
            continue
        yield Task(
            schedule, "mlp", n_microbatches, steps="sgd" if n_microbatches in (3, 16) else "one"
        )
    yield Task(schedule, "gpt", 2 * n_ranks, steps="sgd")


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_steps_on_simulated_ranks_equal_those_of_the_serial_model(schedule, n_ranks):
    due = list(tasks(schedule, n_ranks))

    def program(comm):
        return [engine_outcome(comm, task) for task in due]

    run = run_ranks(program, n_ranks, machine="simulated")
    n_stages = len(stage_to_rank(due[-1].make_schedule(n_ranks)))
    for task, parts in zip(due, zip(*run.results, strict=True), strict=True):
        assert_equal(parts, serial(task.serial, n_stages), 1e-10)
