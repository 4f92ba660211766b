import json
import os
import random
import subprocess
import sys

import pytest
from small_runs import metrics

from mpedu.faults import Failure
from mpedu.ledger import EMULATED, Ledger, alone_in
from mpedu.pipeline import StepResult
from mpedu.simulate import Costs, Span, simulate
from mpedu.train_config import TrainConfig
from mpedu.training import StepReport

TOY = TrainConfig(pp=2, n_microbatches=1)
LOSSES = [5.0, 4.0]


def report(step, rank, spans, loss=2.5, start_s=100.0, end_s=110.0, updated_s=112.0):
    """A rank's work: spans (kind, seconds from, to) of its only micro-batch."""
    done = [Span(rank, kind, rank, 0, start_s + a, start_s + b) for kind, a, b in spans]
    result = StepResult(loss, 0.0, 64, 2 - rank, done, start_s, end_s, [], None)
    return StepReport(step, result, 1.5, updated_s)


def toy(step, **given):
    """Rank 0 works 5 of 10 s, rank 1 waits for it and works 3; the optimiser is done after 12."""
    return [
        report(step, 0, [("F", 0, 2), ("B", 5, 8)], **given),
        report(step, 1, [("F", 2, 3), ("B", 3, 5)], **given, start_s=100.5, updated_s=111.0),
    ]


def told(ledger, n_steps, **given):
    for step in range(1, n_steps + 1):
        for rank, each in enumerate(toy(step, **given)):
            ledger.take(rank, each)
    return ledger


