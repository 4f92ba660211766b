import pytest
from judged import judged

from autograder.bank.unit_01 import WRONG
from autograder.bank.unit_01.right import with_part
from autograder.exercise import find_exercise


def told(answer_id, exercise_id):
    (answer,) = [answer for answer in WRONG if answer.id == answer_id]
    return judged(find_exercise(exercise_id), answer.source).messages


def test_a_wrong_order_shows_both_arrays_of_the_first_wrong_rank():
    (message,) = told("gather_as_they_come", "ring_all_gather")
    assert message == (
        "ring_all_gather on 3 ranks: rank 0 returns [0, 1, 20, 21, ..], expected [0, 1, 10, 11, "
        "..]. All parts are there, in an order that begins with the own one; the place of a part "
        "is its owner's rank."
    )


def test_whole_arrays_are_told_of_rank_by_rank():
    message = told("fast_whole_array", "ring_all_reduce_fast")[0]
    assert message.startswith("ring_all_reduce on 4 ranks, n = ")
    assert "2(p-1)/p n = " in message
    assert message.endswith("pass parts, not whole arrays.")


def test_the_way_through_rank_0_is_told_of_by_bytes_and_by_clock():
    messages = told("fast_through_rank_0", "ring_all_reduce_fast")
    assert "its link carries half" in messages[0]
    assert "2L + pn/B" in messages[-1]


def test_the_same_fault_in_two_groups_is_told_once():
    assert len(told("fast_whole_array", "ring_all_reduce_fast")) == 2
    assert len(told("reduce_sends_first", "ring_all_reduce_fast")) == 1


def test_a_time_that_follows_from_bytes_is_not_told_of_by_waiting():
    clock = told("fast_whole_array", "ring_all_reduce_fast")[-1]
    assert clock.endswith("Mend the bytes first; time follows from them.")


def test_what_is_wrong_behind_the_first_elements_is_shown_by_its_place():
    (message,) = told("reduce_tail_lost", "ring_all_reduce")
    assert "(element " in message


def test_a_circle_of_sends_is_told_with_the_way_out():
    (message,) = told("gather_sends_first", "ring_all_gather")
    assert "every rank stands in send" in message and "`isend`" in message


def test_a_time_that_fits_no_known_mistake_says_what_a_ring_takes():
    (message,) = told("fast_even_ranks_first", "ring_all_reduce_fast")
    assert " s, a ring " in message and "all ranks send at once" in message


def test_an_all_reduce_made_of_a_wrong_part_says_what_to_mend_first():
    source = with_part(
        "ring_reduce_scatter", "\ndef ring_reduce_scatter(comm, x):\n    return x[:1]\n"
    )
    verdict = judged(find_exercise("ring_all_reduce"), source)
    assert verdict.messages[0].endswith("If it calls your ring_reduce_scatter, mend that first.")


def test_a_wrong_all_reduce_beside_a_right_part_stands_for_itself():
    for message in told("reduce_part_only", "ring_all_reduce"):
        assert "mend that first" not in message


@pytest.mark.parametrize("n_ranks", [3])
def test_a_result_of_the_wrong_length_names_both_shapes(n_ranks):
    source = "def ring_all_gather(comm, x):\n    return x[:1].copy()\n"
    (message,) = judged(find_exercise("ring_all_gather"), source).messages
    assert message == (
        f"ring_all_gather on {n_ranks} ranks: rank 0 returns an array of shape (1,), expected (6,)."
    )


def test_direct_sends_are_told_to_keep_to_the_right_neighbour():
    (message,) = told("gather_direct", "ring_all_gather")
    assert message == (
        "ring_all_gather on 3 ranks: rank 0 sends to rank 2; in a ring each rank sends to its "
        "right neighbour only, here to rank 1."
    )


def test_no_sum_is_called_right_where_it_is_wrong():
    for answer_id in ("reduce_not_summed", "reduce_gathered_first"):
        for message in told(answer_id, "ring_all_reduce_fast"):
            assert "sum is right" not in message


def test_a_rank_alone_that_sends_to_itself_takes_a_step_too_many():
    for name in ("gather", "scatter"):
        exercise_id = {"gather": "ring_all_gather", "scatter": "ring_reduce_scatter"}[name]
        (message,) = told(f"{name}_step_too_many", exercise_id)
        assert "one too many" in message


def test_a_right_part_is_never_called_the_one_to_mend():
    for answer_id in ("reduce_mean", "reduce_nothing_returned"):
        for message in told(answer_id, "ring_all_reduce"):
            assert "mend that first" not in message
