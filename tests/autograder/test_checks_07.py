import random

import numpy as np
import pytest
import torch
from judged import SECRETS, bank_of, first_diagnosis, judged, names_of, run_check

from autograder.checks.unit_07 import cause_mistakes, sealed_runs
from autograder.checks.unit_07.cases import (
    chains,
    drawn_list,
    drawn_lists,
    gpipe,
    known_lists,
    one_by_one,
    one_f_one_b,
    ragged_lists,
)
from autograder.checks.unit_07.predicted import added, totals
from autograder.checks.unit_07.record_mistakes import least_s
from autograder.checks.unit_07.steps_mistakes import GROUPS, due
from autograder.checks.unit_07.work import Pipelines, near, problem_of
from autograder.diagnosis import Case
from autograder.exercise import Draw, find_exercise, load_unit
from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.notebook import NotAsked, sealed_run
from mpedu import families
from mpedu.runs import EngineRun
from mpedu.schedule import peak_in_flight
from mpedu.validate import validate_schedule

UNIT = load_unit("07")
RIGHT = bank_of("07").RIGHT[0].source
SEEDS = [bytes([number]) * 16 for number in range(6)]


def drawn(seed, secret=True):
    return Draw(seed, secret=secret)


def all_cases(seed):
    return [*known_lists(drawn(seed)), *ragged_lists(drawn(seed)), *drawn_lists(drawn(seed))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_truth_is_what_torch_computes_from_the_whole_batch(seed):
    for case in [*all_cases(seed), *chains(drawn(seed), "stage_forward")]:
        problem = problem_of(case)
        layers = [torch.from_numpy(w).requires_grad_() for w in problem.layers]
        y = torch.from_numpy(np.concatenate(problem.inputs)).requires_grad_()
        x = y
        for layer in layers:
            y = torch.tanh(y @ layer)
        targets = torch.from_numpy(np.concatenate(problem.targets))
        loss = ((y - targets) ** 2).sum() / 2 / len(targets)
        loss.backward()
        assert abs(loss.item() - problem.loss) < 1e-12
        assert np.abs(x.grad.numpy() - np.concatenate(problem.gradients[0])).max() < 1e-12
        if problem.schedule:
            for layer, gradient in zip(layers, problem.due, strict=True):
                assert np.abs(layer.grad.numpy() - gradient).max() < 1e-12


def test_lists_are_legal_and_those_without_a_name_are_no_queue():
    for seed in SEEDS:
        for case in all_cases(seed):
            assert validate_schedule(problem_of(case).schedule) == [], case
        for k, m in ((2, 3), (4, 5)):
            for actions in drawn_list(drawn(seed), k, m):
                orders = [[a.microbatch for a in actions if a.kind == kind] for kind in "FB"]
                assert orders[0] != orders[1]


def test_lists_of_a_name_are_those_of_the_package():
    for k in (1, 2, 4):
        for m in (1, 3, 6):
            assert gpipe(k, m) == families.gpipe(k, m, backward_order="forward")
            assert one_f_one_b(k, m) == families.one_f_one_b(k, m)
            assert one_by_one(k, m) == families.naive(k, m)


def test_the_least_time_is_what_a_right_engine_takes():
    subject = LocalSubject(names_of(RIGHT), ("run_actions",))
    for seed in SEEDS[:2]:
        for case in known_lists(drawn(seed)):
            took_s = Pipelines(subject).run_actions(problem_of(case)).run.makespan_s
            assert took_s == pytest.approx(least_s(problem_of(case)), rel=1e-12), case


def test_a_stage_of_the_judge_adds_up_and_clears():
    problem = problem_of(known_lists(drawn(SEEDS[0]))[0])
    (never, once) = (totals(problem, added(problem), clears) for clears in ("never", "once"))
    for a, b, left in zip(never, once, problem.left, strict=True):
        assert near(a - left, b)


# A program that leaves out the last action of its list is wrong in all that is asked of it.
LAZY = RIGHT.replace("for kind, _, m in actions:", "for kind, _, m in actions[:-1]:")
IDLE = {
    "stage_forward": RIGHT.replace("return y, kept", "return y + 1e-6, kept"),
    "stage_backward": RIGHT.replace("return x_gradient", "return x_gradient + 1e-6"),
    "run_actions": LAZY,
    "run_actions_fast": LAZY,
}


class WrongAt:
    """A right student who runs another program in call number `at`."""

    def __init__(self, wrong, at):
        self.subjects = [LocalSubject(names_of(source), ()) for source in (RIGHT, wrong)]
        self.at, self.n_calls = at, 0

    def run_ranks(self, name, n_ranks, arguments, machine):
        self.n_calls += 1
        subject = self.subjects[self.n_calls - 1 == self.at]
        return subject.run_ranks(name, n_ranks, arguments, machine)


@pytest.mark.parametrize("exercise_id", IDLE)
def test_one_wrong_run_among_right_ones_costs_points(exercise_id):
    exercise = find_exercise(exercise_id)
    counted = WrongAt(RIGHT, -1)
    assert judge(exercise, counted, SECRETS[0]).status == "passed"
    for at in range(counted.n_calls):
        verdict = judge(exercise, WrongAt(IDLE[exercise_id], at), SECRETS[0])
        assert verdict.status != "passed", at


STEPS = [(0, 2, 2), (1, 2, 3), (1, 3, 2), (0, 1, 1), (2, 3, 4)]


def faults(case, steps):
    return [found.id for differs in GROUPS.values() if (found := differs(case, steps))]


@pytest.mark.parametrize("args", STEPS, ids=str)
def test_every_instruction_left_out_or_doubled_is_seen(args):
    case, steps = Case("all_steps", args), due(*args)
    assert faults(case, steps) == []
    for place in range(len(steps)):
        assert faults(case, steps[:place] + steps[place + 1 :]), place
        assert faults(case, [*steps[: place + 1], *steps[place:]]), place


@pytest.mark.parametrize("args", STEPS, ids=str)
def test_instructions_in_any_order_by_chance_are_wrong_or_work(args):
    """What passes can be executed: all it needs is there when it runs."""
    case, rng = Case("all_steps", args), random.Random(1)
    for _ in range(200):
        steps = due(*args)
        for _ in range(rng.randint(1, 3)):
            a = rng.randrange(len(steps))
            steps.insert(rng.randrange(len(steps)), steps.pop(a))
        if not faults(case, steps):
            at = {one: place for place, one in enumerate(steps)}
            for (name, m), place in at.items():
                if name.startswith("backward"):
                    assert at["forward", m] < place
                    got = at.get(("recv_gradient", m), at.get(("load_target", m)))
                    assert got < place and place < at.get(("send_gradient", m), len(steps))
            assert steps[0][0] == "zero_grad" and steps[-1][0] == "step"


def test_each_sealed_run_speaks_for_the_cause_that_was_planted():
    for seed in range(12):
        for cause, run in sealed_runs.RUNS.drawn(seed):
            assert cause_mistakes.true_cause(run) == cause
            assert validate_schedule(run.schedule) == validate_schedule(run.record) == []
    shown = [sealed_run(letter, "07") for letter in "ABCD"]
    assert len({cause_mistakes.true_cause(run) for run in shown}) == 4
    assert isinstance(sealed_run(26, "07"), EngineRun)
    with pytest.raises(NotAsked, match="1 to 26"):
        sealed_run(27, "07")


def test_no_single_kind_of_evidence_tells_every_cause():
    runs = sealed_runs.RUNS.drawn(0)
    right = [cause for cause, run in runs if sealed_runs.has_right_gradients(run)]
    assert set(right) == {"none", "never_freed", "other_order"}
    listed = [cause for cause, run in runs if list(run.held) == peak_in_flight(run.schedule)]
    assert {"none", "not_divided", "overwritten", "own_gradient"} <= set(listed)
    assert "one_buffer" not in listed and "never_freed" not in listed


def test_a_run_prints_all_its_evidence():
    run = sealed_runs.planted_run("other_order", one_f_one_b(2, 3), (2, 1, 1), 2, 0)
    lines = str(run).splitlines()
    assert lines[0] == "2 ranks, 2 replicas"
    assert lines[2:4] == ["rank 0 list:   F0 F1 B0 F2 B1 B2", "       record: F0 F1 F2 B0 B1 B2"]
    assert "share           0.5000  0.2500  0.2500" in lines
    assert lines[-1].split() == ["kept", "at", "most", "3", "3"]


def test_guesses_show_the_results_of_the_text():
    shown = {guess.id: guess.form.format(guess.result()) for guess in UNIT.guesses}
    assert shown == {
        "messages-a-step": "28",
        "times-too-large": "16",
        "most-kept": "4",
        "sealed-right-gradients": "1",
    }


def told(answer_id, exercise_id):
    (answer,) = [answer for answer in bank_of("07").WRONG if answer.id == answer_id]
    return judged(find_exercise(exercise_id), answer.source).messages


def test_a_record_is_told_of_by_rank_and_place():
    (message,) = told("run_sorted_backwards", "run_actions")
    assert message == (
        "run_actions, 1F1B on 3 ranks, 4 micro-batches of 2 samples: rank 0, entry 3: the list "
        "says B0, the stage was asked for F3."
    )


def test_blocking_sends_are_told_of_by_both_ranks_and_once():
    messages = told("run_sends_block", "run_actions")
    assert len(messages) == 1
    assert "both stand in a send to each other" in messages[0] and "`isend`" in messages[0]


def test_a_loss_of_another_rank_is_told_of_by_what_the_stage_says():
    (message, *_) = told("run_loss_everywhere", "run_actions")
    assert "rank 0" in message and message.endswith(
        "targets on the last rank only; elsewhere both are empty."
    )


def test_a_gradient_that_fits_no_mistake_tells_its_length():
    (message, *_) = told("run_first_action_only", "run_actions")
    assert "times as long" in message and message.endswith("which kept values?")


def test_right_programs_use_no_collective_and_those_that_do_are_no_faster():
    (answer,) = [one for one in bank_of("07").WRONG if one.id == "run_in_step_late"]
    verdict = judged(find_exercise("run_actions_fast"), answer.source)
    assert first_diagnosis(verdict) == "slower"


def test_tabulated_public_cases_pass_in_the_notebook_where_nothing_is_served():
    (cheat,) = [one for one in bank_of("07").CHEATS if one.id == "tabulates_the_public_cases"]
    for exercise in UNIT.exercises:
        public = judged(exercise, cheat.source)
        assert public.score == (0 if exercise.evidence == "served" else exercise.points)
        assert judged(exercise, cheat.source, SECRETS[0]).score == 0


@pytest.mark.parametrize("exercise_id", ["stage_forward", "stage_backward", "run_actions"])
def test_programs_are_asked_on_one_rank_and_on_many(exercise_id):
    sizes = set()

    class Counting(WrongAt):
        def run_ranks(self, name, n_ranks, arguments, machine):
            sizes.add(n_ranks)
            return super().run_ranks(name, n_ranks, arguments, machine)

    for seed in SEEDS:
        run_check(find_exercise(exercise_id), Counting(RIGHT, -1), secret=True, seed=seed)
    assert sizes >= {1, 2, 3, 4}


def test_a_stage_keeps_something_else_than_what_came_in():
    problem = problem_of(chains(drawn(SEEDS[0]), "stage_forward")[0])
    for stage in range(problem.n_ranks):
        assert problem.kept(stage, 0).shape != problem.xs[stage][0].shape
    (message,) = told("forward_x_kept", "stage_forward")
    assert "whatever it is" in message


def test_a_list_that_is_not_run_takes_another_time():
    for answer_id in ("run_own_order", "run_whole_batch"):
        (message,) = told(answer_id, "run_actions_fast")
        assert "So this is not the list" in message


@pytest.mark.parametrize("seed", range(12))
def test_a_wrong_order_at_one_end_alone_is_among_the_runs(seed):
    runs = [run for cause, run in sealed_runs.RUNS.drawn(seed) if cause == "other_order"]
    first = [run.record[0] == run.schedule[0] for run in runs]
    last = [run.record[-1] == run.schedule[-1] for run in runs]
    assert any(first) and any(last) and len(runs) == sealed_runs.N_OF_EACH["other_order"]


def test_the_micro_batch_of_a_step_costs_the_point_of_the_ends_alone():
    steps = [(name, 0 if m is None else m) for name, m in due(0, 1, 2)]
    found = {
        label: differs(Case("all_steps", (0, 1, 2)), steps) for label, differs in GROUPS.items()
    }
    assert [label for label, one in found.items() if one] == ["the first and the last instruction"]
    assert "give None" in found["the first and the last instruction"].text
