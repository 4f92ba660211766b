import pytest

from mpedu.families import gpipe, one_f_one_b
from mpedu.schedule import Action, in_flight, missing_work, needs, peak_in_flight


@pytest.mark.parametrize("text", ["0F0", "12B3", "3I11", "0W7"])
def test_an_action_reads_back_what_it_prints(text):
    assert str(Action.parse(text)) == text


@pytest.mark.parametrize("text", ["", "F0", "0X0", "0F", "-1F0", "0F0 "])
def test_no_other_text_is_an_action(text):
    with pytest.raises(ValueError, match="is no action"):
        Action.parse(text)


def test_needs_follow_the_split_where_the_stage_after_splits_its_backward():
    whole = {Action("B", 1, 0)}
    split = {Action("I", 1, 0), Action("W", 1, 0)}
    assert needs(Action("F", 0, 0), whole, 2) == []
    assert needs(Action("F", 1, 0), whole, 2) == [Action("F", 0, 0)]
    assert needs(Action("B", 1, 0), whole, 2) == [Action("F", 1, 0)]
    assert needs(Action("B", 0, 0), whole, 2) == [Action("F", 0, 0), Action("B", 1, 0)]
    assert needs(Action("B", 0, 0), split, 2) == [Action("F", 0, 0), Action("I", 1, 0)]
    assert needs(Action("W", 1, 0), split, 2) == [Action("I", 1, 0)]


def test_in_flight_counts_after_every_action():
    assert in_flight(one_f_one_b(2, 3)[0]) == [1, 2, 1, 2, 1, 0]


def test_a_split_backward_frees_at_the_half_that_is_asked_for():
    actions = [Action.parse(word) for word in "0F0 0I0 0F1 0I1 0W0 0W1".split()]
    assert peak_in_flight([actions]) == [1]
    assert peak_in_flight([actions], freed_by="W") == [2]
    with pytest.raises(ValueError, match="freed_by='B'"):
        in_flight(actions, freed_by="B")


def test_missing_work_asks_for_the_other_half_of_a_split_backward():
    actions = [Action.parse(word) for word in "0F0 0I0 0F1".split()]
    assert missing_work([actions], 1, 2) == [Action("W", 0, 0), Action("B", 0, 1)]
    assert missing_work(gpipe(3, 4), 3, 4) == []
