"""`train_step` on real ranks: what one process computes, whatever list of a reader's it runs."""

import re

import pytest

from autograder.notebook import show
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.ledger import EMULATED
from mpedu.schedule import Action, peak_in_flight
from mpedu.simulate import simulate
from mpedu.train_step import CannotRun, train_step

FP32 = 5e-6  # rounding, relative to the largest gradient of a parameter
ROUND = [("F", 0), ("F", 1), ("F", 2), ("F", 3), ("B", 3), ("B", 2), ("B", 1), ("B", 0)]


def v_shaped(n_microbatches):
    """Two ranks, four stages: rank 1 has the ends, rank 0 the middle; no micro-batch overlaps."""
    order = [(kind, stage, m) for m in range(n_microbatches) for kind, stage in ROUND]
    return [[Action(*each) for each in order if each[1] in mine] for mine in ((1, 2), (0, 3))]


def descending(n_stages, n_microbatches):
    numbers = range(n_microbatches)
    return [
        [*(Action("F", s, m) for m in numbers), *(Action("B", s, m) for m in reversed(numbers))]
        for s in range(n_stages)
    ]


def one_by_one(n_stages, n_microbatches):
    """Each micro-batch goes through the whole pipeline before the next."""
    return [
        [Action(kind, stage, m) for m in range(n_microbatches) for kind in "FB"]
        for stage in range(n_stages)
    ]


@pytest.mark.parametrize(
    "schedule",
    [gpipe(1, 4), one_f_one_b(3, 8), naive(2, 3), descending(2, 4), v_shaped(3), gpipe(2, 17)],
    ids=["one rank", "1f1b", "uneven", "backwards descend", "V", "more than 16 micro-batches"],
)
def test_ranks_train_as_one_process_does(schedule):
    ran = train_step(schedule, n_steps=2)
    n_stages = len({action.stage for actions in schedule for action in actions})
    assert list(ran.differences) == list(range(n_stages))
    assert max(ran.differences.values()) <= FP32
    assert ran.losses == pytest.approx(ran.serial_losses, rel=FP32)
    assert len(set(ran.losses)) == 2
    assert ran.schedule == schedule and not ran.is_emulated
    work = sorted((s.rank, s.kind, s.stage, s.microbatch) for s in ran.timeline.spans)
    assert work == sorted((rank, *action) for rank, row in enumerate(schedule) for action in row)


def test_a_function_of_sizes_gives_the_schedule_and_the_text_tells_what_came_out():
    ran = train_step(gpipe, 2, 2, n_steps=3)
    assert ran.schedule == gpipe(2, 2)
    assert ran.losses[2] < ran.losses[0]
    for pattern in (
        r"^real ranks: 2 processes, (on the CPU|one GPU each)$",
        r"^  stage 1: \d\.\de-\d\d$",
        rf"^loss in step 3: {ran.losses[2]:.4f} nats per byte, in one process \d\.\d{{4}}$",
        r"^speed: [\d,]+ tokens/s; one process: [\d,]+$",
    ):
        assert re.search(pattern, str(ran), re.MULTILINE), pattern
    text = ran.picture().text
    assert "2 processes" in text and "one process" in text


@pytest.mark.parametrize("n_microbatches", [4, 3])
def test_an_undivided_loss_shows_in_the_gradients_and_not_in_the_losses(n_microbatches):
    ran = train_step(gpipe, 2, n_microbatches, skip_division=True)
    assert list(ran.differences.values()) == pytest.approx([n_microbatches - 1] * 2, rel=FP32)
    assert ran.losses == pytest.approx(ran.serial_losses, rel=FP32)


