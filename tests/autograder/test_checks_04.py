import math
import random
from contextlib import suppress

import pytest
from judged import Asked, run_check

from autograder import oracle_04
from autograder.checks.unit_04 import sealed_runs
from autograder.checks.unit_04.chains import Chains
from autograder.diagnosis import StudentError
from autograder.exercise import find_exercise, load_unit
from autograder.local import LocalSubject
from mpedu import cost, recompute

UNIT = load_unit("04")
DATA = [one for one in UNIT.exercises if one.evidence == "data"]


def spoiled(got, args, rng):
    """An answer with a small change, whatever it is."""
    if isinstance(got, str):
        return rng.choice([cause for cause in sealed_runs.CAUSES if cause != got])
    return got + rng.choice([-1, 1])


@pytest.mark.parametrize("exercise", DATA, ids=lambda one: one.id)
def test_one_answer_changed_is_seen(exercise):
    asked = Asked("04")
    run_check(exercise, asked)
    rng = random.Random(1)
    for number, (name, args) in enumerate(asked.calls):
        with suppress(ValueError):  # a call that must raise has no answer to spoil
            asked.names[name](*args)
            groups = run_check(exercise, Asked("04", spoiled, number, rng))
            assert any(group.diagnosis for group in groups), args


CHAIN = pytest.mark.parametrize("exercise", UNIT.exercises[:2], ids=lambda one: one.id)


@CHAIN
def test_a_gradient_of_another_run_is_seen(exercise):
    def stale(run, args, rng):
        return run._replace(results=[run.results[0] + 1])

    n_runs = sum(name == "run_ranks" for name, _ in asked_by(exercise).calls)
    n_answered = n_runs - 4 * (exercise.id == "backward_with_checkpoints")  # refused ones
    for number in range(n_answered):
        groups = run_check(exercise, Asked("04", stale, number))
        assert any(group.diagnosis for group in groups), number


def asked_by(exercise, secret=False):
    asked = Asked("04")
    run_check(exercise, asked, secret)
    return asked


@pytest.mark.parametrize("secret", [False, True], ids=["notebook", "secret"])
def test_chains_hold_what_could_be_forgotten(secret):
    sizes = [args[2][0][1:] for _, args in asked_by(UNIT.exercises[0], secret).calls]
    valid = [(n, s) for n, s in sizes if 1 <= s <= n]
    assert (1, 1) in valid
    assert any(n % s == 0 and 1 < s < n for n, s in valid) and any(n % s > 1 for n, s in valid)
    assert any(n > 3 and all(n % k for k in range(2, n)) for n, _ in valid)  # a prime
    refused = [(n, s) for n, s in sizes if (n, s) not in valid]
    assert {s < 1 for _, s in refused} == {True, False}


@pytest.mark.parametrize("secret", [False, True], ids=["notebook", "secret"])
def test_memory_is_asked_where_checkpoints_save_most_of_it(secret):
    sizes = [args[2][0][1:] for _, args in asked_by(UNIT.exercises[1], secret).calls]
    assert all(oracle_04.most_held(n, s) + 2 < n for n, s in sizes)
    assert any(n % s for n, s in sizes)


def test_a_run_is_told_by_the_function_that_was_asked_for_and_no_rank():
    namespace = {}
    exec("def on_device(comm, device, n, s):\n    return 1 / 0", namespace)
    with pytest.raises(StudentError) as caught:
        Chains(LocalSubject(namespace, ["on_device"])).any_name(3, 1)
    assert caught.value.message.startswith("your code raises ZeroDivisionError")
    exec("def on_device(comm, device, n, s):\n    raise NotImplementedError", namespace)
    with pytest.raises(StudentError, match=r"^`backward_with_checkpoints` is not written yet"):
        Chains(LocalSubject(namespace, ["on_device"])).any_name(3, 1)


@pytest.mark.parametrize("n_layers", range(1, 130))
def test_best_length_and_forwards_are_those_of_the_package(n_layers):
    best = oracle_04.best_segment_length(n_layers)
    assert best == recompute.best_segment_length(n_layers)
    for n_segments in {1, -(-n_layers // 3), n_layers}:
        for keep_last in (False, True):
            args = n_layers, n_segments, keep_last
            assert oracle_04.recompute_forwards(*args) == recompute.recompute_forwards(*args)


@pytest.mark.parametrize("table", [(16, 4, 8), (64, 8, 16), (61, 7, 16), (100, 10, 20)])
def test_the_table_of_lengths_and_peaks_holds(table):
    n_layers, length, peak = table
    assert oracle_04.best_segment_length(n_layers) == length
    assert oracle_04.most_held(n_layers, -(-n_layers // length)) == peak


def test_gpipe_s_peak_is_that_of_the_package():
    rng = random.Random(4)
    for _ in range(200):
        n_layers, n_samples = rng.randint(1, 40), rng.randint(1, 40)
        args = n_samples, n_layers, rng.randint(1, n_layers), rng.randint(1, n_samples)
        for checkpoint in (False, True):
            peak = oracle_04.gpipe_peak_activation(*args, checkpoint)
            assert peak == cost.gpipe_peak_activation(*args, checkpoint)


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {"least-held": "16", "best-pieces": "68", "sealed-wrong": "2"}
    for guess in UNIT.guesses:
        assert guess.problem(-1) and guess.problem(math.nan) and guess.problem(1.5)


def test_the_exercises_are_found_by_the_function_they_ask_for():
    assert find_exercise("on_device").id == "backward_with_checkpoints"
