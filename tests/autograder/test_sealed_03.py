"""The sealed runs of unit 03: planted causes that their evidence tells, and nothing else does."""

from collections import Counter
from itertools import combinations

import pytest
from judged import SECRETS, Asked, first_diagnosis, judged, run_check

from autograder import oracle
from autograder.bank.unit_03 import WRONG
from autograder.checks.unit_03 import cause_mistakes, sealed_runs
from autograder.diagnosis import Case, StudentError
from autograder.exercise import find_exercise, find_guess
from autograder.judge import judge
from autograder.notebook import NotAsked, sealed_run
from mpedu.runs import CAUSES
from mpedu.validate import validate_schedule

CAUSE = find_exercise("cause")
SEEDS = range(30)
WEIGHTS = [cause for cause in CAUSES if cause not in ("order_differs", "gradients_not_cleared")]


def largest_gap(values, others):
    return max(abs(a - b) / max(abs(a), abs(b), 1e-9) for a, b in zip(values, others, strict=True))


def drawn():
    return [pair for seed in SEEDS for pair in sealed_runs.RUNS.drawn(seed)]


def test_every_planted_cause_is_the_one_that_the_evidence_speaks_for():
    assert [oracle.cause(run) for _, run in drawn()] == [cause for cause, _ in drawn()]


def test_evidence_is_far_apart_and_floats_are_near():
    """Every tolerance between 1e-12 and a hundredth gives the same verdict."""
    for planted, run in drawn():
        healthy = oracle.expected_ratios("none", run)
        if planted in ("none", "gradients_not_cleared"):
            assert largest_gap(run.gradient_ratios, healthy) < 1e-12
            gap = largest_gap(run.losses, run.serial_losses)
            assert gap < 1e-12 if planted == "none" else gap > 0.01
        elif planted != "order_differs":
            assert run.gradient_ratios == pytest.approx(
                oracle.expected_ratios(planted, run), abs=1e-12
            )
        ragged = len(set(run.sizes)) > 1
        for one, other in combinations(WEIGHTS, 2):
            if ragged or {one, other} != {"none", "equal_weights"}:
                ratios = [oracle.expected_ratios(name, run) for name in (one, other)]
                assert largest_gap(*ratios) > 0.05


