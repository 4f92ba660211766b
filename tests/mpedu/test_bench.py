"""The benchmark: what is timed in which order, when it refuses to time, and what its times say."""

import argparse
import json
import time
from itertools import pairwise

import pytest
import torch

from mpedu.alone import Alone
from mpedu.bench import command as bench
from mpedu.bench.engines import Task, differences, engines, ours, turns
from mpedu.bench.figures import (
    COLUMNS,
    GOALS,
    ONE_PROCESS,
    Goal,
    Size,
    Verdict,
    figures,
    ideal_s,
    show_plain,
    shower,
    summary,
    verdicts,
)
from mpedu.families import gpipe, naive
from mpedu.faults import Failure
from mpedu.model import GPTConfig

TINY = GPTConfig(vocab_size=11, n_layers=2, d_model=8, n_heads=2, n_positions=5)
SIZES = (Size(2, 2), Size(6, 3))
NAMES = [*engines(), ONE_PROCESS]
F1B, GPIPE = GOALS


def asked(*words):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return parser.parse_args(["pipeline", *words])


def spoilt(spoil, rank=0):
    """An engine whose gradients are right before `spoil` has changed them on one rank."""

    def make(comm, stage, size, batch):
        step = ours(gpipe)(comm, stage, size, batch)

        def spoilt_step():
            step()
            if comm.rank == rank:
                spoil(stage)

        return spoilt_step

    return make


def scale(stage):
    stage.blocks["1"].ffn.down.weight.grad[0, 0] *= 1.01


def lose(stage):
    stage.blocks["1"].attention.qkv.bias.grad = None


def lose_all(stage):
    stage.zero_grad()


def make_nan(stage):
    stage.blocks["1"].ffn.up.bias.grad[0] = float("nan")


# ---- on the ranks ----


@pytest.mark.parametrize("family", [naive, gpipe], ids=lambda f: f.__name__)
def test_a_right_engine_has_the_gradients_of_one_process(family):
    found = differences(Alone(), Task(SIZES, 1, TINY), {"right": ours(family)})
    assert 0 <= found["right"] <= bench.CLOSE


@pytest.mark.parametrize("spoil", [scale, lose, lose_all, make_nan], ids=lambda f: f.__name__)
def test_an_engine_with_wrong_gradients_is_told_from_a_right_one(spoil):
    contestants = {"wrong": spoilt(spoil), "right": ours(gpipe)}
    found = differences(Alone(), Task(SIZES, 1, TINY), contestants)
    assert found["wrong"] > 100 * bench.CLOSE
    assert found["right"] <= bench.CLOSE


def test_an_engine_that_is_wrong_at_a_later_size_only_is_wrong():
    def make(comm, stage, size, batch):
        return spoilt(lose if size == SIZES[1] else lambda stage: None)(comm, stage, size, batch)

    assert differences(Alone(), Task(SIZES, 1, TINY), {"wrong": make})["wrong"] > 1


def test_every_engine_has_its_turn_in_each_repetition_and_none_always_follows_the_same():
    orders = [turns(NAMES, repetition) for repetition in range(10)]
    assert all(sorted(order) == sorted(NAMES) for order in orders)
    assert {order[0] for order in orders} == set(NAMES)
    before = {name: set() for name in NAMES}
    for order in orders:
        for earlier, later in pairwise(order):
            before[later].add(earlier)
    assert all(len(others) > 1 for others in before.values())


# ---- what times say ----


def test_the_ideal_is_an_even_share_of_the_work_and_the_bubble():
    assert ideal_s(8.0, 2, 4) == pytest.approx(8 / 2 * 5 / 4)
    assert ideal_s(9.0, 3, 1) == pytest.approx(9.0)  # one micro-batch: no two stages overlap


