"""The typical mistakes of unit 00 in a ring, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

from autograder.checks.programs import (
    among_several,
    array_problem,
    called_collective,
    failed,
    is_same,
    links,
    message_s,
    next_rank,
    once_round,
    shown_array,
    stands_in,
    waits,
)
from autograder.checks.values import shown
from autograder.diagnosis import Case, Diagnosis, Mistake, StudentError

Expected = Callable[[Case, int], Any]
Differs = Callable[[Case, Any], Diagnosis | None]


def token_of_zero(case: Case, rank: int) -> Any:
    """What `ring_pass` returns on `rank`."""
    return case.args[1][0][0]


def of_left(case: Case, rank: int) -> Any:
    """What `fix_deadlock` returns on `rank`: the array of the rank before it."""
    return case.args[1][rank - 1][0]


def own(case: Case, rank: int) -> Any:
    """The array that `rank` was given."""
    return case.args[1][rank][0]


def of_right(case: Case, rank: int) -> Any:
    """The array of the next rank."""
    return case.args[1][next_rank(rank, case.args[0])][0]


def wrong_array(expected: Expected, whose: Callable[[Case, int], str]) -> Differs:
    """For `examine`: on which rank another array came back than `expected`, None for right runs.

    whose: says in words what was expected there.
    """

    def differs(case: Case, got: Any) -> Diagnosis | None:
        bad = failed(case, got) or called_collective(case, got)
        if bad:
            return bad
        for rank, result in enumerate(got.results):
            problem = array_problem(result)
            if problem:
                text = f"{case}: rank {rank} {problem}"
                return Diagnosis("no_array", text, "some rank does not return an array.")
            due = expected(case, rank)
            if not is_same(result, due):
                text = (
                    f"{case}: rank {rank} returns {shown_array(result)}, expected "
                    f"{shown_array(due)}, {whose(case, rank)}."
                )
                return Diagnosis("differs", text, "some rank returns another array.")
        return None

    return differs


def returns(expected: Expected) -> Callable[[Case, Any], bool]:
    """Does every rank of a run return that?"""

    def matches(case: Case, got: Any) -> bool:
        if isinstance(got, StudentError) or called_collective(case, got):
            return False
        return all(is_same(x, expected(case, rank)) for rank, x in enumerate(got.results))

    return matches


def goes_astray(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: what is wrong with the way of the token, None where it goes once round."""
    n_ranks, sent = case.args[0], links(got)
    due = once_round(n_ranks)
    for link in due:
        if link not in sent:
            text = f"{case}: no message goes from rank {link[0]} to rank {link[1]}."
            return Diagnosis("link_missing", text, "on some link of the ring nothing is sent.")
    if sent != due:
        source, destination = next(link for link in sent if sent.count(link) > due.count(link))
        text = (
            f"{case}: {len(sent)} messages, {len(due)} expected, one on each link of the ring. "
            f"One too many goes from rank {source} to rank {destination}."
        )
        return Diagnosis("too_many", text, "more messages than one on each link of the ring.")
    return None


def _goes(way: Callable[[int], list[tuple[int, int]]]) -> Callable[[Case, Any], bool]:
    return lambda case, got: links(got) == sorted(way(case.args[0]))


def _star(n_ranks: int) -> list[tuple[int, int]]:
    return [(0, rank) for rank in range(1, n_ranks)]


def _backwards(n_ranks: int) -> list[tuple[int, int]]:
    return [(destination, source) for source, destination in once_round(n_ranks)]


def _is_never_home(case: Case, got: Any) -> bool:
    """Does the last rank wait in vain for rank 0 to take the token?"""
    return waits(got) == {case.args[0] - 1: ("send", 0)}


def _receivers_text(case: Case, got: Any) -> str:
    return (
        f"{case}: every rank stands in recv, rank 0 too. Everyone waits for a sender; one rank "
        "must send first."
    )


def _senders_text(case: Case, got: Any) -> str:
    return (
        f"{case}: every rank stands in send, and a send ends only when somebody receives. Only "
        "rank 0 has something to send at the start; the others receive first."
    )


def _neighbour_text(case: Case, got: Any) -> str:
    rank = min(2, case.args[0] - 1)
    return (
        f"{case}: rank {rank} returns {shown_array(got.results[rank])}, the token that rank "
        f"{rank - 1} was given. Pass on what you received, not your own token."
    )


def _own_text(case: Case, got: Any) -> str:
    return (
        f"{case}: rank 1 returns {shown_array(got.results[1])}, which it was given itself. Return "
        "what `recv` gave."
    )


def _home_text(case: Case, got: Any) -> str:
    last = case.args[0] - 1
    return (
        f"{case}: rank {last} sends the token to rank 0, which has finished. The token is home "
        "when rank 0 has received it."
    )


RECEIVERS = Mistake(
    "all_receive_first",
    among_several(stands_in("recv")),
    _receivers_text,
    "everyone waits for a sender; one rank must send first.",
)
TOKENS = (
    RECEIVERS,
    Mistake(
        "all_send_first",
        among_several(stands_in("send")),
        _senders_text,
        "every rank sends first; only rank zero has something to send at the start.",
    ),
    Mistake(
        "never_home",
        among_several(_is_never_home),
        _home_text,
        "rank zero does not receive the token back.",
    ),
    Mistake(
        "neighbours_token",
        among_several(returns(of_left)),
        _neighbour_text,
        "each rank sends its own token; pass on what was received.",
    ),
    Mistake(
        "own_token",
        among_several(returns(own)),
        _own_text,
        "each rank returns its own token; return what was received.",
    ),
)
WAY = (
    Mistake(
        "star",
        among_several(_goes(_star)),
        lambda case, got: (
            f"{case}: rank 0 sends the token to every rank itself. Each rank passes it to the "
            "next, and the last one back to rank 0."
        ),
        "rank zero sends to all; each rank passes the token to the next.",
    ),
    Mistake(
        "backwards",
        lambda answers: (
            among_several(_goes(_backwards))(answers)
            and any(case.args[0] > 2 for case, _ in answers)
        ),
        lambda case, got: (
            f"{case}: the token goes from rank 0 to rank {case.args[0] - 1}, round the ring the "
            "other way. The next of rank r is r + 1, of the last rank 0."
        ),
        "the token goes round the other way.",
    ),
    Mistake(
        "twice_round",
        among_several(_goes(lambda n_ranks: 2 * once_round(n_ranks))),
        lambda case, got: f"{case}: two messages on every link; once round is asked.",
        "two messages on every link; once round is asked.",
    ),
)


def not_a_round(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: is the token home after as many messages as there are ranks, not later?"""
    bad = wrong_array(token_of_zero, lambda *_: "the token of rank 0")(case, got)
    if bad:
        return bad
    n_ranks, one_s = case.args[0], message_s(case)
    due_s = n_ranks * one_s if n_ranks > 1 else 0.0
    if got.makespan_s == due_s:
        return None
    text = (
        f"{case}: on the clock of this check one message takes {shown(one_s)} s, so once round "
        f"takes {shown(due_s)} s; your program takes {shown(got.makespan_s)} s."
    )
    if got.makespan_s < due_s:
        general = "it is home sooner than a token can go round: it skips ranks."
        return Diagnosis("too_fast", f"{text} Does the token skip ranks?", general)
    general = "it takes longer than one message after the other round the ring."
    look = "What does a rank do between receiving the token and passing it on?"
    return Diagnosis("slow", f"{text} {look}", general)
