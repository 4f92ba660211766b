import math
import re
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from judged import CAUSES, SECRETS, UNIT, Asked, first_diagnosis, judged, names_of, run

from autograder import diagnosis, oracle
from autograder.bank.unit_03 import WRONG
from autograder.checks import unit_03
from autograder.diagnosis import StudentError
from autograder.exercise import find_exercise, find_guess
from autograder.local import LocalSubject
from autograder.seeds import PUBLIC_SECRET
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline, simulate_until_stuck

EXERCISES = pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
# What the formulas of a general sentence may hold; any other digit could be one of a case.
FORMULAS = re.compile(r"K-1|4K|K=1 must give 0|1e-12|1/M")


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_a_wrong_answer_is_caught_without_any_known_mistake(answer, monkeypatch):
    def without_mistakes(subject, cases, differs, mistakes=()):
        return diagnosis.examine(subject, cases, differs)

    monkeypatch.setattr(unit_03, "examine", without_mistakes)
    for exercise_id, (score, _) in answer.expected.items():
        verdict = judged(find_exercise(exercise_id), answer.source)
        assert verdict.score == score
        assert verdict.score == verdict.points or verdict.messages


class WrongOnce:
    """Right but for the first call on which the wrong answer differs from the right one."""

    def __init__(self, source):
        self.right, self.wrong = Asked(), LocalSubject(names_of(source), ())
        self.done = False

    def __getattr__(self, name):
        def answer(*args):
            right = getattr(self.right, name)(*args)
            if self.done:
                return right
            with suppress(StudentError):
                wrong = getattr(self.wrong, name)(*args)
                self.done = repr(wrong) != repr(right)
                return wrong
            return right

        return answer


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_no_cause_is_named_where_it_does_not_explain_every_answer(answer):
    for exercise_id in answer.expected:
        groups = run(find_exercise(exercise_id), WrongOnce(answer.source))
        causes = {group.diagnosis.id for group in groups if group.diagnosis}
        # One bound missed among those met exactly is what a bare ceil does too.
        assert not causes & (CAUSES - {"float_noise"})


STRANGE = [
    None,
    True,
    "text",
    "x" * 100_000,
    {},
    {0: [Action("F", 0, 0)]},
    (),
    [],
    [[]],
    [None],
    [[None]],
    [[["deep"]]],
    [0] * 100_000,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1,
    0,
    2**62,
    Fraction(1, 3),
    Fraction(2**62, 7),
    1 + 2j,
    np.array([1.0]),
    np.zeros((0, 2)),
    Timeline([], 1),
    Costs(),
    Action("F", 0, 0),
    [[Action("F", 0, 0)]],
    [[Action("F", -1, 2**62)] * 2] * 4,
    [("a", "b")] * 4,
    [(True, 1.0)] * 4,
    [(3, math.nan)] * 4,
    [(2**62, 1e308)] * 4,
    [(3, None), (3, 0.3), (2, 0.2), (2, 0.2)],
    [{1, 2}] * 4,
]


class Strange:
    """Gives the same thing, whatever is asked."""

    def __init__(self, thing):
        self.thing = thing

    def __getattr__(self, name):
        return lambda *args: self.thing


@pytest.mark.parametrize("thing", STRANGE, ids=lambda thing: type(thing).__name__)
@EXERCISES
def test_a_strange_answer_draws_a_sentence_and_never_an_exception(exercise, thing):
    for secret in (False, True):
        groups = run(exercise, Strange(thing), secret)
        for group in groups:
            assert group.diagnosis is not None
            assert len(group.diagnosis.text) < 600 and group.diagnosis.text.count("\n") < 12


@EXERCISES
def test_an_unwritten_answer_is_said_to_be_unwritten(exercise):
    stubs = "\n".join(
        f"def {name}(*args):\n    raise NotImplementedError" for name in exercise.names
    )
    verdict = judged(exercise, stubs, SECRETS[0])
    assert (verdict.status, verdict.score) == ("unwritten", 0)


@EXERCISES
def test_an_answer_that_always_raises_earns_nothing(exercise):
    stubs = "\n".join(f"def {name}(*args):\n    raise ValueError(args)" for name in exercise.names)
    verdict = judged(exercise, stubs)
    assert (verdict.score, first_diagnosis(verdict)) == (0, "raised")


@EXERCISES
def test_the_groups_of_an_exercise_hold_its_points_under_different_names(exercise):
    groups = run(exercise, Asked())
    assert sum(group.points for group in groups) == exercise.points
    assert len({group.label for group in groups}) == len(groups)
    assert [g[:2] for g in groups] == [g[:2] for g in run(exercise, Asked(), secret=True)]


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.id)
def test_a_general_sentence_shows_nothing_of_a_case(answer):
    for exercise_id in answer.expected:
        exercise = find_exercise(exercise_id)
        for group in run(exercise, LocalSubject(names_of(answer.source), exercise.names)):
            if group.diagnosis:
                general = FORMULAS.sub("", group.diagnosis.general)
                assert general and not any(character.isdigit() for character in general), general


@EXERCISES
def test_the_drawn_cases_are_others_for_every_secret(exercise):
    asked = []
    for seed in SECRETS:
        subject = Asked()
        run(exercise, subject, secret=True, seed=seed)
        asked.append(set(map(repr, subject.calls)))
    public = Asked()
    run(exercise, public)
    known = set(map(repr, public.calls))
    for calls in asked:
        assert len(calls - known) >= len(calls) / 2
    assert len(asked[0] - asked[1]) >= len(asked[0]) / 3


def test_secret_schedules_reach_twelve_stages_and_forty_microbatches():
    calls = []
    for number in range(20):
        subject = Asked()
        run(find_exercise("gpipe"), subject, secret=True, seed=bytes([number]) * 16)
        calls += [args for _, args in subject.calls]
    assert max(k for k, _ in calls) == 12 and max(m for _, m in calls) > 35
    assert any(0 < m < k for k, m in calls) and any(k == 1 for k, _ in calls)


def test_timelines_hold_what_the_outline_asks_for():
    subject = Asked()
    run(find_exercise("idle_share"), subject)
    timelines = [args[0] for _, args in subject.calls if args[0].spans]
    starts = [min(span.start_s for span in timeline.spans) for timeline in timelines]
    assert 5 in starts and 0 in starts
    assert any(len({s.rank for s in t.spans}) < t.n_ranks for t in timelines)
    assert any(t.n_ranks == 1 for t in timelines)
    assert any(len({(s.rank, s.stage) for s in t.spans}) > t.n_ranks for t in timelines)
    assert any(t.spans != sorted(t.spans, key=lambda s: s.start_s) for t in timelines)


def test_bounds_reach_beyond_a_hundred_ten_thousand_and_a_hundred_thousand():
    for seed in (PUBLIC_SECRET, *SECRETS):
        subject = Asked()
        run(find_exercise("bubble"), subject, secret=seed != PUBLIC_SECRET, seed=seed)
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


@EXERCISES
def test_hints_are_an_idea_a_neighbouring_case_and_a_skeleton(exercise):
    idea, neighbour, skeleton = exercise.hints
    assert idea.startswith("Idea") and neighbour.startswith("Neighbouring case")
    assert skeleton.startswith("Skeleton") and "..." in skeleton
    for name in exercise.names:
        assert f"def {name}" not in skeleton


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
    first, second = (group.diagnosis for group in run(find_exercise("gpipe"), subject))
    assert second.text == first.text
    assert second.general == 'not tried, because "legal schedules" was missed.'
