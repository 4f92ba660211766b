"""What the formulas say of activation memory, against every storage alive in an engine's steps."""

from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import pytest
import torch
from watched import Watched

from mpedu.activations import (
    activation_bytes,
    block_numbers,
    held_activation_bytes,
    peak_activation_bytes,
)
from mpedu.calls import even_sizes
from mpedu.cost import gpipe_peak_activation
from mpedu.families import SCHEDULES, gpipe, make_schedule
from mpedu.keyed import Key
from mpedu.launch import run_ranks
from mpedu.memory import HeldBytes, LiveBytes
from mpedu.model import GPTConfig, build_stage, count_targets, token_loss
from mpedu.pipeline import PipelineEngine, engine
from mpedu.recompute import best_segment_length

CONFIG = GPTConfig(vocab_size=19, n_layers=7, d_model=16, n_heads=2, n_positions=16, dropout=0.1)
N_RANKS, N_MICROBATCHES, N_SAMPLES, N_TOKENS = 3, 6, 15, 16
CASES = [(name, "none") for name in SCHEDULES]
CASES += [("gpipe", "stage"), ("1f1b", "block"), ("zbv", "block"), ("zbv", "stage")]
SPLIT = ("zero-bubble-h1", "interleaved-zero-bubble", "zbv", "dualpipe-v")
WHOLE = [case for case in CASES if case[0] not in SPLIT]  # their backwards are not split
SLACK_BYTES = 600  # losses and other single numbers; a micro-batch's smallest activation is 2048
KEY = Key(0, 0, 0)


class Look(NamedTuple):
    """Bytes after an action: held by the graph, alive, and of these in messages that wait."""

    held: int
    live: int
    waiting: int


class Measured(NamedTuple):
    """One rank's step; after: held and alive when it has ended."""

    looks: list
    peak_live: int
    after: tuple


class SeenStep(engine.Step):
    """A step that its list can look into."""

    def __init__(self, setup, *arguments):
        super().__init__(setup, *arguments)
        setup.schedule[setup.comm.rank].step = self

    def waiting_bytes(self):
        """Buffers of receives posted, results not yet taken, and what waits on this rank."""
        posted = [buffer for box in self.inboxes.values() for buffer, *_ in box._posted]
        unsent = [x for kept, _ in self.outbox._unsent for x in kept]
        targets = [] if 0 in self.setup.stages else self.targets  # else they are of the batch
        kept = [x.untyped_storage() for x in (*posted, *unsent, *self.local.values(), *targets)]
        return sum({storage.data_ptr(): storage.nbytes() for storage in kept}.values())


def measured(comm, name, checkpoint):
    """One step of this rank."""
    schedule = make_schedule(name, N_RANKS, N_MICROBATCHES)
    n_stages = 1 + max(action.stage for actions in schedule for action in actions)
    own = sorted({action.stage for action in schedule[comm.rank]})
    stages = {n: build_stage(CONFIG, n_stages, n, checkpoint=checkpoint) for n in own}
    parameters = [p for stage in stages.values() for p in stage.parameters()]
    for p in parameters:
        p.grad = torch.zeros_like(p)
    drawn = torch.arange(N_SAMPLES * (N_TOKENS + 1)).view(N_SAMPLES, -1) % CONFIG.vocab_size
    batch = drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
    held, looks = HeldBytes(ignore=[*parameters, *batch]), []

    def loss(y, targets):
        held.ignore(targets)
        return token_loss(y, targets)

    schedule[comm.rank] = watched = Watched(schedule[comm.rank])
    pipeline = PipelineEngine(schedule, comm, stages, loss, count_targets)

    def look(_):
        looks.append(Look(held.live_bytes, live.live_bytes, watched.step.waiting_bytes()))

    watched.look = look
    with mock.patch.object(engine, "Step", SeenStep), held, LiveBytes() as live:
        pipeline.run(batch if 0 in own else None)
        del watched.step
        return Measured(looks, live.peak_bytes, (held.live_bytes, live.live_bytes))


@pytest.fixture(scope="module")
def runs():
    """By (schedule, checkpoint), what each rank measured."""

    def program(comm):
        return {case: measured(comm, *case) for case in CASES}

    parts = run_ranks(program, N_RANKS, check_messages=False, timeout_s=300).results
    return {case: [part[case] for part in parts] for case in CASES}


def predicted(function, name, checkpoint):
    schedule = make_schedule(name, N_RANKS, N_MICROBATCHES)
    return function(CONFIG, schedule, N_SAMPLES, N_TOKENS, checkpoint)


def by_rank(function, case, runs):
    return zip(predicted(function, *case), runs[case], strict=True)


@pytest.mark.parametrize("case", WHOLE, ids="-".join)
def test_what_the_graphs_hold_is_the_formula_to_the_byte(case, runs):
    for curve, rank in by_rank(held_activation_bytes, case, runs):
        assert [look.held for look in rank.looks] == curve


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_everything_alive_is_the_formula_and_messages(case, runs):
    """Between I and W, too, when weight products hold what the graph has let go of."""
    for curve, rank in by_rank(held_activation_bytes, case, runs):
        due = [look.waiting + held for look, held in zip(rank.looks, curve, strict=True)]
        rest = [look.live - want for look, want in zip(rank.looks, due, strict=True)]
        assert min(rest) >= 0 and max(rest) <= SLACK_BYTES


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_the_peak_is_within_one_block_of_the_formula(case, runs):
    """All that lives at any moment: what one layer makes for itself comes on top."""
    n_most = even_sizes(N_SAMPLES, N_MICROBATCHES)[0] * N_TOKENS
    block = 4 * n_most * sum(block_numbers(CONFIG).values())
    for peak, rank in by_rank(peak_activation_bytes, case, runs):
        waiting = max(look.waiting for look in rank.looks)
        assert peak <= rank.peak_live <= peak + waiting + block


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_nothing_is_left_after_a_step(case, runs):
    for held, live in (rank.after for rank in runs[case]):
        assert held == 0
        assert live <= SLACK_BYTES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.1], ids=["plain", "dropout"])
