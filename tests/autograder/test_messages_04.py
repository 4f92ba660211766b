"""The sentences of unit 04: they show the way to look, blame once, and tell numbers that hold."""

import re

import pytest
from judged import judged, messages_with

from autograder.bank.unit_04 import WRONG
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("04")


def messages_of(answer_id):
    (answer,) = [answer for answer in WRONG if answer.id == answer_id]
    return {e: judged(find_exercise(e), answer.source).messages for e in answer.expected}


@pytest.mark.parametrize(
    "answer_id, exercise, words",
    [
        ("chain_keeps_all", "backward_memory", "outputs inside segments are still referenced"),
        ("chain_restarts", "backward_memory", "begin at the nearest checkpoint"),
        ("chain_name_left", "backward_memory", "`del` it, or stop that pass earlier"),
        ("chain_checkpoint_after", "backward_with_checkpoints", "before the segment runs"),
        ("chain_in_order", "backward_with_checkpoints", "the segments from the last to the first"),
        ("length_number_of_segments", "best_segment_length", "That is the number of segments"),
        ("forwards_inside_only", "recompute_forwards", "You leave out one layer of each segment"),
        ("peak_no_n_term", "gpipe_peak_activation", "that is the N term"),
        ("peak_one_piece_held", "gpipe_peak_activation", "all of them are held"),
        ("cause_last_layer_alone", "memory_cause", "You look at the last layer's gradient alone"),
    ],
)
def test_a_typical_mistake_draws_the_sentence_that_puts_it_right(answer_id, exercise, words):
    assert words in messages_of(answer_id)[exercise][0]


def test_nothing_of_the_judge_s_own_arrangements_is_told():
    for answer in WRONG:
        for exercise_id in ("backward_with_checkpoints", "backward_memory"):
            if exercise_id in answer.expected:
                for message in judged(find_exercise(exercise_id), answer.source).messages:
                    assert not re.search(r"rank|on_device|Tried|Pass\b", message), message


def test_a_run_that_should_have_been_refused_is_told_as_what_it_gives():
    (message,) = messages_of("chain_nothing_refused")["backward_with_checkpoints"]
    assert "segments returns a gradient; the docstring promises a ValueError." in message


def test_a_wrong_gradient_costs_every_point_and_is_told_once():
    told = messages_of("chain_in_order")
    assert all(len(messages) == 1 for messages in told.values())


def test_a_sealed_run_is_told_by_its_number_and_no_cause_is_given_away():
    causes = {"keeps_everything", "restarts_at_zero", "checkpointed_twice", "mask_redrawn",
              "no_gradient"}  # fmt: skip
    for answer in WRONG:
        if "memory_cause" in answer.expected and answer.expected["memory_cause"][1] not in (
            "unknown_name",
        ):
            for message in judged(find_exercise("memory_cause"), answer.source).messages:
                assert re.match(r'Run \d+ \(`sealed_run\(\d+, "04"\)`\) of \d+ layers: ', message)
                given = re.search(r"gives '(\w+)'", message)
                rest = message.replace(given[1] if given else "", "")
                assert not [cause for cause in causes if cause in rest]


def test_chains_are_served_and_the_rest_rests_on_data():
    evidence = {exercise.id: exercise.evidence for exercise in UNIT.exercises}
    served = {id for id, kind in evidence.items() if kind == "served"}
    assert served == {"backward_with_checkpoints", "backward_memory"}
    assert set(evidence.values()) == {"served", "data"}


def held_with(n_layers, length):
    """Checkpoints, one for each segment begun, and one segment."""
    return len(range(0, n_layers, length)) + length


def test_lengths_told_are_those_that_came_back_and_those_due():
    pattern = r"best_segment_length\((\d+)\) gives (\d+), expected (\d+)\. (.*)"
    found = list(messages_with(pattern, "best_segment_length"))
    for match, calls in found:
        n_layers, given, due = map(int, match.groups()[:3])
        assert ((n_layers,), given) in calls and given != due
        least = min(held_with(n_layers, k) for k in range(1, n_layers + 1))
        assert held_with(n_layers, due) == least
        assert all(held_with(n_layers, k) > least for k in range(1, due))
        sums = re.findall(r"length (\d+) holds (\d+) \+ (\d+) = (\d+)", match[4])
        for length, n_segments, same, together in (map(int, one) for one in sums):
            assert n_segments == len(range(0, n_layers, length)) and same == length
            assert together == held_with(n_layers, length)
    assert len(found) > 15


def dealt(n, parts):
    return [len(range(part, n, parts)) for part in range(parts)]


def test_forwards_told_are_those_that_came_back_and_those_due():
    pattern = r"recompute_forwards\((\d+), (\d+)(, True)?\) gives (\d+), expected (\d+)"
    found = list(messages_with(pattern, "recompute_forwards"))
    for match, calls in found:
        n_layers, n_segments, given, due = (int(match[at]) for at in (1, 2, 4, 5))
        args = (n_layers, n_segments, *([True] if match[3] else []))
        assert (args, given) in calls
        sizes = dealt(n_layers, n_segments)
        assert due == sum(sizes[:-1] if match[3] else sizes) and given != due
    assert len(found) > 12


def test_peaks_told_are_those_that_came_back_and_those_due():
    sizes = r"gpipe_peak_activation\((\d+), (\d+), (\d+), (\d+), (True|False)\)"
    found = list(messages_with(rf"{sizes} gives (\d+), expected (\d+)", "gpipe_peak_activation"))
    for match, calls in found:
        n_samples, n_layers, n_stages, n_pieces = (int(match[at]) for at in range(1, 5))
        checkpoint, given, due = match[5] == "True", int(match[6]), int(match[7])
        assert ((n_samples, n_layers, n_stages, n_pieces, checkpoint), given) in calls
        inside = dealt(n_layers, n_stages)[0]
        piece = dealt(n_samples, n_pieces)[0]
        assert due == (n_samples + inside * piece if checkpoint else n_samples * inside)
        assert given != due
    assert len(found) > 20


def test_units_and_forwards_told_of_a_chain_add_up():
    pattern = (
        r"(\d+) layers in (\d+) segments: at its peak it holds (\d+) activations, at most (\d+) "
        r"expected: (\d+) and one segment of (\d+)\."
    )
    found = [match for match, _ in messages_with(pattern, "backward_memory")]
    for n_layers, n_segments, held, most, checkpoints, segment in (
        map(int, match.groups()) for match in found
    ):
        assert checkpoints == n_segments and segment == dealt(n_layers, n_segments)[0]
        assert most == checkpoints + segment < held
    pattern = r"(\d+) layers in \d+ segments: (\d+) forwards of a layer, at most (\d+) expected"
    forwards = [match for match, _ in messages_with(pattern, "backward_memory")]
    for n_layers, made, most in (map(int, match.groups()) for match in forwards):
        assert made > most == 2 * n_layers
    assert len(found) >= 6 and len(forwards) >= 4
