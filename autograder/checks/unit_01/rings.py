"""Cases of unit 01's rank programs, what must come out, and what is wrong with what came out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.checks.programs import (
    OnRanks,
    Ran,
    array_problem,
    called_collective,
    failed,
    on_ranks,
    shown_array,
)
from autograder.diagnosis import (
    Answers,
    Case,
    Diagnosis,
    Miss,
    Mistake,
    StudentError,
    Subject,
)
from autograder.exercise import Draw
from mpedu.simulated.exchange import Wire

BYTES = 8  # of an element
FLOAT_TOLERANCE = 1e-12  # of sums of up to eight numbers below 1

Expected = Callable[[Case, int], Any]
Text = Callable[[Case, Any], str]


class Programs:
    """A subject whose functions are rank programs without collectives: an answer is a run.

    At home the patterns under the collectives are withheld, in grading the meter shows the call:
    both are told alike.
    """

    def __init__(self, subject: Subject) -> None:
        self._ran = Ran(subject)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Runs the program of that name."""
        return lambda *args: self._run(name, *args)

    def _run(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self._ran, name)(*args)
        except StudentError as error:
            if error.kind != "withheld":
                raise
            text = f"{name} calls a collective, which does the exercise for you; use send and recv."
            general = "a collective does the work; use send and recv."
            raise Miss(Diagnosis("collective", text, general)) from None


def link_of(draw: Draw) -> Wire:
    """A link that takes one second for an element, and whole seconds more until it is there."""
    return Wire(latency_s=float(draw.int(1, 5)), bytes_per_s=float(BYTES))


def numbered(name: str, sizes: Sequence[int], link: Wire) -> OnRanks:
    """Rank r holds r0, r1, r2, ...: so a student sees whose element stands where."""
    arrays = [10 * rank + np.arange(size, dtype=np.int64) for rank, size in enumerate(sizes)]
    return on_ranks(name, [(x,) for x in arrays], link)


def drawn(draw: Draw, name: str, sizes: Sequence[int], floats: bool = False) -> OnRanks:
    """Every rank with numbers of its own, whole ones or floats of either sign."""
    rng = np.random.default_rng(draw.rng.getrandbits(64))
    low, high = (-1, 1) if floats else (1, 10**6 if draw.secret else 100)
    arrays = [
        rng.uniform(low, high, size) if floats else rng.integers(low, high, size, dtype=np.int64)
        for size in sizes
    ]
    return on_ranks(name, [(x,) for x in arrays], link_of(draw))


def given(case: Case) -> list[Any]:
    """The array of each rank."""
    return [x for (x,) in case.args[1]]


def n_ranks(case: Case) -> int:
    """How many ranks there are."""
    return int(case.args[0])


def total(case: Case) -> Any:
    """The sum of all ranks' arrays."""
    return np.sum(given(case), axis=0, dtype=given(case)[0].dtype)


def parts_of(case: Case, x: Any) -> list[Any]:
    """As many parts as ranks, as even as can be, larger ones first."""
    return np.array_split(x, n_ranks(case))


def gathered(case: Case, rank: int) -> Any:
    """What an all-gather gives."""
    return np.concatenate(given(case))


def scattered(case: Case, rank: int) -> Any:
    """What a reduce-scatter gives."""
    return parts_of(case, total(case))[rank]


def reduced(case: Case, rank: int) -> Any:
    """What an all-reduce gives."""
    return total(case)


def broadcasted(case: Case, rank: int) -> Any:
    """What a broadcast from rank 0 gives."""
    return given(case)[0]


def is_near(got: Any, due: Any) -> bool:
    """Whether a result is that array: whole numbers exactly, floats but for rounding."""
    if not isinstance(got, np.ndarray) or got.shape != due.shape or got.dtype.kind not in "biuf":
        return False
    if due.dtype.kind != "f":
        return bool(np.array_equal(got, due))
    return bool(np.allclose(got, due, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE))


def wrong_result(expected: Expected) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: on which rank something else than `expected` came back, None for none."""

    def differs(case: Case, got: Any) -> Diagnosis | None:
        bad = failed(case, got) or called_collective(case, got)
        if bad:
            return bad
        for rank, result in enumerate(got.results):
            bad = _wrong_array(f"{case}: rank {rank}", result, expected(case, rank))
            if bad:
                return bad
        return None

    return differs


def _wrong_array(who: str, got: Any, due: Any) -> Diagnosis | None:
    problem = array_problem(got)
    if problem:
        return Diagnosis("no_array", f"{who} {problem}", "some rank does not return an array.")
    if got.shape != due.shape:
        text = f"{who} returns an array of shape {got.shape}, expected {due.shape}."
        return Diagnosis("wrong_shape", text, "some rank returns an array of another shape.")
    if got.dtype != due.dtype:
        text = f"{who} returns {got.dtype} where x is {due.dtype}; keep the dtype of x."
        return Diagnosis("wrong_dtype", text, "some rank returns another dtype than that of x.")
    if is_near(got, due):
        return None
    text = (
        f"{who} returns {shown_array(got)}, expected {shown_array(due)}{_first_apart(got, due)}. "
        "Follow this rank through its steps: what did it send, and where did it put what came?"
    )
    return Diagnosis("differs", text, "some rank returns other numbers.")


def _first_apart(got: Any, due: Any) -> str:
    """Where two arrays first differ, if what is shown of them does not tell."""
    if got.shape != due.shape:
        return ""
    apart = np.flatnonzero(~np.isclose(got, due, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE))
    if not len(apart) or apart[0] < 4:
        return ""
    place = int(apart[0])
    return f" (element {place} is {got[place]:g} and not {due[place]:g})"


def results_are(expected: Expected, case: Case, got: Any) -> bool:
    """Does every rank of a run return that, in whatever dtype?"""
    if isinstance(got, StudentError) or called_collective(case, got):
        return False
    return all(is_near(x, expected(case, rank)) for rank, x in enumerate(got.results))


def result_mistake(id: str, predictions: Sequence[Expected], why: str, general: str) -> Mistake:
    """A mistake seen when one of the predictions gives all results of all runs."""

    def matches(answers: Answers) -> bool:
        # Else what is wrong is something that no prediction speaks of, like the dtype.
        is_off = not all(results_are(EXPECTED[case.name], case, got) for case, got in answers)
        return is_off and any(
            all(results_are(expected, case, got) for case, got in answers)
            for expected in predictions
        )

    return Mistake(id, matches, lambda case, got: f"{_first_wrong(case, got)} {why}", general)


def _first_wrong(case: Case, got: Any) -> str:
    rank = next(r for r, x in enumerate(got.results) if not _is_due(case, r, x))
    result, due = got.results[rank], EXPECTED[case.name](case, rank)
    return (
        f"{case}: rank {rank} returns {shown_array(result)}, expected {shown_array(due)}"
        f"{_first_apart(result, due)}."
    )


def _is_due(case: Case, rank: int, got: Any) -> bool:
    due = EXPECTED[case.name](case, rank)
    return is_near(got, due) and got.dtype == due.dtype


EXPECTED: dict[str, Expected] = {
    "ring_all_gather": gathered,
    "ring_reduce_scatter": scattered,
    "ring_all_reduce": reduced,
    "tree_broadcast": broadcasted,
}
