"""The benchmark: what is timed in which order, when it refuses to time, and what its times say."""

import argparse
import json
import time
from itertools import pairwise

import pytest
import torch

from mpedu.alone import Alone
from mpedu.bench import command as bench
from mpedu.bench.engines import (
    OURS,
    PEERS,
    TORCHS,
    Engine,
    Task,
    chosen,
    engines,
    ours,
    require_fit,
    torchs,
)
from mpedu.bench.figures import HALVES, ONE_PROCESS, WHOLE_BACKWARD, Round, Size, Times, figures
from mpedu.bench.goals import F1B, GPIPE, NAIVE, Goal, Verdict, goals, summary, verdicts
from mpedu.bench.race import check, turns
from mpedu.bench.tables import COLUMNS, show_plain, shower
from mpedu.faults import Failure
from mpedu.model import GPTConfig

TINY = GPTConfig(vocab_size=11, n_layers=4, d_model=8, n_heads=2, n_positions=5)
SIZES = (Size(4, 4), Size(6, 6))
NAMES = [*engines(), ONE_PROCESS]
MEASURED = [*chosen(["1f1b", "naive", "zbv", "dualpipe-v", "Schedule1F1B", "ScheduleDualPipeV"])]
GOALS = goals(PEERS)


def asked(*words):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return parser.parse_args(["pipeline", *words])


def spoilt(spoil, rank=0):
    """An engine whose gradients are right before `spoil` has changed them on one rank."""
    right = ours("gpipe")

    def make(comm, stages, size, batch):
        step = right.make(comm, stages, size, batch)

        def spoilt_step():
            step()
            if comm.rank == rank:
                spoil(stages[rank])

        return spoilt_step

    return right._replace(name="wrong", make=make)


def scale(stage):
    stage.blocks["1"].ffn.down.weight.grad[0, 0] *= 1.01


def lose(stage):
    stage.blocks["1"].attention.qkv.bias.grad = None


def lose_all(stage):
    stage.zero_grad()


def make_nan(stage):
    stage.blocks["1"].ffn.up.bias.grad[0] = float("nan")


# ---- on the ranks ----


@pytest.mark.parametrize("name", OURS)
def test_a_right_engine_has_the_gradients_of_one_process(name):
    found = check(Alone(), Task(SIZES, 1, TINY), {"right": ours(name)})
    assert 0 <= found.differences["right"] <= bench.CLOSE


@pytest.mark.parametrize("spoil", [scale, lose, lose_all, make_nan], ids=lambda f: f.__name__)
def test_an_engine_with_wrong_gradients_is_told_from_a_right_one(spoil):
    contestants = {"wrong": spoilt(spoil), "right": ours("gpipe")}
    found = check(Alone(), Task(SIZES, 1, TINY), contestants).differences
    assert found["wrong"] > 100 * bench.CLOSE
    assert found["right"] <= bench.CLOSE


def test_an_engine_that_is_wrong_at_a_later_size_only_is_wrong():
    wrong, right = spoilt(lose), ours("gpipe")

    def make(comm, stages, size, batch):
        return (wrong if size == SIZES[1] else right).make(comm, stages, size, batch)

    late = right._replace(make=make)
    assert check(Alone(), Task(SIZES, 1, TINY), {"late": late}).differences["late"] > 1


def test_peak_bytes_are_those_of_what_a_schedule_holds():
    """One rank alone: GPipe holds all micro-batches, 1F1B one, naive the whole batch at once."""
    names = ("gpipe", "1f1b", "naive")
    config = GPTConfig(vocab_size=11, n_layers=2, d_model=32, n_heads=2, n_positions=16)
    task = Task((Size(8, 8),), 1, config)
    held = check(Alone(), task, {name: ours(name) for name in names}).peaks[task.sizes[0]]
    assert held["1f1b"] < held["gpipe"]
    assert held["gpipe"] > 0.7 * held["naive"] > 2 * held["1f1b"]
    assert held["1f1b"] == pytest.approx(held[ONE_PROCESS], rel=0.1)


