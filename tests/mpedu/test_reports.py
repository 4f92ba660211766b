"""What users of other engines have reported, and what ours does there.

By the number that this project gave each report, with the places where it was published. Those of
waits, memory and ends stand in test_reports_ends: 1, 2, 12, 13, 26, 28. Some stand elsewhere:

5       test_pipeline and test_pipeline_simulated: every schedule with fewer micro-batches than
        ranks, M=1 too; test_families: what is refused names M and K (torchtitan 775, PiPPy 1064,
        pytorch PR 144702)
14      test_pipeline, "each backward runs the hooks of each parameter once", and test_deferred
        (pytorch 144530)
30      test_pipeline_random: 200 random schedules on 2, 3 and 4 ranks (PiPPy 1130, PR 152938)
"""

import pytest
import torch
from odd_stages import Running
from pipelines import (
    Task,
    assert_equal,
    batch_of,
    engine_for,
    engine_outcome,
    error,
    serial_outcome,
)
from reported import (
    DOUBLE,
    assert_alike,
    engine_of,
    gpt,
    ids,
    in_one_process,
    layer,
    on_ranks,
    weighted,
)
from torch import nn
from torch.utils.checkpoint import checkpoint

from mpedu.families import SCHEDULES, gpipe, make_schedule, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.ranks.errors import RankError
from mpedu.schedule import stage_to_rank


@pytest.mark.parametrize("schedule", ["interleaved", "looped-bfs"])
def test_report_3_messages_of_two_neighbours_that_are_one_rank_are_not_swapped(schedule):
    """Megatron-LM 750: with two ranks, next is previous, and gradients were garbage."""
    task = Task(schedule, "mlp", 4)
    for checked in (True, False):
        run = run_ranks(lambda comm: engine_outcome(comm, task), 2, check_messages=checked)
        assert_equal(run.results, serial_outcome(task, 4), 1e-10)


@pytest.mark.parametrize(
    ("schedule", "late", "early"),
    [
        ("1f1b", "activations for F1 of stage 1", "activations for F0 of stage 1"),
        ("interleaved", "activations for F1 of stage 1", "activations for F0 of stage 1"),
        ("zbv", "activations for F1 of stage 1", "activations for F0 of stage 1"),
    ],
)
def test_report_3_a_swapped_message_is_told_by_name(schedule, late, early):
    made = make_schedule(schedule, 2, 4)

    def program(comm):
        engine = engine_for(comm, made, "mlp")
        if comm.rank == 0:  # after all checks of the schedule
            actions = engine.schedule[0]
            assert [str(a) for a in actions[:2]] == ["0F0", "0F1"]
            actions[:2] = reversed(actions[:2])
        engine.run(batch_of("mlp", 4) if comm.rank == 0 else None)

    told = f"recv on rank 1: rank 0 sends {late}, and here it is taken for {early}; both ends"
    with pytest.raises(RankError, match=told):
        run_ranks(program, 2, wait_s=10.0)


def test_reports_4_and_15_each_microbatch_has_a_length_of_its_own():
    """Megatron-LM 5100: a shape exchange that deadlocked on four ranks. NeMo Automodel PR 3530:
    gradients lost where the length changes between two accumulated steps."""
    lengths = [(32, 48, 16, 64) * 2, (32, 48, 16, 64) * 2, (64, 8, 33, 1, 64, 2, 50, 9)]
    batches = [
        [ids(1 + (m + step) % 3, n, seed=10 * step + m) for m, n in enumerate(row)]
        for step, row in enumerate(lengths)
    ]
    by_name = {name: make_schedule(name, 4, 8) for name in SCHEDULES}
    got = on_ranks(by_name, gpt, batches)
    want = {n_stages: in_one_process(n_stages, gpt, batches) for n_stages in (4, 8)}
    for name, schedule in by_name.items():
        assert_alike(got[name], want[len(stage_to_rank(schedule))])


