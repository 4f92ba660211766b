import math
from fractions import Fraction

from judged import SECRETS, Asked, judged, names_of, run_check

from autograder import oracle
from autograder.exercise import find_exercise, find_guess, load_unit
from autograder.local import LocalSubject
from autograder.seeds import PUBLIC_SECRET
from mpedu.schedule import Action
from mpedu.simulate import simulate_until_stuck

UNIT = load_unit("03")


def test_secret_schedules_reach_twelve_stages_and_forty_microbatches():
    calls = []
    for number in range(20):
        subject = Asked("03")
        run_check(find_exercise("gpipe"), subject, secret=True, seed=bytes([number]) * 16)
        calls += [args for _, args in subject.calls]
    assert max(k for k, _ in calls) == 12 and max(m for _, m in calls) > 35
    assert any(0 < m < k for k, m in calls) and any(k == 1 for k, _ in calls)


def test_timelines_hold_what_the_outline_asks_for():
    subject = Asked("03")
    run_check(find_exercise("idle_share"), subject)
    timelines = [args[0] for _, args in subject.calls if args[0].spans]
    starts = [min(span.start_s for span in timeline.spans) for timeline in timelines]
    assert 5 in starts and 0 in starts
    assert any(len({s.rank for s in t.spans}) < t.n_ranks for t in timelines)
    assert any(t.n_ranks == 1 for t in timelines)
    assert any(len({(s.rank, s.stage) for s in t.spans}) > t.n_ranks for t in timelines)
    assert any(t.spans != sorted(t.spans, key=lambda s: s.start_s) for t in timelines)


def test_bounds_reach_beyond_a_hundred_ten_thousand_and_a_hundred_thousand():
    for seed in (PUBLIC_SECRET, *SECRETS):
        subject = Asked("03")
        run_check(find_exercise("bubble"), subject, secret=seed != PUBLIC_SECRET, seed=seed)
        needs = [
            oracle.min_microbatches(*args)
            for name, args in subject.calls
            if name == "min_microbatches" and 0 < args[1] < 1
        ]
        assert sum(need > 100 for need in needs) >= 2 and any(
            10_000 < need < 100_000 for need in needs
        )
        assert 100_000 < max(needs) < 110_000


def test_a_constant_best_number_is_never_fast():
    always_14 = "def best_microbatches(*args):\n    return 14\n"
    verdict = judged(find_exercise("best_microbatches"), always_14, SECRETS[0])
    assert verdict.score == 0


def test_guesses_show_the_results_of_the_text():
    assert find_guess("idle-m8").form.format(find_guess("idle-m8").result()) == "27.3%"
    assert find_guess("best-m").form.format(find_guess("best-m").result()) == "14"
    assert find_guess("m-for-5-percent").result() == 57
    for guess in UNIT.guesses:
        assert guess.problem(guess.result()) == ""
        assert guess.problem(-1) and guess.problem(math.nan) and guess.problem(10**400)


def test_numbers_in_hints_are_true():
    naive = simulate_until_stuck([[Action(k, s, m) for m in (0, 1) for k in "FB"] for s in (0, 1)])
    assert (naive.makespan_s, oracle.least_makespan_s(2, 2)) == (12, 9)
    assert oracle.bubble_fraction(2, 3) == Fraction(1, 4)
    assert oracle.bubble_over_ideal(2, 3) == Fraction(1, 3)
    assert oracle.min_microbatches(2, 0.25) == 3
    assert oracle.step_time_s(2, 2, 8, 1, 3) == 63
    times = [oracle.step_time_s(2, m, 4, 1, 1) for m in (1, 2, 3, 4)]
    assert times == [30, 27, 28, 30] and oracle.best_microbatches(2, 4, 1, 1) == 2
    assert oracle.split_sizes(7, 3) == [3, 2, 2]


def test_a_part_that_rests_on_a_missed_one_says_no_more_than_that_it_was_not_tried():
    subject = LocalSubject(names_of("def gpipe(k, m):\n    return []"), ["gpipe"])
    first, second = (group.diagnosis for group in run_check(find_exercise("gpipe"), subject))
    assert second.text == first.text
    assert second.general == 'not tried, because "legal schedules" was missed.'