def test_the_first_loss_tells_nothing():
    assert all(
        run.losses[0] == pytest.approx(run.serial_losses[0], rel=1e-12) for _, run in drawn()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_each_draw_holds_every_cause_with_sizes_and_orders_that_mislead(seed):
    runs = sealed_runs.RUNS.drawn(seed)
    assert len(runs) == 24
    count = Counter(cause for cause, _ in runs)
    assert set(count) == set(CAUSES) and min(count.values()) >= 3
    for cause in CAUSES:
        own = [run for planted, run in runs if planted == cause]
        assert any(len(set(run.sizes)) > 1 for run in own)
        assert cause == "equal_weights" or any(len(set(run.sizes)) == 1 for run in own)
    healthy = [run for cause, run in runs if cause == "none"]
    assert any(orders != sorted(orders) for run in healthy for orders in orders_of(run)[:1])
    kept = [orders_of(run)[0][-1] for cause, run in runs if cause == "only_last_microbatch"]
    assert 0 in kept and len(set(kept)) > 1
    turned = [run for cause, run in runs if cause == "order_differs"]
    assert any(orders_of(run)[0] == orders_of(run)[-1] for run in turned)
    for cause, run in runs:
        assert bool(validate_schedule(run.schedule)) == (cause == "order_differs")
        assert 2 <= run.n_stages <= 6 and 2 <= run.n_microbatches <= 12


def orders_of(run):
    return oracle.backward_orders(run)


def test_draws_reach_both_ends_of_stages_and_microbatches():
    stages = {run.n_stages for _, run in drawn()}
    assert stages == set(range(2, 7))
    assert {run.n_microbatches for _, run in drawn()} == set(range(2, 13))


def test_the_order_of_the_causes_is_another_in_every_draw():
    orders = {tuple(cause for cause, _ in sealed_runs.RUNS.drawn(seed)) for seed in SEEDS}
    assert len(orders) == len(SEEDS)


def test_nothing_but_its_evidence_tells_which_group_a_run_belongs_to():
    asked = Asked("03")
    run_check(CAUSE, asked)
    causes = [oracle.cause(*args) for _, args in asked.calls]
    groups = [{c in names for c in causes[:8]} for names in cause_mistakes.ASKED.groups.values()]
    assert len(causes) == 24 and groups == [{True, False}] * 3


def test_every_cause_belongs_to_one_group():
    grouped = [name for names in cause_mistakes.ASKED.groups.values() for name in names]
    assert sorted(grouped) == sorted(CAUSES)


WRONG_CAUSES = [answer for answer in WRONG if "cause" in answer.expected]


@pytest.mark.parametrize("answer", WRONG_CAUSES, ids=lambda answer: answer.id)
def test_a_message_names_evidence_and_never_the_cause(answer):
    for message in judged(CAUSE, answer.source).messages:
        named = [cause for cause in CAUSES[1:] if cause in message]
        given = message.partition("cause gives ")[2].partition(".")[0].strip("'")
        assert set(named) <= {given} or "the causes are none" in message


def test_a_message_tells_how_to_look_at_its_run():
    (message,) = judged(CAUSE, by_rule("order_differs")).messages
    number = int(message.partition("sealed_run(")[2].partition(")")[0])
    assert oracle.cause(sealed_run(number)) == "order_differs"


def by_rule(missed):
    """The source of an answer right but for one cause, which it calls none."""
    return f"""
from autograder import oracle


def cause(run):
    name = oracle.cause(run)
    return "none" if name == {missed!r} else name
"""


@pytest.mark.parametrize("missed", CAUSES[1:])
def test_a_cause_never_found_costs_one_point_in_every_draw(missed):
    for secret in (None, *SECRETS):
        verdict = judged(CAUSE, by_rule(missed), secret)
        assert verdict.score == 2 and first_diagnosis(verdict)


def test_an_answer_that_raises_for_some_runs_loses_their_groups_only():
    class Raises:
        def cause(self, run):
            if len(set(map(tuple, oracle.backward_orders(run)))) > 1:
                raise StudentError("raised", "your code raises KeyError: 3.", "KeyError")
            return oracle.cause(run)

    groups = run_check(CAUSE, Raises())
    assert [group.diagnosis and group.diagnosis.id for group in groups] == [None, "raised", None]


class Stuck:
    """Answers right until call number `at`, which ends in an error of that kind."""

    def __init__(self, kind, at):
        self.kind, self.at, self.n_calls = kind, at, 0

    def cause(self, run):
        self.n_calls += 1
        if self.n_calls >= self.at:
            raise StudentError(self.kind, f"it ended in call {self.n_calls}.")
        return oracle.cause(run)


@pytest.mark.parametrize("kind", ["timeout", "crashed"])
@pytest.mark.parametrize("at", [1, 3])
def test_after_a_call_without_end_no_other_is_made(kind, at):
    stuck = Stuck(kind, at)
    verdict = judge(CAUSE, stuck)
    assert stuck.n_calls == at
    assert [group.diagnosis for group in verdict.groups] == [kind] * 3
    assert verdict.messages == [f"Run {at} (`print(sealed_run({at}))`): it ended in call {at}."]


def test_an_exception_is_told_of_its_first_run():
    source = """
from autograder import oracle


def cause(run):
    if run.n_stages == 3:
        raise KeyError(3)
    return oracle.cause(run)
"""
    first = next(n for n in range(1, 25) if sealed_run(n).n_stages == 3)
    messages = judged(CAUSE, source).messages
    assert len(messages) == 1
    assert messages[0].startswith(f"Run {first} (`print(sealed_run({first}))`): your code raises")


def test_the_four_shown_runs_differ_in_cause_and_not_in_data_or_first_loss():
    runs = [sealed_run(letter) for letter in "ABCD"]
    assert {oracle.cause(run) for run in runs} == {
        "order_differs",
        "loss_not_divided",
        "only_last_microbatch",
        "equal_weights",
    }
    assert len({(run.sizes, run.serial_losses) for run in runs}) == 1
    assert find_guess("sealed-first-loss").result() == 4


@pytest.mark.parametrize("which", ["E", "", 0, 25, None, [1], 1.5])
def test_a_run_that_is_not_there_is_told_in_one_sentence(which):
    with pytest.raises(NotAsked, match="give a letter A to D or a number 1 to 24"):
        sealed_run(which)


def test_a_run_without_a_named_cause_is_no_case():
    run = sealed_run("A")
    with pytest.raises(ValueError, match="no named cause"):
        oracle.cause(run._replace(gradient_ratios=(7.0,) * 4, schedule=[run.schedule[0]] * 3))


def test_a_secret_run_has_no_number_to_look_at():
    run = next(run for _, run in sealed_runs.RUNS.drawn(5))
    told = cause_mistakes.ASKED.differs(Case("cause", (run,)), "no such name")
    assert told.text.startswith("Run of ")
