"""The fast run of a schedule against the validator and the run that knows no haste."""

import random
import tracemalloc

import pytest

from mpedu.families import SCHEDULES, make_schedule, one_f_one_b
from mpedu.simulate import Costs, simulate, simulate_until_stuck
from mpedu.simulate.replay import replay
from mpedu.validate import validate_schedule


def damaged(schedule, drawn):
    """A schedule with a few actions moved, lost, doubled, renamed or on another rank."""
    for _ in range(drawn.choice((0, 1, 1, 2, 5))):
        actions = drawn.choice(schedule)
        if not actions:
            continue
        at = drawn.randrange(len(actions))
        match drawn.choice("mmmmmlrdo"):
            case "m":
                to = min(len(actions) - 1, at + drawn.choice((1, 1, 2, 5)))
                actions[at], actions[to] = actions[to], actions[at]
            case "l":
                actions.pop(at)
            case "d":
                actions.insert(drawn.randrange(len(actions)), actions[at])
            case "r":
                actions[at] = actions[at]._replace(kind=drawn.choice("FBIW"), microbatch=0)
            case "o":
                drawn.choice(schedule).append(actions.pop())
    return schedule


def drawn_costs(drawn):
    return Costs(
        drawn.choice((1, 2)),
        drawn.choice((2, 3)),
        latency_s=drawn.choice((0, 1)),
        message_s=drawn.choice((0, 1)),
        blocking=drawn.random() < 0.5,
    )


@pytest.mark.parametrize("name", SCHEDULES)
def test_it_runs_what_is_legal_and_nothing_else_and_at_the_same_times(name):
    drawn = random.Random(name)
    n_legal = n_illegal = 0
    for _ in range(400):
        n_ranks, n_microbatches = drawn.randint(1, 4), drawn.randint(1, 6)
        if name == "dualpipe-v":
            n_microbatches += 2 * n_ranks
        schedule = damaged(make_schedule(name, n_ranks, n_microbatches), drawn)
        costs = drawn_costs(drawn)
        spans = replay(schedule, costs)
        assert (spans is not None) == (validate_schedule(schedule) == [])
        if spans is None:
            n_illegal += 1
        else:
            n_legal += 1
            assert sorted(spans) == sorted(simulate_until_stuck(schedule, costs).spans)
    assert n_legal > 50 and n_illegal > 50


@pytest.mark.parametrize("lists", [[], [[]], None, [[("F", 0, 0)]], ["0F0"]])
def test_what_is_no_schedule_is_not_run(lists):
    assert replay(lists, Costs()) is None
    with pytest.raises(ValueError, match=r"schedule|stage 0"):
        simulate(lists)


def test_messages_leave_a_rank_one_after_the_other():
    late = Costs(1, 1, latency_s=10, message_s=3)
    spans = {(s.kind, s.microbatch): s for s in simulate(one_f_one_b(2, 1), late).spans if s.stage}
    assert spans["F", 0].start_s == 1 + 3 + 10
    busy = {s[1:4]: s for s in simulate(make_schedule("gpipe", 2, 3), late).spans}
    assert [busy["F", 0, m].start_s for m in range(3)] == [0, 1, 2]
    assert [busy["F", 1, m].start_s for m in range(3)] == [14, 17, 20]
    waiting = simulate(make_schedule("gpipe", 2, 3), Costs(1, 1, message_s=3, blocking=True))
    assert [s.start_s for s in waiting.spans if s[1:3] == ("F", 0)] == [0, 4, 8]


def test_a_large_schedule_takes_at_most_400_bytes_an_action():
    tracemalloc.start()
    try:
        schedule = one_f_one_b(64, 256)
        timeline = simulate(schedule)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes <= 400 * len(timeline.spans)


def test_work_grows_with_the_actions_alone():
    """Lines run per action, counted: the same for four times the ranks and micro-batches."""
    assert lines_per_action(32, 128) <= 1.1 * lines_per_action(8, 32)


def lines_per_action(n_ranks, n_microbatches):
    import sys

    n_lines = 0

    def count(frame, event, argument):
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        timeline = simulate(one_f_one_b(n_ranks, n_microbatches))
    finally:
        sys.settrace(before)
    return n_lines / len(timeline.spans)
