"""The typical mistakes of unit 00 in mending a deadlock, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

from autograder.checks.programs import (
    among_several,
    message_s,
    shown_array,
    stands_in,
)
from autograder.checks.unit_00.ring_mistakes import (
    RECEIVERS,
    of_left,
    of_right,
    own,
    returns,
    wrong_array,
)
from autograder.checks.values import shown
from autograder.diagnosis import Case, Diagnosis, Mistake, StudentError

differs = wrong_array(of_left, lambda case, rank: f"the array of rank {(rank - 1) % case.args[0]}")


def _is_pairs(case: Case, got: Any) -> bool:
    """Has each rank the array of its partner, where ranks 0 and 1, 2 and 3, .. are partners?"""
    if case.args[0] % 2:
        return isinstance(got, StudentError) and got.kind in ("raised", "deadlock")
    return returns(lambda case, rank: case.args[1][rank ^ 1][0])(case, got)


def _other_text(case: Case, got: Any) -> str:
    n_ranks = case.args[0]
    return (
        f"{case}: rank 0 returns {shown_array(got.results[0])}, the array of rank "
        f"{1 % n_ranks}. Asked is that of the rank before it, rank {n_ranks - 1}."
    )


EXCHANGED = (
    Mistake(
        "unmended",
        among_several(stands_in("send")),
        lambda case, got: (
            f"{case}: still every rank sends first, and a send ends only when somebody receives. "
            "At least one rank must receive first, or send without waiting."
        ),
        "still every rank sends first; at least one must receive first.",
    ),
    RECEIVERS._replace(
        id="now_all_receive",
        text=lambda case, got: (
            f"{case}: now every rank stands in recv. Everyone waits for a sender; some ranks must "
            "send first."
        ),
    ),
    Mistake(
        "other_neighbour",
        # On two ranks both neighbours are the same one.
        lambda answers: (
            among_several(returns(of_right))(answers)
            and not among_several(returns(of_left))(answers)
        ),
        _other_text,
        "each rank returns the array of the next rank; that of the rank before it is asked.",
    ),
    Mistake(
        "nothing_exchanged",
        among_several(returns(own)),
        lambda case, got: (
            f"{case}: rank 1 returns {shown_array(got.results[1])}, its own array. The array of "
            "rank 0 is asked."
        ),
        "each rank returns its own array.",
    ),
    Mistake(
        "pairs",
        among_several(_is_pairs),
        lambda case, got: (
            f"{case}: ranks 0 and 1 exchange their arrays, ranks 2 and 3 theirs, and so on. Asked "
            "is a ring: each rank sends to the next and receives from the one before."
        ),
        "ranks exchange in pairs; a ring is asked.",
    ),
)


def unwaited(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a message that a rank started and never waited for, None where all were."""
    if not got.unwaited:
        return None
    text = (
        f"{case}: {got.unwaited[0]}. Until `wait` has returned the message may still be read from "
        "the array, or written into it; on real ranks whoever changes it then spoils it."
    )
    return Diagnosis("not_waited", text, "some request is never waited for.")


def slower(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: does the exchange take longer than one message?"""
    bad = differs(case, got)
    if bad:
        return bad
    one_s = message_s(case)
    if got.makespan_s <= one_s:
        return None
    text = (
        f"{case}: on the clock of this check one message takes {shown(one_s)} s, and that is "
        f"enough; your program takes {shown(got.makespan_s)} s."
    )
    look = "Which rank waits for a message before it sends its own?"
    general = "the exchange takes longer than one message."
    return Diagnosis("slow", f"{text} {look}", general)


def _takes(n_messages: Callable[[int], int]) -> Callable[[Case, Any], bool]:
    """Does a run take as long as so many messages, by the number of ranks?"""

    def matches(case: Case, got: Any) -> bool:
        if isinstance(got, StudentError):
            return False
        return bool(got.makespan_s == n_messages(case.args[0]) * message_s(case))

    return matches


IN_TIME = (
    *EXCHANGED,
    Mistake(
        "one_after_another",
        among_several(_takes(lambda n_ranks: n_ranks)),
        lambda case, got: (
            f"{case}: {case.args[0]} messages of {shown(message_s(case))} s one after the other: "
            f"{shown(got.makespan_s)} s. Every rank has its array from the start, so all can start "
            "to send at once."
        ),
        "the messages go one after the other; all ranks could send at once.",
    ),
    Mistake(
        "some_receive_first",
        among_several(_takes(lambda n_ranks: 2)),
        lambda case, got: (
            f"{case}: two messages of {shown(message_s(case))} s one after the other: "
            f"{shown(got.makespan_s)} s. A rank that receives first sends only when it has "
            "received; with `isend` or `irecv` it need not wait for that."
        ),
        "a rank that receives first sends late; start the message without waiting.",
    ),
)
