"""The search: legal, under its caps, never worse than what has a name, and near the optimum."""

import random
from fractions import Fraction

import pytest
from optimum import Optimum

from mpedu.families import make_schedule, one_f_one_b, zbv
from mpedu.schedule import actions_of, peak_in_flight, stage_to_rank
from mpedu.search import search_schedule
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

EQUAL = Costs(1, 2, 1, 1)
NEAR = 1.03


def placement_of(shape, n_ranks):
    ranks = list(range(n_ranks))
    return {"straight": ranks, "looped": ranks + ranks, "v": ranks + ranks[::-1]}[shape]


def makespan_s(schedule, costs):
    return simulate(schedule, costs).makespan_s


def halves(schedule):
    """Every whole backward as I and W, one after the other."""
    return [
        [half for a in actions for half in ([a] if a.kind != "B" else
         [a._replace(kind="I"), a._replace(kind="W")])]
        for actions in schedule
    ]  # fmt: skip


def assert_answers(schedule, placement, n_microbatches, caps, freed_by, split):
    assert validate_schedule(schedule, len(placement), n_microbatches) == []
    assert stage_to_rank(schedule) == dict(enumerate(placement))
    assert {a.kind for _, a in actions_of(schedule)} == set("FIW" if split else "FB")
    peaks = peak_in_flight(schedule, freed_by)
    assert all(peak <= cap for peak, cap in zip(peaks, caps, strict=True))


# ---- against every schedule there is ----


def drawn_case(drawn):
    n_ranks, split = drawn.randint(1, 3), drawn.random() < 0.5
    shape = drawn.choice(["straight", "straight", "looped", "v"])
    n_microbatches = drawn.randint(1, {1: 4, 2: 3, 3: 2}[n_ranks if shape != "straight" else 1])
    placement = placement_of(shape, n_ranks)
    kinds = "FIW" if split else "FB"
    seconds = {kind: [drawn.choice((1, 1, 2, 3)) for _ in placement] for kind in kinds}
    n_own = len(placement) // n_ranks
    caps = [drawn.choice((n_own, n_own + 1, n_own + 2, 99)) for _ in range(n_ranks)]
    freed_by = drawn.choice("IW") if split else "I"
    return placement, n_microbatches, seconds, drawn.choice((0, 0, 1, 2)), caps, freed_by


@pytest.mark.parametrize("seed", range(5))
def test_it_is_within_3_percent_of_the_optimum(seed):
    """150 drawn cases; uneven stages, latency, caps, both rules of freeing, whole and split."""
    drawn = random.Random(seed)
    for _ in range(30):
        placement, m, seconds, latency_s, caps, freed_by = case = drawn_case(drawn)
        spent = {"F": "forward_s", "B": "backward_s", "I": "input_s", "W": "weight_s"}
        costs = Costs(**{spent[k]: each for k, each in seconds.items()}, latency_s=latency_s)
        schedule = search_schedule(placement, m, costs, caps, freed_by, "W" in seconds)
        assert_answers(schedule, placement, m, caps, freed_by, "W" in seconds)
        found_s = makespan_s(schedule, costs)
        assert found_s <= NEAR * Optimum(*case).shorter_than(found_s)


def test_the_optimum_itself_is_what_is_known():
    """Four stages: the table's 27 s of H1, 30 s under 4, 3, 2, 1 held until W, 33 s of 1F1B."""
    split = {kind: [1] * 4 for kind in "FIW"}
    whole = {"F": [1] * 3, "B": [2] * 3}
    assert Optimum([0, 1, 2], 4, whole, 0, [9] * 3, "I").shorter_than(99) == 3 * (4 + 2)
    assert Optimum([0, 1], 3, {k: [1] * 2 for k in "FIW"}, 0, [9] * 2, "I").shorter_than(99) == 10
    assert Optimum(range(4), 2, split, 0, [1] * 4, "I").shorter_than(99) == 17


# ---- against what has a name ----


WHOLE = [
    ("gpipe", 2, 3),
    ("1f1b", 4, 8),
    ("1f1b", 3, 2),
    ("interleaved", 2, 4),
    ("looped-bfs", 3, 3),
]
SPLIT = [("zero-bubble-h1", 4, 8), ("interleaved-zero-bubble", 2, 4), ("zbv", 2, 3), ("zbv", 2, 4)]
SPLIT += [("dualpipe-v", 2, 4)]
COSTS = [EQUAL, Costs(2, 3, latency_s=1), Costs(1, 2, message_s=1, blocking=True)]


