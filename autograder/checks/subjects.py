"""What stands between a check and the student's functions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from autograder.diagnosis import (
    Answers,
    Case,
    Diagnosis,
    Miss,
    StudentError,
    Subject,
    examine,
    has_over,
)
from autograder.exercise import Draw


class Bounded:
    """A subject whose first answer of more than `most` parts ends its group with a Miss.

    An answer may hold millions; reading one for every case would take the judge seconds.
    """

    def __init__(self, subject: Subject, most: int) -> None:
        self._subject, self._most = subject, most

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        function = getattr(self._subject, name)
        return lambda *args: self._sized(Case(name, args), function(*args))

    def _sized(self, case: Case, got: Any) -> Any:
        if has_over(self._most, got):
            text = f"{case}: the answer has over {self._most} parts, far more than is asked for."
            raise Miss(
                Diagnosis("too_large", text, "the answer has far more parts than asked for.")
            )
        return got


# After these the next call would most likely end alike, and keep the class or the student waiting.
_FATAL = ("timeout", "crashed")


def outcomes(
    subject: Subject, cases: Sequence[Case], named: Callable[[Case], str] = str
) -> Answers:
    """Every case with its answer, or the Miss in its place, for `Answered` to raise.

    An error is told of the first case, `named`, that gave it. A call that timed out or crashed is
    the last one made: the cases after it are missed alike.
    """
    told: dict[str, Miss] = {}
    answers: Answers = []
    fatal: Miss | None = None
    for case in cases:
        answers.append((case, fatal or _outcome(subject, case, named, told)))
        got = answers[-1][1]
        if isinstance(got, Miss) and got.diagnosis.id in _FATAL:
            fatal = got
    return answers


def _outcome(
    subject: Subject, case: Case, named: Callable[[Case], str], told: dict[str, Miss]
) -> Any:
    try:
        return getattr(subject, case.name)(*case.args)
    except StudentError as error:
        return told.setdefault(error.message, Miss(error.diagnosis(named(case))))
    except Miss as miss:
        return miss


class Answered:
    """A subject that was asked before: gives its answers again, in the same order."""

    def __init__(self, answers: Answers) -> None:
        self._left = iter(answers)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Gives the next answer, whatever is asked."""
        return lambda *args: _given(next(self._left)[1])


def _given(answer: Any) -> Any:
    if isinstance(answer, Miss):
        raise answer
    return answer


def same_miss(draw: Draw) -> None:
    """Miss as in the group before, without whose success the next one means nothing.

    With the same text, so that it is told once.
    """
    label, _, diagnosis = draw.groups[-1]
    if diagnosis:
        general = f'not tried, because "{label}" was missed.'
        raise Miss(diagnosis._replace(general=general))


# Of these the answers say nothing.
_UNANSWERED = ("unwritten", "missing")
_LOST = ("missing", "timeout", "out_of_memory", "crashed")


def missed(draw: Draw) -> bool:
    """Whether the first group has been missed."""
    return bool(draw.groups and draw.groups[0].diagnosis)


def misses(
    subject: Subject, cases: Sequence[Case], differs: Callable[[Case, Any], Diagnosis | None]
) -> bool:
    """Whether some answer is wrong. A function or process that is not there is no wrong answer."""
    try:
        examine(subject, cases, differs)
    except Miss as miss:
        return miss.diagnosis.id not in _LOST
    return False


@contextmanager
def resting_on(name: str, is_wrong: Callable[[], bool]) -> Iterator[None]:
    """A miss inside says that the function `name`, if it `is_wrong`, may be the cause."""
    try:
        yield
    except Miss as miss:
        told = miss.diagnosis
        if told.id not in _UNANSWERED and is_wrong():
            told = told._replace(text=f"{told.text} If it calls your {name}, mend that first.")
        raise Miss(told) from None
