"""The typical mistakes of unit 00 in saying whose fault a stop is, and the sentences they draw."""

from collections.abc import Callable
from typing import Any

from autograder.checks.unit_00.stops import CAUSES, Waits, truth
from autograder.checks.values import article, shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake

CYCLE, FINISHED = "cycle", ("never_sent", "never_taken")
_OTHER = dict(zip(FINISHED, reversed(FINISHED), strict=True))


def named(case: Case) -> str:
    """The case for a message, with all that a reader needs to follow it."""
    stops = ", ".join(_spelled(wait) for wait in case.args[0])
    return f"blame([{stops}])" if len(case.args[0]) <= 10 else f"blame({len(case.args[0])} ranks)"


def _spelled(wait: Any) -> str:
    return repr(wait) if wait else "None"


def _problem(got: Any) -> str:
    """What keeps an answer from being a cause with ranks, "" for nothing."""
    if got is None:
        return "gives None; is a return missing?"
    if not isinstance(got, list | tuple) or len(got) != 2:
        return f"gives {shown(got)}; a pair (cause, ranks) is asked."
    cause, ranks = got
    if not isinstance(cause, str):
        return f"gives {article(type(cause).__name__)} as cause; a name is asked."
    if not isinstance(ranks, list | tuple) or any(type(rank) is not int for rank in ranks):
        return f"gives {shown(ranks)} as ranks; a list of ints is asked."
    return ""


def _differs_form(case: Case, got: Any) -> Diagnosis | None:
    problem = _problem(got)
    if problem:
        general = "blame does not give a cause and a list of ranks."
        return Diagnosis("no_pair", f"{named(case)} {problem}", general)
    if got[0] not in CAUSES:
        text = f"{named(case)}: {got[0][:40]!r} is none of the causes {', '.join(CAUSES)}."
        return Diagnosis("unknown_name", text, "blame gives a name that is none of the causes.")
    return None


