"""The extra of unit 01, a broadcast along a tree: its cases, time and typical mistakes."""

from typing import Any

import numpy as np

from autograder.checks.programs import OnRanks, failed, on_ranks
from autograder.checks.unit_01.rings import (
    BYTES,
    EXPECTED,
    drawn,
    given,
    n_ranks,
    result_mistake,
    wrong_result,
)
from autograder.checks.unit_01.traffic import TIME_TOLERANCE
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, StudentError
from autograder.exercise import Draw
from mpedu.simulated.exchange import Wire

differs = wrong_result(EXPECTED["tree_broadcast"])


def cases(draw: Draw, name: str, sizes: list[int]) -> list[OnRanks]:
    """Rank 0 holds numbers, the others zeros of the same shape.

    An array takes far longer on a link than the latency, so that it pays to share the sending.
    """
    made, link = [], Wire(latency_s=1.0, bytes_per_s=float(BYTES))
    for p in sizes:
        _, arguments, _ = drawn(draw, name, [draw.int(4, 9)] * p).args
        arrays = [x if rank == 0 else np.zeros_like(x) for rank, (x,) in enumerate(arguments)]
        made.append(on_ranks(name, [(x,) for x in arrays], link))
    return made


def _message_s(case: Case) -> float:
    link = case.args[2]
    return float(link.latency_s + given(case)[0].nbytes / link.bytes_per_s)


def _rounds_s(case: Case) -> float:
    """As many rounds as doublings make all ranks, each of one message."""
    return (n_ranks(case) - 1).bit_length() * _message_s(case)


def slower(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: None where a run takes no longer than the rounds of a tree."""
    bad = failed(case, got) or differs(case, got)
    if bad:
        return bad
    if got.makespan_s <= _rounds_s(case) * (1 + TIME_TOLERANCE):
        return None
    return Diagnosis(
        "slow",
        f"{_takes(case, got)} Who has the array in round 2, and does each of them pass it on?",
        "it takes longer than the rounds of a tree.",
    )


def _takes(case: Case, got: Any) -> str:
    rounds = (n_ranks(case) - 1).bit_length()
    return (
        f"{case}: one message takes {shown(_message_s(case))} s, {rounds} rounds "
        f"{shown(_rounds_s(case))} s; your program takes {shown(got.makespan_s)} s."
    )


def _in_turn_s(case: Case) -> float:
    """Rank 0 serves all itself."""
    link, copies = case.args[2], n_ranks(case) - 1
    whole_s = given(case)[0].nbytes / link.bytes_per_s
    return float(link.latency_s + copies * whole_s) if copies else 0.0


def _chain_s(case: Case) -> float:
    return (n_ranks(case) - 1) * _message_s(case)


def _clock(id: str, predicted: Any, why: str, general: str) -> Mistake:
    def matches(answers: Answers) -> bool:
        return all(
            not isinstance(got, StudentError)
            and abs(got.makespan_s - predicted(case)) <= TIME_TOLERANCE * (1 + predicted(case))
            for case, got in answers
        )

    return Mistake(id, matches, lambda case, got: f"{_takes(case, got)} {why}", general)


CLOCK = (
    _clock(
        "served_in_turn",
        _in_turn_s,
        "That is rank 0 serving all itself, on one link. Let those who have it help.",
        "rank zero serves all ranks itself.",
    ),
    _clock(
        "chain",
        _chain_s,
        "That is a chain, each rank telling one other. Whoever has it passes it on in every round.",
        "it goes from rank to rank like a chain.",
    ),
)
ARRAYS = (
    result_mistake(
        "own_array",
        [lambda case, rank: given(case)[rank]],
        "That is what the rank was given; return what came from rank 0.",
        "each rank returns what it was given.",
    ),
)
