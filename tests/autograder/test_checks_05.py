import random
from contextlib import suppress

import pytest
from judged import SECRETS, Asked, run_check

from autograder import oracle_05
from autograder.checks.unit_05 import OF_THE_VERIFIER, WITHHELD, sealed_runs
from autograder.exercise import find_exercise, find_guess, load_unit
from autograder.notebook import NotAsked, sealed_run
from autograder.withhold import withheld
from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.schedule import Action, in_flight, needs, peak_in_flight
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

UNIT = load_unit("05")
SIZES = [(k, m) for k in (1, 2, 3, 5) for m in (1, 2, 4, 9)]


@pytest.mark.parametrize("n_stages, n_microbatches", SIZES)
def test_the_truths_are_those_of_the_package(n_stages, n_microbatches):
    schedule = one_f_one_b(n_stages, n_microbatches)
    assert oracle_05.one_f_one_b(n_stages, n_microbatches) == schedule
    peaks = [oracle_05.peak(n_stages, n_microbatches, stage) for stage in range(n_stages)]
    assert peaks == peak_in_flight(schedule)
    assert [oracle_05.in_flight(actions) for actions in schedule] == [*map(in_flight, schedule)]
    assert oracle_05.can_finish(schedule, n_stages, n_microbatches)
    assert not oracle_05.can_finish(schedule, n_stages, n_microbatches + 1)


@pytest.mark.parametrize("seed", range(20))
def test_ready_is_what_the_package_needs_and_a_drawn_order_can_be_run(seed):
    rng = random.Random(seed)
    n_stages, n_microbatches = rng.randint(1, 6), rng.randint(1, 6)
    done = set()
    for action in oracle_05.some_order(n_stages, n_microbatches, rng):
        for asked in oracle_05.all_work(n_stages, n_microbatches):
            due = all(need in done for need in needs(asked, set(), n_stages))
            assert oracle_05.ready(asked, done, n_stages) == due
        assert oracle_05.ready(action, done, n_stages)
        done.add(action)
    assert done == set(oracle_05.all_work(n_stages, n_microbatches))


def test_a_schedule_can_finish_where_the_package_finds_no_fault_but_in_the_order_of_messages():
    asked = Asked("05")
    for seed in SECRETS:
        run_check(find_exercise("can_finish"), asked, secret=True, seed=seed)
    calls = [args for name, args in asked.calls if name == "can_finish"]
    verdicts = {}
    for schedule, *counts in calls:
        faults = {fault.kind for fault in validate_schedule(schedule, *counts)}
        verdict = oracle_05.can_finish(schedule, *counts)
        if faults != {"channel_order"}:
            assert verdict == (not faults), faults
        verdicts.setdefault(verdict, set()).update(faults or {"none"})
    assert verdicts[True] == {"none", "channel_order"}  # what the model clock does not run
    assert {"missing", "repeated", "out_of_range", "cycle"} <= verdicts[False]


@pytest.mark.parametrize("n_stages", range(2, 7))
@pytest.mark.parametrize("latency_s", [0, 0.125, 0.5, 1.0, 3.0])
def test_the_time_that_latency_adds_is_that_of_the_model_clock(n_stages, latency_s):
    for rounds in (1, 2, 5):
        schedule = one_f_one_b(n_stages, n_stages * rounds)
        late, early = (simulate(schedule, Costs(1, 2, latency_s=c)) for c in (latency_s, 0))
        extra_s = oracle_05.extra_time_of_latency_s(n_stages, n_stages * rounds, latency_s)
        assert late.makespan_s - early.makespan_s == extra_s


def test_the_truths_need_nothing_that_is_withheld():
    with withheld(WITHHELD + OF_THE_VERIFIER):
        schedule = oracle_05.one_f_one_b(4, 8)
        assert max(oracle_05.in_flight(schedule[0])) == oracle_05.peak(4, 8, 0) == 4
        assert oracle_05.can_finish(schedule, 4, 8)