def test_idle_share_and_speed_of_a_toy_are_those_by_hand():
    ledger = told(Ledger(TOY), 1)
    (step,) = ledger.steps
    assert step.idle_share == ledger.measured_idle == pytest.approx(1 - 8 / 20)
    assert (step.seconds, step.tokens_per_s) == (12.0, 64 / 12)
    assert (step.loss, step.n_tokens, step.gradient_norm) == (2.5, 64, 1.5)
    assert ledger.peaks == [2, 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_step_counts_once_when_every_rank_has_told_of_it(tmp_path, seed):
    reports = [(rank, each) for step in (1, 2, 3) for rank, each in enumerate(toy(step))]
    draw, seen = random.Random(seed), []  # a rank tells in order, but one may be ahead
    queues = [[each for r, each in reports if r == rank] for rank in (0, 1)]
    ledger = Ledger(TOY, tmp_path, after_step=lambda step: seen.append(step.step))
    while any(queues):
        rank = draw.choice([rank for rank in (0, 1) if queues[rank]])
        ledger.take(rank, queues[rank].pop(0))
        assert len(seen) == 3 - max(map(len, queues))
    assert seen == [word["step"] for word in metrics(tmp_path)] == [1, 2, 3]
    assert ledger.peaks == [2, 1]


def test_a_line_of_the_metrics_has_the_loss_and_the_speed(tmp_path):
    told(Ledger(TOY, tmp_path), 1)
    assert metrics(tmp_path) == [
        {
            "step": 1,
            "loss": 2.5,
            "n_tokens": 64,
            "seconds": 12.0,
            "idle_share": pytest.approx(0.6),
            "gradient_norm": 1.5,
            "tokens_per_s": 64 / 12,
        }
    ]


def test_the_first_steps_count_for_no_mean():
    ledger = told(Ledger(TOY), 1)
    assert ledger.predicted_as_timed() is None
    ledger = Ledger(TOY)
    slow = toy(1)
    for step in (1, 2):
        for rank, each in enumerate(slow):
            late = each.result._replace(end_s=200.0)
            ledger.take(rank, each._replace(step=step, result=late, updated_s=400.0))
    for rank, each in enumerate(toy(3)):
        ledger.take(rank, each)
    assert ledger.measured_idle == pytest.approx(0.6)
    assert ledger.tokens_per_s == 64 / 12


def test_predictions_are_of_equal_stages_and_of_the_measured_times():
    ledger = told(Ledger(TOY), 5)
    assert float(ledger.predicted().idle_share) == pytest.approx(1 / 2)
    timed = ledger.predicted_as_timed()
    assert float(timed.makespan_s) == pytest.approx(2 + 1 + 2 + 3)
    assert float(timed.idle_share) == pytest.approx(1 - 8 / 16)
    uneven = Ledger(TrainConfig(pp=1, n_microbatches=2))
    spans = [Span(0, kind, 0, m, 0.0, 1.0 + m) for kind in "FB" for m in (0, 1)]
    for step in range(1, 5):
        result = toy(step)[0].result._replace(spans=spans)
        uneven.take(0, toy(step)[0]._replace(result=result))
    assert float(uneven.predicted_as_timed().makespan_s) == pytest.approx(4 * 1.5)


@pytest.mark.parametrize(("waited_s", "explained"), [(0, False), (20, True)])
def test_idle_time_well_above_its_prediction_is_explained(waited_s, explained):
    ledger = Ledger(TOY)
    for step in (1, 2, 3):
        for rank, each in enumerate(toy(step)):  # 8 s as by its mean times, and what was waited
            result = each.result._replace(end_s=108.0 + waited_s)
            ledger.take(rank, each._replace(result=result))
    words = "; the rest is waiting for messages and for a processor that others use"
    assert ledger.idle_in_words().endswith(words if explained else "this run's mean times")
    assert "\n" not in ledger.idle_in_words()


def test_every_pipeline_idles_in_a_time_of_its_own():
    """Two data ranks: the second starts 50 s later, works half as fast, and holds more."""
    ledger = Ledger(TrainConfig(pp=2, dp=2, n_microbatches=1))
    fast = toy(1)
    spans = [("F", 0, 4), ("B", 10, 16)], [("F", 4, 6), ("B", 6, 10)]
    slow = [
        report(1, rank, spans[rank], start_s=100.0, end_s=120.0, updated_s=125.0) for rank in (0, 1)
    ]
    late = [
        each._replace(
            result=each.result._replace(
                start_s=each.result.start_s + 50,
                end_s=each.result.end_s + 50,
                peak_in_flight=3 - rank,
            ),
            updated_s=175.0,
        )
        for rank, each in enumerate(slow)
    ]
    for rank, each in enumerate([fast[0], late[0], fast[1], late[1]]):  # the first axis is slowest
        assert not ledger.steps
        ledger.take(rank, each)
    (step,) = ledger.steps
    assert step.idle_share == pytest.approx(1 - (8 + 16) / (20 + 40))
    assert (step.seconds, step.tokens_per_s) == (75.0, 64 / 75)
    assert ledger.peaks == [3, 2]
    assert ledger.peaks_in_words() == (
        "rank 0: 3, rank 1: 2 micro-batches, the most of any data rank (the list says [1, 1])"
    )
    assert ledger.timeline.spans == [span for each in fast for span in each.result.spans]


@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize("name", ["interleaved", "zbv", "zero-bubble-h1"])
def test_the_measured_times_of_all_stages_and_kinds_are_predicted_with(name, dp):
    """Every action takes as long as its stage and kind say; so does the prediction then."""
    config = TrainConfig(pp=2, dp=dp, schedule=name, n_microbatches=3)
    ledger = Ledger(config)
    table = {
        kind: [base + stage for stage in range(4)]
        for kind, base in zip("FBIW", (1, 2, 3, 4), strict=True)
    }
    exact = simulate(ledger.schedule, Costs(*table.values()))
    for step in range(1, 5):
        for rank in range(2 * dp):
            spans = [span for span in exact.spans if span.rank == rank // dp]
            end_s = float(exact.makespan_s)
            result = StepResult(2.5, 0.0, 64, 4, spans, 0.0, end_s, [], None)
            ledger.take(rank, StepReport(step, result, 1.5, end_s))
    timed = ledger.predicted_as_timed()
    assert float(timed.makespan_s) == pytest.approx(float(exact.makespan_s))
    assert ledger.measured_idle == pytest.approx(float(timed.idle_share))
    is_cut = name != "zero-bubble-h1"
    assert ("activations of a stage and micro-batch" in ledger.peaks_in_words()) == is_cut


HOLD = "import sys; from pathlib import Path; from mpedu.ledger import alone_in\n"
HOLD += "with alone_in(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


def test_a_folder_has_one_run_at_a_time_and_a_killed_one_leaves_it(tmp_path):
    run = tmp_path / "run"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run)], **pipes) as other:
        try:
            assert other.stdout.readline() == b"held\n"
            with pytest.raises(ValueError, match=rf"^{run} is taken by another run, .*") as error:
                alone_in(run).__enter__()
            assert f"process {other.pid}; wait for its end, or give" in str(error.value)
        finally:
            other.kill()
    with alone_in(run):
        assert (run / "lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(ValueError, match=f"process {os.getpid()};"), alone_in(run):
            pass
    with alone_in(run):
        pass


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run(tmp_path, loss):
    ledger = Ledger(TOY, tmp_path)
    first, last = toy(1, loss=loss)
    ledger.take(0, first)
    with pytest.raises(Failure, match=rf"^the loss is {loss} at step 1: .* below 0.001$"):
        ledger.take(1, last)
    assert len(metrics(tmp_path)) == 1


WHOLE = [{"step": 1, "loss": 5.0, "seconds": 1}, {"step": 2, "loss": 4.0, "seconds": 2}]
LATER = {"step": 3, "loss": 3.0, "seconds": 3}
BARE = [{"step": 1, "loss": 5.0}, {"step": 2, "loss": 4.0}]


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ([*WHOLE, LATER], WHOLE),
        (WHOLE[:1], [WHOLE[0], BARE[1]]),
        ([WHOLE[1], WHOLE[0], WHOLE[1]], WHOLE),
        ([], BARE),
        ([5, [], None, "x", {}, {"step": []}, {"step": "1"}, *WHOLE], WHOLE),
    ],
)
def test_a_run_that_goes_on_has_each_earlier_step_once(tmp_path, there, left):
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(words) + "\n" for words in there))
    ledger = Ledger(TOY, tmp_path, earlier=LOSSES)
    assert metrics(tmp_path) == left
    assert ledger.losses == LOSSES and ledger.steps == []
    for rank, each in enumerate(toy(3)):
        ledger.take(rank, each)
    assert [word["step"] for word in metrics(tmp_path)] == [1, 2, 3]
    assert ledger.losses == [*LOSSES, 2.5]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


