"""The typical mistakes of unit 05 with what a stage holds, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder import oracle_05
from autograder.checks.values import (
    Formula,
    constant,
    formula_mistake,
    shown,
    whole_problem,
    wrong_number,
)
from autograder.diagnosis import Case, Diagnosis, Mistake, each
from mpedu.schedule import Action

_SHOWN = 12


def in_words(actions: Sequence[Action]) -> str:
    """A list of one stage as it is written, cut where it is long."""
    words = [f"{action.kind}{action.microbatch}" for action in actions[:_SHOWN]]
    return " ".join(words) + (" .." if len(actions) > _SHOWN else "") if words else "no work"


def as_numbers(got: Any) -> list[Any] | None:
    """An answer as a list, None where it is no sequence."""
    if isinstance(got, np.ndarray):
        return list(got.tolist()) if got.ndim == 1 else None
    return list(got) if isinstance(got, list | tuple) else None


def _said(actions: Sequence[Action]) -> str:
    return f"in_flight of {in_words(actions)}"


def differs_held(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the numbers of one list, None where they are right."""
    (actions,) = case.args
    held = as_numbers(got)
    if held is None:
        back = (
            "None came back, is a return missing? A"
            if got is None
            else f"{shown(got)} came back; a"
        )
        text = f"{_said(actions)}: {back} list with one number per action is asked."
        return Diagnosis("no_list", text, "in_flight gives no list.")
    due = oracle_05.in_flight(actions)
    if len(held) != len(due):
        text = (
            f"{_said(actions)}: {len(held)} numbers came back for {len(due)} actions; one after "
            "each action is asked."
        )
        return Diagnosis("length", text, "there is not one number for each action.")
    for place, (given, right) in enumerate(zip(held, due, strict=True)):
        problem = whole_problem(given)
        if problem:
            text = f"{_said(actions)}, entry {place}: {problem.removeprefix('gives ')}"
            return Diagnosis("no_int", text, "an entry is no whole number.")
        if given != right:
            after = f"{actions[place].kind}{actions[place].microbatch}"
            text = (
                f"{_said(actions)}: after {after}, entry {place}, you have {given}, expected "
                f"{right}. Count forwards so far, and take off the backwards."
            )
            return Diagnosis("differs", text, "a number differs from forwards less backwards.")
    return None


def _held(id: str, wrong: Callable[[Sequence[Action]], Any], why: str, general: str) -> Mistake:
    """A mistake that gives `wrong` of every list."""

    def matches(case: Case, got: Any) -> bool:
        expected = wrong(*case.args)
        if isinstance(expected, list):
            return expected == as_numbers(got)
        return type(got) is int and got == expected

    def text(case: Case, got: Any) -> str:
        (actions,) = case.args
        numbers = as_numbers(got)
        given = got if numbers is None else numbers[:_SHOWN]
        return (
            f"{_said(actions)} begins with {given}. {why}"
            if numbers
            else (f"{_said(actions)} gives {given}. {why}")
        )

    return Mistake(id, each(matches), text, general)


def _before(actions: Sequence[Action]) -> list[int]:
    return [0, *oracle_05.in_flight(actions)][: len(actions)]


def _ever(actions: Sequence[Action]) -> list[int]:
    return [sum(a.kind == "F" for a in actions[: i + 1]) for i in range(len(actions))]


def _backwards(actions: Sequence[Action]) -> list[int]:
    return [sum(a.kind == "B" for a in actions[: i + 1]) for i in range(len(actions))]


HELD = (
    _held(
        "before_action",
        _before,
        "That is what is held before each action; asked is after it: a first forward gives one.",
        "your numbers are those before each action; asked is after it.",
    ),
    _held(
        "starts_with_zero",
        lambda actions: [0, *oracle_05.in_flight(actions)],
        "Your list begins with what is held before any work, so it has one number too many.",
        "your list begins with what is held before any work: one number too many.",
    ),
    _held(
        "never_freed",
        _ever,
        "A backward frees what the forward of its micro-batch left behind; yours frees nothing.",
        "a backward frees what its forward left behind; yours frees nothing.",
    ),
    _held(
        "actions_counted",
        lambda actions: list(range(1, len(actions) + 1)),
        "You count actions: a forward adds a micro-batch, a backward takes one off.",
        "you count actions; a backward takes a micro-batch off.",
    ),
    _held(
        "changes_only",
        lambda actions: [1 if action.kind == "F" else -1 for action in actions],
        "Those are the changes; asked is what is held, so add them up as you go.",
        "your numbers are the changes; asked is their running sum.",
    ),
    _held(
        "peak_only",
        lambda actions: max(oracle_05.in_flight(actions), default=0),
        "That is the peak; asked is the list that it is the largest number of.",
        "a single number came back, the peak; asked is a list with a number for each action.",
    ),
    _held(
        "signs_swapped",
        lambda actions: [-n for n in oracle_05.in_flight(actions)],
        "The sign is turned round: a forward adds, a backward takes off.",
        "the sign is turned round: a forward adds, a backward takes off.",
    ),
    _held(
        "given_back",
        _backwards,
        "Those are the micro-batches given back so far; asked are those that are still held.",
        "your numbers are the backwards so far; asked is what is still held.",
    ),
)

wrong_peak = wrong_number(oracle_05.peak)


def differs_peak(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the peak of a stage, None where it is right."""
    problem = whole_problem(got)
    if problem:
        return Diagnosis("no_int", f"{case} {problem}", f"{case.name} gives no whole number.")
    if got == oracle_05.peak(*case.args):
        return None
    look = "Count on your own schedule: `max(in_flight(one_f_one_b(..)[stage]))`."
    general = "the peak differs from the one that is counted."
    return Diagnosis("differs", f"{wrong_peak(case, got)} {look}", general)


def _peak(id: str, formula: Callable[[int, int, int], int], why: str, *alike: Formula) -> Mistake:
    return formula_mistake(
        id, [formula, *alike], lambda case, got: f"{wrong_peak(case, got)} {why}", why
    )


PEAKS = (
    _peak(
        "of_gpipe",
        lambda k, m, stage: m,
        "All micro-batches: that is what GPipe holds.",
    ),
    _peak(
        "warm_up_alone",
        lambda k, m, stage: min(m, k - 1 - stage),
        "That is the warm-up alone; the next forward comes before the first backward too.",
    ),
    _peak(
        "one_more_stage",
        lambda k, m, stage: min(m, k - stage + 1),
        "One too many: the last stage holds a single micro-batch.",
    ),
    _peak(
        "of_stage_zero",
        lambda k, m, stage: min(m, k),
        "It is the same for every stage; the nearer the end, the sooner a gradient is back.",
    ),
    _peak(
        "from_the_front",
        lambda k, m, stage: min(m, stage + 1),
        "You count stages from the front; what matters is how far the end is.",
    ),
    _peak(
        "more_than_there_are",
        lambda k, m, stage: k - stage,
        "No stage holds more micro-batches than there are.",
    ),
    _peak(
        "all_of_few",
        lambda k, m, stage: m if m < k else k - stage,
        "Where there are fewer micro-batches than stages, you let every stage hold them all; near "
        "the end the first gradient is back before all have come.",
    ),
    _peak(
        "least_first",
        lambda k, m, stage: max(0, min(m, k) - stage),
        "You take off the stage after the limit: a stage far from the end still holds all of few.",
        lambda k, m, stage: min(m, k) - stage,
        lambda k, m, stage: max(1, min(m, k) - stage),
    ),
    constant(lambda case, got: f"{wrong_peak(case, got)} Yours is the same for every case."),
)
