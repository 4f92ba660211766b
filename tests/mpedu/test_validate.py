import random
from collections import namedtuple

import pytest

from mpedu.families import gpipe, naive, one_f_one_b
from mpedu.schedule import Action, all_needs, run_order
from mpedu.validate import validate_schedule, waiting_cycle


def lists(*ranks):
    return [[Action.parse(word) for word in rank.split()] for rank in ranks]


class MyAction(Action):
    pass


Look = namedtuple("Look", "kind stage microbatch")

FAULTY = {
    "not a list": ("gpipe", {}, "not_a_list", "this is of type str"),
    "no ranks": ([], {}, "empty", "the schedule is empty"),
    "an empty rank": ([[], [Action("F", 0, 0)]], {}, "empty", "rank 0: its list holds no work"),
    "a rank that is a tuple": ([()], {}, "not_a_list", "entry 0 of the schedule is of type tuple"),
    "a tuple": ([[("F", 0, 0)]], {}, "not_an_action", "this is of type tuple"),
    "a look-alike": ([[Look("F", 0, 0)]], {}, "not_an_action", "this is of type Look"),
    "a subclass": ([[MyAction("F", 0, 0)]], {}, "not_an_action", "a subclass of Action"),
    "an unknown kind": ([[Action("X", 0, 0)]], {}, "not_an_action", "'X' is no kind of work"),
    "a negative index": ([[Action("F", -1, 0)]], {}, "not_an_action", "stage=-1"),
    "a float index": ([[Action("F", 0, 1.0)]], {}, "not_an_action", "microbatch=1.0"),
    "too large an index": (
        lists("0F0 0B0 0F1 0B1"),
        {"n_microbatches": 1},
        "out_of_range",
        "0F1 does not exist",
    ),
    "a stage in two places": (
        lists("0F0 0B0", "0F1 0B1"),
        {},
        "split_stage",
        "rank 0 and on rank 1",
    ),
    "repeated work": (lists("0F0 0F0 0B0"), {}, "repeated", "0F0 is done a second time"),
    "whole and split backward": (lists("0F0 0B0 0I0 0W0"), {}, "repeated", "0I0 is done a second"),
    "missing work": (
        lists("0F0 0B0", "1F0"),
        {"n_microbatches": 3},
        "missing",
        "stage 0 never runs F1..F2 and B1..B2",
    ),
    "a missing weight half": (lists("0F0 0I0"), {}, "missing", "never runs W0"),
    "gradient before its forward": (
        lists("0B0 0F0"),
        {},
        "before_forward",
        "0B0 stands before 0F0",
    ),
    "work before its input": (
        lists("1F0 0F0 1B0 0B0"),
        {},
        "before_input",
        "1F0 stands before 0F0",
    ),
    "ends that disagree": (
        lists("0F0 0F1 0B0 0B1", "1F1 1F0 1B0 1B1"),
        {},
        "channel_order",
        "link 0->1: stage 0 sends",
    ),
    "a crossing far along the lists": (
        lists(
            "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7",
            "1F0 1F1 1F2 1F3 1F4 1F5 1F7 1F6 1B0 1B1 1B2 1B3 1B4 1B5 1B6 1B7",
        ),
        {},
        "channel_order",
        "for ..,6,7 and stage 1 takes them as ..,7,6",
    ),
    "an absurd index": (
        lists("0F0 0B0 0F9999999999"),
        {},
        "out_of_range",
        "microbatch=9999999999 among 3 actions",
    ),
    "a cycle": (lists("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"), {}, "cycle", "stage 0 waits at 0B0"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_each_fault_is_named_in_one_sentence(name):
    schedule, counts, kind, words = FAULTY[name]
    first = validate_schedule(schedule, **counts)[0]
    assert first.kind == kind
    assert words in first.text
    assert "\n" not in str(first)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (lists("0F0 0B0", "1F0"), "stage 1 never"),
        (lists("0F0 0F0"), "stage 0: 0F0 is done"),
        (lists("0F0 2F0 2F0", "1F0"), "rank 0: 2F0 is done"),  # two stages on one rank
        (lists("1F0 1F0", "0F0"), "rank 0: 1F0 is done"),  # stages in another order
        ([[Action("F", 0, 0)], [3]], "stage 1, entry 0"),
        ([[Action("F", 1, 0)], [3]], "rank 1, entry 0"),
        ([[], []], "stage 0: its list"),
        (None, "one list of Action per stage"),
    ],
)
def test_a_rank_is_called_stage_where_each_holds_the_stage_of_its_number(schedule, words):
    assert validate_schedule(schedule)[0].text.find(words) >= 0


def test_counts_left_out_are_taken_from_the_largest_index():
    assert validate_schedule(lists("0F0 0B0 0F2 0B2"))[0].text.endswith("never runs F1 and B1")


@pytest.mark.parametrize("counts", [{"n_stages": 0}, {"n_microbatches": 0}])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="=0 is too small"):
        validate_schedule(naive(1, 1), **counts)


def test_a_cycle_names_every_rank_that_waits():
    schedule = lists("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1")
    cycle = waiting_cycle(schedule, all_needs(schedule, 2))
    assert [(rank, str(action), str(need)) for rank, action, need in cycle] == [
        (0, "0B0", "1B0"),
        (1, "1F1", "0F1"),
    ]


@pytest.mark.parametrize("seed", range(200))
def test_a_legal_verdict_means_every_rank_finishes(seed):
    """Random swaps inside the lists: the verdict and a run of the lists agree."""
    rng = random.Random(seed)
    schedule = rng.choice([naive, gpipe, one_f_one_b])(rng.randint(1, 4), rng.randint(1, 5))
    for _ in range(rng.randint(1, 3)):
        actions = rng.choice(schedule)
        i, j = rng.randrange(len(actions)), rng.randrange(len(actions))
        actions[i], actions[j] = actions[j], actions[i]
    faults = validate_schedule(schedule)
    _, stuck = run_order(schedule, all_needs(schedule, len(schedule)))
    if not faults:
        assert not stuck
    if stuck:
        assert faults
    assert {fault.kind for fault in faults} <= {
        "before_forward",
        "channel_order",
        "cycle",
    }


@pytest.mark.parametrize("seed", range(50))
def test_a_dropped_or_repeated_action_is_always_found(seed):
    rng = random.Random(seed)
    n_stages, n_microbatches = rng.randint(1, 5), rng.randint(1, 6)
    schedule = gpipe(n_stages, n_microbatches)
    actions = rng.choice(schedule)
    i = rng.randrange(len(actions))
    if seed % 2:
        actions.insert(rng.randrange(len(actions) + 1), actions[i])
        assert "repeated" in {f.kind for f in validate_schedule(schedule, n_stages, n_microbatches)}
    else:
        del actions[i]
        assert "missing" in {f.kind for f in validate_schedule(schedule, n_stages, n_microbatches)}