def test_report_6_samples_need_not_divide_by_the_microbatches():
    """pytorch 126600: the last rank failed on a shape and the others hung."""
    batch = ids(10, 7)
    cuts = [part.tensor_split(4) for part in batch]
    assert [len(part) for part in cuts[0]] == [3, 3, 2, 2]
    schedules = {"1f1b": one_f_one_b(2, 4), "gpipe": gpipe(2, 4)}
    want = in_one_process(2, gpt, [list(zip(*cuts, strict=True))])
    whole = in_one_process(2, gpt, [[batch]])
    assert_alike(want, whole)
    for got in on_ranks(schedules, gpt, [batch]).values():
        assert_alike(got, whole)


def test_report_10_every_microbatch_has_its_own_loss_under_gpipe():
    """DeepSpeed 3900: only the last loss was kept, and all backwards differentiated it."""
    x = torch.randn(4, 3, 6, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    weight = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=DOUBLE)[:, None, None]
    batch = [(x[m : m + 1], weight[m : m + 1].expand(1, 3, 6)) for m in range(4)]
    want = in_one_process(3, layer, [batch], weighted, len)
    only_last = in_one_process(3, layer, [batch[3:] * 4], weighted, len)
    assert error(only_last[1]["0.w"], want[1]["0.w"]) > 1e-3
    got = on_ranks(
        {order: gpipe(3, 4, backward_order=order) for order in ("forward", "reverse")},
        layer,
        [batch],
        weighted,
        len,
    )
    for found in got.values():
        assert_alike(found, want)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "looped-bfs", "dualpipe-v"])
def test_report_11_outputs_meet_the_targets_of_their_own_microbatch(schedule):
    """DeepSpeed 5729: outputs paired with labels of another batch."""
    made = make_schedule(schedule, 2, 5)

    def program(comm):
        pairs = []

        def loss(y, targets):
            pairs.append((tuple(y.shape), y.detach().unique().tolist(), targets.unique().tolist()))
            return y.sum() * 0.0

        def add(number, n_stages):
            return lambda x: x + 100.0

        engine = engine_of(comm, made, add, loss, len)
        for step in range(2):
            batch = [
                (torch.full((m + 1, 2), 10.0 * step + m), torch.full((m + 1,), 10 * step + m))
                for m in range(5)
            ]
            engine.run(batch if 0 in engine.stages else None)
        return pairs

    n_stages = len(stage_to_rank(made))
    pairs = [pair for result in run_ranks(program, 2).results for pair in result]
    assert len(pairs) == 10
    for shape, ys, targets in pairs:
        (y,), (target,) = ys, targets
        assert y == 100 * n_stages + target and shape == (target % 10 + 1, 2)


class RunAgain(nn.Module):
    """What is inside, computed again in backward; torch lets it change buffers twice."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return checkpoint(self.inside, x, use_reentrant=False)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zero-bubble-h1"])
@pytest.mark.parametrize("wrap", [nn.Sequential, RunAgain])
def test_report_25_a_microbatch_counts_once_in_running_statistics(wrap, schedule):
    """torchgpipe 9, 14, 35: BatchNorm counted again in a recomputation, and in a trial run.

    Statistics are those of the micro-batches one after the other: M of them, M updates.
    """
    made = make_schedule(schedule, 2, 4)
    x = torch.randn(8, 3, 6, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))

    def program(comm):
        engine = engine_of(comm, made, lambda *_: wrap(Running()), weighted, len)
        engine.run((x, x) if comm.rank == 0 else None)
        (stage,) = engine.stages.values()
        return {name.rpartition("0.")[2]: b for name, b in stage.named_buffers()}

    stages = [Running(), Running()]
    for part in x.split(2):
        stages[1](stages[0](part))
    for stage, buffers in zip(stages, run_ranks(program, 2).results, strict=True):
        found = {name.removeprefix("inside."): b for name, b in buffers.items()}
        assert found["norm.num_batches_tracked"] == 4
        for name, want in stage.named_buffers():  # more threads here than on a rank round otherwise
            assert torch.allclose(found[name], want, rtol=1e-12, atol=1e-12), name
