"""Our schedules, validator and model clock against torch.distributed.pipelining's own orders."""

import json
import re
from pathlib import Path

import pytest

from mpedu.families import make_schedule
from mpedu.schedule import Action, peak_in_flight, stage_to_rank
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/pipeline_torch.json").read_text())
CASES = [pytest.param(case, id="{name}-K{K}-V{V}-M{M}".format(**case)) for case in ORACLE["cases"]]
COSTS = {"F1_B2": Costs(), "F1_B1": Costs(forward_s=1.0, backward_s=1.0)}


def recorded(case):
    """The recorded order as a Schedule: no idle slots, overlapped pairs one after the other."""
    return [
        [Action.parse(text) for entry in actions for text in re.findall(r"\d+[FBIW]\d+", entry)]
        for actions in case["order"]
    ]


@pytest.mark.parametrize("case", CASES)
def test_recorded_orders_are_legal(case):
    schedule = recorded(case)
    assert validate_schedule(schedule, case["K"] * case["V"], case["M"]) == []
    owners = stage_to_rank(schedule)
    assert [owners[s] for s in range(len(owners))] == case["stage_to_rank"]


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("case", CASES)
def test_makespan_and_idle_share_equal_the_recorded_ones(case, costs):
    timeline = simulate(recorded(case), COSTS[costs])
    expected = case["simulated"][costs]
    assert timeline.makespan_s == pytest.approx(expected["makespan"], abs=1e-9)
    assert timeline.idle_share == pytest.approx(expected["idle_fraction"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_peak_in_flight_equals_the_recorded_one(case):
    schedule = recorded(case)
    assert peak_in_flight(schedule) == case["max_in_flight"]
    assert peak_in_flight(schedule, freed_by="W") == case["max_held"]


FAMILIES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "Interleaved1F1B": "interleaved",
    "LoopedBFS": "looped-bfs",
    "InterleavedZeroBubble": "interleaved-zero-bubble",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipe-v",
}


@pytest.mark.parametrize("case", CASES)
def test_families_give_the_recorded_order(case):
    made = make_schedule(FAMILIES[case["name"]], case["K"], case["M"], case["V"])
    assert made == recorded(case)
