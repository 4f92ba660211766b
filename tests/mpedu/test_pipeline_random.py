from collections import Counter
from functools import cache
from random import Random

import pytest
import rendezvous
from drawn import FAULTS, broken, drawn_placement, drawn_schedule
from pipelines import Task, assert_equal, engine_outcome, serial_outcome, weighted_loss

from mpedu.comm import Comm
from mpedu.launch import run_ranks
from mpedu.pipeline import PipelineEngine
from mpedu.pipeline.boxes import N_AHEAD
from mpedu.pipeline.traffic import unsent_limit
from mpedu.schedule import actions_of, peak_in_flight, stage_to_rank
from mpedu.validate import validate_schedule


def drawn(seed, n_ranks):
    """(schedule, its task)."""
    rng = Random(seed)
    n_microbatches = rng.choice([1, 3, 5, 8])
    split = rng.choice([0.0, 0.5, 1.0])
    schedule = drawn_schedule(drawn_placement(n_ranks, rng), n_microbatches, rng, split=split)
    return schedule, Task(f"drawn {seed}", rng.choice(["mlp", "aux"]), n_microbatches)


# some that need more than one unsent result held, and some as they come
FAR_AHEAD = [
    seed for seed in range(300) if unsent_limit(drawn(seed, 2 + seed % 3)[0], N_AHEAD) > 1
][:24]
SEEDS = {
    n_ranks: [seed for seed in FAR_AHEAD if n_ranks == 2 + seed % 3]
    + list(range(1000, 1010 if n_ranks == 1 else 1060))
    for n_ranks in (1, 2, 3, 4)
}
CASES = [(n_ranks, seed) for n_ranks, seeds in SEEDS.items() for seed in seeds]


def schedules(n_ranks):
    return [drawn(seed, n_ranks) for seed in SEEDS[n_ranks]]


@cache
def results(n_ranks):
    """By seed, each rank's outcome."""
    cases = schedules(n_ranks)

    def program(comm):
        return [engine_outcome(comm, task, schedule) for schedule, task in cases]

    parts = run_ranks(program, n_ranks, timeout_s=300.0, check_messages=False).results
    return dict(zip(SEEDS[n_ranks], zip(*parts, strict=True), strict=True))


def serial(schedule, task):
    return serial_outcome(task, len(stage_to_rank(schedule)))


def test_the_draw_reaches_what_it_should():
    drawn_schedules = [drawn(seed, n_ranks)[0] for n_ranks, seed in CASES]
    assert len(drawn_schedules) >= 200
    kinds = [{a.kind for _, a in actions_of(schedule)} for schedule in drawn_schedules]
    assert min(map(kinds.count, ({*"FB"}, {*"FIW"}, {*"FBIW"}))) >= 30
    assert not any(validate_schedule(schedule) for schedule in drawn_schedules)
    assert max(unsent_limit(schedule, N_AHEAD) for schedule in drawn_schedules) >= 4
    assert max(len(stage_to_rank(schedule)) for schedule in drawn_schedules) >= 7
    assert max(max(peak_in_flight(schedule)) for schedule in drawn_schedules) >= 10


@pytest.mark.parametrize(("n_ranks", "seed"), CASES)
def test_any_legal_schedule_computes_what_the_serial_model_computes(n_ranks, seed):
    assert_equal(results(n_ranks)[seed], serial(*drawn(seed, n_ranks)), 1e-10)


@pytest.mark.parametrize("seed", FAR_AHEAD)
def test_no_legal_schedule_sticks_where_sends_wait_for_their_receivers(seed):
    schedule, task = drawn(seed, 2 + seed % 3)
    parts = rendezvous.run_threads(lambda comm: engine_outcome(comm, task, schedule), len(schedule))
    assert_equal(parts, serial(schedule, task), 1e-10)


def test_a_rank_that_held_one_result_less_would_stick(monkeypatch):
    monkeypatch.setattr(rendezvous, "LIMIT_S", 0.5)
    schedule, task = drawn(FAR_AHEAD[0], 2 + FAR_AHEAD[0] % 3)
    limit = unsent_limit(schedule, N_AHEAD) - 1
    monkeypatch.setattr("mpedu.pipeline.engine.unsent_limit", lambda schedule, n_ahead: limit)
    with pytest.raises(rendezvous.Stuck):
        rendezvous.run_threads(lambda comm: engine_outcome(comm, task, schedule), len(schedule))


class Silent(Comm):
    """A rank on which nobody may say anything."""

    def __init__(self, rank, size):
        super().__init__()
        self.rank, self.size = rank, size

    def says(self, *_):
        raise AssertionError("a message, and the schedule is illegal")

    _isend = _irecv = _start = split = channels = now_s = says


def test_illegal_schedules_are_refused_on_every_rank_before_any_message():
    found = Counter()
    for seed in range(200):
        schedule, _ = drawn(seed, 2 + seed % 3)
        name, illegal = broken(schedule, Random(seed))
        found[name] += 1
        for rank in range(len(illegal)):
            own = {action.stage: None for action in schedule[rank]}
            with pytest.raises(ValueError, match=r"^this schedule cannot run: [^\n]+$"):
                PipelineEngine(illegal, Silent(rank, len(illegal)), own, weighted_loss, len)
    assert min(found[fault.__name__] for fault in FAULTS) >= 10
