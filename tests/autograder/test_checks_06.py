import math
import random
from fractions import Fraction

import pytest
from judged import SECRETS, Asked, judged, run_check

from autograder import oracle_06
from autograder.bank.unit_06 import RIGHT
from autograder.checks.unit_06 import WITHHELD, sealed_runs
from autograder.exercise import find_exercise, load_unit
from autograder.judge import judge
from autograder.withhold import withheld
from mpedu import cost, families
from mpedu.faults import Withheld
from mpedu.schedule import Action, peak_in_flight
from mpedu.simulate import Costs, simulate

UNIT = load_unit("06")
SIZES = [(k, m, v) for k in (1, 2, 3, 4, 6) for m in (1, 2, 4, 5, 9, 12) for v in (1, 2, 3)]


@pytest.mark.parametrize("sizes", SIZES)
def test_the_truths_are_those_of_the_package(sizes):
    k, m, v = sizes
    assert oracle_06.bubble_interleaved(*sizes) == pytest.approx(cost.bubble_interleaved(*sizes))
    assert oracle_06.zero_bubble_h1(k, m) == families.zero_bubble_h1(k, m)
    if v > 1:
        schedule = oracle_06.interleaved(*sizes)
        assert schedule == families.interleaved_1f1b(*sizes)
        if m % k == 0:
            timeline = simulate(schedule, Costs(3, 5))
            assert timeline.makespan_s == oracle_06.least_interleaved_s(sizes, (3, 5))
            assert peak_in_flight(schedule) == oracle_06.most_held(*sizes)


@pytest.mark.parametrize("family", ["naive", "gpipe", "one_f_one_b"])
@pytest.mark.parametrize("pair", [(1, 2), (2, 3), (3, 2), (4, 5)])
def test_no_other_place_of_w_is_faster_than_the_one_that_fills_gaps(family, pair):
    """W at random places after its I, thousands of times."""
    given = getattr(families, family)(*pair)
    least_s = oracle_06.makespan_s(oracle_06.filled(given))
    rng = random.Random(1)
    for _ in range(300):
        tried = []
        for actions in oracle_06.halved(given, lambda rank: 0):
            order = [a for a in actions if a.kind != "W"]
            for action in [a for a in order if a.kind == "I"]:
                places = range(order.index(action) + 1, len(order) + 1)
                order.insert(rng.choice(places), action._replace(kind="W"))
            tried.append(order)
        assert oracle_06.makespan_s(tried) >= least_s


def test_nothing_withheld_is_needed_for_the_truths():
    with withheld(WITHHELD):
        assert oracle_06.makespan_s(oracle_06.zero_bubble_h1(4, 8)) == 27
        assert oracle_06.bubble_interleaved(4, 8, 2) == Fraction(3, 19)
        with pytest.raises(Withheld, match="split refuses while it is checked"):
            families.interleaved.split([(0, 0)], 0)


def test_a_shorter_warm_up_passes_and_one_chunk_may_be_plain_1f1b():
    source = RIGHT[0].source.replace(
        "warm_up = 2 * (n_ranks - 1 - rank)", "warm_up = (n_ranks - 1 - rank)"
    )
    plain = source.replace(
        "    n_groups = max(1, n_microbatches // n_ranks)",
        "    if n_chunks == 1:\n        return one_f_one_b(n_ranks, n_microbatches)\n"
        "    n_groups = max(1, n_microbatches // n_ranks)",
    )
    assert source != RIGHT[0].source and plain != source
    for answer in (source, plain):
        for exercise_id in ("interleaved_1f1b", "interleaved_1f1b_fast"):
            assert judged(find_exercise(exercise_id), answer, SECRETS[0]).status == "passed"


def test_schedules_asked_reach_all_kinds_of_sizes():
    for secret in (False, True):
        asked = Asked("06")
        run_check(find_exercise("interleaved_1f1b"), asked, secret)
        sizes = [args for _, args in asked.calls if min(args) > 0]
        assert any(m % k for k, m, _ in sizes) and any(m < k for k, m, _ in sizes)
        assert any(k == 1 for k, _, _ in sizes) and any(v == 1 for _, _, v in sizes)
        assert any(m > k and m % k for k, m, _ in sizes) and max(v for _, _, v in sizes) >= 3
        asked = Asked("06")
        run_check(find_exercise("delay_weight_gradients_fast"), asked, secret)
        given = [args[0] for _, args in asked.calls]
        assert any(max(a.stage for r in one for a in r) >= len(one) for one in given)


def swapped(got, args, rng):
    """Two neighbours in one list that differ."""
    actions = rng.choice([one for one in got if len(set(one)) > 1])
    at = rng.randrange(len(actions) - 1)
    actions[at], actions[at + 1] = actions[at + 1], actions[at]
    return got


def dropped(got, args, rng):
    actions = rng.choice(got)
    del actions[rng.randrange(len(actions))]
    return got


def another(got, args, rng):
    actions = rng.choice(got)
    at = rng.randrange(len(actions))
    kind, stage, m = actions[at]
    others = [Action(kind, stage + rng.choice([-1, 1]), m), Action(kind, stage, m + 1)]
    actions[at] = rng.choice([*others, Action("B" if kind != "B" else "F", stage, m)])
    return got


def moved_layer(got, args, rng):
    own = rng.choice(got)
    at = rng.randrange(len(own))
    first, last = own[at]
    own[at] = (first + rng.choice([-1, 1]), last)
    return got


def more(got, args, rng):
    return got + rng.choice([-1, 1]) * 1e-9


def other_cause(got, args, rng):
    return rng.choice([cause for cause in sealed_runs.CAUSES if cause != got])


SPOILED = {
    "chunk_layers": [moved_layer],
    "interleaved_1f1b": [dropped, another],
    "bubble_interleaved": [more],
    "delay_weight_gradients": [dropped, another],
    "zero_bubble_h1": [dropped, another],
    "timeline_cause": [other_cause],
}


def gives_an_answer(name, args):
    if name == "chunk_layers":
        return min(args) > 0 and args[0] >= args[1] * args[2]
    return not isinstance(args[0], int) or min(args) > 0


@pytest.mark.parametrize("secret", [None, SECRETS[0]], ids=["public", "secret"])
@pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
def test_one_spoiled_answer_among_all_is_caught(exercise, secret):
    rng = random.Random(exercise.id)
    public, right = Asked("06"), Asked("06")
    judge(exercise, public)
    assert judge(exercise, right, secret).status == "passed"
    asked = list(enumerate(right.calls))[len(public.calls) if secret else 0 :]
    asked = [call for call in asked if gives_an_answer(*call[1])]
    for number, (name, args) in rng.sample(asked, min(8, len(asked))):
        for change in SPOILED[name]:
            subject = Asked("06", change, number, random.Random(number))
            assert judge(exercise, subject, secret).status != "passed", (change.__name__, args)


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {
        "idle-v2": "15.8%",
        "messages-v4": "5",
        "held-v2": "5.5",
        "idle-halves": "11.1%",
        "sealed-longer": "3",
    }
    for guess in UNIT.guesses:
        assert guess.problem(-1) and guess.problem(math.inf)
