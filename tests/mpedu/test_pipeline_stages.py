from functools import cache
from random import Random

import pytest
import torch
from drawn import drawn_schedule
from odd_stages import N_MICROBATCHES, ODD, odd_batch, odd_loss, odd_serial, remains
from pipelines import error

from mpedu.families import gpipe, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine

SCHEDULES = {
    "gpipe": gpipe(4, N_MICROBATCHES),
    "one_f_one_b": one_f_one_b(4, N_MICROBATCHES),
    "V": drawn_schedule([0, 1, 1, 0], N_MICROBATCHES, Random(0), True),
    "looped": drawn_schedule([0, 1, 0, 1], N_MICROBATCHES, Random(1), True),
    "alone": drawn_schedule([0, 0, 0, 0], N_MICROBATCHES, Random(2), True),
}


@cache
def results(name):
    """What a step of each odd pipeline leaves, by the pipeline's name."""
    schedule = SCHEDULES[name]

    def program(comm):
        left = {}
        for odd, build in ODD.items():
            own = {action.stage for action in schedule[comm.rank]}
            stages = {number: build()[number] for number in own}
            engine = PipelineEngine(
                schedule, comm, stages, odd_loss, lambda t: t[..., 0].numel(), keep_outputs=True
            )
            result = engine.run(odd_batch(odd) if 0 in own else None)
            left[odd] = remains(stages)
            if 3 in own:
                left[odd]["outputs"] = torch.cat([y.flatten() for y in result.outputs])
            if 0 in own:
                left[odd]["input gradient"] = result.input_gradient
        return left

    parts = run_ranks(program, len(schedule)).results
    return {odd: {k: v for part in parts for k, v in part[odd].items()} for odd in ODD}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_odd_stage_gives_what_it_gives_alone(schedule, odd):
    got, want = results(schedule)[odd], odd_serial(odd)
    assert got.keys() == want.keys()
    for key in want:
        if got[key] is None or want[key] is None:
            # the serial model leaves None also where a later stage ignores its input
            assert not any(x.any() for x in (got[key], want[key]) if x is not None), key
        else:
            assert error(got[key].double(), want[key].double()) <= 1e-10, key
