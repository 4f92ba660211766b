"""The sentences of unit 06: what a student can do with each, and that its numbers are true."""

import re

import pytest
from judged import judged

from autograder.bank.unit_06 import WRONG
from autograder.exercise import find_exercise, load_unit
from mpedu.families import gpipe, interleaved_1f1b, one_f_one_b
from mpedu.simulate import Costs, simulate

UNIT = load_unit("06")
FAMILIES = {"gpipe": gpipe, "one_f_one_b": one_f_one_b, "interleaved_1f1b": interleaved_1f1b}


def messages_of(answer_id):
    (answer,) = [answer for answer in WRONG if answer.id == answer_id]
    return {e: judged(find_exercise(e), answer.source).messages for e in answer.expected}


@pytest.mark.parametrize(
    "answer_id, exercise_id, words",
    [
        (
            "chunks_contiguous_chunks",
            "chunk_layers",
            "rank 0 holds 1-2 and 3-4; asked 1-2 and 9-10.",
        ),
        ("chunks_from_zero", "chunk_layers", "Layers are counted from one."),
        (
            "interleaved_contiguous_stages",
            "interleaved_1f1b",
            "rank 0 holds stages 0 and 1; asked 0 and 4.",
        ),
        (
            "interleaved_chunk_0_first",
            "interleaved_1f1b",
            "the first backward of rank 0 is 0B0. Its gradient is not there yet",
        ),
        ("interleaved_small_last_group", "interleaved_1f1b", "Share the rest out"),
        ("interleaved_all_forwards_first", "interleaved_1f1b_fast", "16 chunks instead of 11"),
        (
            "bubble_all_divided",
            "bubble_interleaved",
            "only the bubble shrinks by v, the work stays",
        ),
        ("delay_weights_early", "delay_weight_gradients", "W needs its own I first"),
        ("delay_undivided", "delay_weight_gradients", "an I in its place, and a W later on"),
        (
            "delay_at_once",
            "delay_weight_gradients_fast",
            "makespan 30 where F, I and W take 1 second each; 27 is possible, and undivided "
            "backwards take 33.",
        ),
        ("h1_w_wherever_a_rank_would_wait", "zero_bubble_h1", "where W frees them; 4 are allowed"),
    ],
)
def test_a_typical_mistake_draws_the_sentence_that_puts_it_right(answer_id, exercise_id, words):
    assert words in messages_of(answer_id)[exercise_id][0]


def test_a_split_schedule_is_told_of_as_a_call_that_can_be_repeated():
    seen = 0
    for answer in WRONG:
        for exercise_id in ("delay_weight_gradients", "delay_weight_gradients_fast"):
            for message in messages_of(answer.id).get(exercise_id, []):
                if "parts, far more than is asked for" in message:
                    continue  # told where no case is known
                call = re.match(r"delay_weight_gradients\((\w+)\(([\d, ]+)\)\): ", message)
                assert call, message
                given = FAMILIES[call[1]](*map(int, call[2].split(", ")))
                told = re.search(
                    r"makespan (\d+) .* each; (\d+) is possible, .* take (\d+)", message
                )
                if told:
                    assert simulate(given, Costs(1, 2)).makespan_s == int(told[3])
                    assert int(told[1]) > int(told[2])
                seen += 1
    assert seen > 15


def test_makespans_told_of_chunks_are_those_that_came_back_and_those_possible():
    pattern = (
        r"interleaved_1f1b\((\d+), (\d+), (\d+)\): makespan (\d+) when a chunk costs (\d+) and "
    )
    pattern += r"(\d+); (\d+) is possible"
    seen = 0
    for answer in WRONG:
        for message in messages_of(answer.id).get("interleaved_1f1b_fast", []):
            told = re.match(pattern, message)
            if told:
                k, m, v, got_s, f, b, least_s = map(int, told.groups())
                assert (
                    simulate(interleaved_1f1b(k, m, v), Costs(f, b)).makespan_s == least_s < got_s
                )
                seen += 1
    assert seen


def test_a_sealed_run_is_told_by_its_number_and_no_cause_is_given_away():
    causes = {"contiguous_chunks", "weights_lost", "weights_last", "slow_link", "slow_rank"}
    for answer in WRONG:
        if answer.expected.get("timeline_cause", (0, "unknown_name"))[1] != "unknown_name":
            for message in judged(find_exercise("timeline_cause"), answer.source).messages:
                assert re.match(
                    r'Run \d+ \(`show\(sealed_run\(\d+, "06"\)\)`\) of \d ranks', message
                )
                given = re.search(r"gives '(\w+)'", message)
                rest = message.replace(given[1] if given else "", "")
                assert not [cause for cause in causes if cause in rest]


def test_a_mistake_in_the_first_part_is_told_once():
    for answer_id in (
        "chunks_contiguous_chunks",
        "interleaved_contiguous_stages",
        "delay_undivided",
    ):
        for messages in messages_of(answer_id).values():
            assert len(messages) == 1
