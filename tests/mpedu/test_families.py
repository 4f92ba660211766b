import pytest

from mpedu.cost import bubble_fraction, bubble_over_ideal
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.schedule import peak_in_flight
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

FAMILIES = [naive, gpipe, one_f_one_b]
# Makespans at forward 1, backward 2 on four stages: the course's table of expected values.
MAKESPAN_4_STAGES = {
    naive: {4: 48, 8: 96, 16: 192, 32: 384},
    gpipe: {4: 21, 8: 33, 16: 57, 32: 105},
    one_f_one_b: {4: 21, 8: 33, 16: 57, 32: 105},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_microbatches", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("n_stages", [1, 2, 3, 8])
def test_every_family_is_legal_also_with_fewer_microbatches_than_stages(
    family, n_stages, n_microbatches
):
    assert validate_schedule(family(n_stages, n_microbatches), n_stages, n_microbatches) == []


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_microbatches", [4, 8, 16, 32])
def test_makespan_equals_the_table(family, n_microbatches):
    timeline = simulate(family(4, n_microbatches))
    assert timeline.makespan_s == MAKESPAN_4_STAGES[family][n_microbatches]


@pytest.mark.parametrize("family", [gpipe, one_f_one_b])
@pytest.mark.parametrize("n_stages, n_microbatches", [(1, 1), (2, 5), (4, 3), (8, 16)])
def test_idle_share_equals_both_closed_forms(family, n_stages, n_microbatches):
    timeline = simulate(family(n_stages, n_microbatches), Costs(0.5, 1.75))
    ideal_s = n_microbatches * (0.5 + 1.75)
    assert timeline.idle_share == pytest.approx(bubble_fraction(n_stages, n_microbatches))
    over_ideal = (timeline.makespan_s - ideal_s) / ideal_s
    assert over_ideal == pytest.approx(bubble_over_ideal(n_stages, n_microbatches))


def test_peaks_in_flight_are_the_lectures_numbers():
    assert peak_in_flight(naive(4, 8)) == [1, 1, 1, 1]
    assert peak_in_flight(gpipe(4, 8)) == [8, 8, 8, 8]
    assert peak_in_flight(one_f_one_b(4, 8)) == [4, 3, 2, 1]
    assert peak_in_flight(one_f_one_b(4, 2)) == [2, 2, 2, 1]


def test_latency_costs_1f1b_a_round_trip_per_microbatch():
    costs = Costs(latency_s=0.5)
    assert simulate(gpipe(4, 8), costs).makespan_s == 36
    assert simulate(one_f_one_b(4, 8), costs).makespan_s == 41


@pytest.mark.parametrize("call", [*FAMILIES, bubble_fraction, bubble_over_ideal])
@pytest.mark.parametrize(
    "counts, named", [((0, 4), "n_stages=0"), ((4, 0), "n_microbatches=0"), ((2.0, 4), "2.0")]
)
def test_a_bad_count_is_named(call, counts, named):
    with pytest.raises(ValueError, match=named):
        call(*counts)
