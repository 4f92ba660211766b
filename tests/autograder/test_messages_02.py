"""The sentences of unit 02: they speak of stages, show the way to look, and blame once."""

import re

import pytest
from judged import judged, messages_with

from autograder.bank.unit_02 import WRONG
from autograder.exercise import find_exercise, load_unit

UNIT = load_unit("02")


def messages_of(answer_id):
    (answer,) = [answer for answer in WRONG if answer.id == answer_id]
    return {e: judged(find_exercise(e), answer.source).messages for e in answer.expected}


def test_a_schedule_of_one_stage_per_rank_is_told_of_in_stages():
    for answer in WRONG:
        for exercise_id in ("naive", "naive_busy"):
            if exercise_id in answer.expected:
                for message in judged(find_exercise(exercise_id), answer.source).messages:
                    assert not re.search(r"rank|channel", message), message


def test_gpipe_is_named_and_costs_the_second_check_only():
    told = messages_of("naive_all_forwards_first")
    assert told["naive"] == []
    (message,) = told["naive_busy"]
    assert (
        message.startswith("naive(4, 4): every stage runs all its forwards") and "GPipe" in message
    )


@pytest.mark.parametrize(
    "answer_id, words",
    [
        ("bytes_stages_for_boundaries", "K stages have K-1 boundaries between them."),
        ("bytes_forward_only", "Gradients cross every boundary too"),
        ("bill_weights_only", "Adam's states outweigh the weights"),
        ("bill_equal_shares", "make the first and the last rank heavier"),
        ("bill_no_copy", "the last one needs a copy of its own"),
        ("cause_exact_numbers", "do you allow for that?"),
        ("cause_first_rank_alone", "You look at the first rank alone"),
        ("bill_no_matrix", "Exactly one vocabulary matrix is missing on the last rank"),
        ("bill_thirty_two", "yours is 0.941176 times what is due"),
    ],
)
def test_a_typical_mistake_draws_the_sentence_that_puts_it_right(answer_id, words):
    (messages,) = messages_of(answer_id).values()
    assert words in messages[0]


def test_bytes_that_follow_from_wrong_parameters_are_told_once():
    (messages,) = messages_of("bill_whole_model").values()
    assert len(messages) == 1


def test_a_drawn_model_is_told_with_all_that_its_bill_needs():
    (messages,) = messages_of("bill_remainder_dropped").values()
    said = re.search(
        r"of (\d+) layers \(layer \d+, vocabulary \d+, positions \d+, norm", messages[0]
    )
    assert said and int(said[1]) % 3
    assert re.search(r"rank 0 gives \d+ bytes of parameters, expected \d+\.", messages[0])


def test_a_sealed_bill_is_told_by_its_number_and_no_cause_is_given_away():
    causes = {"whole_model_everywhere", "remainder_on_last", "float32_weights", "gradients_stop"}
    for answer in WRONG:
        if "bill_cause" in answer.expected and answer.expected["bill_cause"][1] != "unknown_name":
            for message in judged(find_exercise("bill_cause"), answer.source).messages:
                assert re.match(r'Bill \d+ \(`sealed_run\(\d+, "02"\)`\) of \d ranks: ', message)
                given = re.search(r"gives '(\w+)'", message)
                rest = message.replace(given[1] if given else "", "")
                assert not [cause for cause in causes if cause in rest]


def test_every_exercise_rests_on_data():
    assert {exercise.evidence for exercise in UNIT.exercises} == {"data"}


def due_parameters(config, n_stages):
    """Parameters of each rank, dealt out layer by layer."""
    held = [0] * n_stages
    for layer in range(config.n_layers):
        held[layer % n_stages] += config.layer_parameters
    held[0] += config.vocab_size * config.d_model
    held[0] += config.learned_positions * config.n_positions * config.d_model
    copies = n_stages > 1 or not config.tied_embeddings
    held[-1] += config.norm_parameters + copies * config.vocab_size * config.d_model
    return held


def due_bytes(config, n_stages, n_held):
    """The bill, from layers dealt out one by one."""
    layers = [len(range(rank, config.n_layers, n_stages)) for rank in range(n_stages)]
    n = due_parameters(config, n_stages)
    return {
        "parameters": [2 * p for p in n],
        "gradients": [2 * p for p in n],
        "optimiser": [12 * p for p in n],
        "activations": [34 * k * config.n_positions * config.d_model * n_held for k in layers],
    }


def test_bytes_told_of_a_bill_are_those_that_came_back_and_those_due():
    pattern = r"rank (\d+) gives (\d+) bytes of (\w+), expected (\d+)"
    seen = 0
    for match, calls in messages_with(pattern, "memory_bill"):
        rank, given, part, due = int(match[1]), int(match[2]), match[3], int(match[4])
        fits = [
            args
            for args, got in calls
            if rank < len(got) and (got[rank][part], due_bytes(*args)[part][rank]) == (given, due)
        ]
        assert fits and given != due, match[0]
        seen += 1
    assert seen > 30


def test_bytes_told_of_boundaries_are_those_that_came_back_and_those_due():
    pattern = r"boundary_bytes\(([\d, ]+)\) gives (\d+), expected (\d+)"
    found = list(messages_with(pattern, "boundary_bytes"))
    for match, calls in found:
        b, s, h, e, k = args = tuple(map(int, match[1].split(", ")))
        assert (args, int(match[2])) in calls
        assert int(match[3]) == sum(2 * b * s * h * e for _ in range(1, k))
    assert len(found) > 8


def test_shares_told_are_those_that_came_back_and_those_due():
    pattern = r"of (\d+) devices? .* ([\d.]+) s of work: "
    pattern += r"utilisation gives ([\d.e+-]+), expected ([\d.]+)"
    found = list(messages_with(pattern, "utilisation"))
    for match, calls in found:
        n_ranks, work_s, given, due = (float(part.rstrip(".")) for part in match.groups())
        fits = []
        for (timeline,), got in calls:
            boxes = [(span.start_s, span.end_s) for span in timeline.spans]
            busy_s = sum(end - start for start, end in boxes)
            area = timeline.n_ranks * (max(e for _, e in boxes) - min(s for s, _ in boxes))
            near = (got, given), (busy_s / area, due), (busy_s, work_s)
            fits += [all(a == pytest.approx(b, rel=1e-4) for a, b in near)]
        assert any(fits) and n_ranks >= 1, match[0]
    assert len(found) > 10


def test_a_mistake_of_a_bill_is_told_once_and_costs_what_it_concerns():
    for answer_id in ("bill_remainder_last", "bill_no_matrix", "bill_norm_everywhere"):
        (messages,) = messages_of(answer_id).values()
        assert len(messages) == 1


def test_a_schedule_that_is_not_naive_is_told_so_beside_a_missing_error():
    told = messages_of("naive_forwards_first_and_nothing_refused")["naive"]
    assert len(told) == 1 and '`check("naive_busy")` says what differs' in told[0]


def test_a_list_of_another_stage_is_printed_and_not_drawn():
    (message,) = messages_of("naive_stages_reversed")["naive"]
    assert "`print(naive(4, 4)[0])`" in message and "show(" not in message