def test_every_engine_has_its_turn_in_each_repetition_and_none_always_follows_the_same():
    orders = [turns(NAMES, repetition) for repetition in range(2 * len(NAMES))]
    assert all(sorted(order) == sorted(NAMES) for order in orders)
    assert {order[0] for order in orders} == set(NAMES)
    before = {name: set() for name in NAMES}
    for order in orders:
        for earlier, later in pairwise(order):
            before[later].add(earlier)
    assert all(len(others) > 1 for others in before.values())


# ---- what times say ----


def times(*seconds, cpu_s=(1.0,)):
    return Times(seconds, cpu_s)


def test_the_ideal_is_an_even_share_of_the_work_and_the_bubble():
    assert Round({}, Size(8, 4), 2).ideal_s(8.0) == pytest.approx(8 / 2 * 5 / 4)
    assert Round({}, Size(8, 1), 3).ideal_s(9.0) == pytest.approx(9.0)  # no two stages overlap


def test_figures_are_least_and_median_over_the_ideal_of_the_same_kind_and_over_the_peer():
    of = {
        F1B: times(3.0, 1.5, 2.0, cpu_s=(4.0, 2.2, 1.0)),
        PEERS[F1B]: times(4.0, 9.0, 5.0),
        ONE_PROCESS: times(3.2, 1.6, 8.0, cpu_s=(2.0, 2.0)),
        HALVES: times(1.0),
    }
    ours, peer, alone = figures(Round(of, Size(8, 4), 2), PEERS)
    assert ours[:3] == (F1B, 1.5, 2.0)
    assert ours[3:] == pytest.approx((1.5 / 1.0, 2.0 / 2.0, 2.0 / 5.0, 2.2 / 2.0))
    assert peer.of_peer is None and alone.of_peer is None
    assert alone.least_of_ideal == alone.median_of_ideal == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("at_least", "values", "word"),
    [
        (False, (0.90, 0.95, 1.90), "held"),
        (False, (0.95,), "held"),
        (False, (0.951,), "missed"),
        (False, (0.10, 0.96, 0.97), "missed"),
        (False, (0.90, 0.97), "missed"),
        (False, (float("nan"),), "missed"),
        (True, (0.90, 0.95, 1.90), "held"),
        (True, (0.90, 0.94, 1.90), "missed"),
    ],
)
def test_a_goal_that_is_missed_in_half_of_the_runs_is_missed(at_least, values, word):
    goal = Goal("ours", (), len, 0.95, at_least)
    assert Verdict(goal, SIZES[0], values).word == word


def test_the_summary_names_what_was_missed_and_nothing_else():
    goal = next(goal for goal in GOALS if goal.needs == (GPIPE, PEERS[GPIPE]))
    held, missed = (Verdict(goal, SIZES[0], (value,)) for value in (0.92, 0.93))
    assert summary([held, held]) == "All 2 goals were held."
    assert summary([held, missed]) == (
        "Missed: time of mpedu gpipe / torch ScheduleGPipe at B=4 M=4 is 0.930; "
        "the goal is <= 0.92."
    )
    assert "about these engines" in summary([])


def full_round(size, **seconds):
    """A round in which everything takes 1 s and 1 s of CPU time but what is said."""
    of = {name: times(1.0) for name in [*NAMES, HALVES, WHOLE_BACKWARD]}
    said = {F1B: "f1b", NAIVE: "naive", ONE_PROCESS: "alone", HALVES: "halves"}
    said |= {GPIPE: "gpipe", PEERS[GPIPE]: "torch_gpipe"}
    for name, key in said.items():
        if key in seconds:
            of[name] = times(seconds[key], 2 * seconds[key], cpu_s=(seconds[key],))
    return Round(of, size, 2)


