"""The sealed runs of unit 06: planted causes that the boxes tell, wherever they are planted."""

import pytest
from judged import Asked, run_check

from autograder import oracle_06
from autograder.checks.unit_06 import sealed_runs
from autograder.exercise import find_exercise
from autograder.notebook import NotAsked, sealed_run

SEEDS = range(30)


def test_every_planted_cause_is_the_one_that_the_boxes_speak_for():
    drawn = [pair for seed in SEEDS for pair in sealed_runs.RUNS.drawn(seed)]
    assert [oracle_06.timeline_cause(run) for _, run in drawn] == [cause for cause, _ in drawn]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_run_has_none_of_the_faults_and_another_one_alone(seed):
    for cause, run in sealed_runs.RUNS.drawn(seed):
        lengths = {(s.kind, s.end_s - s.start_s) for s in run.spans}
        n_of = {kind: sum(s.kind == kind for s in run.spans) for kind in "FIW"}
        seen = {
            "contiguous_chunks": any(s.stage % run.n_ranks != s.rank for s in run.spans),
            "weights_lost": n_of["W"] < n_of["F"],
            "slow_rank": len(lengths) > 3,
        }
        assert {name for name, is_seen in seen.items() if is_seen} == {cause} & set(seen)
        if cause == "slow_link":
            gaps_s = sorted(oracle_06.message_gaps_s(run))
            assert gaps_s[0] == gaps_s[1] > 0  # the same on every link that nobody is late for
        elif cause not in ("contiguous_chunks", "weights_lost"):
            assert min(oracle_06.message_gaps_s(run)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_may_be_on_one_rank_is_on_the_first_in_one_run_and_on_the_last_in_another(seed):
    runs = [run for cause, run in sealed_runs.RUNS.drawn(seed) if cause == "weights_lost"]
    ranks = []
    for run in runs:
        there = {(s.stage, s.microbatch) for s in run.spans if s.kind == "W"}
        lost = {s.rank for s in run.spans if s.kind == "I" and s[2:4] not in there}
        ranks.append((lost, run.n_ranks))
    assert any(lost == {0} for lost, _ in ranks)
    assert any(lost == {n - 1} for lost, n in ranks)


@pytest.mark.parametrize("seed", SEEDS)
def test_w_last_on_every_rank_but_the_first_is_no_fault_where_work_is_little(seed):
    late = []
    for cause, run in sealed_runs.RUNS.drawn(seed):
        starts = {(s.rank, s.kind): [] for s in run.spans}
        for s in run.spans:
            starts[s.rank, s.kind].append(s.start_s)
        ranks = range(run.n_ranks)
        if cause == "none":
            late.append([min(starts[r, "W"]) > max(starts[r, "I"]) for r in ranks])
    assert not any(map(all, late)) and any(not one[0] and all(one[1:]) for one in late)


def test_the_shown_runs_are_four_faults_and_one_of_them_takes_no_longer():
    runs = [sealed_run(letter, "06") for letter in "ABCD"]
    causes = [oracle_06.timeline_cause(run) for run in runs]
    assert len({*causes} - {"none"}) == 4 and sealed_runs.healthy_s() == 27
    (shortest,) = [c for c, run in zip(causes, runs, strict=True) if run.makespan_s <= 27]
    assert shortest == "weights_lost" and sealed_runs.longer() == 3


@pytest.mark.parametrize("which", ["E", "", 0, 19])
def test_a_sealed_run_that_is_not_there_is_told(which):
    with pytest.raises(NotAsked, match="give a letter A to D or a number 1 to 18"):
        sealed_run(which, "06")


def test_the_runs_of_the_check_can_be_looked_at_by_number():
    asked = Asked("06")
    run_check(find_exercise("timeline_cause"), asked)
    assert [args[0] for _, args in asked.calls] == [sealed_run(n, "06") for n in range(1, 19)]
