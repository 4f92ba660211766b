from functools import cache

import pytest
import torch
from torch import nn

from mpedu.cost import bubble_fraction
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine
from mpedu.pipeline.clocks import DeviceClock, Stopwatch
from mpedu.schedule import Action
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

COSTS = Costs(0.005, 0.010)
MICROBATCHES = (4, 8, 16, 32)
ATTEMPTS = 15


def without_warm_up(n_stages, n_microbatches):
    """1F1B whose stages after the first finish a micro-batch before they take the next."""
    return one_f_one_b(n_stages, n_microbatches)[:1] + naive(n_stages, n_microbatches)[1:]


def backwards_reversed(n_stages, n_microbatches):
    """GPipe that runs the backwards from the last micro-batch to the first: as fast as GPipe."""
    schedule = gpipe(n_stages, n_microbatches)
    return [acts[:n_microbatches] + acts[: n_microbatches - 1 : -1] for acts in schedule]


def idle_share(comm, schedule, costs, wanted):
    """Idle share by the wall clock, best of some steps; ends once it is as low as `wanted`."""
    stage = nn.Identity()
    engine = PipelineEngine(
        schedule, comm, {comm.rank: stage}, lambda y, t: y.sum(), len, costs=costs
    )
    n_microbatches = len(schedule[0]) // 2
    batch = torch.zeros(n_microbatches, 1), torch.zeros(n_microbatches)
    busy_s = sum(float(costs.of(action)) for actions in schedule for action in actions)
    best = 1.0
    for _ in range(ATTEMPTS):
        result = engine.run(batch)
        end_s = float(comm.all_reduce(torch.tensor(result.end_s, dtype=torch.float64), "max"))
        best = min(best, 1 - busy_s / (comm.size * (end_s - result.start_s)))
        if best <= wanted:
            break
    return best, [
        (*span[:4], span[4] - result.start_s, span[5] - result.start_s) for span in result.spans
    ]


UNEQUAL = Costs([0.002, 0.004, 0.003, 0.001], [0.004, 0.003, 0.006, 0.005], latency_s=0.0005)
CASES = {
    **{f"1f1b {m}": (one_f_one_b(4, m), COSTS) for m in MICROBATCHES},
    "gpipe": (gpipe(4, 8), COSTS),
    "unequal": (one_f_one_b(4, 6), UNEQUAL),
    "unequal gpipe": (gpipe(4, 6), UNEQUAL),
    "without warm-up": (without_warm_up(4, 8), COSTS),
    "backwards reversed": (backwards_reversed(4, 8), COSTS),
}


@cache
def measured():
    """By case, (idle share, spans of all ranks)."""

    def program(comm):
        return {
            name: idle_share(
                comm, schedule, costs, 1.025 * float(simulate(schedule, costs).idle_share)
            )
            for name, (schedule, costs) in CASES.items()
        }

    parts = run_ranks(program, 4).results
    return {
        name: (parts[0][name][0], sorted(span for part in parts for span in part[name][1]))
        for name in CASES
    }


@pytest.mark.parametrize("name", CASES)
def test_emulated_devices_stand_idle_as_the_model_clock_says(name):
    ideal = float(simulate(*CASES[name]).idle_share)
    idle, _ = measured()[name]
    assert ideal <= idle <= 1.025 * ideal


@pytest.mark.parametrize("n_microbatches", MICROBATCHES)
def test_the_measured_bubble_is_the_formula_s(n_microbatches):
    idle, _ = measured()[f"1f1b {n_microbatches}"]
    assert idle == pytest.approx(float(bubble_fraction(4, n_microbatches)), rel=0.025)


@pytest.mark.parametrize("name", CASES)
def test_emulated_spans_are_those_of_the_model_clock(name):
    schedule, costs = CASES[name]
    want = sorted(tuple(span) for span in simulate(schedule, costs).spans)
    _, got = measured()[name]
    assert [span[:4] for span in got] == [span[:4] for span in want]
    for a, b in zip(got, want, strict=True):
        assert a[4:] == pytest.approx(b[4:], abs=1e-6)


def test_a_list_out_of_order_is_shown_slower():
    assert validate_schedule(CASES["without warm-up"][0]) == []
    assert measured()["without warm-up"][0] > 1.3 * measured()["1f1b 8"][0]


def test_the_stopwatch_puts_spans_on_the_wall_clock_in_order():
    watch = Stopwatch(2, "cpu")
    actions = [Action("F", 2, 0), Action("B", 2, 0)]
    ends = []
    for action in actions:
        watch.start(None)
        ends.append(watch.stop(action))
    spans = watch.spans()
    assert [(span.rank, *span[1:4]) for span in spans] == [(2, *action) for action in actions]
    assert [span.end_s for span in spans] == ends
    assert spans[0].start_s <= spans[0].end_s <= spans[1].start_s <= spans[1].end_s


def test_an_emulated_action_starts_when_its_input_is_there_and_the_device_free():
    clock = DeviceClock(Costs(0.25, 0.5, latency_s=0.125), 1, start_s=0.0)
    for stamp_s, action in [(None, "F"), (0.125, "F"), (2.0, "B"), (None, "B")]:
        clock.start(stamp_s)
        clock.stop(Action(action, 1, 0))
    times = [(span.start_s, span.end_s) for span in clock.spans()]
    assert times == [(0.0, 0.25), (0.25, 0.5), (2.125, 2.625), (2.625, 3.125)]
