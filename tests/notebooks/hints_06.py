"""The numbers in the hints and guesses of unit 06, each with the expression that yields it."""

from typing import Any

import numpy as np
from truths_06 import (
    K,
    M,
    V,
    chunked,
    held,
    idle,
    over_ideal,
    plain,
    seconds,
    slots,
    whenever_idle,
)

from mpedu.schedule import stage_to_rank
from mpedu.simulate import Timeline, simulate

TWO = chunked(2, 2, 2)  # the schedule of section C's lists


def ten() -> list[list[int]]:
    """Layers of ten in four stages, dealt out to two ranks."""
    parts = [part.tolist() for part in np.array_split(np.arange(1, 11), 4)]
    return [parts[0] + parts[2], parts[1] + parts[3]]


TEN = {
    "1": lambda: ten()[0][0],
    "3": lambda: ten()[0][2],
    "7": lambda: ten()[0][3],
    "8": lambda: ten()[0][-1],
    "4": lambda: ten()[1][0],
    "6": lambda: ten()[1][2],
    "9": lambda: ten()[1][3],
    "10": lambda: ten()[1][-1],
}


def boxes(timeline: Timeline, rank: int) -> list[tuple[Any, Any]]:
    """Starts and ends on one rank, in order."""
    return sorted((span.start_s, span.end_s) for span in timeline.spans if span.rank == rank)


def gpipe_of_chunks() -> Any:
    """All forwards of two chunks on two ranks first, then the backwards."""
    return [sorted(actions, key=lambda action: action.kind != "F") for actions in TWO]


HINTS: dict[str, dict[str, Any]] = {
    "hint-chunk_layers-2": TEN | {"2": 2},
    "hint-interleaved_1f1b-1": {"0": 0, "1": 1},
    "hint-interleaved_1f1b-2": {
        "2": 2,
        "0": 0,
        "1": 1,
        "3": lambda: max(stage for stage, rank in stage_to_rank(TWO).items() if rank == 1),
        "4": lambda: next(i for i, a in enumerate(TWO[0]) if a.kind == "B"),
    },
    "hint-interleaved_1f1b_fast-2": {
        "2": 2,
        "1": lambda: boxes(simulate(TWO), 1)[0][0],
        "4": (
            lambda: sum(a.kind == "F" for a in TWO[1]),
            lambda: min(held(gpipe_of_chunks())),
        ),
        "12": lambda: sum(end - start for start, end in boxes(simulate(TWO), 1)),
        "15": (lambda: simulate(TWO).makespan_s, lambda: simulate(gpipe_of_chunks()).makespan_s),
        "3": lambda: held(TWO)[1],
    },
    "hint-interleaved_1f1b_fast-3": {"1": lambda: V * M + K - slots(chunked(), V)},
    "hint-bubble_interleaved-2": {
        "2": 2,
        "4": 4,
        "3": 3,
        "12": lambda: slots(chunked(4, 3, 2), 3) * (1 - idle(chunked(4, 3, 2))),
        "1": lambda: slots(chunked(4, 3, 2), 3) * idle(chunked(4, 3, 2)),
        "1/13": lambda: idle(chunked(4, 3, 2)),
        "1/12": lambda: over_ideal(chunked(4, 3, 2)),
    },
    "hint-delay_weight_gradients_fast-2": {
        "2": 2,
        "1": 1,
        "7": lambda: seconds(whenever_idle(plain(2, 2))),
        "9": lambda: seconds(plain(2, 2)),
    },
    "hint-zero_bubble_h1-2": {"2": 2},
    "hint-timeline_cause-2": {"1": 1, "1.5": 1.5, "1.25": 1.25},
    "question-idle-v2": {"8": M, "4": K},
    "question-messages-v4": {"4": 4},
    "question-held-v2": {"4": lambda: held(plain())[0]},
    "question-idle-halves": {"4": K, "8": M},
}