@pytest.mark.parametrize("n_bytes", [1, 20, 41, 42, 60])
def test_a_metrics_file_cut_anywhere_is_made_whole(tmp_path, n_bytes):
    file = tmp_path / "metrics.jsonl"
    lines = "".join(json.dumps(words) + "\n" for words in WHOLE)
    file.write_bytes(lines.encode()[:n_bytes] + b"\xff")
    Ledger(TOY, tmp_path, earlier=LOSSES)
    assert [(word["step"], word["loss"]) for word in metrics(tmp_path)] == [(1, 5.0), (2, 4.0)]


def test_a_run_that_starts_anew_forgets_what_an_earlier_one_told(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(json.dumps(WHOLE[0]) + "\n")
    told(Ledger(TOY, tmp_path), 2)
    assert [word["loss"] for word in metrics(tmp_path)] == [2.5, 2.5]


def test_pictures_and_trace_are_of_all_losses_and_the_last_step(tmp_path):
    ledger = told(Ledger(TOY, earlier=[9.0, 8.0]), 3)
    made = ledger.draw(tmp_path, floor=3.1)
    assert [path.name for path in made] == ["loss.png", "timeline.png", "trace.json"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made[:2])
    events = json.loads(made[2].read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 2 * 4  # measured and predicted


def test_nothing_is_drawn_before_a_step(tmp_path):
    assert Ledger(TOY).draw(tmp_path, floor=3.1) == []
    assert list(tmp_path.iterdir()) == []


def test_emulated_devices_are_named_so_in_the_picture(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "mpedu.ledger.overlay", lambda _predicted, _ran, title: titles.append(title) or NoPicture()
    )
    for clock_ms in (None, 5.0):
        told(Ledger(TrainConfig(pp=2, n_microbatches=1, device_clock_ms=clock_ms)), 1).draw(
            tmp_path, 3.1
        )
    assert [EMULATED in title for title in titles] == [False, True]
    assert all(title.startswith("1f1b, 2 stages, the last step") for title in titles)


class NoPicture:
    def save(self, path):
        path.touch()
