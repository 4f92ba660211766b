import itertools
import json
from fractions import Fraction

import pytest
from rank_programs import all_reduce, overlap, ring, sent, span

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.simulate import Costs, Span, Timeline, simulate
from mpedu.trace import chrome_trace, from_zero, write_trace


def later(timeline, by_s):
    spans = [s._replace(start_s=s.start_s + by_s, end_s=s.end_s + by_s) for s in timeline.spans]
    return Timeline(spans, timeline.n_ranks)


def work(trace, pid=0):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == pid]


def named(trace, what):
    events = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == what]
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events}


@pytest.mark.parametrize("schedule", [naive(4, 1), gpipe(1, 3), one_f_one_b(4, 8)])
def test_a_written_trace_holds_one_complete_event_per_span_in_microseconds(schedule, tmp_path):
    timeline = simulate(schedule, Costs(0.25, 0.5))
    path = write_trace(later(timeline, 1000), tmp_path / "trace.json")
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace["displayTimeUnit"] == "ms"
    found = [
        (e["tid"], e["ts"], e["dur"], e["args"]["stage"], e["args"]["microbatch"])
        for e in work(trace)
    ]
    expected = [
        (s.rank, 1e6 * s.start_s, 1e6 * (s.end_s - s.start_s), s.stage, s.microbatch)
        for s in timeline.spans
    ]
    assert found == sorted(expected)
    assert min(e["ts"] for e in work(trace)) == 0
    assert {e["ph"] for e in trace["traceEvents"]} == {"M", "X"}


def test_events_of_a_rank_never_overlap_however_their_times_are_rounded():
    ends = [1e4 + i / 3e7 for i in range(200)]
    spans = [Span(0, "F", 0, m, *pair) for m, pair in enumerate(itertools.pairwise(ends))]
    events = work(chrome_trace(Timeline(spans[::-1], 1)))
    assert [e["args"]["microbatch"] for e in events] == list(range(199))
    for event, following in itertools.pairwise(events):
        assert round(1000 * (event["ts"] + event["dur"])) == round(1000 * following["ts"])
        assert event["dur"] >= 0
    assert all(e["ts"] == round(1000 * e["ts"]) / 1000 for e in events)  # whole nanoseconds


def test_threads_are_named_as_the_pictures_name_rows():
    assert named(chrome_trace(simulate(gpipe(3, 2))), "thread_name") == {
        (0, rank): f"stage {rank}" for rank in range(3)
    }
    idle_rank = chrome_trace(Timeline([Span(1, "B", 0, 4, 2, 3)], 3))
    assert named(idle_rank, "thread_name") == {(0, rank): f"rank {rank}" for rank in range(3)}
    assert [e["name"] for e in work(idle_rank)] == ["0B4"]
    assert {e["name"] for e in work(chrome_trace(simulate(gpipe(2, 1))))} == {"F0", "B0"}


def test_kinds_have_their_own_colours():
    kinds = "FBIWX"
    spans = [Span(0, kind, 0, i, i, i + 1) for i, kind in enumerate(kinds)]
    colors = [e["cname"] for e in work(chrome_trace(Timeline(spans, 1)))]
    # names of the viewers' palette: blue, orange, yellow, green, grey
    assert colors == [
        "rail_response",
        "thread_state_iowait",
        "startup",
        "rail_load",
        "generic_work",
    ]


def test_a_prediction_is_a_second_process_of_the_same_busy_time(tmp_path):
    predicted = simulate(gpipe(2, 4), Costs(Fraction(1), Fraction(2)))
    measured = later(simulate(gpipe(2, 4), Costs(0.003, 0.007, latency_s=0.001)), 77.7)
    path = write_trace(measured, tmp_path / "t.json", predicted, ("1F1B", "model clock"))
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert named(trace, "process_name") == {
        (0, 0): "1F1B",
        (1, 0): "model clock, scaled to the same busy time",
    }
    assert len(work(trace, 0)) == len(work(trace, 1)) == 16
    busy_us = [sum(e["dur"] for e in work(trace, pid)) for pid in (0, 1)]
    assert busy_us == [pytest.approx(2 * 4 * 10_000, rel=1e-6)] * 2
    durations_us = {e["dur"] for e in work(trace, 1)}
    assert max(durations_us) == pytest.approx(2 * min(durations_us), rel=1e-6)
    assert min(e["ts"] for e in work(trace, 1)) == 0


