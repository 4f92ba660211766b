"""The sealed schedules of unit 05, drawn: 1F1B with a planted fault each."""

import random

from autograder import oracle_05
from autograder.checks.causes import SealedRuns
from mpedu.schedule import Action, Schedule

N_STAGES, N_MICROBATCHES = 4, 6
FAULTS = ("one_too_many", "same_warm_up", "no_drain", "reversed")


def _warmed_up(stage: int, warm_up: int) -> list[Action]:
    """Some forwards, then a forward and a backward in turns, then the backwards that are left."""
    pieces = range(N_MICROBATCHES)
    forwards, backwards = ([Action(kind, stage, m) for m in pieces] for kind in "FB")
    turns = [a for pair in zip(forwards[warm_up:], backwards, strict=False) for a in pair]
    return forwards[:warm_up] + turns + backwards[N_MICROBATCHES - warm_up :]


def planted(fault: str) -> Schedule:
    """1F1B's lists, but for the fault."""
    stages = range(N_STAGES)
    if fault == "no_drain":
        whole = oracle_05.one_f_one_b(N_STAGES, N_MICROBATCHES)
        return [actions[: len(actions) - (N_STAGES - 1 - s)] for s, actions in enumerate(whole)]
    warm_up = {
        "one_too_many": [N_STAGES - stage for stage in stages],
        "same_warm_up": [N_STAGES - 1 for _ in stages],
        "reversed": list(stages),
    }[fault]
    return [_warmed_up(stage, warm_up[stage]) for stage in stages]


def _shown(rng: random.Random) -> list[Schedule]:
    return [planted(fault) for fault in rng.sample(FAULTS, len(FAULTS))]


RUNS = SealedRuns("05", "can_finish", _shown)


def n_that_train() -> int:
    """How many of the notebook's four do all the work, and so give the right gradients."""
    runs = RUNS.shown.values()
    return sum(oracle_05.can_finish(run, N_STAGES, N_MICROBATCHES) for run in runs)