@pytest.mark.parametrize("seed", [None, *SECRETS])
def test_each_kind_of_work_is_asked_ready_and_not_ready(seed):
    asked = Asked("05")
    run_check(find_exercise("ready"), asked, **({} if seed is None else {"seed": seed}))
    seen = set()
    for _, (action, done, n_stages) in asked.calls:
        kind = action.kind if action.kind == "F" else f"B{action.stage == n_stages - 1}"
        seen.add((kind, oracle_05.ready(action, done, n_stages)))
        assert action not in done
    assert seen == {(kind, is_ready) for kind in ("F", "BTrue", "BFalse") for is_ready in (0, 1)}


def test_schedules_are_asked_with_few_and_many_microbatches():
    for secret in (False, True):
        asked = Asked("05")
        run_check(find_exercise("one_f_one_b"), asked, secret)
        pairs = [args for _, args in asked.calls if min(args) > 0]
        assert any(m < k - 1 for k, m in pairs) and any(m > 2 * k > 2 for k, m in pairs)
        assert any(k == 1 for k, _ in pairs) and any(m == 1 for _, m in pairs)


def swapped(schedule, rng):
    """Two neighbours of the longest list change places: the same work in another order."""
    actions = max(schedule, key=len)
    place = rng.randrange(len(actions) - 1)
    actions[place], actions[place + 1] = actions[place + 1], actions[place]
    return schedule


def lacking(schedule, rng):
    actions = rng.choice(schedule)
    del actions[rng.randrange(len(actions))]
    return schedule


SPOILED = {
    "in_flight": lambda got, rng: [*got[:-1], got[-1] + 1],
    "one_f_one_b": lacking,
    "one_f_one_b_lean": swapped,
    "one_f_one_b_peak": lambda got, rng: got + rng.choice([-1, 1]),
    "ready": lambda got, rng: not got,
    "can_finish": lambda got, rng: not got,
    "extra_time_of_latency_s": lambda got, rng: got + 1e-6,
}


@pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
def test_one_spoiled_answer_among_all_is_caught(exercise):
    right = Asked("05")
    run_check(exercise, right)
    rng, change = random.Random(exercise.id), SPOILED[exercise.id]
    for number, (name, args) in enumerate(right.calls):
        if name == "in_flight" and not args[0]:
            continue  # nothing in it can be changed
        with suppress(ValueError):  # a call that must raise has no answer to spoil
            right.names[name](*args)
            spoiled = Asked("05", lambda got, args, rng: change(got, rng), number, rng)
            groups = run_check(exercise, spoiled)
            assert any(group.diagnosis for group in groups), args


def test_the_sealed_lists_are_two_that_finish_and_two_that_do_not():
    runs = [sealed_run(letter, "05") for letter in "ABCD"]
    assert sorted(map(str, runs)) == sorted(map(str, map(sealed_runs.planted, sealed_runs.FAULTS)))
    faults = [{fault.kind for fault in validate_schedule(run, 4, 6)} for run in runs]
    assert sorted(map(sorted, faults)) == [[], [], ["cycle"], ["missing"]]
    assert sealed_runs.n_that_train() == 2
    held = {
        tuple(peak_in_flight(run)) for run, kinds in zip(runs, faults, strict=True) if not kinds
    }
    assert held == {(5, 4, 3, 2), (4, 4, 4, 4)}
    with pytest.raises(NotAsked, match="give a letter A to D"):
        sealed_run("E", "05")


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {
        "held-1f1b": "4",
        "makespan-1f1b": "33",
        "sealed-train": "2",
        "latency-1f1b": "41",
    }
    assert find_guess("sealed-train").problem(1.5)


def test_gpipe_is_as_fast_and_holds_more_and_naive_holds_less_and_is_slower():
    timelines = {make: simulate(make(4, 8)) for make in (gpipe, one_f_one_b, naive)}
    assert timelines[gpipe].makespan_s == timelines[one_f_one_b].makespan_s == 33
    assert timelines[naive].makespan_s == 96
    assert Action("F", 0, 4) in one_f_one_b(4, 8)[0]
