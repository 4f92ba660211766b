import random
from fractions import Fraction

import pytest

from autograder import oracle
from autograder.checks.unit_03 import WITHHELD
from autograder.withhold import withheld
from mpedu import families
from mpedu.simulate import Costs, Span, Timeline, simulate, simulate_until_stuck


def counted(n_stages, n_microbatches, costs=(1, 2)):
    return simulate_until_stuck(oracle.gpipe(n_stages, n_microbatches), Costs(*costs))


def test_gpipe_is_the_package_s_own():
    for n_stages, n_microbatches in [(1, 1), (4, 8), (5, 2)]:
        assert oracle.gpipe(n_stages, n_microbatches) == families.gpipe(n_stages, n_microbatches)


@pytest.mark.parametrize("n_stages", range(1, 33))
def test_closed_forms_equal_the_count_of_boxes_exactly(n_stages):
    for n_microbatches in range(1, 33):
        timeline = counted(n_stages, n_microbatches)
        share = oracle.bubble_fraction(n_stages, n_microbatches)
        assert oracle.idle_share(timeline) == share
        ideal_s = 3 * n_microbatches
        over_ideal = Fraction(oracle.makespan_s(timeline) - ideal_s) / ideal_s
        assert oracle.bubble_over_ideal(n_stages, n_microbatches) == over_ideal
        assert oracle.makespan_s(timeline) == oracle.least_makespan_s(n_stages, n_microbatches)


def test_idle_share_counts_a_late_clock_and_a_device_without_work():
    timeline = Timeline([Span(0, "F", 0, 0, 5.0, 6.0), Span(0, "B", 0, 0, 7.0, 9.0)], 2)
    assert oracle.idle_share(timeline) == 1 - Fraction(3, 8)


def test_idle_share_equals_the_package_s_own():
    for family in (families.naive, families.gpipe, families.one_f_one_b):
        timeline = simulate(family(3, 5), Costs(forward_s=[1.5, 1.0, 0.25]))
        assert float(oracle.idle_share(timeline)) == pytest.approx(timeline.idle_share, abs=1e-12)


@pytest.mark.parametrize("family", [families.naive, families.gpipe, families.one_f_one_b])
def test_no_family_is_faster_than_the_least_makespan(family):
    for pair in [(1, 3), (4, 1), (3, 2), (4, 9)]:
        makespan_s = simulate(family(*pair), Costs(3, 5)).makespan_s
        assert makespan_s >= oracle.least_makespan_s(*pair, (3, 5))


def test_fewest_microbatches_is_the_inverse_of_the_share():
    rng = random.Random(3)
    for _ in range(500):
        n_stages, bound = rng.randint(1, 40), rng.uniform(0.002, 0.998)
        n = oracle.min_microbatches(n_stages, bound)
        assert oracle.bubble_fraction(n_stages, n) <= bound
        assert n == 1 or oracle.bubble_fraction(n_stages, n - 1) > bound


@pytest.mark.parametrize(
    "n_stages, bound, fewest",
    [(4, 0.05, 57), (4, 0.0499, 58), (2, 1 / 3, 2), (2, 1 - 0.9, 9), (1, 0.01, 1), (9, 0.99, 1)],
)
def test_a_share_equal_to_the_bound_is_allowed(n_stages, bound, fewest):
    assert oracle.min_microbatches(n_stages, bound) == fewest


def test_step_time_is_the_makespan_of_the_simulated_step():
    rng = random.Random(4)
    for _ in range(30):
        n_stages, n_microbatches, n_samples = (rng.randint(1, 9) for _ in range(3))
        sample_s, overhead_s = rng.randint(1, 9), rng.randint(0, 9)
        forward_s = overhead_s + Fraction(n_samples, n_microbatches) * sample_s
        step_s = oracle.step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s)
        timeline = counted(n_stages, n_microbatches, (forward_s, 2 * forward_s))
        assert timeline.makespan_s == step_s


def test_best_number_of_microbatches_equals_a_search():
    rng = random.Random(5)
    for _ in range(200):
        machine = rng.randint(1, 9), rng.randint(1, 60), rng.randint(1, 16), rng.randint(0, 40)
        n_stages, n_samples, sample_s, overhead_s = machine
        times_s = [
            oracle.step_time_s(n_stages, m, n_samples, sample_s, overhead_s)
            for m in range(1, n_samples + 1)
        ]
        assert oracle.best_microbatches(*machine) == 1 + times_s.index(min(times_s))


def test_of_equal_times_the_smaller_number_is_best():
    assert oracle.step_time_s(2, 2, 12, 0.5, 1.0) == oracle.step_time_s(2, 3, 12, 0.5, 1.0)
    assert oracle.best_microbatches(2, 12, 0.5, 1.0) == 2


def test_sizes_are_even_whole_and_larger_first():
    for n_samples in range(1, 30):
        for n_microbatches in range(1, n_samples + 1):
            sizes = oracle.split_sizes(n_samples, n_microbatches)
            assert (len(sizes), sum(sizes)) == (n_microbatches, n_samples)
            assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def test_nothing_withheld_is_needed():
    with withheld(WITHHELD):
        assert oracle.idle_share(counted(4, 8)) == oracle.bubble_fraction(4, 8) == Fraction(3, 11)
        assert oracle.bubble_over_ideal(4, 16) == Fraction(3, 16)
        assert oracle.best_microbatches(4, 64, 1.0, 1.0) == 14