def test_figures_are_least_and_median_over_the_ideal_of_the_same_kind_and_over_the_peer():
    times = {F1B.engine: [3.0, 1.5, 2.0], F1B.peer: [4.0, 9.0, 5.0], ONE_PROCESS: [3.2, 1.6, 8.0]}
    ours, peer, alone = figures(times, n_ranks=2, n_microbatches=4)
    assert ours[:3] == (F1B.engine, 1.5, 2.0)
    assert ours[3:] == pytest.approx((1.5 / 1.0, 2.0 / 2.0, 2.0 / 5.0))
    assert peer.of_peer is None and alone.of_peer is None
    assert alone.least_of_ideal == alone.median_of_ideal == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((0.90, 0.95, 1.90), "held"),
        ((0.95,), "held"),
        ((0.951,), "missed"),
        ((0.10, 0.96, 0.97), "missed"),
        ((float("nan"),), "missed"),
    ],
)
def test_a_goal_is_held_or_missed_by_the_median_of_the_runs(ratios, word):
    assert Verdict(Goal("ours", "theirs", 0.95), SIZES[0], ratios).word == word


def test_the_summary_names_what_was_missed_and_nothing_else():
    held, missed = (Verdict(GPIPE, SIZES[0], (ratio,)) for ratio in (0.95, 0.96))
    assert summary([held, held]) == "Every goal was held."
    assert summary([held, missed]) == (
        "Missed: mpedu GPipe at B=2 M=2 takes 0.960 of the time of torch ScheduleGPipe; "
        "the goal is at most 0.95."
    )


def test_verdicts_are_on_each_goal_at_each_size_by_the_medians_of_each_run():
    def times(f1b):
        peers = {goal.peer: [7.0, 1.0, 2.0] for goal in GOALS}
        return {**peers, F1B.engine: [f1b, 0.1, 9.0], GPIPE.engine: [1.9] * 3}

    runs = [{size: times(f1b) for size in SIZES} for f1b in (1.0, 4.0, 2.0)]
    found = verdicts(runs)
    assert [(verdict.goal, verdict.size) for verdict in found] == [
        (goal, size) for goal in GOALS for size in SIZES
    ]
    assert found[0].ratios == (0.5, 2.0, 1.0) and found[0].word == "held"
    assert found[-1].ratios == pytest.approx([0.95] * 3)


def test_the_goals_name_engines_that_are_timed_and_are_those_of_the_course():
    assert [name for goal in GOALS for name in goal[:2]] == list(engines())
    assert [goal.at_most for goal in GOALS] == [1.0, 0.95]


