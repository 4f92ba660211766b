"""The typical mistakes of unit 00 with `hello`, and the sentences they draw."""

from typing import Any

import numpy as np

from autograder.checks.programs import (
    among_several,
    called_collective,
    failed,
    links,
    shown_array,
    waits,
)
from autograder.checks.values import article, shown, whole_problem
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, StudentError


def unasked(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: which rank has sent nothing to rank 0, None where all have."""
    bad = _failed(case, got) or called_collective(case, got)
    if bad:
        return bad
    sent = links(got)
    for rank in range(1, case.args[0]):
        if (rank, 0) not in sent:
            text = (
                f"{case}: no message goes from rank {rank} to rank 0. Each rank but 0 sends its "
                "number to rank 0, in a message of its own."
            )
            return Diagnosis("unasked", text, "some rank sends nothing to rank zero.")
    return None


def _other_content(case: Case, got: Any) -> Diagnosis | None:
    """Which rank sends something else than its number: then rank 0 cannot know it from that."""
    for sent, x in zip(got.timeline.messages, got.contents, strict=True):
        if sent.destination == 0 and not (np.size(x) and np.all(np.equal(x, sent.source))):
            text = (
                f"{case}: rank {sent.source} sends {shown_array(x)} to rank 0, and not its number, "
                f"{sent.source}."
            )
            general = "some rank sends something else than its number."
            return Diagnosis("not_its_number", text, general)
    return None


def _failed(case: Case, got: Any) -> Diagnosis | None:
    """As `failed`; NumPy's own words for int(..) of an array with an axis tell no way out."""
    bad = failed(case, got)
    if bad and isinstance(got, StudentError) and "0-dimensional" in got.message:
        return bad._replace(text=f"{bad.text} `.item()` makes a number of an array that holds one.")
    return bad


def differs(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the numbers, None where they are right."""
    bad = _other_content(case, got)
    if bad:
        return bad
    n_ranks, first = case.args[0], got.results[0]
    problem = _list_problem(first)
    if problem:
        general = "rank zero does not return a list of whole numbers."
        return Diagnosis("no_list", f"{case}: rank 0 {problem}", general)
    if list(first) != list(range(n_ranks)):
        text = f"{case}: rank 0 returns {_listed(first)}, expected {_listed(range(n_ranks))}."
        return Diagnosis("differs", text, "the list on rank zero is not the one asked for.")
    for rank, other in enumerate(got.results[1:], start=1):
        if not isinstance(other, list | tuple) or len(other):
            text = f"{case}: rank {rank} returns {_briefly(other)}; only rank 0 has a list to give"
            general = "a rank other than zero returns something else than an empty list."
            return Diagnosis("others_return", f"{text}, the others return [].", general)
    return None


def _list_problem(got: Any) -> str:
    if got is None:
        return "returns None; is a return missing?"
    if not isinstance(got, list | tuple):
        kind = "array" if isinstance(got, np.ndarray) else type(got).__name__
        return f"returns {article(kind)}; a list of ints is asked."
    for place, entry in enumerate(got):
        if isinstance(entry, np.ndarray):
            return (
                f"returns an array as entry {place} of its list; what `recv` gives is an array, "
                "and its `.item()` is the number in it."
            )
        problem = whole_problem(entry)
        if problem:
            return f"holds an entry {place} that {problem}"
    return ""


def _listed(numbers: Any) -> str:
    some = ", ".join(shown(number) for number in list(numbers)[:9])
    return f"[{some}{', ..' if len(numbers) > 9 else ''}]"


def _briefly(value: Any) -> str:
    if isinstance(value, list | tuple) and all(type(entry) is int for entry in value):
        return _listed(value)
    return shown(value)


def _is_list(got: Any) -> bool:
    return not _list_problem(got.results[0])


def _own_missing(answers: Answers) -> bool:
    return all(
        _is_list(got) and list(got.results[0]) == list(range(1, case.args[0]))
        for case, got in answers
    )


def _other_order(answers: Answers) -> bool:
    """Is every list of three ranks or more complete and in another order?"""
    return all(
        _is_list(got)
        and sorted(got.results[0]) == list(range(case.args[0]))
        and (case.args[0] < 3 or list(got.results[0]) != sorted(got.results[0]))
        for case, got in answers
    )


def _is_silent(case: Case, got: Any) -> bool:
    return not isinstance(got, StudentError) and not got.timeline.messages


def _is_relayed(case: Case, got: Any) -> bool:
    neighbours = [(rank, rank - 1) for rank in range(1, case.args[0])]
    return not isinstance(got, StudentError) and links(got) == neighbours


def _is_not_taken(case: Case, got: Any) -> bool:
    """Has rank 0 finished while others still send to it?"""
    return set(waits(got).values()) == {("send", 0)}


def _is_not_sent(case: Case, got: Any) -> bool:
    """Does rank 0 alone wait, for a rank that has finished?"""
    stands = waits(got)
    return set(stands) == {0} and stands[0][0] == "recv"


def _not_taken_text(case: Case, got: Any) -> str:
    return (
        f"{case}: rank 0 has finished, and rank {min(waits(got))} still stands in its send to it. "
        "Does rank 0 receive once from every other rank?"
    )


def _not_sent_text(case: Case, got: Any) -> str:
    source = waits(got)[0][1]
    return (
        f"{case}: rank 0 waits for a message from rank {source}, which has finished without "
        "sending one."
    )


ASKED = (
    Mistake(
        "not_taken",
        among_several(_is_not_taken),
        _not_taken_text,
        "rank zero has finished while another rank still sends to it.",
    ),
    Mistake(
        "not_sent",
        among_several(_is_not_sent),
        _not_sent_text,
        "rank zero waits for a rank that has finished without sending.",
    ),
    Mistake(
        "no_messages",
        among_several(_is_silent),
        lambda case, got: (
            f"{case}: no message was sent. A list without messages is a guess: rank 0 can know "
            "the number of another rank only if that rank sends it."
        ),
        "no message was sent, so the list is a guess.",
    ),
    Mistake(
        "relayed",
        among_several(_is_relayed),
        lambda case, got: (
            f"{case}: the numbers come by way of the neighbours, and rank {case.args[0] - 1} has "
            "sent nothing to rank 0. Each rank sends its number itself."
        ),
        "the numbers come by way of neighbours; each rank sends its number itself.",
    ),
)
NUMBERS = (
    Mistake(
        "own_missing",
        _own_missing,
        lambda case, got: (
            f"{case}: rank 0 returns {_listed(got.results[0])}: its own number is missing. It "
            "needs no message for that one."
        ),
        "the number of rank zero itself is missing.",
    ),
    Mistake(
        "other_order",
        _other_order,
        lambda case, got: (
            f"{case}: rank 0 returns {_listed(got.results[0])}: every number, in the order in "
            "which it took them. `recv` names its source, so the order is that of asking: ask from "
            "rank 1 upwards."
        ),
        "every number, but not in order of rank; ask by rank.",
    ),
)
