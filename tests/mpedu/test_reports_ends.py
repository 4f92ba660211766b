"""What users of other engines have reported of waits, memory and ends; see test_reports."""

import os
import signal

import pytest
import rendezvous
import torch
from pipelines import Task, assert_equal, batch_of, engine_for, engine_outcome, serial_outcome
from reported import engine_of, gpt, gradients_of, ids, weighted

from mpedu.families import interleaved_1f1b, make_schedule, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.model import count_targets, token_loss
from mpedu.pipeline import PipelineEngine
from mpedu.pipeline.boxes import N_AHEAD
from mpedu.pipeline.traffic import unsent_limit
from mpedu.ranks.errors import RankError
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule


@pytest.mark.parametrize("checked", [True, False])
def test_report_1_four_messages_of_one_batch_are_all_waited_for(checked):
    """pytorch 132644, PR 152938: one work of many was kept on gloo, and the rest never awaited."""

    def program(comm):
        outs = [torch.zeros(20_000) for _ in range(2)]
        own = [torch.full((20_000,), 10.0 * comm.rank + i) for i in range(2)]
        requests = [comm.isend(x, 1 - comm.rank, tag) for tag, x in enumerate(own)]
        requests += [comm.irecv(1 - comm.rank, x, tag) for tag, x in enumerate(outs)]
        for request in requests:
            request.wait()
        return [x.unique().item() for x in outs]

    run = run_ranks(program, 2, wait_s=10.0, check_messages=checked)
    assert run.results == [[10.0, 11.0], [0.0, 1.0]]


@pytest.mark.parametrize("schedule", ["interleaved", "interleaved-zero-bubble", "zbv"])
def test_report_2_two_ranks_of_four_stages_do_not_both_wait_in_send(schedule):
    """pytorch 172668, PR 178815: both ranks in SEND for ever. Here no send is ever buffered."""
    task = Task(schedule, "mlp", 4)
    made = task.make_schedule(2)
    assert validate_schedule(made, 4, 4) == []
    assert unsent_limit(made, N_AHEAD) <= 2
    parts = rendezvous.run_threads(lambda comm: engine_outcome(comm, task), 2)
    assert_equal(parts, serial_outcome(task, 4), 1e-10)


def test_report_12_a_stage_of_token_ids_can_be_checkpointed():
    """DeepSpeed 688, 4479, PR 8178: "element 0 of tensors does not require grad"."""
    batch, found = ids(6, 16), {}

    def program(comm, how):
        engine = engine_of(
            comm,
            one_f_one_b(2, 3),
            lambda number, n_stages: gpt(number, n_stages, checkpoint=how),
            token_loss,
            count_targets,
        )
        parameters = [p for stage in engine.stages.values() for p in stage.parameters()]
        with HeldBytes(ignore=[*parameters, *batch]) as held:
            engine.run(batch if comm.rank == 0 else None)
        return held.peak_bytes, gradients_of(engine.stages)

    for how in ("none", "block", "stage"):
        found[how] = run_ranks(program, 2, how).results
    for how in ("block", "stage"):
        for (peak, gradients), (peak_without, want) in zip(found[how], found["none"], strict=True):
            assert peak < peak_without / 2
            assert all(torch.equal(gradients[name], gradient) for name, gradient in want.items())


@pytest.mark.parametrize("schedule", ["zero-bubble-h1", "interleaved-zero-bubble", "zbv"])
def test_report_13_nothing_is_kept_after_a_step_of_halves(schedule):
    """pytorch 136766, PR 138119: zero bubble kept the graph alive."""
    made = make_schedule(schedule, 2, 4)

    def program(comm):
        batch = ids(8, 16)
        engine = engine_of(comm, made, gpt, token_loss, count_targets)
        parameters = [p for stage in engine.stages.values() for p in stage.parameters()]
        given = batch if 0 in engine.stages else None
        engine.run(given)  # makes the gradients
        after = []
        with HeldBytes(ignore=[*parameters, *batch]) as held, LiveBytes() as live:
            for _ in range(5):
                engine.run(given)
                after.append((held.live_bytes, live.live_bytes))
        return held.peak_bytes, after

    for peak, after in run_ranks(program, 2, check_messages=False).results:
        assert peak > 10_000
        assert {held for held, _ in after} == {0}
        assert max(live for _, live in after) <= 200  # losses; a sum may be let go a little later


def test_report_26_a_rank_that_is_killed_in_a_step_ends_the_run():
    """pytorch 75097, 130345, PR 179291, gloo 520: the others hung, or could not be ended."""

    def program(comm):
        def stage(x):
            if comm.rank == 1 and x.abs().sum() > 0:  # not in the run on zeros
                os.kill(os.getpid(), signal.SIGKILL)
            return x * 1.0

        engine = PipelineEngine(one_f_one_b(3, 4), comm, {comm.rank: stage}, weighted, len)
        engine.run((torch.ones(4, 2), torch.ones(4, 2)))

    with pytest.raises(RankError, match=r"^rank 1 died: its process was killed by SIGKILL"):
        run_ranks(program, 3, wait_s=10.0)


def test_report_26_a_send_that_nobody_waited_for_does_not_keep_a_rank_from_ending():
    def program(comm):
        if comm.rank == 0:
            comm.isend(torch.arange(5), 1)  # and nobody takes it
        return comm.rank

    assert run_ranks(program, 2, check_messages=False).results == [0, 1]


class Busy(torch.autograd.Function):
    """Takes a second of the model clock forward and two backward."""

    @staticmethod
    def forward(ctx, x, comm):
        ctx.comm = comm
        comm.compute(1.0)
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.comm.compute(2.0)
        return gradient, None


def test_report_28_no_receive_of_the_warm_up_holds_up_the_work_before_it():
    """pytorch 188833: receives moved to the front added a bubble. Here waits cost model time."""
    made = interleaved_1f1b(4, 8, 2)
    due = simulate(made, Costs(1.0, 2.0)).makespan_s

    def program(comm):
        def stage(number, n_stages):
            # not in the run on zeros
            return lambda x: Busy.apply(x, comm) if torch.is_grad_enabled() else x

        engine = engine_of(comm, made, stage, weighted, len)
        x = torch.ones(8, 1, requires_grad=True)
        comm.barrier()
        start_s = comm.now_s()
        engine.run((x, torch.ones(8, 1)) if comm.rank == 0 else None)
        return start_s, comm.now_s()

    starts, ends = zip(*run_ranks(program, 4, machine="simulated").results, strict=True)
    assert max(ends) - min(starts) == pytest.approx(due, rel=0.01)


def test_report_28_emulated_devices_take_as_long_as_simulated():
    made, costs = interleaved_1f1b(4, 8, 2), Costs(0.002, 0.004)

    def program(comm):
        engine = engine_for(comm, made, "mlp", costs=costs)
        return engine.run(batch_of("mlp", 8) if comm.rank == 0 else None).spans

    spans = [span for part in run_ranks(program, 4).results for span in part]
    makespan_s = max(s.end_s for s in spans) - min(s.start_s for s in spans)
    assert makespan_s == pytest.approx(simulate(made, costs).makespan_s, rel=0.01)
