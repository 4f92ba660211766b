"""The stops of unit 00, drawn, sealed and shown: each has the one cause that is told of it."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from judged import SECRETS, run_check

from autograder.checks.unit_00 import sealed_runs, stops
from autograder.exercise import find_exercise, find_guess
from autograder.notebook import NotAsked, sealed_run
from mpedu.ranks.outcome import RankError
from mpedu.simulated import run_simulated

NOTEBOOK = Path(__file__).parents[2] / "notebooks/00-start-here/00-start-here.ipynb"
CELLS = {
    cell["id"]: "".join(cell["source"])
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
}


class Asked:
    """Notes the stops that the check asks."""

    def __init__(self):
        self.stops = []

    def blame(self, waits):
        self.stops.append(waits)
        return stops.truth(waits)


def follow(waits):
    """By brute force: from every rank as many steps as there are ranks, then once round."""
    ends = set()
    for rank in (rank for rank, wait in enumerate(waits) if wait):
        way = [rank]
        while waits[way[-1]] and len(way) <= len(waits):
            way.append(waits[way[-1]][1])
        if waits[way[-1]] is None:
            call = waits[way[-2]][0]
            ends.add(({"recv": "never_sent", "send": "never_taken"}[call], *way[-2:]))
        else:
            circle = [min(way[way.index(way[-1]) :])]
            while waits[circle[-1]][1] != circle[0]:
                circle.append(waits[circle[-1]][1])
            ends.add(("cycle", *circle))
    return ends or {("none",)}


def test_drawn_stops_have_the_one_cause_that_was_planted():
    rng = random.Random(5)
    for cause in stops.CAUSES:
        for _ in range(300):
            waits = stops.drawn_stop(cause, rng.randint(2, 12), rng)
            named, ranks = stops.truth(waits)
            assert named == cause
            assert follow(waits) == {(named, *ranks)}


def test_no_two_ranks_of_a_drawn_stop_could_go_on():
    for number in range(50):
        subject = Asked()
        run_check(find_exercise("blame"), subject, secret=number % 2, seed=bytes([number]) * 16)
        for waits in subject.stops:
            for rank, wait in enumerate(waits):
                answer = waits[wait[1]] if wait else None
                assert not (
                    answer and answer[1] == rank and {wait[0], answer[0]} == {"send", "recv"}
                )


def test_secret_stops_hold_every_cause_and_long_ways():
    for seed in SECRETS:
        subject = Asked()
        run_check(find_exercise("blame"), subject, secret=True, seed=seed)
        truths = [stops.truth(waits) for waits in subject.stops]
        assert {cause for cause, _ in truths} == set(stops.CAUSES)
        assert any(cause == "cycle" and len(ranks) == 2 for cause, ranks in truths)
        assert any(cause == "cycle" and len(ranks) > 4 for cause, ranks in truths)


@pytest.mark.parametrize("letter", sealed_runs.LETTERS)
def test_a_sealed_program_ends_where_it_is_said_to(letter):
    run = sealed_run(letter, "00")
    with pytest.raises(RankError) as caught:
        run_simulated(run.program, sealed_runs.N_RANKS)
    stands = {w.rank: (w.text.split()[0], *w.peers) for w in caught.value.waiting}
    assert stands == {rank: wait for rank, wait in enumerate(run.waits) if wait}


def test_sealed_programs_hold_every_cause_but_none_and_victims():
    runs = [sealed_run(letter, "00") for letter in sealed_runs.LETTERS]
    truths = [stops.truth(run.waits) for run in runs]
    assert {cause for cause, _ in truths} == {"cycle", "never_sent", "never_taken"}
    for run, (_, ranks) in zip(runs, truths, strict=True):
        assert sum(wait is not None for wait in run.waits) > len(ranks)
    with pytest.raises(NotAsked, match="give a letter A to D"):
        sealed_run("E", "00")


def shown_programs():
    names = {"np": np}
    exec(CELLS["programs"], names)
    return names


@pytest.mark.parametrize("letter, rank", [("a", 2), ("b", 2), ("c", 0)])
def test_guesses_about_the_programs_are_what_the_machine_shows(letter, rank):
    waits_for = -1
    try:
        run_simulated(shown_programs()[f"program_{letter}"], 4)
    except RankError as error:
        waits_for = next((w.peers[0] for w in error.waiting if w.rank == rank), -1)
    guess = find_guess(f"waits-{letter}")
    assert guess.result() == waits_for
    assert f"for which rank does rank {rank} wait" in guess.question