def test_goals_are_those_of_the_course_at_every_size_and_naive_at_eight_microbatches_only():
    sizes = Task().sizes
    found = verdicts([[full_round(size) for size in sizes]], GOALS)
    asked = [(each.goal.text, each.goal.bound) for each in found if each.size == sizes[1]]
    assert [bound for _, bound in asked] == (
        "<= 1.08,<= 1.12,<= 0.97,<= 0.92,<= 0.97,<= 1.00,>= 1.55,<= 1.06,<= 1.06,"
        "<= 1.00,<= 1.00,<= 1.00,<= 1.00,<= 1.00,<= 1.05"
    ).split(",")
    assert [each.size for each in found if NAIVE in each.goal.needs] == [Size(16, 8)]
    assert len(found) == 14 * 3 + 1


def test_verdicts_take_each_figure_from_the_times_it_names():
    found = full_round(Size(16, 8), f1b=1.0, naive=1.6, alone=1.6, halves=1.04, torch_gpipe=2.0)
    values = {each.goal.text: each.values[0] for each in verdicts([[found]], GOALS)}
    assert values[f"least time of {F1B} / ideal"] == pytest.approx(1.0 / (1.6 / 2 * 9 / 8))
    assert values[f"time of {F1B} / ideal"] == pytest.approx(1.5 / (2.4 / 2 * 9 / 8))
    assert values[f"time of {NAIVE} / {F1B}"] == pytest.approx(1.6)
    assert values[f"time of {GPIPE} / {PEERS[GPIPE]}"] == pytest.approx(1 / 3)
    assert values[f"CPU time of {F1B} / {ONE_PROCESS}"] == pytest.approx(1 / 1.6)
    assert values[f"time of {HALVES} / {WHOLE_BACKWARD}"] == pytest.approx(1.56)


def test_of_several_runs_a_verdict_has_a_value_each_and_goals_without_their_engines_are_left_out():
    runs = [[full_round(Size(16, 16), f1b=f1b)] for f1b in (1.0, 4.0, 2.0)]
    for (found,) in runs:
        for name in list(found.times):
            if name not in (F1B, ONE_PROCESS):
                del found.times[name]
    found = verdicts(runs, GOALS)
    assert {name for each in found for name in each.goal.needs} == {F1B, ONE_PROCESS}
    assert found[-1].values == (1.0, 4.0, 2.0)


def test_each_of_torchs_engines_has_one_of_ours_on_the_same_stages():
    known = engines()
    assert len(known) == len(OURS) + len(TORCHS) == 16
    for mine, peer in PEERS.items():
        assert known[mine].placement == known[peer].placement


# ---- the command ----


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A whole small run: its status, its JSON, the tables it showed, and its picture's file."""
    folder = tmp_path_factory.mktemp("bench")
    file, picture = folder / "bench.json", folder / "bench.png"
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr(bench, "_task", lambda args: Task(SIZES, 2, TINY))
        patch.setattr(bench, "shower", lambda: lambda *table: printed.append(table))
        words = ["--runs", "2", "--repetitions", "3", "--json", str(file)]
        words += ["--picture", str(picture), "--engines", ",".join(MEASURED)]
        status = bench.run(asked(*words))
    return status, json.loads(file.read_text(encoding="utf-8")), printed, picture


def test_a_benchmark_ends_well_whatever_the_times_are(measured):
    assert measured[0] == 0
    assert measured[3].read_bytes().startswith(b"\x89PNG")


def test_json_holds_every_time_of_every_engine(measured):
    found = measured[1]
    assert len(found["runs"]) == 2
    for run in found["runs"]:
        assert run["cores_used_by_others"] >= 0
        assert [each["size"]["n_samples"] for each in run["sizes"]] == [4, 6]
        for each in run["sizes"]:
            for unit in ("seconds", "cpu_seconds"):
                assert set(each[unit]) == {*MEASURED, ONE_PROCESS, HALVES, WHOLE_BACKWARD}
                assert all(len(times) == 3 and min(times) > 0 for times in each[unit].values())
    assert set(found["gradients"]) == set(MEASURED)
    assert max(found["gradients"].values()) <= bench.CLOSE
    for each in found["peak_bytes"]:
        assert set(each["ranks"]) == {*MEASURED, ONE_PROCESS}
        assert all(len(ranks) == 2 and min(ranks) > 0 for ranks in each["ranks"].values())
    assert found["machine"]["torch"] == torch.__version__


