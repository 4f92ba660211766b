"""What stands between a check and the student's functions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from autograder.diagnosis import Answers, Case, Diagnosis, Miss, Subject, has_over
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


class Answered:
    """A subject that was asked before: gives its answers again, in the same order."""

    def __init__(self, answers: Answers) -> None:
        self._left = iter(answers)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Gives the next answer, whatever is asked."""
        return lambda *args: next(self._left)[1]


def same_miss(draw: Draw) -> None:
    """Miss as in the group before, without whose success the next one means nothing."""
    diagnosis = draw.groups[-1].diagnosis
    if diagnosis:
        raise Miss(diagnosis)


@contextmanager
def resting_on(draw: Draw, name: str) -> Iterator[None]:
    """A miss inside says that the first group's function, if wrong too, may be the cause."""
    try:
        yield
    except Miss as miss:
        told = miss.diagnosis
        if draw.groups and draw.groups[0].diagnosis:
            told = told._replace(text=f"{told.text} If it calls your {name}, mend that first.")
        raise Miss(told) from None