@pytest.mark.parametrize("checkpoint", ["none", "block", "sqrt", "stage", 2, 9])
def test_each_stages_bytes_are_those_of_its_forward(checkpoint, share, dtype):
    config = GPTConfig(
        vocab_size=23, n_layers=7, d_model=12, n_heads=3, n_positions=9, d_ff=20, dropout=share
    )
    ids = torch.zeros(3, 9, dtype=torch.int64)
    for n_stages in (1, 2, 3):
        for number in range(n_stages):
            stage = build_stage(config, n_stages, number, dtype=dtype, checkpoint=checkpoint)
            x = ids if number == 0 else torch.zeros(3, 9, 12, dtype=dtype).requires_grad_()
            with HeldBytes(ignore=[*stage.parameters(), ids]) as held:
                y = stage(x, KEY)
                if number == n_stages - 1:
                    y = token_loss(y, ids)
                due = activation_bytes(config, n_stages, number, 27, checkpoint, dtype.itemsize)
                assert held.live_bytes == sum(due.values())
            assert (due["loss"] > 0) == (number == n_stages - 1)
            del y


def serial_peak(config, checkpoint, n_tokens):
    """Most bytes alive in a forward and a backward of the whole model in one micro-batch."""
    stage = build_stage(config, 1, 0, checkpoint=checkpoint)
    ids = torch.zeros(8, n_tokens, dtype=torch.int64)
    token_loss(stage(ids, KEY), ids).backward()  # makes the gradients
    with LiveBytes() as live:
        token_loss(stage(ids, KEY), ids).backward()
    return live.peak_bytes


@pytest.mark.parametrize("n_layers", [4, 7, 16])
def test_checkpoints_every_sqrt_n_blocks_are_within_one_block_of_the_formula(n_layers):
    config = GPTConfig(vocab_size=19, n_layers=n_layers, d_model=16, n_heads=2, n_positions=16)
    n_tokens = 8 * 16
    d, block = config.d_model, sum(block_numbers(config).values())
    length = best_segment_length(n_layers)
    formula = 4 * n_tokens * (-(-n_layers // length) * d + length * block)
    peak = serial_peak(config, "sqrt", 16)
    assert abs(peak - formula) <= 4 * n_tokens * block
    assert peak < 0.6 * serial_peak(config, "none", 16)
    (due,) = peak_activation_bytes(config, gpipe(1, 1), 8, 16, "sqrt")
    assert due <= peak <= due + 4 * n_tokens * block


@pytest.mark.parametrize("n_layers, best", [(4, 1), (31, 1), (64, 2), (256, 4)])
def test_the_best_run_of_blocks_is_shorter_than_sqrt_n_as_a_block_leaves_more_than_its_input(
    n_layers, best
):
    config = replace(CONFIG, n_layers=n_layers, d_model=512, dropout=0.0)
    peaks = {
        length: peak_activation_bytes(config, gpipe(1, 1), 1, 16, length)[0]
        for length in range(1, n_layers + 1)
    }
    assert min(peaks, key=peaks.get) == best
    sqrt_n = peaks[best_segment_length(n_layers)]
    assert peaks[1] < sqrt_n


def test_gpipes_formula_is_that_of_the_bytes():
    """N + L/K * N/M: inputs of a stage for every sample, and its layers for one micro-batch."""
    d, block = CONFIG.d_model, sum(block_numbers(CONFIG).values())
    n_stages, n_layers = 4, 8
    config = replace(CONFIG, n_layers=n_layers)
    for n_samples, n_microbatches in ((16, 1), (16, 4), (64, 8), (64, 64)):
        schedule = gpipe(n_stages, n_microbatches)
        for checkpoint in (False, True):
            peaks = peak_activation_bytes(
                config, schedule, n_samples, N_TOKENS, "stage" if checkpoint else "none"
            )
            units = gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint)
            inputs = n_samples if checkpoint else 0
            of_layers = units - inputs
            # the input of the micro-batch that runs again is its first block's too
            twice = n_samples // n_microbatches if checkpoint else 0
            numbers = N_TOKENS * ((inputs - twice) * d + of_layers * block)
            assert peaks[1:3] == [4 * numbers] * 2


def test_uneven_stages_are_taken_as_they_are():
    schedule = make_schedule("1f1b", 2, 2)
    cut = [range(0, 2), range(2, 7)]
    peaks = peak_activation_bytes(CONFIG, schedule, 4, 16, layers=cut)
    even = peak_activation_bytes(CONFIG, schedule, 4, 16)
    block = 4 * 2 * 16 * sum(block_numbers(CONFIG).values())
    assert [peak - other for peak, other in zip(peaks, even, strict=True)] == [
        -2 * 2 * block,
        2 * block,
    ]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: activation_bytes(CONFIG, 2, 2, 8), "stage=2 does not exist"),
        (lambda: activation_bytes(CONFIG, 2, 0, 0), "n_tokens=0 is too small"),
        (lambda: activation_bytes(CONFIG, 2, 0, 8, "most"), "checkpoint='most' is unknown"),
        (lambda: peak_activation_bytes(CONFIG, gpipe(2, 2), 0, 8), "n_samples=0 is too small"),
        (lambda: peak_activation_bytes(CONFIG, gpipe(9, 1), 1, 8), "n_stages=9 with n_layers=7"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
