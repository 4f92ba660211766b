"""The sealed bills of unit 02: planted causes that the numbers tell, far beyond the noise."""

import pytest
from judged import Asked, run_check

from autograder import oracle_02
from autograder.checks.unit_02 import sealed_runs
from autograder.exercise import find_exercise
from autograder.notebook import NotAsked, sealed_run
from mpedu.published import load_hardware

SEEDS = range(30)


def test_every_planted_cause_is_the_one_that_the_bill_speaks_for():
    drawn = [pair for seed in SEEDS for pair in sealed_runs.RUNS.drawn(seed)]
    assert [oracle_02.bill_cause(*run) for _, run in drawn] == [cause for cause, _ in drawn]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_draw_holds_every_cause_far_beyond_the_noise(seed):
    runs = sealed_runs.RUNS.drawn(seed)
    assert len(runs) == 24 and {cause for cause, _ in runs} == set(sealed_runs.CAUSES)
    for cause, (planned, measured) in runs:
        ratios = [m[part] / p[part] for p, m in zip(planned, measured, strict=True) for part in p]
        off = max(abs(ratio - 1) for ratio in ratios)
        assert off <= 0.01 if cause == "none" else off > 0.1
        assert 2 <= len(planned) <= 6


def test_the_shown_runs_are_four_faults_of_one_plan_that_fits():
    runs = [sealed_run(letter, "02") for letter in "ABCD"]
    assert len({oracle_02.bill_cause(*run) for run in runs} - {"none"}) == 4
    assert all(planned == runs[0][0] for planned, _ in runs)
    most = load_hardware("a100-80gb").memory_bytes
    assert max(sum(bill.values()) for bill in runs[0][0]) < most


@pytest.mark.parametrize("which", ["E", "", 0, 25])
def test_a_sealed_run_that_is_not_there_is_told(which):
    with pytest.raises(NotAsked, match="give a letter A to D or a number 1 to 24"):
        sealed_run(which, "02")
    with pytest.raises(ValueError):
        sealed_runs.RUNS.known(which)


def test_the_runs_of_the_check_can_be_looked_at_by_number():
    asked = Asked("02")
    run_check(find_exercise("bill_cause"), asked)
    assert [args for _, args in asked.calls] == [sealed_run(n, "02") for n in range(1, 25)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_single_rank_tells_every_cause(seed):
    for rank, spoken in ((0, {"graph_kept", "float32_weights"}),
                         (-1, {"graph_kept", "float32_weights", "gradients_stop"})):  # fmt: skip
        looks_healthy = {
            cause
            for cause, (planned, measured) in sealed_runs.RUNS.drawn(seed)
            if all(measured[rank][part] <= 1.01 * n for part, n in planned[rank].items())
            and all(measured[rank][part] >= n for part, n in planned[rank].items())
        }
        assert looks_healthy == spoken | {"none"}
