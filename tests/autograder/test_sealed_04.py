"""The sealed runs of unit 04: planted causes that the evidence tells, far beyond rounding."""

import pytest
from judged import Asked, run_check

from autograder import oracle_04
from autograder.checks.unit_04 import sealed_runs
from autograder.exercise import find_exercise
from autograder.notebook import NotAsked, sealed_run

SEEDS = range(30)


def test_every_planted_cause_is_the_one_that_the_run_speaks_for():
    drawn = [pair for seed in SEEDS for pair in sealed_runs.RUNS.drawn(seed)]
    assert [oracle_04.memory_cause(*run) for _, run in drawn] == [cause for cause, _ in drawn]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_draw_holds_every_cause_far_beyond_rounding(seed):
    runs = sealed_runs.RUNS.drawn(seed)
    assert len(runs) == 24 and {cause for cause, _ in runs} == set(sealed_runs.CAUSES)
    for cause, (forwards, held, errors) in runs:
        assert len(errors) == len(forwards) and len(held) >= sum(forwards)
        if cause in ("mask_redrawn", "no_gradient"):
            assert all(error > 0.01 or error < 1e-6 for error in errors) and max(errors) > 0.01
        else:
            assert max(errors) < 1e-6
        if cause == "mask_redrawn":
            assert not [error for error in errors if abs(error - 1) < 1e-6]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_draw_holds_what_short_cuts_would_overlook(seed):
    runs = sealed_runs.RUNS.drawn(seed)
    off = [max(errors) for cause, (_, _, errors) in runs if cause == "mask_redrawn"]
    assert min(off) < 1 < max(off)  # wrong, and nearer than a gradient that is not there
    most = {cause: {max(f) for c, (f, _, _) in runs if c == cause} for cause, _ in runs}
    assert 3 in most["restarts_at_zero"] and most["checkpointed_twice"] == {3}


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_runs_stay_within_the_bound_and_hoarding_ones_reach_all_layers(seed):
    for cause, (forwards, held, _) in sealed_runs.RUNS.drawn(seed):
        n = len(forwards)
        bound = min(oracle_04.most_held(n, s) for s in range(1, n + 1) if s in (3, 4, 5))
        if cause in ("none", "mask_redrawn", "checkpointed_twice"):
            assert max(held) < n and max(held) <= bound + 2
        if cause == "keeps_everything":
            assert max(held) >= n


def test_the_last_layer_alone_tells_half_of_the_redrawn_masks_and_no_lost_gradient():
    for seed in SEEDS:
        wrong = {"mask_redrawn": 0, "no_gradient": 0}
        for cause, (_, _, errors) in sealed_runs.RUNS.drawn(seed):
            if cause in wrong:
                wrong[cause] += errors[-1] > 1e-4
        assert wrong == {"mask_redrawn": 2, "no_gradient": 0}


def test_the_shown_runs_are_four_faults_of_one_chain():
    runs = [sealed_run(letter, "04") for letter in "ABCD"]
    causes = [oracle_04.memory_cause(*run) for run in runs]
    # In this order the instructor notes tell them.
    assert causes == ["checkpointed_twice", "no_gradient", "keeps_everything", "mask_redrawn"]
    assert {len(forwards) for forwards, _, _ in runs} == {16}


@pytest.mark.parametrize("which", ["E", "", 0, 25])
def test_a_sealed_run_that_is_not_there_is_told(which):
    with pytest.raises(NotAsked, match="give a letter A to D or a number 1 to 24"):
        sealed_run(which, "04")


def test_the_runs_of_the_check_can_be_looked_at_by_number():
    asked = Asked("04")
    run_check(find_exercise("memory_cause"), asked)
    assert [args for _, args in asked.calls] == [sealed_run(n, "04") for n in range(1, 25)]


def test_a_run_that_speaks_for_nothing_is_refused():
    with pytest.raises(ValueError, match="no named cause"):
        oracle_04.memory_cause([2, 2, 3, 2], [1, 2], [0.0] * 4)
