"""Our interleaved 1F1B against the orders of Megatron-core."""

import json
from pathlib import Path

import pytest

from mpedu.families import interleaved_1f1b
from mpedu.schedule import Action, peak_in_flight

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/pipeline_megatron.json").read_text())
CASES = [pytest.param(case, id="p{p}-v{v}-m{m}".format(**case)) for case in ORACLE["cases"]]


def action(text, rank, n_ranks):
    """ "F1.3", chunk 1 and micro-batch 3, on a rank."""
    chunk, microbatch = map(int, text[1:].split("."))
    return Action(text[0], chunk * n_ranks + rank, microbatch)


@pytest.mark.parametrize("case", CASES)
def test_order_and_memory_are_the_recorded_ones(case):
    made = interleaved_1f1b(case["p"], case["m"], case["v"])
    assert case["group"] == case["p"]
    assert made == [
        [action(text, rank, case["p"]) for text in actions]
        for rank, actions in enumerate(case["order"])
    ]
    assert peak_in_flight(made) == case["max_in_flight"]
