from fractions import Fraction

import pytest

from mpedu.families import gpipe, naive
from mpedu.schedule import Action
from mpedu.simulate import Costs, Sent, Span, Timeline, simulate, simulate_until_stuck


def test_the_whole_batch_as_one_piece_keeps_one_of_four_devices_busy():
    timeline = simulate(naive(4, 1), Costs(forward_s=8, backward_s=16))
    assert timeline.makespan_s == 96
    assert timeline.idle_share == 0.75


def test_spans_start_as_soon_as_the_rank_and_the_input_are_ready():
    spans = simulate(gpipe(2, 2)).spans
    assert [tuple(span) for span in spans if span.rank == 1] == [
        (1, "F", 1, 0, 1, 2),
        (1, "F", 1, 1, 2, 3),
        (1, "B", 1, 0, 3, 5),
        (1, "B", 1, 1, 5, 7),
    ]


def test_fractions_stay_exact():
    costs = Costs(forward_s=Fraction(1, 3), backward_s=Fraction(2, 7))
    timeline = simulate(gpipe(3, 4), costs)
    assert timeline.makespan_s == (4 + 3 - 1) * (Fraction(1, 3) + Fraction(2, 7))
    assert timeline.idle_share == Fraction(2, 6)


def test_the_slowest_stage_sets_the_pace():
    timeline = simulate(gpipe(3, 10), Costs(forward_s=(1, 3, 1), backward_s=(2, 6, 2)))
    assert timeline.makespan_s == 10 * 9 + 1 + 1 + 2 + 2


def test_both_halves_of_a_split_backward_cost_half_unless_said_otherwise():
    actions = [Action("F", 0, 0), Action("I", 0, 0), Action("W", 0, 0)]
    assert simulate([actions], Costs(1, 3)).makespan_s == 4
    assert simulate([actions], Costs(1, 3, input_s=1, weight_s=0.5)).makespan_s == 2.5


def test_latency_counts_between_ranks_only():
    one_rank = [[Action.parse(word) for word in "0F0 1F0 1B0 0B0".split()]]
    assert simulate(one_rank, Costs(latency_s=5)).makespan_s == 6
    assert simulate(gpipe(2, 1), Costs(latency_s=5)).makespan_s == 6 + 2 * 5


def test_the_clock_of_a_timeline_may_start_anywhere():
    timeline = Timeline([Span(0, "F", 0, 0, 5, 6), Span(1, "F", 1, 0, 6, 8)], n_ranks=2)
    assert timeline.makespan_s == 3
    assert timeline.busy_s == 3
    assert timeline.idle_share == 0.5


def test_a_timeline_without_spans_has_no_share():
    with pytest.raises(ValueError, match="no spans"):
        _ = Timeline([], 2).idle_share


def test_messages_count_for_the_makespan_and_not_as_work():
    messages = (Sent(0, 1, "send", 8, 3, 4, 6, 9, 0), Sent(1, 0, "send", 8, 1, 2, 4, 4, 0))
    assert (Timeline([], 2, messages).start_s, Timeline([], 2, messages).makespan_s) == (1, 8)
    timeline = Timeline([Span(0, "compute", -1, -1, 2, 5)], 2, messages)
    assert (timeline.start_s, timeline.makespan_s, timeline.busy_s) == (1, 8, 3)
    assert Timeline(timeline.spans, 2).makespan_s == 3


def test_an_illegal_schedule_is_refused_with_its_first_fault():
    with pytest.raises(ValueError, match="0B0 stands before 0F0"):
        simulate([[Action("B", 0, 0), Action("F", 0, 0)]])


def test_a_faulty_schedule_runs_until_it_sticks():
    ranks = ["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"]
    stuck = simulate_until_stuck([[Action.parse(word) for word in rank.split()] for rank in ranks])
    assert [(span.rank, span.kind, span.microbatch) for span in stuck.spans] == [
        (0, "F", 0),
        (1, "F", 0),
    ]


@pytest.mark.parametrize(
    "costs, words",
    [
        ({"forward_s": 0}, "forward_s=0"),
        ({"backward_s": float("nan")}, "backward_s=nan"),
        ({"input_s": (1, -1)}, "input_s"),
        ({"latency_s": -1}, "latency_s=-1"),
    ],
)
def test_a_cost_that_is_no_time_is_named(costs, words):
    with pytest.raises(ValueError, match=words):
        Costs(**costs)


def test_too_few_costs_per_stage_are_named():
    with pytest.raises(ValueError, match="forward_s has 2 entries and stage 2 is asked"):
        simulate(gpipe(3, 1), Costs(forward_s=(1, 1)))