def differs_cause(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a wrong cause, with the evidence to look at; None for the right one."""
    bad = _differs_form(case, got)
    if bad:
        return bad
    cause, ranks = truth(case.args[0])
    if got[0] == cause:
        return None
    text = f'{named(case)} gives "{got[0]}". {_look(case.args[0], cause, ranks)}'
    return Diagnosis("differs", text, "the cause is another one; follow who waits for whom.")


def _look(waits: Waits, cause: str, ranks: list[int]) -> str:
    if cause == "none":
        return "Does any rank wait at all?"
    start = next(rank for rank, wait in enumerate(waits) if wait)
    way = [start]
    while waits[way[-1]] is not None and way[-1] not in way[:-1] and len(way) < 12:
        way.append((waits[way[-1]] or ("", 0))[1])
    chain = " -> ".join(map(str, way))
    return f"Follow who waits for whom from rank {start}: {chain}. What is at the end?"


def differs_ranks(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: other ranks than those to blame, None for these."""
    bad = _differs_form(case, got)
    if bad:
        return bad
    _, ranks = truth(case.args[0])
    if list(got[1]) == ranks:
        return None
    text = f"{named(case)} blames {_listed(got[1])}, expected {_listed(ranks)}."
    text += _victim_text(case, got)
    return Diagnosis("differs", text, "other ranks are to blame.")


def _victim_text(case: Case, got: Any) -> str:
    """The first rank blamed that only waits, "" where there is none."""
    waits = case.args[0]
    cause, ranks = truth(waits)
    for rank in got[1]:
        if 0 <= rank < len(waits) and waits[rank] and rank not in ranks:
            if cause == "cycle":
                return f" Rank {rank} only waits for others: it is not on the circle."
            return f" Rank {rank} waits for one that waits too, not for a finished one."
    return ""


def _listed(ranks: Any) -> str:
    some = ", ".join(shown(rank) for rank in list(ranks)[:12])
    return f"[{some}{', ..' if len(ranks) > 12 else ''}]"


def _each(matches: Callable[[Waits, str, list[int]], bool]) -> Callable[[Answers], bool]:
    """`matches` for a mistake seen in every answer that has the form asked for."""
    return lambda answers: all(
        not _problem(got) and matches(case.args[0], got[0], list(got[1])) for case, got in answers
    )


def _all_cycles(waits: Waits, cause: str, ranks: list[int]) -> bool:
    return cause == ("cycle" if any(waits) else "none")


def _swapped(waits: Waits, cause: str, ranks: list[int]) -> bool:
    right = truth(waits)[0]
    return cause == _OTHER.get(right, right)


def _only_pairs(waits: Waits, cause: str, ranks: list[int]) -> bool:
    """Is a circle seen only where two ranks wait for each other?"""
    right, blamed = truth(waits)
    return (cause == right) != (right == "cycle" and len(blamed) > 2)


def _by_first(waits: Waits, cause: str, ranks: list[int]) -> bool:
    """Does the call of the first waiting rank decide, where no circle is?"""
    right = truth(waits)[0]
    first = next((wait for wait in waits if wait), None)
    if right not in FINISHED or first is None:
        return cause == right
    return cause == ("never_sent" if first[0] == "recv" else "never_taken")


CAUSE = (
    Mistake(
        "always_cycle",
        _each(_all_cycles),
        lambda case, got: (
            f'{named(case)} gives "cycle". Ranks that wait need not wait in a circle: follow who '
            "waits for whom. Does the way end at a rank that has finished?"
        ),
        "ranks that wait need not wait in a circle: the way may end at one that has finished.",
    ),
    Mistake(
        "swapped_calls",
        _each(_swapped),
        lambda case, got: (
            f'{named(case)} gives "{got[0]}". Who stands in recv misses a message that was never '
            "sent; who stands in send has one that was never taken."
        ),
        "who stands in recv misses a message never sent; in send, it has one never taken.",
    ),
    Mistake(
        "only_pairs",
        _each(_only_pairs),
        lambda case, got: (
            f'{named(case)} gives "{got[0]}". No two ranks wait for each other here, and yet they '
            "wait in a circle: it may lead over any number of ranks."
        ),
        "a circle may lead over more than two ranks.",
    ),
    Mistake(
        "first_waiting",
        _each(_by_first),
        lambda case, got: (
            f'{named(case)} gives "{got[0]}", after the call of the first rank that waits. What '
            "counts is the call of the one that waits for a finished rank."
        ),
        "the call that counts is that of the rank which waits for a finished one.",
    ),
)


def _like(change: Callable[[Waits, list[int]], list[int]]) -> Callable[[Answers], bool]:
    """Are the ranks always those to blame, changed so?"""
    return lambda answers: all(
        not _differs_form(case, got)
        and (not any(case.args[0]) or list(got[1]) == change(case.args[0], truth(case.args[0])[1]))
        for case, got in answers
    )


def _is_circle(waits: Waits) -> bool:
    return truth(waits)[0] == CYCLE


def _with_victims(waits: Waits, ranks: list[int]) -> list[int]:
    """The way from the first rank that waits to where it closes or ends."""
    way = [next(rank for rank, wait in enumerate(waits) if wait)]
    while (wait := waits[way[-1]]) and wait[1] not in way:
        way.append(wait[1])
    return way


def _of_number(waits: Waits, ranks: list[int]) -> list[int]:
    return sorted(ranks)


def _turned(waits: Waits, ranks: list[int]) -> list[int]:
    return [ranks[0], *ranks[:0:-1]] if _is_circle(waits) else ranks


def _as_met(waits: Waits, ranks: list[int]) -> list[int]:
    """The circle from the rank where the way from the first waiting one enters it."""
    if not _is_circle(waits):
        return ranks
    entry = next(rank for rank in _with_victims(waits, ranks) if rank in ranks)
    place = ranks.index(entry)
    return ranks[place:] + ranks[:place]


def _only_finished(waits: Waits, ranks: list[int]) -> list[int]:
    return ranks if _is_circle(waits) else ranks[-1:]


def _all_waiting(waits: Waits, ranks: list[int]) -> list[int]:
    return [rank for rank, wait in enumerate(waits) if wait]


def _ranks_mistake(id: str, change: Callable[[Waits, list[int]], list[int]], why: str) -> Mistake:
    def text(case: Case, got: Any) -> str:
        expected = _listed(truth(case.args[0])[1])
        victim = _victim_text(case, got)
        return f"{named(case)} blames {_listed(got[1])}, expected {expected}. {why}{victim}"

    return Mistake(id, _like(change), text, why)


RANKS = (
    _ranks_mistake(
        "everyone_who_waits",
        _all_waiting,
        "Not everyone who waits is to blame: leave out who waits only for others that wait.",
    ),
    _ranks_mistake(
        "victims_too",
        _with_victims,
        "The way leads to the ranks to blame; those passed before are victims.",
    ),
    _ranks_mistake(
        "order_of_number",
        _of_number,
        "Ranks come in the order of waiting: after each the one that it waits for.",
    ),
    _ranks_mistake(
        "turned_round",
        _turned,
        "The circle is turned round: after each rank comes the one that it waits for.",
    ),
    _ranks_mistake(
        "where_met",
        _as_met,
        "It is the right circle, from where you met it; begin with its smallest rank.",
    ),
    _ranks_mistake(
        "only_finished",
        _only_finished,
        "The rank that waits for the finished one is asked too, before it.",
    ),
)