def test_from_zero_keeps_the_idle_share_and_the_work():
    timeline = simulate(one_f_one_b(3, 5), Costs([1, 2, 3], [2, 3, 4]))
    moved = from_zero(later(timeline, -40), busy_s=7.0)
    assert (moved.start_s, moved.busy_s) == (0, pytest.approx(7))
    assert moved.idle_share == pytest.approx(timeline.idle_share)
    assert [span[:4] for span in moved.spans] == [span[:4] for span in timeline.spans]
    assert from_zero(timeline) == timeline


def flows(trace, pid=0):
    """The flows as (source thread, start, destination thread, end)."""
    ends = {"s": {}, "f": {}}
    for event in trace["traceEvents"]:
        if event["ph"] in ends and event["pid"] == pid:
            assert (event["cat"], event["name"]) == ("message", "message")
            assert event["id"] not in ends[event["ph"]]
            assert event["ph"] == "s" or event["bp"] == "e"
            ends[event["ph"]][event["id"]] = event
    assert list(ends["s"]) == list(ends["f"])
    names = named(trace, "thread_name")
    return [
        (names[pid, start["tid"]], start["ts"], names[pid, end["tid"]], end["ts"])
        for start, end in zip(ends["s"].values(), ends["f"].values(), strict=True)
    ]


@pytest.mark.parametrize("timeline", [ring(3), all_reduce(4), overlap()])
def test_of_each_message_a_flow_leads_from_its_start_to_where_it_is_taken(timeline, tmp_path):
    trace = json.loads(write_trace(timeline, tmp_path / "t.json").read_text(encoding="utf-8"))
    track = "collectives" if timeline.messages[0].kind == "all_reduce" else "messages"
    assert flows(trace) == [
        (f"rank {m.source} {track}", us(m.start_s), f"rank {m.destination} {track}", us(m.taken_s))
        for m in timeline.messages
    ]


def us(time_s):
    return round(1e9 * time_s) / 1000


def test_both_ends_of_a_flow_lie_in_an_event_of_their_thread():
    trace = chrome_trace(all_reduce(4, 2))
    held = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in work(trace)]
    ends = [e for e in trace["traceEvents"] if e["ph"] in "sf"]
    assert len(ends) == 2 * 2 * 4 * 6
    for end in ends:
        assert any(tid == end["tid"] and a <= end["ts"] <= b + 1e-6 for tid, a, b in held)


@pytest.mark.parametrize("timeline", [ring(3), all_reduce(4, 2), overlap()])
def test_events_of_a_thread_lie_in_each_other_or_apart(timeline):
    of_thread = {}
    for e in work(chrome_trace(timeline)):
        piece = (round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"])))
        of_thread.setdefault(e["tid"], []).append(piece)
    for pieces in of_thread.values():
        for (a, b), (c, d) in itertools.combinations(
            sorted(pieces, key=lambda p: (p[0], -p[1])), 2
        ):
            assert c >= b or d <= b, (a, b, c, d)


def test_threads_of_a_rank_stand_together_in_order():
    spans = [span(0, "compute", 0.0, 1.0), span(1, "barrier", 0.0, 1.0)]
    trace = chrome_trace(Timeline(spans, 2, (sent(1, 0, 0.5),)))
    order = {
        (e["pid"], e["tid"]): e["args"]["sort_index"]
        for e in trace["traceEvents"]
        if e["name"] == "thread_sort_index"
    }
    names = named(trace, "thread_name")
    assert [names[key] for key in sorted(names, key=order.get)] == [
        "rank 0",
        "rank 0 messages",
        "rank 1",
        "rank 1 collectives",
        "rank 1 messages",
    ]


def test_names_of_a_rank_program_hold_no_stages():
    events = work(chrome_trace(overlap()))
    assert [e["name"] for e in events] == ["compute"] * 3 + ["send to rank 1", "send from rank 0"]
    assert all("-1" not in json.dumps(e) for e in events)
    assert events[-1]["args"] == {"bytes": 400_000, "tag": 3, "arrival_us": 85.0}
    assert [e["args"] for e in events[:3]] == [{}] * 3
    assert (events[-1]["ts"], events[-1]["dur"]) == (120.0, 0.0)


def test_messages_move_with_the_clock():
    timeline = overlap()
    later = [m._replace(start_s=m.start_s + 4) for m in timeline.messages]
    times = from_zero(Timeline([], 2, tuple(later))).messages[0]
    assert times.start_s == 0 and times.n_bytes == 400_000
    assert from_zero(timeline) == timeline
    with pytest.raises(ValueError, match="no work, so it cannot be scaled"):
        chrome_trace(timeline, ring(2))


def test_an_empty_timeline_has_no_trace():
    with pytest.raises(ValueError, match="no spans"):
        chrome_trace(Timeline([], 2))