@pytest.mark.parametrize("costs", COSTS, ids=["equal", "latency", "blocking"])
@pytest.mark.parametrize(
    "named, split, freed_by",
    [
        *[(make_schedule(*each), False, "I") for each in WHOLE],
        *[(halves(make_schedule(*each)), True, "W") for each in WHOLE],
        *[(halves(make_schedule(*each)), True, freed_by) for each in SPLIT for freed_by in "IW"],
    ],
)
def test_no_named_schedule_under_the_same_cap_is_shorter(named, split, freed_by, costs):
    caps = peak_in_flight(named, freed_by)
    placement = [rank for _, rank in sorted(stage_to_rank(named).items())]
    n_microbatches = 1 + max(a.microbatch for _, a in actions_of(named))
    found = search_schedule(placement, n_microbatches, costs, caps, freed_by, split)
    assert_answers(found, placement, n_microbatches, caps, freed_by, split)
    assert makespan_s(found, costs) <= makespan_s(named, costs)


@pytest.mark.parametrize("cap, freed_by, found_s", [(4, "I", 27), ([4, 3, 2, 1], "W", 30)])
def test_it_finds_the_tables_zero_bubble_schedules(cap, freed_by, found_s):
    found = search_schedule(range(4), 8, EQUAL, cap, freed_by)
    assert makespan_s(found, EQUAL) == found_s


def test_known_weak_spots_of_a_beam_alone():
    whole = search_schedule(range(4), 8, EQUAL, 4, split=False)
    assert makespan_s(whole, EQUAL) == makespan_s(one_f_one_b(4, 8), EQUAL) == 33
    v = placement_of("v", 4)
    assert makespan_s(search_schedule(v, 16, EQUAL, 8), EQUAL) == makespan_s(zbv(4, 16), EQUAL)


def test_half_the_memory_of_zbv_costs_less_than_a_third_of_its_time():
    """Qi et al. 2024b promise as much; no named schedule runs there but one micro-batch a time."""
    found = search_schedule(placement_of("v", 3), 4, EQUAL, 3)
    assert makespan_s(found, EQUAL) <= 1.33 * makespan_s(zbv(3, 4), EQUAL)


# ---- what else is asked ----


def test_times_are_those_of_simulate_with_messages_that_take_time():
    """A link that is busy, or a sender that is: the search's own clock must not be ahead of it."""
    for blocking in (False, True):
        costs = Costs((1, 2), (2, 3), latency_s=Fraction(1, 2), message_s=(1, 2), blocking=blocking)
        found = search_schedule([0, 1], 3, costs, 3, split=False)
        least_s = min(
            makespan_s(make_schedule(name, 2, 3), costs) for name in ("gpipe", "1f1b", "naive")
        )
        assert makespan_s(found, costs) <= least_s
        assert isinstance(makespan_s(found, costs), Fraction)


def test_the_same_question_has_the_same_answer():
    asked = [placement_of("v", 2), 4, Costs((1, 2, 1, 3), 2), 3]
    assert search_schedule(*asked) == search_schedule(*asked)


def test_progress_is_told_in_sentences_that_end_with_what_was_found():
    said = []
    found = search_schedule(range(4), 8, EQUAL, 3, progress=said.append)
    assert said[0].startswith("after named schedules and waves: ")
    assert (
        f"single actions: {makespan_s(found, EQUAL):g} s; nothing is shorter than 27 s" in said[-1]
    )


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"memory_cap": 0}, "memory_cap=0 on rank 0, which holds 1 stage: .* give at least 1"),
        ({"memory_cap": [2, 1]}, "memory_cap has 2 entries for 3 ranks"),
        ({"memory_cap": [1, 1, -1]}, "memory_cap=-1 on rank 2"),
        ({"memory_cap": float("nan")}, "memory_cap=nan on rank 0"),
        ({"placement": [0, 2]}, r"placement=\[0, 2\] leaves ranks of 0..2 without a stage"),
        ({"placement": []}, "n_stages=0 is too small"),
        ({"placement": [0, 1, 1, 0], "memory_cap": 1}, "which holds 2 stages: .* at least 2"),
        ({"n_microbatches": 0}, "n_microbatches=0 is too small"),
        ({"freed_by": "B"}, "freed_by='B' is unknown"),
        ({"costs": Costs((1, 2))}, "forward_s has 2 entries and stage 2 is asked"),
    ],
)
def test_what_has_no_answer_is_refused_in_one_sentence(asked, words):
    with pytest.raises(ValueError, match=words):
        search_schedule(**{"placement": [0, 1, 2], "n_microbatches": 2, **asked})