@pytest.mark.parametrize("schedule", [gpipe(4, 8), one_f_one_b(4, 8), naive(2, 2), gpipe(1, 2)])
def test_emulated_devices_idle_as_predicted(schedule):
    ran = train_step(schedule, device_clock_ms=5)
    predicted = float(simulate(schedule).idle_share)
    assert float(ran.timeline.idle_share) == pytest.approx(predicted, abs=1e-6)
    assert ran.is_emulated and (ran.serial_losses, ran.differences) == ([], {})
    assert EMULATED in str(ran) and f"{predicted:.1%} predicted" in str(ran)
    assert ran.peaks == peak_in_flight(schedule)
    assert f"held at most, by rank: {', '.join(map(str, ran.peaks))}" in str(ran)
    assert EMULATED in ran.picture().text


def test_a_slow_order_is_seen_to_be_slower():
    quick, slow = (train_step(make, 3, 4, device_clock_ms=5) for make in (gpipe, one_by_one))
    expected = simulate(slow.schedule).makespan_s / simulate(quick.schedule).makespan_s
    assert expected == 2
    assert slow.timeline.makespan_s / quick.timeline.makespan_s == pytest.approx(2, rel=1e-6)


CROSSED = [
    [Action("F", 0, 0), Action("F", 0, 1), Action("B", 0, 0), Action("B", 0, 1)],
    [Action("F", 1, 0), Action("F", 1, 1), Action("B", 1, 1), Action("B", 1, 0)],
]
CIRCLE = [gpipe(2, 1)[0][::-1], gpipe(2, 1)[1]]
LACKING = [actions[:-1] for actions in gpipe(2, 2)]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (CROSSED, "stage 1 sends gradients"),
        (CIRCLE, "0B0 stands before 0F0"),
        (LACKING, "stage 0 never runs B1"),
        ([[...]], "entry 0"),
        ([], "list"),
    ],
)
def test_a_list_that_cannot_run_is_refused_before_any_rank_starts_and_drawn(
    monkeypatch, capsys, made, words
):
    monkeypatch.setattr("mpedu.train_step.run_ranks", None)
    with pytest.raises(CannotRun, match=words) as refused:
        train_step(lambda: made)
    assert refused.value.schedule == made
    assert str(refused.value).startswith("this schedule cannot run: ")
    assert show(train_step, lambda: made).text
    assert "this schedule cannot run" in capsys.readouterr().out


def twice(n_stages, n_microbatches):
    return gpipe(2 * n_stages, 2 * n_microbatches)


def one_less(n_stages, n_microbatches):
    return gpipe(n_stages, n_microbatches - 1)


def without_return(n_stages, n_microbatches):
    gpipe(n_stages, n_microbatches)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            twice,
            "twice(2, 4) came back with lists for 4 stages and 8 micro-batches; 2 and 4 were asked",
        ),
        (
            one_less,
            "one_less(2, 4) came back with lists for 2 stages and 3 micro-batches; "
            "2 and 4 were asked",
        ),
        (without_return, "without_return(2, 4): None came back: a return seems to be missing"),
    ],
)
def test_other_sizes_than_asked_are_told_and_not_trained(monkeypatch, capsys, function, said):
    monkeypatch.setattr("mpedu.train_step.run_ranks", None)
    with pytest.raises(CannotRun, match=re.escape(said)):
        train_step(function, 2, 4)
    picture = show(train_step, function, 2, 4)
    assert (capsys.readouterr().out + picture.text).count(said) == 1


def test_sizes_that_are_no_stages_and_microbatches_are_the_readers_own():
    assert train_step(lambda n: twice(1, n), 2, device_clock_ms=5).schedule == gpipe(2, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_steps": 0}, "n_steps=0 is too small"),
        ({"n_steps": 1.5}, "n_steps=1.5 is not a whole number"),
        ({"device_clock_ms": 0}, "device_clock_ms=0 is out of range"),
        ({"device_clock_ms": -5.0}, "device_clock_ms=-5.0 is out of range"),
        ({"timeout_s": 0}, "0"),
    ],
)
def test_what_cannot_be_asked_for_is_told(given, said):
    with pytest.raises(ValueError, match=said):
        train_step(gpipe, 2, 2, **given)