def test_every_run_and_size_has_a_full_table_and_the_last_one_the_verdicts(measured):
    _, found, printed, _ = measured
    assert [title for title, _, _ in printed] == [
        "run 1, B=4 M=4, 3 repetitions",
        "run 1, B=6 M=6, 3 repetitions",
        "run 2, B=4 M=4, 3 repetitions",
        "run 2, B=6 M=6, 3 repetitions",
        "goals",
    ]
    for _, header, rows in printed[:-1]:
        assert header == COLUMNS
        assert [row[0] for row in rows] == [*MEASURED, ONE_PROCESS]
        with_peer = [row[0] for row in rows if row[header.index("mpedu/torch")]]
        assert with_peer == [name for name in MEASURED if PEERS.get(name) in MEASURED]
    header, rows = printed[-1][1:]
    assert len(rows) == len(found["verdicts"]) > 4
    for row, verdict in zip(rows, found["verdicts"], strict=True):
        assert row[header.index("verdict")] == verdict["verdict"] in ("held", "missed")
        assert len(verdict["values"]) == 2


def test_nothing_is_timed_where_the_gradients_of_an_engine_are_wrong(capfd):
    contestants = {"right": ours("gpipe"), "wrong": spoilt(lose_all, rank=1)}
    with pytest.raises(Failure, match=r"^the gradients of wrong differ by inf .* nothing"):
        bench.bench(Task(SIZES, 2, TINY), contestants, 1, 1, lambda *table: pytest.fail("timed"))


def test_a_rank_that_fails_is_one_failure_that_names_it():
    def make(comm, stages, size, batch):
        raise OSError("no more room")

    sick = {"sick": Engine("sick", "straight", make)}
    with pytest.raises(Failure, match=r"rank . failed: OSError: no more room"):
        bench.bench(Task(SIZES, 2, TINY), sick, 1, 1, lambda *table: None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "0"], "runs=0 is too small; give runs >= 1"),
        (["--repetitions", "-3"], "repetitions=-3 is too small; give repetitions >= 1"),
        (["--ranks", "1"], "ranks=1 is too small; give ranks >= 2"),
        (["--ranks", "9"], "--ranks 9: mpedu naive cuts the model into 9 stages, and it has 8"),
        (["--ranks", "5"], "--ranks 5: mpedu looped-bfs cuts the model into 10 stages"),
        (["--samples", "8"], "--samples has 1 numbers and --microbatches 3"),
        (["--samples", "8", "9", "16"], "B=9 M=8: torch needs micro-batches of one size"),
        (["--microbatches", "1", "8", "16"], "mpedu dualpipe-v cannot run B=8 M=1 on 2 ranks"),
        (["--microbatches", "2", "8", "16"], "mpedu dualpipe-v cannot run B=8 M=2 on 2 ranks"),
        (["--samples", "0", "16", "16"], "samples=0 is too small; give samples >= 1"),
        (["--engines", "1f1b,2f2b"], "engine '2f2b' is unknown; choose among naive, gpipe, 1f1b"),
        (["--picture", "chart.pdf"], "--picture chart.pdf; give a name ending in .png or .svg"),
        (["--device", "cuda", "--ranks", "64"], "--device cuda with 64 ranks, and torch finds"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as refused:
        bench.run(asked(*words))
    assert str(refused.value).startswith(said)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "n_ranks", "n_microbatches"), [
    ("ScheduleDualPipeV", 2, 3), ("Schedule1F1B", 3, 2), ("ScheduleInterleaved1F1B", 2, 5),
    ("ScheduleInterleavedZeroBubble", 3, 7),
])  # fmt: skip
def test_what_torch_refuses_is_known_before_it_is_asked(name, n_ranks, n_microbatches):
    engine, task = torchs(name), Task((Size(n_microbatches, n_microbatches),), n_ranks)
    with pytest.raises(ValueError, match=rf"^torch {name} cannot run .* torch asks for"):
        require_fit(task, [engine])
    assert engine.problem(n_ranks, 4 * n_ranks) == ""


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
