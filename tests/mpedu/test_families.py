import pytest

from mpedu.cost import bubble_fraction, bubble_over_ideal
from mpedu.families import (
    SCHEDULES,
    dualpipe_v,
    gpipe,
    interleaved_1f1b,
    interleaved_zero_bubble,
    make_schedule,
    naive,
    named_schedules,
    one_f_one_b,
    zbv,
    zero_bubble_h1,
)
from mpedu.schedule import peak_in_flight, stage_to_rank
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

FAMILIES = [naive, gpipe, one_f_one_b]
# Makespans at forward 1, backward 2 on four stages: the course's table of expected values.
MAKESPAN_4_STAGES = {
    naive: {4: 48, 8: 96, 16: 192, 32: 384},
    gpipe: {4: 21, 8: 33, 16: 57, 32: 105},
    one_f_one_b: {4: 21, 8: 33, 16: 57, 32: 105},
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("n_chunks", [1, 2, 3])
def test_every_schedule_is_legal_or_refused_in_one_sentence(name, n_ranks, n_chunks):
    fixed = SCHEDULES[name].n_chunks
    for n_microbatches in (*range(1, 10), 16):
        if fixed not in (None, n_chunks):
            with pytest.raises(ValueError, match=f"n_chunks={n_chunks} with schedule='{name}'"):
                make_schedule(name, n_ranks, n_microbatches, n_chunks)
        elif name == "dualpipe-v" and n_microbatches < 2 * n_ranks:
            named = f"n_microbatches={n_microbatches} on n_ranks={n_ranks}"
            with pytest.raises(ValueError, match=named):
                make_schedule(name, n_ranks, n_microbatches)
        else:
            schedule = make_schedule(name, n_ranks, n_microbatches, n_chunks)
            n_stages = n_ranks * n_chunks
            assert validate_schedule(schedule, n_stages, n_microbatches) == []
            placement = [stage_to_rank(schedule)[stage] for stage in range(n_stages)]
            assert schedule in list(named_schedules(placement, n_microbatches))


@pytest.mark.parametrize("n_chunks", [2, 3, 4])
@pytest.mark.parametrize("n_ranks, n_microbatches", [(2, 4), (4, 8), (4, 10), (4, 11), (8, 16)])
def test_interleaving_divides_the_bubble_by_the_chunks(n_ranks, n_microbatches, n_chunks):
    schedule = interleaved_1f1b(n_ranks, n_microbatches, n_chunks)
    bubble = (n_ranks - 1) / (n_chunks * n_microbatches + n_ranks - 1)
    assert simulate(schedule).idle_share == pytest.approx(bubble)
    if n_microbatches % n_ranks == 0:
        assert peak_in_flight(schedule) == [
            min(
                n_microbatches * n_chunks,
                2 * (n_ranks - 1 - rank) + (n_chunks - 1) * n_ranks + 1,
            )
            for rank in range(n_ranks)
        ]


def test_one_chunk_is_the_schedule_without_chunks():
    assert interleaved_1f1b(4, 7, 1) == one_f_one_b(4, 7)
    assert interleaved_zero_bubble(4, 7, 1) == zero_bubble_h1(4, 7)


@pytest.mark.parametrize(
    "n_chunks, makespans", [(2, [16.5, 28.5, 52.5, 100.5]), (4, [14.25, 26.25, 50.25, 98.25])]
)
def test_interleaved_makespans_equal_the_table(n_chunks, makespans):
    costs = Costs(1 / n_chunks, 2 / n_chunks)
    made = [simulate(interleaved_1f1b(4, m, n_chunks), costs).makespan_s for m in (4, 8, 16, 32)]
    assert made == makespans


@pytest.mark.parametrize("latency_s, makespan_s", [(0.5, 35.5), (1, 46)])
def test_interleaving_pays_for_latency_too(latency_s, makespan_s):
    schedule = interleaved_1f1b(4, 8, 2)
    assert simulate(schedule, Costs(0.5, 1, latency_s=latency_s)).makespan_s == makespan_s


@pytest.mark.parametrize("n_stages, n_microbatches", [(2, 5), (4, 8), (4, 32), (8, 16)])
def test_zero_bubble_h1_waits_for_the_first_microbatch_only(n_stages, n_microbatches):
    schedule = zero_bubble_h1(n_stages, n_microbatches)
    equal = Costs(1, 2, 1, 1)
    assert simulate(schedule, equal).makespan_s == 3 * n_microbatches + n_stages - 1
    assert peak_in_flight(schedule) == peak_in_flight(one_f_one_b(n_stages, n_microbatches))
    assert peak_in_flight(schedule, "W") == [min(n_stages, n_microbatches)] * n_stages


@pytest.mark.parametrize("family, extra", [(zbv, 0), (dualpipe_v, 1)])
def test_v_shapes_hold_as_much_on_every_rank(family, extra):
    schedule = family(4, 12)
    assert peak_in_flight(schedule) == [2 * 4 + extra] * 4
    assert stage_to_rank(schedule) == {s: min(s, 7 - s) for s in range(8)}
    assert simulate(schedule, Costs(1, 2, 1, 1)).makespan_s == 6 * 12 + 3


@pytest.mark.parametrize("family", [gpipe])
def test_gpipe_can_run_its_backwards_in_reverse(family):
    forward, reverse = family(3, 4), family(3, 4, backward_order="reverse")
    assert [str(action) for action in reverse[1][4:]] == ["1B3", "1B2", "1B1", "1B0"]
    assert [actions[:4] for actions in reverse] == [actions[:4] for actions in forward]
    assert validate_schedule(reverse, 3, 4) == []
    with pytest.raises(ValueError, match="backward_order='sideways'"):
        family(3, 4, backward_order="sideways")


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match="schedule='gpip' is unknown; choose one of naive, gpipe"):
        make_schedule("gpip", 2, 4)


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


@pytest.mark.parametrize("call", [*FAMILIES, zero_bubble_h1, bubble_fraction, bubble_over_ideal])
@pytest.mark.parametrize(
    "counts, named", [((0, 4), "n_stages=0"), ((4, 0), "n_microbatches=0"), ((2.0, 4), "2.0")]
)
def test_a_bad_count_is_named(call, counts, named):
    with pytest.raises(ValueError, match=named):
        call(*counts)
