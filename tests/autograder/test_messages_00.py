"""The sentences of unit 00, their numbers, and what the notebook quotes of them."""

import json
import re
from pathlib import Path

import pytest
from judged import judged, names_of

from autograder.bank.unit_00 import WRONG
from autograder.checks.unit_00 import stops
from autograder.exercise import find_exercise
from autograder.judge import judge
from autograder.local import LocalSubject

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks/00-start-here/00-start-here.ipynb"


def message_of(answer_id, exercise_id):
    (answer,) = [a for a in WRONG if a.id == answer_id and exercise_id in a.expected]
    return judged(find_exercise(exercise_id), answer.source).messages[0]


def test_the_notebook_quotes_a_diagnosis_as_it_is():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    (grading,) = ["".join(cell["source"]) for cell in cells if cell["id"] == "grading"]
    (quoted,) = re.findall(r"```text\n(.*?)\n```", grading, re.DOTALL)
    assert quoted == message_of("other_order", "hello")


@pytest.mark.parametrize(
    "answer_id, exercise_id",
    [
        (a.id, e)
        for a in WRONG
        for e, (_, told) in a.expected.items()
        if told in ("slow", "too_fast")
    ],
)
def test_times_in_a_message_are_those_of_its_run(answer_id, exercise_id):
    (answer,) = [a for a in WRONG if a.id == answer_id and exercise_id in a.expected]
    exercise = find_exercise(exercise_id)
    runs = Timed(answer.source, exercise.names)
    (message,) = [m for m in runs.judged(exercise).messages if "takes" in m]
    name, n_ranks, arguments, machine, run = runs.calls[0]
    one_s = arguments[0][0].nbytes / machine.link.bytes_per_s + machine.link.latency_s
    due_s = n_ranks * one_s if name == "ring_pass" else one_s
    told = {float(s) for s in re.findall(r"([\d.]+) s\b", message)}
    assert told == {one_s, due_s, run.makespan_s}
    assert message.startswith(f"{name} on {n_ranks} ranks: ")


class Timed(LocalSubject):
    """A student's programs whose runs are kept."""

    def __init__(self, source, names):
        super().__init__(names_of(source), names)
        self.calls = []

    def run_ranks(self, name, n_ranks, arguments, machine):
        run = super().run_ranks(name, n_ranks, arguments, machine)
        self.calls.append((name, n_ranks, arguments, machine, run))
        return run

    def judged(self, exercise):
        return judge(exercise, self)


def test_a_chain_is_told_with_its_messages_and_seconds():
    message = message_of("one_after_another", "fix_deadlock_fast")
    n_ranks, n_messages, one_s, all_s = map(
        int, re.search(r"on (\d) ranks: (\d) messages of (\d+) s .*?: (\d+) s\.", message).groups()
    )
    assert n_messages == n_ranks and all_s == n_ranks * one_s


FORMS = ("timeout", "raised", "no_pair", "unknown_name")  # they tell nothing of a truth


@pytest.mark.parametrize(
    "answer",
    [a for a in WRONG if a.expected.get("blame", (0, FORMS[0]))[1] not in FORMS],
    ids=lambda answer: answer.id,
)
def test_a_message_on_blame_names_a_case_and_its_truth(answer):
    for message in judged(find_exercise("blame"), answer.source).messages:
        (waits,) = re.findall(r"^blame\((\[.*?\])\)", message)
        _, ranks = stops.truth(eval(waits))
        expected = re.findall(r"expected (\[[\d, ]*\])", message)
        assert expected in ([], [str(ranks)])


def test_a_request_that_was_returned_is_told_of_wait():
    assert "`wait()`" in message_of("request_returned", "fix_deadlock")


def test_a_list_of_arrays_and_an_array_for_int_are_told_of_item():
    for answer_id in ("arrays_in_the_list", "int_of_an_array_of_one"):
        assert "`.item()`" in message_of(answer_id, "hello")


@pytest.mark.parametrize("answer_id", ["everyone_who_waits", "victims_too"])
def test_of_ranks_that_only_wait_one_is_named(answer_id):
    message = message_of(answer_id, "blame")
    (waits,) = re.findall(r"^blame\((\[.*?\])\)", message)
    (named,) = re.findall(r"Rank (\d+) (?:only )?waits for", message)
    assert eval(waits)[int(named)] and int(named) not in stops.truth(eval(waits))[1]


def test_a_request_never_waited_for_is_told_with_its_message():
    message = message_of("not_waited", "fix_deadlock")
    assert "rank 0 never waits for its send to rank 1." in message
