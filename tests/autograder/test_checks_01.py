import math

import numpy as np
import pytest
from judged import Asked, names_of, run_check

from autograder.bank.unit_01 import RIGHT
from autograder.checks.unit_01 import cause_mistakes, cost_mistakes, sealed_runs, traffic, trees
from autograder.checks.unit_01.rings import drawn, link_of
from autograder.diagnosis import Case
from autograder.exercise import Draw, find_exercise, find_guess, load_unit
from autograder.notebook import CheckFailed, NotAsked, sealed_run
from autograder.worker.plain import NotPlain
from autograder.worker.protocol import decode, encode
from mpedu.cost import collective_bytes, collective_s
from mpedu.launch import run_ranks
from mpedu.runs import SUM_CAUSES, SumRun
from mpedu.simulated import Simulated, run_simulated
from mpedu.simulated.exchange import Wire

UNIT = load_unit("01")
PROGRAMS = ("ring_all_gather", "ring_reduce_scatter", "ring_all_reduce", "tree_broadcast")


@pytest.mark.parametrize("exercise_id", PROGRAMS)
def test_programs_are_asked_for_one_two_and_many_ranks_and_for_every_kind_of_size(exercise_id):
    n_ranks, remainders = set(), set()
    for number in range(12):
        subject = Asked("01")
        run_check(find_exercise(exercise_id), subject, secret=True, seed=bytes([number]) * 16)
        for _, (_, p, arguments, _) in subject.calls:
            n_ranks.add(p)
            sizes = [len(x) for (x,) in arguments]
            remainders |= {("none", 0 in sizes), ("uneven", sum(sizes) // p % p > 0)}
    assert n_ranks == set(range(1, 9))
    if exercise_id != "tree_broadcast":
        assert {("none", True), ("uneven", True), ("uneven", False)} <= remainders


def test_the_cost_of_a_check_is_that_of_the_package_and_of_the_machine():
    for op in (*cost_mistakes.RINGS_OF, *cost_mistakes.OTHER):
        for p in (1, 2, 4, 8):
            truth = cost_mistakes.seconds(op, 96, p, 0.5, 16.0)
            assert truth == collective_s(op, 96, p, 0.5, 16.0)


def test_the_least_bytes_and_times_of_the_checks_are_those_of_the_package():
    draw = Draw(bytes(32))
    for name, op in (
        ("ring_all_gather", "all_gather"),
        ("ring_reduce_scatter", "reduce_scatter"),
        ("ring_all_reduce", "all_reduce"),
    ):
        case = drawn(draw, name, [12] * 4)
        n = 8 * 12 * (4 if op == "all_gather" else 1)
        link = case.args[2]
        assert traffic.least_sent(case) == collective_bytes(op, n, 4)
        assert traffic.ring_s(case) == collective_s(op, n, 4, *link)
    assert traffic.through_rank_0_s(case) == collective_s("naive_all_reduce", 96, 4, *link)


def test_a_tree_of_any_number_of_ranks_is_no_slower_than_its_rounds():
    (case, *_) = trees.cases(Draw(bytes(32)), "tree_broadcast", [7])
    n, link = trees.given(case)[0].nbytes, case.args[2]
    assert collective_s("broadcast", n, 7, *link) <= trees._rounds_s(case)


def test_a_link_is_drawn_so_that_times_are_whole_seconds():
    link = link_of(Draw(bytes(32)))
    assert link == Wire(int(link.latency_s), 8.0)


def test_a_ring_of_the_clocks_check_is_faster_than_the_way_through_rank_0():
    for number in range(20):
        subject = Asked("01")
        run_check(
            find_exercise("ring_all_reduce_fast"), subject, secret=True, seed=bytes([number]) * 16
        )
        for _, (name, p, arguments, machine) in subject.calls[:2]:
            xs = arguments
            case = Case(name, (p, xs, machine.link))
            assert 1.2 * traffic.ring_s(case) < traffic.through_rank_0_s(case)


# Sealed runs.


def test_the_evidence_of_every_drawn_run_speaks_for_its_planted_cause():
    for seed in range(40):
        runs = sealed_runs.RUNS.drawn(seed)
        assert len(runs) == 24 and {cause for cause, _ in runs} == set(SUM_CAUSES)
        for cause, run in runs:
            assert cause_mistakes.true_cause(run) == cause
            assert 3 <= len(run.given) <= 8


def test_healthy_runs_lie_well_apart_from_late_ones():
    for seed in range(40):
        for cause, run in sealed_runs.RUNS.drawn(seed):
            ratio = run.time_s / cause_mistakes.ring_s(run)
            assert cause != "none" or ratio < 1.4
            assert cause != "in_turn" or ratio > 2.5


def test_a_healthy_run_is_the_machines_own_all_reduce():
    link = Wire(2.0, 8.0)
    given = [[rank * 10 + i for i in range(10)] for rank in range(4)]
    run = sealed_runs.planted_run("none", given, link)
    own = run_simulated(
        lambda comm: comm.all_reduce(np.array(given[comm.rank])).tolist(),
        4,
        (),
        Simulated(link=link),
    )
    assert (run.got, run.time_s) == (own.results, own.timeline.makespan_s)
    # Which rank the rounding up falls on hangs on where a ring begins.
    assert sorted(run.sent_bytes) == sorted(own.meter.total(rank).bytes for rank in range(4))


def test_the_four_shown_runs_hold_four_causes_and_three_right_sums():
    shown = [sealed_run(letter, "01") for letter in "ABCD"]
    causes = {cause_mistakes.true_cause(run) for run in shown}
    assert causes == {"tail_lost", "whole_arrays", "through_rank_0", "in_turn"}
    assert find_guess("sealed-right-sums").result() == 3
    for run in shown:
        assert f"time {run.time_s:g} s" in str(run) and run.given == shown[0].given


def test_a_run_that_is_not_there_is_refused_with_those_that_are():
    assert isinstance(sealed_run(24, "01"), SumRun)
    with pytest.raises(NotAsked, match="letter A to D or a number 1 to 24"):
        sealed_run(25, "01")


# Guesses and hints.


def test_guesses_show_the_results_of_the_text():
    told = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert told == {
        "rank-0-share": "50%",
        "ring-faster": "4.5",
        "break-even-kb": "96",
        "sealed-right-sums": "3",
    }
    for guess in UNIT.guesses:
        assert guess.problem(guess.result()) == ""
        assert guess.problem(-1) and guess.problem(math.nan)


def test_at_break_even_both_ways_take_equally_long():
    n, machine = 1000 * find_guess("break-even-kb").result(), (8, 5e-6, 10e9)
    ring_s, naive_s = (collective_s(op, n, *machine) for op in ("all_reduce", "naive_all_reduce"))
    assert ring_s == pytest.approx(naive_s, rel=1e-12)


# In a notebook, and on real ranks.


def test_an_extra_fails_in_a_notebook_though_it_has_no_points(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = names_of(
        "from autograder.notebook import check\n\ndef tree_broadcast(comm, x):\n    return x\n"
    )
    with pytest.raises(CheckFailed, match="tree_broadcast on 4 ranks: rank 1 returns"):
        exec("check('tree_broadcast')", names)
    exec(RIGHT[0].source, names)
    exec("outcome = check('tree_broadcast')", names)
    assert names["outcome"] is None
    assert capsys.readouterr().out == "E5 Extra: broadcast along a tree: passed.\n"


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize("answer", RIGHT[:2], ids=lambda answer: answer.id)
def test_the_solutions_give_the_same_on_processes_as_on_the_simulated_machine(answer, n_ranks):
    names = names_of(answer.source)

    def program(comm):
        x = np.arange(11) + 100 * comm.rank
        return [
            names["ring_all_gather"](comm, x[: comm.rank]).tolist(),
            names["ring_reduce_scatter"](comm, x).tolist(),
            names["ring_all_reduce"](comm, x).tolist(),
            names["tree_broadcast"](comm, x).tolist(),
            comm.all_reduce(x).tolist(),
        ]

    simulated, real = (
        run_ranks(program, n_ranks, machine=machine).results
        for machine in ("simulated", "processes")
    )
    assert simulated == real
    assert all(result[2] == result[4] for result in real)


def test_a_run_passes_the_wire_and_a_field_of_another_kind_does_not():
    run = sealed_run("A", "01")
    assert decode(encode(run)) == run
    for wrong in (
        run._replace(given=[1, 2]),
        run._replace(got=[["a"]]),
        run._replace(sent_bytes=[1, 2]),
        run._replace(time_s="long"),
    ):
        with pytest.raises(NotPlain, match=r"answer\.\w+ "):
            encode(wrong)


def test_a_run_prints_every_piece_of_evidence():
    run = SumRun([[1, 2], [3, 4]], [[4.0, 6.0], [4.0, 6.5]], (16, 8), 5.0, 2.0, 8.0)
    lines = [line.split() for line in str(run).splitlines() if line]
    assert lines == [
        "2 ranks, 2 elements of 8 bytes; latency 2 s, 8 bytes/s".split(),
        ["rank", "0", "gives", "1", "2"],
        ["rank", "1", "gives", "3", "4"],
        ["rank", "0", "gets", "4", "6"],
        ["rank", "1", "gets", "4", "6.5"],
        ["rank", "0", "sends", "16", "bytes"],
        ["rank", "1", "sends", "8", "bytes"],
        ["time", "5", "s"],
    ]
