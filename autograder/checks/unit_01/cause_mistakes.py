"""The typical mistakes of unit 01 with sealed runs, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.checks.unit_01.sealed_runs import ELEMENT_BYTES, public_runs
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from mpedu.runs import SUM_CAUSES, SumRun

GROUPS = {
    "what comes out": ("only_rank_0", "divided", "tail_lost"),
    "what is sent": ("whole_arrays", "through_rank_0"),
    "when it ends, and healthy runs": ("none", "in_turn"),
}
_RESULTS = (
    "results_evidence",
    "Compare what each rank gets with the sum, rank by rank and element by element.",
)
_BYTES = (
    "bytes_evidence",
    "The sums are right. Compare what each rank sent with 2(p-1)/p n, rank by rank.",
)
_TIME = (
    "time_evidence",
    "Sums and bytes are those of a ring. Compare the time with 2(p-1) steps of latency plus the "
    "bytes of one part over the bandwidth.",
)
_EVIDENCE = {
    cause: look
    for cause, look in zip(SUM_CAUSES[1:], (*[_RESULTS] * 3, *[_BYTES] * 2, _TIME), strict=True)
}
_LONG = 1.5  # times a ring's time: far above what uneven parts do, below what a third rank does


def true_cause(run: SumRun) -> str:
    """Which cause all the evidence of a run speaks for."""
    given, total, p = np.array(run.given), np.sum(run.given, axis=0), len(run.given)
    right = [np.array_equal(got, total) for got in run.got]
    n_bytes = ELEMENT_BYTES * len(total)
    if right == [True] + [False] * (p - 1):
        return "only_rank_0"
    if not all(right):
        return (
            "divided"
            if np.allclose(np.array(run.got) * p, np.broadcast_to(total, given.shape))
            else "tail_lost"
        )
    if sum(run.sent_bytes) > 2 * (p - 1) * n_bytes:
        return "whole_arrays"
    if run.sent_bytes[0] == (p - 1) * n_bytes:
        return "through_rank_0"
    return "in_turn" if run.time_s > _LONG * ring_s(run) else "none"


def ring_s(run: SumRun) -> float:
    """Seconds of a ring with parts of one size."""
    p, n_bytes = len(run.given), ELEMENT_BYTES * len(run.given[0])
    return 2 * (p - 1) * (run.latency_s + n_bytes / p / run.bytes_per_s)


def differs_cause(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: which evidence a wrong cause overlooks, None for the right one."""
    if not isinstance(got, str):
        text = f"{_gives(case, got)}; the name of a cause is asked, a str."
        return Diagnosis("no_name", text, "no str comes back; the name of a cause is asked.")
    if got not in SUM_CAUSES:
        text = f"{_gives(case, got)}, which is no cause; the causes are {', '.join(SUM_CAUSES)}."
        general = "the name is not among the causes of the docstring."
        return Diagnosis("unknown_name", text, general)
    right = true_cause(case.args[0])
    if got == right:
        return None
    id, look = _EVIDENCE[got if right == "none" else right]
    return Diagnosis(id, f"{_gives(case, got)}. {look}", f"a cause is not the right one. {look}")


def named(case: Case) -> str:
    """A run by its number, with the way to look at it, where it is a public one."""
    number = next((n for n, known in public_runs().items() if known == case.args[0]), None)
    return f'Run {number} (`print(sealed_run({number}, "01"))`)' if number else "Run"


def _gives(case: Case, got: Any) -> str:
    (run,) = case.args
    given = repr(got) if isinstance(got, str) and len(got) <= 40 else shown(got)
    return (
        f"{named(case)} of {len(run.given)} ranks and {len(run.given[0])} elements: sum_cause "
        f"gives {given}"
    )


Seen = list[tuple[SumRun, str, str]]  # run, right cause, answer


def _mistake(id: str, explains: Callable[[Seen], bool], why: str) -> Mistake:
    def matches(answers: Answers) -> bool:
        return explains([(case.args[0], true_cause(case.args[0]), got) for case, got in answers])

    general = why.replace("rank 0", "rank zero")  # no digit in it may be one of a case
    return Mistake(id, matches, lambda case, got: f"{_gives(case, got)}. {why}", general)


def _wrong_where(causes: tuple[str, ...], given: tuple[str, ...] = ()) -> Callable[[Seen], bool]:
    """Are exactly the runs of these causes wrong, all answered with one of `given`?"""

    def explains(seen: Seen) -> bool:
        wrong = [got for _, right, got in seen if got != right]
        exactly = all((got != right) == (right in causes) for _, right, got in seen)
        return bool(wrong) and exactly and (not given or set(wrong) <= set(given))

    return explains


def _divides(run: SumRun) -> bool:
    return len(run.given[0]) % len(run.given) == 0


def _uneven_is_slow(seen: Seen) -> bool:
    """Are exactly the healthy runs wrong whose parts are uneven?"""
    return all(
        (got != right) == (right == "none" and not _divides(run)) for run, right, got in seen
    )


KNOWN = (
    _mistake(
        "one_name",
        lambda seen: len({got for _, _, got in seen}) == 1,
        "Yours is the same for every run: look at what comes out, at the bytes and at the time.",
    ),
    _mistake(
        "results_alone",
        _wrong_where(("whole_arrays", "through_rank_0", "in_turn"), ("none",)),
        "You look at what comes out only. Right sums may cost too many bytes, or too much time.",
    ),
    _mistake(
        "sum_of_bytes_alone",
        _wrong_where(("through_rank_0",), ("none", "in_turn")),
        "All ranks together send as much through rank 0 as on a ring: compare rank by rank.",
    ),
    _mistake(
        "time_ignored",
        _wrong_where(("in_turn",), ("none",)),
        "You take no notice of the time: right sums and right bytes may still come late.",
    ),
    _mistake(
        "rank_0_alone",
        _wrong_where(("only_rank_0",)),
        "You look at what rank 0 gets only: compare every rank.",
    ),
    _mistake(
        "first_element_alone",
        _wrong_where(("tail_lost",)),
        "You look at the beginning only: compare all elements, to the last.",
    ),
    _mistake(
        "uneven_taken_for_slow",
        _uneven_is_slow,
        "Where the array does not divide by the ranks, healthy parts are uneven: allow bytes and "
        "time a little more than the formula says.",
    ),
)


def known_mistakes(answers: Answers) -> list[Mistake]:
    """The mistakes that explain all answers, told alike in every group of them."""
    if not all(isinstance(got, str) and got in SUM_CAUSES for _, got in answers):
        return []
    wrong = [(case, got) for case, got in answers if got != true_cause(*case.args)]
    if not wrong:
        return []
    told = [(mistake, mistake.text(*wrong[0])) for mistake in KNOWN if mistake.matches(answers)]
    return [
        mistake._replace(matches=lambda _: True, text=lambda *_, text=text: text)
        for mistake, text in told
    ]