# ---- the command ----


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A whole small run: its status, its JSON, and the tables it showed."""
    file = tmp_path_factory.mktemp("bench") / "bench.json"
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr(bench, "_task", lambda args: Task(SIZES, 2, TINY))
        patch.setattr(bench, "shower", lambda: lambda *table: printed.append(table))
        args = asked("--runs", "2", "--repetitions", "3", "--json", str(file))
        status = bench.run(args)
    return status, json.loads(file.read_text(encoding="utf-8")), printed


def test_a_benchmark_ends_well_whatever_the_times_are(measured):
    assert measured[0] == 0


def test_json_holds_every_time_of_every_engine(measured):
    _, found, _ = measured
    assert len(found["runs"]) == 2
    for run in found["runs"]:
        assert run["cores_used_by_others"] >= 0
        assert [each["size"]["n_samples"] for each in run["sizes"]] == [2, 6]
        for each in run["sizes"]:
            assert sorted(each["seconds"]) == sorted(NAMES)
            assert all(len(times) == 3 and min(times) > 0 for times in each["seconds"].values())
    assert set(found["gradients"]) == set(engines())
    assert max(found["gradients"].values()) <= bench.CLOSE
    assert found["machine"]["torch"] == torch.__version__


def test_every_run_and_size_has_a_full_table_and_the_last_one_the_verdicts(measured):
    _, found, printed = measured
    assert [title for title, _, _ in printed] == [
        "run 1, B=2 M=2, 3 repetitions",
        "run 1, B=6 M=3, 3 repetitions",
        "run 2, B=2 M=2, 3 repetitions",
        "run 2, B=6 M=3, 3 repetitions",
        "median of the runs, time of mpedu / time of torch",
    ]
    for _, header, rows in printed[:-1]:
        assert header == COLUMNS
        assert [row[0] for row in rows] == NAMES
        assert [bool(row[-1]) for row in rows] == [True, False, True, False, False]
    header, rows = printed[-1][1:]
    assert [row[header.index("verdict")] for row in rows] == [
        verdict["verdict"] for verdict in found["verdicts"]
    ]
    for row, verdict in zip(rows, found["verdicts"], strict=True):
        held = verdict["median"] <= verdict["at_most"]
        assert row[-1] == ("held" if held else "missed")
        assert len(verdict["ratios"]) == 2


def test_nothing_is_timed_where_the_gradients_of_an_engine_are_wrong(capfd):
    contestants = {"right": ours(gpipe), "wrong": spoilt(scale, rank=1)}
    with pytest.raises(Failure, match=r"^the gradients of wrong differ by \d\.\de-\d\d .* nothing"):
        bench.bench(Task(SIZES, 2, TINY), contestants, 1, 1, lambda *table: pytest.fail("timed"))


def test_a_rank_that_fails_is_one_failure_that_names_it():
    def make(comm, stage, size, batch):
        raise OSError("no more room")

    with pytest.raises(Failure, match=r"rank . failed: OSError: no more room"):
        bench.bench(Task(SIZES, 2, TINY), {"sick": make}, 1, 1, lambda *table: None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "0"], "runs=0 is too small; give runs >= 1"),
        (["--repetitions", "-3"], "repetitions=-3 is too small; give repetitions >= 1"),
        (["--ranks", "1"], "ranks=1 is too small; give ranks >= 2"),
        (["--ranks", "9"], "--ranks 9 with a model of 8 blocks; give 2 to 8"),
        (["--samples", "8"], "--samples has 1 numbers and --microbatches 2"),
        (["--samples", "8", "9"], "B=9 M=8: torch needs micro-batches of one size"),
        (["--microbatches", "1", "8"], "microbatches=1 is too small; give microbatches >= 2"),
        (["--samples", "0", "16"], "samples=0 is too small; give samples >= 1"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(words, said):
    with pytest.raises(ValueError) as refused:
        bench.run(asked(*words))
    assert str(refused.value).startswith(said)


def test_a_json_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path):
    with pytest.raises(FileNotFoundError):
        bench.run(asked("--json", str(tmp_path / "absent" / "bench.json")))


@pytest.mark.parametrize(
    ("load", "cores", "is_busy"),
    [(0.1, 2, False), (0.6, 2, True), (0.6, 8, False), (None, 2, False)],
)
def test_a_busy_machine_is_told(load, cores, is_busy):
    machine = {"cores": cores, "load_average": load, "python": "3.11.7", "torch": "2.13.0"}
    text = bench._heading(Task(), machine)
    assert ("machine is busy: do not trust" in text) == is_busy
    assert f"{cores} cores, load average {'unknown' if load is None else load}" in text


def test_a_run_that_others_disturbed_is_told():
    assert bench._disturbance(0.04) == "other processes used 0.04 cores meanwhile."
    assert "do not trust the figures" in bench._disturbance(0.9)


def test_work_of_other_processes_is_counted():
    before_s, own_s = bench._busy_s(), time.process_time()
    while time.process_time() < own_s + 0.3:
        pass
    assert bench._busy_s() >= before_s + 0.2


def test_without_a_terminal_a_table_is_plain_and_aligned(capsys):
    show_plain("title", ["engine", "ms"], [["ours", "1.0"], ["of others", "123.4"]])
    assert capsys.readouterr().out == (
        "\ntitle\nengine        ms\nours         1.0\nof others  123.4\n"
    )


def test_on_a_terminal_a_table_has_the_same_words(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shower()("title", ["engine", "ms"], [["ours", "1.0"]])
    said = capsys.readouterr().out
    assert all(word in said for word in ("title", "engine", "ms", "ours", "1.0"))
