import math
import random
from contextlib import suppress

import pytest
from judged import Asked, run_check

from autograder import oracle_02
from autograder.checks.unit_02 import sealed_runs
from autograder.exercise import find_exercise, find_guess, load_unit
from mpedu.families import naive
from mpedu.published import ModelConfig, count_parameters, load_model

UNIT = load_unit("02")

EXERCISES = pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)


def spoiled(got, args, rng):
    """An answer with one part changed, whatever it is."""
    if isinstance(got, str):
        return rng.choice([cause for cause in sealed_runs.CAUSES if cause != got])
    if isinstance(got, float):
        return got + rng.choice([-1, 1]) * 1e-6
    if isinstance(got, int):
        return got + rng.choice([-1, 1])
    part = rng.choice(got)
    if isinstance(part, dict):
        part[rng.choice([*part])] += rng.choice([-1, 1])
    else:
        del part[rng.randrange(len(part))]
    return got


# Of tied models the parameters are compared; their other parts were seen with the untied ones.
ONLY_PARAMETERS = "tied_embeddings=True"


@EXERCISES
def test_one_part_of_one_answer_changed_is_seen(exercise):
    asked = Asked("02")
    run_check(exercise, asked)
    rng = random.Random(1)
    for number, (_, args) in enumerate(asked.calls):
        if ONLY_PARAMETERS in repr(args):
            continue
        with suppress(ValueError):  # a call that must raise has no answer to spoil
            asked.names[asked.calls[number][0]](*args)
            groups = run_check(exercise, Asked("02", spoiled, number, rng))
            assert any(group.diagnosis for group in groups), args


@pytest.mark.parametrize("name", ["llama2-7b", "gpt3-175b"])
@pytest.mark.parametrize("n_stages", [1, 5, 8])
def test_the_ranks_together_hold_the_model_and_a_copy_where_it_is_tied(name, n_stages):
    config = load_model(name)
    copy = config.vocabulary_parameters if config.tied_embeddings and n_stages > 1 else 0
    bills = oracle_02.memory_bill(config, n_stages)
    held = sum(bill["parameters"] for bill in bills)
    assert held == 2 * (count_parameters(config).total + copy)
    states = sum(bill[part] for bill in bills for part in oracle_02.BYTES)
    assert states == 8 * held


def test_the_truths_are_those_of_the_package():
    assert oracle_02.naive(3, 4) == naive(3, 4)
    assert oracle_02.boundary_bytes(2, 3, 4, 2, 3) == 192


def test_models_hold_what_could_be_forgotten():
    for secret in (False, True):
        asked = Asked("02")
        run_check(find_exercise("memory_bill"), asked, secret)
        valid = [args for _, args in asked.calls if 1 <= args[1] <= args[0].n_layers]
        assert {config.tied_embeddings for config, *_ in valid} == {True, False}
        assert any(config.tied_embeddings and k == 1 for config, k, _ in valid)
        assert any(config.tied_embeddings and k > 1 for config, k, _ in valid)
        assert any(
            not config.tied_embeddings and config.position_parameters for config, *_ in valid
        )
        assert any(config.n_layers % k for config, k, _ in valid)
        assert any(config.n_layers == k for config, k, _ in valid)
        assert all(isinstance(config, ModelConfig) for config, *_ in valid)


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {
        "speedup-4": "1",
        "message-share": "1.5%",
        "training-gb": "107.8",
        "sealed-over": "1",
    }
    for guess in UNIT.guesses:
        assert guess.problem(guess.result()) == ""
        assert guess.problem(-1) and guess.problem(math.nan) and guess.problem(10**400)
    assert find_guess("sealed-over").problem(1.5)
